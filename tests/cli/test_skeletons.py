"""A skeleton in each language works as it comes: it builds, its test passes, it speaks the protocol."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from narratoria.cli.skeletons import (
    LANGUAGES,
    SkeletonRefused,
    executable,
    next_steps,
    write_story,
    write_tool,
)
from narratoria.events import Done, Log, StatePatch, ToolErrorEvent, ToolEvent, decode_tool_event
from narratoria.kinds.manifest import load_manifest

NEEDS = {
    "python": (),
    "bash": ("bash", "awk"),
    "node": ("node",),
    "c": ("cc", "make", "bash"),
    "go": ("go", "make"),
    "rust": ("rustc", "make"),
}
NAME = "3d-lantern_keeper"


@pytest.fixture(scope="session")
def make_skeleton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Writes and builds the skeleton of a language, once."""
    made: dict[str, Path] = {}
    parent = tmp_path_factory.mktemp("skeletons with a space")

    def make(lang: str) -> Path:
        missing = [need for need in NEEDS[lang] if shutil.which(need) is None]
        if missing:
            pytest.skip(f"the {lang} skeleton is NOT tested here: this machine has no {', '.join(missing)}")
        if lang not in made:
            write_tool(NAME, lang, parent / lang)
            if build := LANGUAGES[lang].build:
                run_in(parent / lang / NAME, build)
            made[lang] = executable(NAME, parent / lang)
        return made[lang]

    return make


def run_in(folder: Path, command: str) -> str:
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("NODE_TEST_CONTEXT", None)
    ended = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=180, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "warning" not in ended.stderr, ended.stderr
    return ended.stdout + ended.stderr


def events_of(tool: Path, request: bytes | dict[str, Any]) -> list[ToolEvent]:
    payload = request if isinstance(request, bytes) else json.dumps(request, ensure_ascii=False).encode()
    ended = subprocess.run(
        [tool], input=payload, capture_output=True, timeout=30, env={**os.environ, "LC_ALL": "C"}
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stdout.endswith(b"\n") and b"\r" not in ended.stdout
    return [decode_tool_event(line) for line in ended.stdout.splitlines()]


def assert_greeting(events: list[ToolEvent], name: str) -> None:
    log, patch, done = events
    assert isinstance(log, Log) and log.fields == {"progress": 0.5}
    assert isinstance(patch, StatePatch) and patch.patch == {"greeting": f"Hello, {name}!"}
    assert done == Done(version="0", ok=True, summary=f"Greeted {name}.")


def assert_polite_refusal(events: list[ToolEvent]) -> None:
    error, done = events
    assert isinstance(error, ToolErrorEvent) and error.error_code == "INVALID_INPUT"
    assert done == Done(version="0", ok=False, summary=error.error_message)


every_language = pytest.mark.parametrize("lang", LANGUAGES)


@every_language
def test_its_own_test_passes(make_skeleton: Any, lang: str) -> None:
    folder = make_skeleton(lang).parent
    assert run_in(folder, LANGUAGES[lang].test.replace("@MODULE@", NAME.replace("-", "_")))


@pytest.mark.parametrize(
    "lang",
    [pytest.param(lang, marks=() if lang in ("python", "sh") else pytest.mark.slow) for lang in LANGUAGES],
)
def test_its_own_test_fails_when_the_tool_is_broken(make_skeleton: Any, lang: str, tmp_path: Path) -> None:
    folder = tmp_path / NAME
    shutil.copytree(make_skeleton(lang).parent, folder)
    tool, source = executable(NAME, tmp_path), folder / write_tool(NAME, lang, tmp_path / "again")[0].name
    source.write_text(source.read_text(encoding="utf-8").replace("Hello, ", "Farewell, "), encoding="utf-8")
    if LANGUAGES[lang].build:
        tool.unlink()
    with pytest.raises(AssertionError, match=r"Farewell"):
        run_in(folder, LANGUAGES[lang].test.replace("@MODULE@", NAME.replace("-", "_")))


@every_language
@pytest.mark.parametrize(
    "name",
    [
        "Ada",
        "é",
        "龍の番人 🐉",
        'say "hi" \\ back/slash',
        "tab\tnew\nline\x01\x1f\x7f",
        "🐉" * 200,
        "%s %n $HOME `id`",
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "utf-8"])
def test_it_greets_any_name(make_skeleton: Any, lang: str, name: str, ascii_only: bool) -> None:
    request = json.dumps({"input": {"name": name}}, ensure_ascii=ascii_only).encode()
    assert_greeting(events_of(make_skeleton(lang), request), name)


@every_language
def test_it_greets_the_world_when_nothing_is_sent(make_skeleton: Any, lang: str) -> None:
    for nothing in (b"", b"{}", b'{"input":{}}', b' {"requestId":"r","tool":"t","operation":"run"}\n'):
        assert_greeting(events_of(make_skeleton(lang), nothing), "world")


@every_language
def test_it_ignores_fields_that_it_does_not_know(make_skeleton: Any, lang: str) -> None:
    request = {
        "name": "no",
        "state": {"input": {"name": "no"}},
        "input": {"later": [{"name": "no"}], "name": "Ada", "é": 1},
    }
    assert_greeting(events_of(make_skeleton(lang), request), "Ada")


@every_language
def test_it_takes_a_mebibyte_beside_its_input(make_skeleton: Any, lang: str) -> None:
    padding = {"text": 'a"\\' * 150_000, "list": list(range(60_000)), "words": ["竜"] * 30_000}
    assert_greeting(events_of(make_skeleton(lang), {"padding": padding, "input": {"name": "Ada"}}), "Ada")


@every_language
def test_it_refuses_a_name_of_a_mebibyte(make_skeleton: Any, lang: str) -> None:
    assert_polite_refusal(events_of(make_skeleton(lang), {"input": {"name": "x" * (1 << 20)}}))


@pytest.mark.parametrize("lang", [lang for lang in LANGUAGES if lang != "bash"])
def test_it_counts_characters_not_bytes(make_skeleton: Any, lang: str) -> None:
    for one in "a", "é", "竜", "🐉":
        assert_greeting(events_of(make_skeleton(lang), {"input": {"name": one * 200}}), one * 200)
        assert_polite_refusal(events_of(make_skeleton(lang), {"input": {"name": one * 201}}))


@every_language
@pytest.mark.parametrize("wrong", [5, -1.5e3, True, [], {}, ["Ada"], {"name": "Ada"}, ""], ids=json.dumps)
def test_it_refuses_a_name_of_the_wrong_type(make_skeleton: Any, lang: str, wrong: Any) -> None:
    assert_polite_refusal(events_of(make_skeleton(lang), {"input": {"name": wrong}}))


@every_language
@pytest.mark.parametrize(
    "bad",
    [
        b"not JSON",
        b"[]",
        b'"text"',
        b"5",
        b'{"input":',
        b'{"input":"x"}',
        b'{"input":[]}',
        b"[" * 100_000,
        b'{"a":"\\',
    ],
    ids=lambda bad: repr(bad[:20]),
)
def test_it_refuses_what_is_no_request(make_skeleton: Any, lang: str, bad: bytes) -> None:
    assert_polite_refusal(events_of(make_skeleton(lang), bad))


@every_language
@pytest.mark.parametrize(
    "bad", [b"\xff\xfe", b"\\ud800", b"\\udc00\\ud83d", b"\xed\xa0\x80", b"\xc0\x80"], ids=repr
)
def test_broken_characters_never_reach_the_events(make_skeleton: Any, lang: str, bad: bytes) -> None:
    events = events_of(make_skeleton(lang), b'{"input":{"name":"%s"}}' % bad)
    assert isinstance(events[-1], Done)


@every_language
def test_the_manifest_fits_the_tool(make_skeleton: Any, lang: str) -> None:
    tool = make_skeleton(lang)
    manifest = json.loads(tool.with_name(f"{NAME}.tool.json").read_text(encoding="utf-8"))
    assert load_manifest(tool).name == manifest["name"] == NAME
    parameters = jsonschema_rs.validator_for(manifest["parameters"])
    for example in manifest["examples"]:
        assert parameters.is_valid(example["input"])
        done = events_of(tool, {"input": example["input"]})[-1]
        assert isinstance(done, Done) and done.ok
    assert not parameters.is_valid({"name": 5}) and not parameters.is_valid({"unknown": 1})


# --- writing them -----------------------------------------------------------------------------------------


@every_language
def test_every_file_is_filled_in_and_scripts_may_be_run(lang: str, tmp_path: Path) -> None:
    written = write_tool("my-tool", lang, tmp_path / "new" / "folder")
    assert {path.parent for path in written} == {tmp_path / "new" / "folder" / "my-tool"}
    assert sorted(written) == sorted((tmp_path / "new" / "folder" / "my-tool").iterdir())
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert (
            "@NAME@" not in text + path.name and "@MODULE@" not in text + path.name and path.suffix != ".in"
        )
        assert bool(path.stat().st_mode & stat.S_IXUSR) == text.startswith("#!")


@every_language
def test_nothing_is_overwritten_and_nothing_half_written(lang: str, tmp_path: Path) -> None:
    manifest = write_tool("my-tool", lang, tmp_path)[-1]
    for path in (tmp_path / "my-tool").iterdir():
        if path != manifest:
            path.unlink()
    manifest.write_text("mine", encoding="utf-8")
    with pytest.raises(SkeletonRefused, match=r"my-tool\.tool\.json.*choose another name"):
        write_tool("my-tool", lang, tmp_path)
    assert [path.read_text(encoding="utf-8") for path in (tmp_path / "my-tool").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["", "A", "a b", "../", "a/B", "-x", "é", "a" * 65, "a.b", "a\n"])
def test_a_bad_name_is_refused_with_an_example_of_a_good_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(SkeletonRefused, match="lantern-keeper"):
        write_tool(name, "python", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_path_for_a_name_is_refused_with_the_options_that_were_meant(tmp_path: Path) -> None:
    for write in (lambda: write_tool("tools/draw", "node", tmp_path), lambda: write_story("a/b", tmp_path)):
        with pytest.raises(SkeletonRefused, match=r"is a path; .*(draw --dir tools|b --dir a)"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_language_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SkeletonRefused, match="python, bash, node, c, go, rust"):
        write_tool("my-tool", "cobol", tmp_path)


@pytest.mark.parametrize("name", ["makefile", "test"])
def test_names_that_break_the_build_are_refused_where_there_is_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(SkeletonRefused, match="make"):
        write_tool(name, "c", tmp_path)
    assert write_tool(name, "python", tmp_path)


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "my-tool").write_text("a file", encoding="utf-8")
    with pytest.raises(SkeletonRefused, match="my-tool is in the way"):
        write_tool("my-tool", "python", tmp_path)
    with pytest.raises(SkeletonRefused, match="cannot be written"):
        write_tool("other", "python", tmp_path / "my-tool")


def test_the_page_for_newcomers_shows_what_the_skeleton_really_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "first-tool.md").read_text(encoding="utf-8")
    write_tool("lantern-keeper", "python", tmp_path)
    tool = executable("lantern-keeper", tmp_path)
    for request in (b'{"input": {"name": "Ada"}}', b'{"input": {"name": 5}}'):
        said = subprocess.run(
            [tool], input=request, capture_output=True, timeout=20, check=True
        ).stdout.decode()
        assert f"$ echo '{request.decode()}' | ./lantern-keeper\n{said}" in page
    for step in next_steps("lantern-keeper", "python", Path()):
        assert f"$ {step}\n" in page
    for lang in LANGUAGES:
        assert f"`{lang}`" in page


def test_the_next_steps_lead_from_the_folder_to_a_call() -> None:
    assert next_steps("my-tool", "c", Path("some where")) == [
        "cd 'some where/my-tool'",
        "make",
        "make test",
        "narratoria check ./my-tool",
        'narratoria call ./my-tool --input \'{"name": "Ada"}\'',
    ]
    assert next_steps("my-tool", "python", Path())[:2] == ["cd my-tool", "python3 test_my_tool.py"]


def test_a_name_that_cannot_be_one_is_a_usage_error(narratoria: Any) -> None:
    ended = narratoria("new", "tool", "Bad Name!")
    assert ended.code == 2
    assert "lantern-keeper" in ended.err and list(narratoria.folder.iterdir()) == [narratoria.temporary]


def test_the_python_test_needs_nothing_but_python(narratoria: Any) -> None:
    narratoria("new", "tool", "lantern-keeper")
    ended = subprocess.run(
        [sys.executable, "-S", "-I", "test_lantern_keeper.py"],
        cwd=narratoria.folder / "lantern-keeper",
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"Ran 3 tests" in ended.stderr


def test_a_language_without_a_skeleton_is_told_that_a_tool_needs_none(narratoria):
    ended = narratoria("new", "tool", "tide-teller", "--lang", "perl")
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "no skeleton in 'perl'" in said
    assert "narratoria check" in said and "docs/first-tool.md" in said
