"""Limits on documents that somebody else wrote. JSON is measured on its bytes, before it is decoded.

Three bytes, `[],`, make a list of sixty: a small file of them fills the memory, and one that nests deeply ends the
reader's stack. Both are seen by counting.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

MAX_DEPTH: Final = 100
"""Levels of objects and arrays."""
MAX_VALUES: Final = 2_000_000
"""Members of objects and elements of arrays."""
MAX_FILE: Final = 16 * 1024 * 1024
"""Bytes of a file that people write: a manifest, a story's rules, a page of lore."""

_DOTTED: Final = re.compile(  # a key begins a line, a table or a member
    r"(?m)(?:^|[\[{,])[ \t]*+(?:[\"']?[\w-]++[\"']?[ \t]*+\.[ \t]*+){" + f"{MAX_DEPTH}}}"
)
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_LEVELS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]')
_TOML_LEVELS: Final = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*|[][{}]', re.DOTALL
)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


class DocumentFault(ValueError):
    """A document cannot be used. The message says why; `line` says where, if it is at one place."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line

    def at(self, where: object) -> str:
        """Return the problem behind its place: `FILE:LINE: PROBLEM`."""
        return f"{where}:{self.line}: {self}" if self.line else f"{where}: {self}"


class OutOfBounds(DocumentFault):
    """A document exceeds a limit; the message says which."""


class NestedTooDeeply(OutOfBounds):
    """A document has more levels than are read."""


class NotUtf8(DocumentFault):
    """A document is in another encoding."""


def text_of(content: bytes) -> str:
    """Return a text in UTF-8; raise `NotUtf8` with the line if it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(content, error) from None


def not_utf8(content: bytes, error: UnicodeDecodeError) -> NotUtf8:
    """Return the fault of a content that was not decoded."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return NotUtf8("it is UTF-16; save it as UTF-8", 1)
    line = content.count(b"\n", 0, error.start) + 1
    return NotUtf8(f"it is not UTF-8 (byte {error.start}); save it as UTF-8", line)


def nests_deeper(text: bytes, depth: int) -> bool:
    """Tell if a document has more than `depth` levels of objects and arrays."""
    if len(text) <= 2 * depth or text.count(b"[") + text.count(b"{") <= depth:
        return False
    left = _STRINGS.sub(b"", text).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(depth):  # each time the innermost go
        left = left.replace(b"[]", b"")
    return b"[" in left


def _deep_line(text: bytes, depth: int, pattern: re.Pattern[bytes] = _LEVELS) -> int | None:
    """Return the line in which a document has more than `depth` levels."""
    level = 0
    for found in pattern.finditer(text):
        level += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if level > depth:
            return text.count(b"\n", 0, found.start()) + 1
    return None


def count_values(text: bytes) -> int:
    """Return an upper bound on the number of values: a colon per member; a comma or a bracket per element."""
    colons = text.count(b":")
    return colons if b"[" not in text else colons + text.count(b",") + text.count(b"[")


def check(text: bytes, *, most_values: int = MAX_VALUES, depth: int = MAX_DEPTH) -> int:
    """Raise `OutOfBounds` if a document is too large to decode; return an upper bound on its values."""
    values = count_values(text)
    if values > most_values:
        raise OutOfBounds(f"it has about {values:,} values, more than the {most_values:,} allowed")
    if nests_deeper(text, depth):
        raise NestedTooDeeply(f"it is nested deeper than {depth} levels", _deep_line(text, depth))
    if not text.isascii():
        text.decode()  # msgspec does not look into the fields it ignores
    return values


def read_file(path: Path, most: int = MAX_FILE) -> bytes:
    """Return the content of a file. Raise `OutOfBounds` if it has more than `most` bytes, `OSError` if it is
    unreadable.
    """
    with path.open("rb") as file:
        return read_stream(file, most)


def read_stream(file: BinaryIO, most: int = MAX_FILE) -> bytes:
    """Return what is left of a stream, such as standard input; raise `OutOfBounds` if it has more than `most` bytes."""
    content = file.read(most + 1)
    if len(content) > most:
        raise OutOfBounds(f"it has more than the {most:,} bytes allowed")
    return content


def check_depth(value: Any, depth: int = MAX_DEPTH) -> None:
    """Raise `OutOfBounds` if a decoded document has more than `depth` levels of objects and arrays."""
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise NestedTooDeeply(f"it is nested deeper than {depth} levels")


def decode_toml(text: str, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Decode a TOML document that somebody else wrote; raise `ValueError` if it is invalid."""
    if found := _DOTTED.search(text):  # its reader takes the square of that in time
        line = text.count("\n", 0, found.end()) + 1
        raise OutOfBounds(f"it has a key of more than {MAX_DEPTH} parts", line)
    try:
        data = tomllib.loads(text)
        check_depth(data, depth)
    except (RecursionError, OutOfBounds):
        line_or_none = _deep_line(text.encode(), depth, _TOML_LEVELS)
        raise NestedTooDeeply(f"it is nested deeper than {depth} levels", line_or_none) from None
    return data


def decode_json(text: bytes, *, most_values: int = MAX_VALUES, depth: int = MAX_DEPTH) -> Any:
    """Decode a JSON document that somebody else wrote; raise `ValueError` if it is invalid."""
    check(text, most_values=most_values, depth=depth)
    return msgspec.json.decode(text)
