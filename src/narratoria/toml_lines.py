"""TOML files of a story, and the lines of keys in them, for messages about them.

`tomllib` reads the file and says if it is valid; it keeps no positions. This walks over the same text once more, only
when there is a mistake to point at, and notes the line where each key and each element of an array begins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from narratoria import bounds
from narratoria.errors import StoryInvalid, StoryProblem

KeyPath: TypeAlias = tuple[str | int, ...]

_GAP: Final = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'', re.DOTALL
)
_KEY: Final = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'')
_DOT: Final = re.compile(r"[ \t]*\.[ \t]*")
_SCALAR: Final = re.compile(
    r"[^\s,#\]}]+(?: \d[^\s,#\]}]*)?"
)  # a date and its time have a space between them
_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_AT_LINE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_AT_PLACE: Final = re.compile(r" \(at [^()]*\)$")
_INLINE_TWICE: Final = re.compile(r"Duplicate inline table key ('.*')")
_HEADER: Final = re.compile(r"[ \t]*(\[\[?)[ \t]*([^\[\]]+?)[ \t]*\]")
_BOM: Final = "\ufeff"


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of a story, or `StoryInvalid` with the line. A byte order mark is read over."""
    text = ""
    try:
        text = bounds.text_of(bounds.read_file(path)).removeprefix(_BOM)
        return bounds.decode_toml(text)
    except FileNotFoundError:
        problem, line = "there is no such file; a story needs it", None
    except tomllib.TOMLDecodeError as error:
        problem, line = toml_fault(text, error)
    except bounds.DocumentFault as error:
        problem, line = str(error), error.line
    except OSError as error:
        problem, line = f"cannot be read: {error}", None
    raise StoryInvalid.of([StoryProblem(path, line, problem)])


def toml_fault(text: str, error: tomllib.TOMLDecodeError) -> tuple[str, int]:
    """Return the problem of a text that is no TOML, and its line."""
    lines = text.split("\n")
    line, column = len(lines), len(lines[-1]) + 1  # at the end
    if found := _AT_LINE.search(str(error)):
        line, column = int(found[1]), int(found[2])
    problem = _AT_PLACE.sub("", str(error))
    header = _HEADER.match(lines[line - 1])
    if header is not None and problem.startswith("Cannot"):
        table = _Walk("\n".join(lines[: line - 1])).header_fault(header[2], one_of_several=header[1] == "[[")
        if table is not None:
            return table, line
    if problem == "Cannot overwrite a value":
        twice = _Walk("\n".join([*lines[: line - 1], lines[line - 1][: column - 1]])).key_twice()
        if twice is not None:
            key, first, line = twice
            return f"the key {key!r} is there twice, first in line {first}; keep one of the two", line
    if found := _INLINE_TWICE.match(problem):
        return f"the key {found[1]} is there twice; keep one of the two", line
    if problem.startswith("Cannot declare"):
        return f"the table {lines[line - 1].strip()} is there twice; join the two", line
    return f"not TOML: {problem} (column {column})", line


def toml_problem(
    path: Path, key: str | KeyPath, message: str, severity: Literal["error", "warning"] = "error"
) -> StoryProblem:
    """Return the problem of a key in a TOML file of a story, with its line."""
    return StoryProblem(path, line_of(path, key), message, severity)


def line_of(path: Path, key: str | KeyPath) -> int | None:
    """Return the line of a key in a file, or that of the nearest table around it; None if the file cannot be read."""
    try:
        lines = key_lines(bounds.read_file(path).decode().removeprefix(_BOM))
    except (OSError, ValueError):
        return None
    return nearest_line(lines, key_path(key) if isinstance(key, str) else key)


def nearest_line(lines: Mapping[KeyPath, int], place: KeyPath) -> int:
    """Return the line of a key, or that of the nearest table around it. The one around all keys begins in line 1."""
    while place:
        if place in lines:
            return lines[place]
        place = place[:-1]
    return 1


def key_path(key: str) -> KeyPath:
    """Return `rule[3].calls[0].tool` as a path."""
    return tuple(int(found[1]) if found[1] else found[2] for found in _PART.finditer(key))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each key and element of a TOML document, which must be valid."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    """One walk over the text. `at` is the place in it; nothing is checked, since `tomllib` has done that.

    It always goes forward, also where the text is cut off before a fault.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.sizes: dict[KeyPath, int] = {}  # elements of arrays of tables so far
        self.twice: tuple[str, int, int] | None = None  # the first key that is there twice, and its lines
        self._counted = (0, 1)  # a place, and its line

    def key_twice(self) -> tuple[str, int, int] | None:
        """Return the first key that is there twice, with its lines. The text is valid but for that."""
        self.document()
        return self.twice

    def header_fault(self, name: str, *, one_of_several: bool) -> str | None:
        """Return what is wrong with the header of a table after the text: it is one of several here, and not there."""
        self.document()
        place: KeyPath = ()
        names = [key.strip("\"'") for key in _KEY.findall(name)]
        for above in names[:-1]:
            place = self._last((*place, above))
        place = (*place, *names[-1:])
        first = self.lines.get(place)
        if first is None or one_of_several == (place in self.sizes):
            return None
        if not one_of_several:
            return f"[{name}] after [[{name}]] in line {first}: write [[{name}]] here too"
        if _HEADER.match(self.text.split("\n")[first - 1]) is None:
            return f"[[{name}]] is one of several tables, and line {first} gives {name!r} a value; keep one of the two"
        return (
            f"[[{name}]] is one of several tables, and line {first} says [{name}]: write [[{name}]] there too"
        )

    def document(self) -> None:
        table: KeyPath = ()
        while self._more():
            start = self.at
            if self.text.startswith("[", start):
                twice = self.text.startswith("[[", start)
                self.at += 2 if twice else 1
                table = self._header(twice)
                if twice:
                    self._note(table[:-1], start)
                self._note(table, start)
                self._past("]")
                self.at += 1 if twice else 0
            else:
                self._pair(table)

    def _header(self, twice: bool) -> KeyPath:
        """Return the table of a header. Part by part, a name that is an array of tables means its last table."""
        place: KeyPath = ()
        names = self._keys()
        for name in names[:-1]:
            place = self._last((*place, name))
        whole = (*place, names[-1])
        if not twice:
            return self._last(whole)
        size = self.sizes.get(whole, 0)
        self.sizes[whole] = size + 1
        return (*whole, size)

    def _last(self, place: KeyPath) -> KeyPath:
        return (*place, self.sizes[place] - 1) if place in self.sizes else place

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        place = table
        names = self._keys()
        for number, name in enumerate(names, 1):
            place = (*place, name)
            first = self.lines.get(place)
            line = self._note(place, start)
            if number == len(names) and first is not None and self.twice is None:
                self.twice = ".".join(names), first, line
        self._past("=")
        self._value(place)

    def _keys(self) -> list[str]:
        names = []
        self.at = self._past_blanks()
        while found := _KEY.match(self.text, self.at):
            name = found[0]
            names.append(name[1:-1] if name[0] in "\"'" else name)
            self.at = found.end()
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                break
            self.at = dot.end()
        return names or [""]

    def _value(self, place: KeyPath) -> None:
        self._more()
        first = self.text[self.at : self.at + 1]
        if first in ("[", "{"):
            self.at += 1
            self._inside(place, "]" if first == "[" else "}")
            return
        found = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1

    def _inside(self, place: KeyPath, close: str) -> None:
        number = 0
        while self._more():
            if self.text[self.at] == close:
                self.at += 1
                return
            if close == "}":
                self._pair(place)
            else:
                self._note((*place, number), self.at)
                self._value((*place, number))
                number += 1

    def _more(self) -> bool:
        """Skip blanks, comments and commas; tell if anything is left."""
        found = _GAP.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at < len(self.text)

    def _past(self, sign: str) -> None:
        """Go on behind the next such sign, or to the end."""
        found = self.text.find(sign, self.at)
        self.at = len(self.text) if found < 0 else found + 1

    def _past_blanks(self) -> int:
        at = self.at
        while self.text[at : at + 1] in (" ", "\t"):
            at += 1
        return at

    def _note(self, place: KeyPath, start: int) -> int:
        at, line = self._counted
        line += self.text.count("\n", at, start)
        self._counted = start, line
        self.lines.setdefault(place, line)
        return line
