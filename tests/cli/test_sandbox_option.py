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
