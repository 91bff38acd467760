"""`narratoria new`: a working tool in the language of your choice, with a manifest and a test, or a small story.

The sources lie in `templates/<language>/` and `templates/story/` as package data. In their names and text `@NAME@`
stands for the name, `@MODULE@` for the same as an identifier, `@TITLE@` for the same as a title; the last suffix,
`.in`, keeps linters, compilers and test runners from taking a template for the real thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from narratoria.errors import NarratoriaError

# A leading dash is left out of the pattern of tool names: every command would take such a file for an option.
_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_-]{0,63}")


class SkeletonRefused(NarratoriaError):
    """A skeleton cannot be written; the message says why and what to do."""


class NameRefused(SkeletonRefused):
    """The tool's name is invalid."""


@dataclass(frozen=True)
class Language:
    """A language for new tools, with the commands that build and test one in its folder."""

    title: str
    test: str
    build: str | None = None


LANGUAGES: Final[Mapping[str, Language]] = {
    "python": Language("Python", "python3 test_@MODULE@.py"),
    "bash": Language("bash", "./test.sh"),
    "node": Language("Node.js", "node --test"),
    "c": Language("C", "make test", build="make"),
    "go": Language("Go", "make test", build="make"),
    "rust": Language("Rust", "make test", build="make"),
}

# Kits that are modules of this package as well: the name beside the tool, and the file that is copied.
KITS: Final[Mapping[str, Mapping[str, str]]] = {"python": {"narratoria_sdk.py": "sdk.py"}}


STORY_FILES: Final = (
    "story.toml.in",
    "narrator.toml.in",
    "tools/ring.in",
    "tools/ring.tool.json.in",
    "test_story.py.in",
)


def write_tool(name: str, lang: str, directory: Path) -> list[Path]:
    """Writes the tool into the new folder `directory/name` and returns the files, the tool's source first.

    Nothing is written when anything is in the way.
    """
    _check(name, lang)
    return _write(directory / name, dict(_files(name, lang)))


def write_story(name: str, directory: Path) -> list[Path]:
    """Writes a story into the new folder `directory/name` and returns its files, with a tool and a test."""
    _refuse_path(name)
    if not _NAME.fullmatch(name) or name.startswith("_"):
        raise NameRefused(
            f"{name[:80]!r} cannot name a story; use 1 to 64 of the characters a-z 0-9 _ - and begin with a letter or a"
            " digit, for example 'old-mill'"
        )
    templates = files("narratoria.cli").joinpath("templates").joinpath("story")
    contents = {
        file.removesuffix(".in"): _fill(
            templates.joinpath(*file.split("/")).read_text(encoding="utf-8"), name
        )
        for file in STORY_FILES
    }
    kit = files("narratoria").joinpath("sdk.py").read_text(encoding="utf-8")
    return _write(directory / name, {**contents, "tools/narratoria_sdk.py": kit})


def _write(folder: Path, named: Mapping[str, str]) -> list[Path]:
    """Write files into a folder, or nothing if anything is in the way."""
    contents = {folder / file: text for file, text in named.items()}
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SkeletonRefused(f"{folder} is in the way: it is not a folder; choose another name or move it")
    taken = [path for path in contents if path.exists() or path.is_symlink()]
    if taken:
        listed = ", ".join(str(path) for path in taken)
        raise SkeletonRefused(
            f"nothing was written, since this exists: {listed}; choose another name or move it"
        )
    try:
        for path, text in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            if text.startswith("#!"):
                path.chmod(path.stat().st_mode | 0o111)
    except OSError as problem:
        raise SkeletonRefused(
            f"{problem.filename or folder} cannot be written ({problem.strerror});"
            " choose a folder that you may write to"
        ) from problem
    return list(contents)


def executable(name: str, directory: Path) -> Path:
    """Return the path for `narratoria call` and `check`; compiled languages have it only after their build."""
    return directory / name / name


def next_steps(name: str, lang: str, directory: Path) -> list[str]:
    """Return the commands to run next, ready to paste."""
    _check(name, lang)
    language = LANGUAGES[lang]
    steps = [f"cd {_quoted(str(directory / name))}"]
    if language.build:
        steps.append(language.build)
    steps.append(_fill(language.test, name))
    steps.append(f"narratoria check ./{name}")
    steps.append(f'narratoria call ./{name} --input \'{{"name": "Ada"}}\'')
    return steps


def story_steps(name: str, directory: Path) -> list[str]:
    """Return the commands to run next for a new story, ready to paste."""
    folder = _quoted(str(directory / name))
    return [
        f"narratoria play {folder}",
        f"narratoria check {folder}",
        f"python3 {_quoted(str(directory / name / 'test_story.py'))}",
    ]


def _refuse_path(name: str) -> None:
    """Refuse a path for a name, with the options that were meant."""
    folder, _, last = name.rstrip("/").rpartition("/")
    if folder and _NAME.fullmatch(last):
        raise NameRefused(
            f"{name[:80]!r} is a path; give the name and the folder: {last} --dir {_quoted(folder)}"
        )


def _check(name: str, lang: str) -> None:
    _refuse_path(name)
    if not _NAME.fullmatch(name):
        raise NameRefused(
            f"{name[:80]!r} cannot name a tool; use 1 to 64 of the characters a-z 0-9 _ - and begin with"
            " no dash, for example 'lantern-keeper'"
        )
    if lang not in LANGUAGES:
        raise SkeletonRefused(f"there is no skeleton in {lang[:80]!r}; choose one of: {', '.join(LANGUAGES)}")
    if name in ("makefile", "test") and LANGUAGES[lang].build:
        raise NameRefused(f"a program called {name!r} gets in the way of `make`; choose another name")


def _files(name: str, lang: str) -> Iterator[tuple[str, str]]:
    templates = files("narratoria.cli").joinpath("templates")
    manifest = templates.joinpath("manifest.json.in")
    sources = sorted(templates.joinpath(lang).iterdir(), key=_main_source_first)
    for source in sources:
        yield _fill(source.name.removesuffix(".in"), name), _fill(source.read_text(encoding="utf-8"), name)
    for kit, module in KITS.get(lang, {}).items():
        yield kit, files("narratoria").joinpath(module).read_text(encoding="utf-8")
    yield f"{name}.tool.json", _fill(manifest.read_text(encoding="utf-8"), name)


def _main_source_first(source: Traversable) -> tuple[bool, str]:
    stem = source.name.removesuffix(".in")
    return not (stem == "@NAME@" or stem in ("main.c", "main.go", "main.rs")), source.name


def _fill(text: str, name: str) -> str:
    title = " ".join(word.capitalize() for word in re.split(r"[-_]+", name) if word)
    return text.replace("@NAME@", name).replace("@MODULE@", name.replace("-", "_")).replace("@TITLE@", title)


def _quoted(path: str) -> str:
    return path if re.fullmatch(r"[\w./-]+", path) else "'" + path.replace("'", "'\\''") + "'"
