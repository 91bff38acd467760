"""A mistake in a file that an author writes is told with the file and the line, whatever reads the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from narratoria import strict_json
from narratoria.cli.output import read_object
from narratoria.errors import NarratoriaError
from narratoria.evals.case_sets import load_catalogue, load_set
from narratoria.json_lines import key_lines
from narratoria.kinds.manifest import read_manifest
from narratoria.kinds.mcp.server_file import read_server_file
from narratoria.kinds.openapi.document import read_document
from narratoria.lore.entries import front_matter
from narratoria.lore.world_info import import_file
from narratoria.skills.skill import Skill, read_skill
from narratoria.skills.skill_settings import SkillSettings
from narratoria.toml_lines import read_toml

DEEP = b"[" * 150 + b"]" * 150
OBJECT: dict[str, bytes] = {  # each with its mistake in line 3
    "a key twice": b'{\n"name": 1,\n"name": 2}',
    "a key twice inside": b'{"a": [{}, {"b": 1,\n"c": ["x:", {}],\n"b": 2}]}',
    "too deep": b'{\n"a": 1,\n"b": ' + DEEP + b"}",
    "no UTF-8": b'{\n"a": "\xc3\xa9",\n"b": "caf\xe9"}',
    "no JSON": b'{\n"a": 1\n"b": 2}',
    "half a character": b'{\n"a": "\\ud83d\\ude00",\n"b": "\\ud83d"}',
}
TABLE: dict[str, bytes] = {
    "a key twice": b'name = "a"\ntext = """\nname = 1"""\ntext = """\n\nx"""\n'.replace(
        b'text = """\nname', b'text = """x'
    ),
    "a key twice inside": b"x = 1\n\nt = { a = 1, a = 2 }\n",
    "a table twice": b"[a]\n\n[a]\n",
    "too deep": b"x = 1\n\ny = " + DEEP + b"\n",
    "too many parts": b"x = 1\n\n" + b".".join([b"a"] * 150) + b" = 1\n",
    "no UTF-8": b'x = "\xc3\xa9"\n\ny = "caf\xe9"\n',
    "no TOML": b"x = 1\n\ny 2\n",
}
YAML: dict[str, bytes] = {
    "a key twice": b"openapi: 3.1.0\na: 1\na: 2\n",
    "a key twice inside": b"openapi: 3.1.0\ninfo: {title: x}\npaths: {/a: {}, /a: {}}\n",
    "no UTF-8": b"openapi: 3.1.0\na: \xc3\xa9\nb: caf\xe9\n",
    "no YAML": b"openapi: 3.1.0\na: 1\nb: c: d\n",
}
LINES = {
    name: b'{"catalogue": "x"}\n\n' + content.replace(b"\n", b" ") + b"\n" for name, content in OBJECT.items()
}


def of_skill(path: Path) -> Any:
    return SkillSettings.of(Skill("s", "", "", root=path.parent))


READERS: dict[str, tuple[str, Callable[[Path], Any], dict[str, bytes]]] = {
    "manifest": ("ring.tool.json", read_manifest, OBJECT),
    "story": ("story.toml", read_toml, TABLE),
    "cases": ("set.jsonl", load_set, LINES),
    "catalogue": ("catalogue.json", load_catalogue, OBJECT),
    "settings": ("settings.schema.json", of_skill, OBJECT),
    "openapi": ("pets.json", read_document, OBJECT),
    "openapi in YAML": ("pets.yaml", read_document, YAML),
    "world info": ("world.json", import_file, OBJECT),
    "MCP servers": ("mcp.json", read_server_file, OBJECT),
    "option": ("state.json", lambda path: read_object("--state", str(path)), OBJECT),
}


@pytest.mark.parametrize(
    ("kind", "mistake"), [(kind, name) for kind, (_, _, faults) in READERS.items() for name in faults]
)
def test_a_mistake_names_the_file_and_the_line(tmp_path: Path, kind: str, mistake: str) -> None:
    name, read, faults = READERS[kind]
    path = tmp_path / name
    path.write_bytes(faults[mistake])
    with pytest.raises((NarratoriaError, click.ClickException)) as raised:
        read(path)
    told = raised.value.message if isinstance(raised.value, click.ClickException) else str(raised.value)
    before = r"(:|, line |: not YAML that can be used: line |: neither a PNG nor JSON: line )"
    assert re.search(rf"{re.escape(name)}{before}3: ", told), told
    if "twice" in mistake:
        assert "twice" in told
    if mistake == "no UTF-8":
        assert "save it as UTF-8" in told


def test_the_guide_of_a_skill_and_the_top_of_a_lore_file_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(b"---\nname: x\ndescription: caf\xe9\n---\n")
    with pytest.raises(NarratoriaError, match=r"SKILL\.md:3: it is not UTF-8"):
        read_skill(tmp_path)
    for top in ("order = 1\norder = 2", "order = 1\nalwais = true", "order = 1\nalways ="):
        with pytest.raises(NarratoriaError, match="lore 'keeper', line 3: "):
            front_matter("keeper", f"+++\n{top}\n+++\nText.")


def test_the_keys_of_a_manifest_have_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "ring.tool.json"
    good = '{\n"name": "ring",\n"description": "Rings, with a name.",\n%s\n}'
    for key, told in {
        '"timout": 3': "timout: unknown key; did you mean 'timeout'?",
        '"timeout": -1': "timeout",
        '"retry": {"maxRetries": "x"}': "retry",
        '"effects": [{"type": "nothing"}]': "effect",
        '"parameters": {"type": "objet"}': "parameters",
        '"env": ["A B"]': "env",
    }.items():
        path.write_text(good % key)
        with pytest.raises(NarratoriaError) as raised:
            read_manifest(path)
        assert str(raised.value).startswith(f"{path}:4: "), raised.value
        assert told in str(raised.value)


def test_a_byte_order_mark_is_read_over_and_utf_16_is_named(tmp_path: Path) -> None:
    assert strict_json.read(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    (tmp_path / "story.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(tmp_path / "story.toml") == {"a": 1}
    (tmp_path / "story.toml").write_bytes("a = 1\n".encode("utf-16"))
    with pytest.raises(NarratoriaError, match=r"story\.toml:1: it is UTF-16; save it as UTF-8"):
        read_toml(tmp_path / "story.toml")


def test_keys_and_elements_have_their_lines() -> None:
    text = '{"a": {"b": 1,\n"c": [\n{"d": "x:\\"}"},\n2\n]},\n"e": []}'
    lines = key_lines(text)
    assert lines["a",] == lines["a", "b"] == 1
    assert lines["a", "c"] == 2
    assert lines["a", "c", 0] == lines["a", "c", 0, "d"] == 3
    assert lines["a", "c", 1] == 4
    assert lines["e",] == 6
