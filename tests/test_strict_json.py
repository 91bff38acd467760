"""Documents that people write: one reader refuses a key twice, half a character and too much, in every place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from narratoria import strict_json
from narratoria.agent import chosen_model
from narratoria.agent.prompt.overrides import PromptOverrides
from narratoria.cli.plans import _read as read_plan
from narratoria.cli.skills import _value
from narratoria.evals.case_sets import load_catalogue, load_set
from narratoria.kinds.manifest import read_manifest
from narratoria.kinds.openapi.document import read_document
from narratoria.lore.world_info import import_file
from narratoria.mcp_server.offered_prompts import prompts_of_folder
from narratoria.skills.skill import read_skill
from narratoria.skills.skill_settings import SkillSettings

TWICE = '{\n "k": 1,\n "k": 2}'


def settings(folder: Path, schema: str) -> SkillSettings:
    skill = folder / "one"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: one\ndescription: One.\n---\n")
    (skill / "settings.schema.json").write_text(schema)
    return SkillSettings.of(read_skill(skill))


def own_settings(path: Path) -> Any:
    found = settings(path.parent, '{"type": "object"}')
    found.file.parent.mkdir(parents=True)
    found.file.write_bytes(path.read_bytes())
    return found.chosen()


def chosen(path: Path) -> Any:
    (path.parent / "model.json").write_bytes(path.read_bytes())
    return chosen_model.choice()


READERS: dict[str, Callable[[Path], Any]] = {
    "openapi": read_document,
    "openapi text": lambda path: read_document(path.read_text()),
    "lore": import_file,
    "eval set": load_set,
    "eval catalogue": load_catalogue,
    "manifest": read_manifest,
    "settings schema": lambda path: settings(path.parent, path.read_text()),
    "settings": own_settings,
    "model": chosen,
    "overrides": lambda path: PromptOverrides.from_json(path.read_text()),
}


@pytest.mark.parametrize("name", READERS)
def test_a_key_twice_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    path = tmp_path / "given.json"
    path.write_text(TWICE if name != "eval set" else TWICE.replace("\n", ""))
    with pytest.raises(Exception, match=r'"k" appears twice in one object \(line [13], column \d+\)'):
        READERS[name](path)


@pytest.mark.parametrize("given", ['{"k": NaN}', r'{"k": "\ud800"}', '{"k": ' + "[" * 200, "/dev/zero"])
@pytest.mark.parametrize("name", ["openapi", "lore", "eval set", "eval catalogue", "manifest"])
def test_what_is_no_json_or_too_much_is_told_with_the_file(tmp_path: Path, name: str, given: str) -> None:
    path = Path(given) if given.startswith("/") else tmp_path / "given.json"
    if path.parent == tmp_path:
        path.write_text(given)
    with pytest.raises(
        Exception, match=r"half a character|not JSON|nor JSON|nested deeper|more than the"
    ) as told:
        READERS[name](path)
    assert str(path) in str(told.value)


def test_a_value_on_the_command_line_is_read_by_the_same_reader() -> None:
    assert _value('{"k": 1}', None) == {"k": 1}
    assert _value("plain words", None) == "plain words"
    for given in ('{"k":1,"k":2}', "[" * 30_000):
        with pytest.raises(click.UsageError):
            _value(given, None)


def test_a_name_of_a_catalogue_that_no_file_can_have_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(json.dumps({"catalogue": "a" * 400, "prompt": "p", "calls": []}))
    with pytest.raises(Exception, match="line 1: catalogue: no catalogue"):
        load_set(tmp_path / "set.jsonl")


def test_a_prompt_that_is_no_file_is_told_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "prompt").mkdir()
    (tmp_path / "prompt" / "endless.md").symlink_to("/dev/zero")
    (tmp_path / "prompt" / "good.md").write_text("Hello.")
    told: list[str] = []
    assert [one.name for one in prompts_of_folder(tmp_path, told.append)] == ["good"]
    assert "it is no file" in told[0]


def test_a_plan_that_never_ends_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="more than the"):
        read_plan(Path("/dev/zero"))


def test_a_document_may_have_a_colon_in_a_text() -> None:
    assert strict_json.read(rb'{"a": "b:c", "d": "\u003a"}') == {"a": "b:c", "d": ":"}
