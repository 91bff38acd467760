"""JSON from outside, read strictly: a repeated key or NaN is refused.

JSON (RFC 8259) leaves the meaning of a repeated key open, and msgspec silently keeps the last. Every key costs one
colon, and the decoded value can be encoded again: if both texts have the same number of colons, no key was dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from narratoria import bounds

_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*:)?|[][{}]')
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some editors write it at the beginning of a file."""
_AT_BYTE: Final = re.compile(r" \(byte (\d+)\)$")
_HALF: Final = re.compile(  # of a character beyond the first 65,536, which takes two
    r"\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F]\w\w)|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F]\w\w"
)

HALF_A_CHARACTER: Final = r"it holds half a character, such as \ud800 alone; write whole ones"


class DuplicateKey(bounds.DocumentFault):
    """An object has the same key twice, so one of its values would be dropped."""


class NotJson(bounds.DocumentFault):
    """A text is no JSON."""


def decode(source: bytes | str) -> Any:
    """The value of a JSON text. Raises `ValueError`, `DuplicateKey` among them, or `RecursionError`."""
    raw = source.encode() if isinstance(source, str) else bytes(source)
    value = _decode_any(raw)
    if not nothing_dropped(raw, raw.count(b":"), value):
        _look_closer(raw)
    return value


def read(content: bytes, first_line: int = 1) -> Any:
    """The value of a JSON document that a person wrote or a file holds; a byte order mark is read over. Raises
    `DocumentFault`, which says what is wrong and in which line: not JSON, not UTF-8, a key twice, half a character, or
    more than `bounds` allows. The document begins in the line `first_line` of its file.
    """
    content = content.removeprefix(BYTE_ORDER_MARK)
    try:
        bounds.check(content)
        return decode(content)
    except (ValueError, RecursionError) as error:
        fault = _fault(content, error, first_line)
    raise fault


def read_file(path: Path, most: int = bounds.MAX_FILE) -> Any:
    """The value of a JSON file. Raises `DocumentFault`, or `OSError` if it cannot be read."""
    return read(bounds.read_file(path, most))


def read_lines(path: Path, most: int | None = None) -> list[tuple[int, Any]]:
    """The values of a JSON Lines file with their lines, at most so many. Raises as `read_file` does."""
    found: list[tuple[int, Any]] = []
    for number, line in enumerate(bounds.read_file(path).split(b"\n"), 1):
        if most is not None and len(found) == most:
            break
        if line.strip():
            found.append((number, read(line, number)))
    return found


def _fault(content: bytes, error: Exception, first_line: int) -> bounds.DocumentFault:
    """Return why a document was refused, with its line; the decoder tells a byte at most."""
    before = first_line - 1
    if isinstance(error, UnicodeDecodeError):
        error = bounds.not_utf8(content, error)
    if isinstance(error, DuplicateKey):
        line, column = place_of_duplicate(content.decode())
        line += before
        return DuplicateKey(f"{error} (line {line}, column {column}); keep one of the two", line)
    if isinstance(error, bounds.DocumentFault):
        error.line = error.line and error.line + before
        return error
    text = content.decode()
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        return NotJson(f"not JSON: {wrong.msg} (column {wrong.colno})", wrong.lineno + before)
    except (ValueError, RecursionError):
        pass
    why = why_unreadable(text, error)
    half, byte = _HALF.search(text) if why == HALF_A_CHARACTER else None, _AT_BYTE.search(why)
    start = len(text[: half.start()].encode()) if half else int(byte[1]) if byte else 0
    return NotJson(f"not JSON: {_AT_BYTE.sub('', why)}", content.count(b"\n", 0, start) + first_line)


def why_unreadable(source: bytes | str, error: Exception) -> str:
    """Return why a JSON text was not read. A decoder calls half a character truncated data, and counts the bytes of a
    wrong one from the beginning of its string.
    """
    try:
        text = source.decode() if isinstance(source, bytes) else source
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeDecodeError as wrong:
        return f"it is not UTF-8 (byte {wrong.start}); save it as UTF-8"
    except UnicodeEncodeError:
        return HALF_A_CHARACTER
    except (ValueError, RecursionError):
        pass
    return str(error)


def is_integer(value: Any) -> bool:
    """Tell if a value is an integer. JSON has one kind of number: 1.0 is the integer 1, as in JSON Schema."""
    return type(value) is int or (type(value) is float and value.is_integer())


def with_integers(data: Any, keys: Collection[str] = ()) -> Any:
    """Return an object with its integers as `int`, also those written 1.0; only those under `keys`, if given."""
    if not isinstance(data, dict):
        return data
    return {
        key: int(one) if type(one) is float and is_integer(one) and (not keys or key in keys) else one
        for key, one in data.items()
    }


def nothing_dropped(source: bytes, colons: int, kept: object) -> bool:
    """Tell if every key of `source`, which has `colons` colons, is in `kept`. False means only that a closer look is
    needed.
    """
    if b"\\" in source and (b"\\u003a" in source or b"\\u003A" in source):
        return False  # an escaped colon is one that only the copy shows
    return colons == _encode(kept).count(b":")


def check_whole(line: bytes) -> None:
    """Check the unknown fields that the typed decoder skipped; raise ValueError for a duplicate key or bad JSON."""
    try:
        if nothing_dropped(line, line.count(b":"), _decode_any(line)):
            return
    except msgspec.DecodeError:
        pass  # a number out of range in an ignored field is still JSON: the slow reader decides
    _look_closer(line)


def _look_closer(source: bytes) -> None:
    json.loads(source, object_pairs_hook=unique, parse_constant=_no_constant, parse_int=str, parse_float=str)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, as `object_pairs_hook` of `json`; raise `DuplicateKey` for a repeated key."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DuplicateKey(f"the key {json.dumps(twice[:60])} appears twice in one object")
    return found


def place_of_duplicate(text: str) -> tuple[int, int]:
    """Tell where the first repeated key of a JSON text stands: its line, and its column in it."""
    seen: list[set[str] | None] = []
    for token in _TOKENS.finditer(text):
        sign = token[0][0]
        if sign in "{[":
            seen.append(set() if sign == "{" else None)
        elif sign in "}]":
            seen.pop()
        elif token[1] and seen and (keys := seen[-1]) is not None:
            key = json.loads(token[0][: token.start(1) - token.start()])
            if key in keys:
                line = text.count("\n", 0, token.start()) + 1
                return line, token.start() - text.rfind("\n", 0, token.start())
            keys.add(key)
    return 1, 1


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
