"""`--sandbox` with the commands that run tools, and the sandbox of a story that somebody else wrote."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from narratoria.kinds.process.confinement import CELLS

pytestmark = pytest.mark.skipif(not CELLS, reason="cells are for Linux")
ROOT = Path(__file__).parents[2]
READER = """cat > /dev/null
if cat "{secret}" > /dev/null 2>&1; then found=true; else found=false; fi
echo '{{"version":"0","type":"state_patch","patch":{{"found":'$found'}}}}'
echo '{{"version":"0","type":"done","ok":true}}'
"""


@pytest.fixture
def reader(narratoria: Any) -> Path:
    """A tool that reads a file outside its folder."""
    secret = narratoria.folder / "secret"
    secret.write_text("secret")
    (narratoria.folder / "tools").mkdir()
    return narratoria.script(READER.format(secret=secret), "tools/reader.sh")


def test_call_and_run_take_the_sandbox_that_a_person_chooses(narratoria: Any, reader: Path) -> None:
    assert narratoria("call", reader, "--json").json["output"] == {"found": True}
    assert narratoria("call", reader, "--json", "--sandbox", "strict").json["output"] == {"found": False}
    assert narratoria("call", reader, "--json", NARRATORIA_SANDBOX="story").json["output"] == {"found": False}
    plan = narratoria.folder / "plan.json"
    plan.write_text(json.dumps({"requestId": "r", "tools": [{"toolId": "a", "toolPath": "reader.sh"}]}))
    ran = narratoria("run", plan, "--tools", reader.parent, "--json", "--sandbox", "story")
    assert ran.json["toolResults"][0]["output"] == {"found": False}, ran
    wrong = narratoria("call", reader, NARRATORIA_SANDBOX="stric")
    assert wrong.code == 1 and "there is no profile 'stric'; known: trusted, story, strict" in wrong.err


LITTERER = """cat > /dev/null
echo x > "$(dirname "$0")/litter" || exit 1
echo '{"version":"0","type":"done","ok":true}'
"""


def test_check_runs_a_tool_in_the_sandbox_that_its_calls_have(narratoria: Any) -> None:
    """A tool of a story that writes beside itself would fail in play: a check that says it conforms is wrong."""
    story = narratoria.folder / "story"
    (story / "tools").mkdir(parents=True)
    (story / "story.toml").write_text("title = 'x'\n")
    tool = narratoria.script(LITTERER, "story/tools/litterer.sh")
    checked = narratoria("check", tool, "--json", NARRATORIA_SANDBOX="")
    assert (checked.code, checked.json["conforms"], checked.json["sandbox"]) == (1, False, "story")
    (exits,) = [one for one in checked.json["rules"] if one["rule"] == "exit-status"]
    assert "it ran in the sandbox 'story'" in exits["detail"], exits
    assert not (tool.parent / "litter").exists()
    trusted = narratoria("check", tool, "--json", "--sandbox", "trusted")
    assert "sandbox" not in trusted.json and (tool.parent / "litter").exists()
    (tool.parent / "litter").unlink()
    other = narratoria.script(LITTERER, "litterer.sh")
    strict = narratoria("check", other, "--sandbox", "strict")
    assert strict.code == 1 and "in the sandbox 'strict'" in strict.out, strict
    assert not (other.parent / "litter").exists()


def test_the_tools_of_a_story_of_somebody_else_run_in_its_sandbox(narratoria: Any) -> None:
    story = shutil.copytree(ROOT / "stories" / "torch", narratoria.folder / "torch")
    options = ("--terminal", "--json", "--narrator", "rules")
    played = narratoria("play", story, *options, stdin="light the torch\n", NARRATORIA_SANDBOX="")
    assert "Torch lit" in played.out, played
    (meta,) = narratoria("sessions", "list", "--json").json
    exported = narratoria.folder / "out.narratoria"
    assert narratoria("sessions", "export", meta["id"], exported).code == 0
    with zipfile.ZipFile(exported) as archive:
        journal = archive.read("journal.ndjson").decode()
    assert '"sandbox":{"profile":"story"' in journal.replace(" ", "")
