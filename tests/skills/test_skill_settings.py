"""Settings of skills: a schema, values of the story and of the person, secrets by reference, a data folder."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from narratoria import Session, ToolRegistry
from narratoria.session import Record
from narratoria.skills.skill_library import Place, SkillLibrary, given_places
from narratoria.skills.skill_settings import SettingsInvalid, SkillSettings

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "default": "Oslo"},
        "days": {"type": "integer", "minimum": 1},
        "key": {"type": "string", "format": "password"},
    },
    "additionalProperties": False,
}
SECRET = "s3cret-of-the-sea"
LEAKY = """
import json, os, sys
settings = json.loads(os.environ["NARRATORIA_SKILL_SETTINGS"])
data = os.environ["NARRATORIA_SKILL_DATA"]
open(os.path.join(data, "seen"), "a").write("x")
key = settings.get("key", "")
def emit(event, **more): print(json.dumps({"version": "0", "type": event, **more}), flush=True)
emit("log", level="info", message="with " + key)
folder = os.environ["TMPDIR"] + "/k" + key
os.mkdir(folder)
open(folder + "/" + key + ".txt", "w").write("x" * 65530 + " key=" + key)
emit("asset", assetId="a" + key, kind="text", mediaType="text/plain", path=folder + "/" + key + ".txt",
     metadata={"of": key})
emit("asset", assetId="none", kind="text", mediaType="text/plain", path=folder + "/missing.txt")
emit("state_patch", patch={"city": settings["city"], "got": len(key), "leak": key})
print("stderr has " + key, file=sys.stderr)
if json.load(sys.stdin)["input"].get("fail"):
    emit("error", errorCode="NO", errorMessage="refused " + key)
    emit("done", ok=False)
else:
    emit("done", ok=True, summary="sent " + key)
"""


class Ear:
    full = False

    def __init__(self) -> None:
        self.written = b""

    def push(self, record: Record) -> None:
        self.written += msgspec.json.encode(record)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path / "home"))
    root = tmp_path / "shelf" / "weather"
    (root / "scripts").mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: weather\ndescription: Tells the weather.\n---\n")
    (root / "settings.schema.json").write_text(json.dumps(SCHEMA))
    (root / "scripts" / "ask.py").write_text(LEAKY)
    (root / "scripts" / "ask.tool.json").write_text('{"name": "ask", "description": "Asks."}')
    return tmp_path / "shelf"


def opened(shelf: Path, **story: Any) -> tuple[SkillLibrary, SkillSettings]:
    library = SkillLibrary(given_places([shelf]), wanted={"weather": story})
    assert not library.problems, library.problems
    settings = library.settings_of(library.skills[0])
    assert settings is not None
    return library, settings


async def called(library: SkillLibrary, **arguments: Any) -> tuple[Any, Session, bytes]:
    session, ear = Session(), Ear()
    session.attach(ear)
    result = await ToolRegistry(library).execute("weather.ask", arguments, session=session)
    return result, session, ear.written + repr(result).encode()


async def test_defaults_the_story_and_the_person_each_win_over_the_one_before(shelf: Path) -> None:
    library, settings = opened(shelf)
    assert (await called(library))[1].state["city"] == "Oslo"
    library, settings = opened(shelf, city="Bergen")
    assert (await called(library))[1].state["city"] == "Bergen"
    settings.change({"city": "Tromsø"})
    assert (await called(library))[1].state["city"] == "Tromsø", "without a restart"
    settings.change({"city": None})
    assert (await called(library))[1].state["city"] == "Bergen"


def test_the_file_is_the_persons_own(shelf: Path) -> None:
    _, settings = opened(shelf)
    settings.change({"days": 3})
    assert json.loads(settings.file.read_text()) == {"days": 3}
    assert stat.S_IMODE(settings.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"days": 0}, "days"),
        ({"days": "3"}, "days"),
        ({"colour": "red"}, "colour"),
        ({"key": SECRET}, "key: is a secret; say where it is kept: env:VARIABLE or keyring:ENTRY"),
        ({"key": "env:"}, "is a secret"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(shelf: Path, change: Any, said: str) -> None:
    _, settings = opened(shelf)
    with pytest.raises(SettingsInvalid) as refused:
        settings.change(change)
    assert said in str(refused.value)
    assert not settings.file.exists()


@pytest.mark.parametrize("fail", [False, True])
async def test_a_secret_reaches_the_script_and_no_journal(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, fail: bool
) -> None:
    monkeypatch.setenv("SEA_KEY", SECRET)
    library, settings = opened(shelf)
    settings.change({"key": "env:SEA_KEY"})
    assert SECRET not in settings.file.read_text()
    result, session, written = await called(library, **({"fail": True} if fail else {}))
    assert result.success is not fail, result
    if not fail:
        assert session.state["got"] == len(SECRET), "the script has it"
        assert session.state["leak"] == "***" and result.message == "sent ***"
    assert b"with ***" in written
    kept = b"".join(path.read_bytes() for path in session.assets.root.rglob("*") if path.is_file())
    assert kept.endswith(b" key=***")
    assert b'"name":"***.txt"' in written and b"/k***/missing.txt does not exist" in written
    assert SECRET.encode() not in written + kept


async def test_a_secret_that_is_not_there_fails_the_call_with_what_to_do(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEA_KEY", raising=False)
    library, settings = opened(shelf)
    settings.change({"key": "env:SEA_KEY"})
    result, _, _ = await called(library)
    assert result.error.code == "SETTINGS_MISSING"
    assert "SEA_KEY is not set; set it where narratoria is started" in result.error.message


async def test_a_secret_may_be_in_the_keyring(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, settings = opened(shelf)
    settings.change({"key": "keyring:weather"})
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    result, _, _ = await called(library)
    assert "pip install keyring" in result.error.message
    monkeypatch.delitem(__import__("sys").modules, "keyring")
    (tmp_path / "rings").mkdir()
    (tmp_path / "rings" / "keyring.py").write_text(
        "def get_password(service, name):\n"
        f"    return {SECRET!r} if (service, name) == ('narratoria', 'weather') else None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "rings"))
    _, session, written = await called(library)
    assert session.state["got"] == len(SECRET) and SECRET.encode() not in written
    settings.change({"key": "keyring:other"})
    result, _, _ = await called(library)
    assert "keyring set narratoria other" in result.error.message
    monkeypatch.delitem(__import__("sys").modules, "keyring", raising=False)


async def test_each_skill_has_a_data_folder_that_stays(shelf: Path) -> None:
    library, settings = opened(shelf)
    await called(library)
    await called(library)
    assert (settings.data_folder / "seen").read_text() == "xx"


def test_a_storys_skill_does_not_get_the_settings_of_the_persons_own(shelf: Path) -> None:
    own = SkillLibrary([Place(shelf, "user", own=True)])
    mine = own.settings_of(own.skills[0])
    _, theirs = opened(shelf)
    assert mine is not None and mine.folder.name == "weather"
    assert theirs.folder != mine.folder and theirs.folder.name.startswith("weather-")


def test_a_schema_or_values_of_a_story_that_cannot_be_used_skip_the_skill(shelf: Path) -> None:
    for story, said in (({"days": 0}, "days"), ({"key": "env:HOME"}, "it is a secret, which a person sets")):
        library = SkillLibrary(given_places([shelf]), wanted={"weather": story})
        assert not library.skills
        assert any(said in line for line in library.problems), library.problems
    (shelf / "weather" / "settings.schema.json").write_text("[]")
    library = SkillLibrary(given_places([shelf]))
    assert any("settings.schema.json: expected a JSON Schema" in line for line in library.problems)
