"""JSON from outside, read strictly: a repeated key or NaN is refused.

JSON (RFC 8259) leaves the meaning of a repeated key open, and msgspec silently keeps the last. Every key costs one
colon, and the decoded value can be encoded again: if both texts have the same number of colons, no key was dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final, NoReturn

import msgspec

from narratoria import bounds

_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*:)?|[][{}]')


class DuplicateKey(ValueError):
    """An object has the same key twice, so one of its values would be dropped."""


def decode(source: bytes | str) -> Any:
    """The value of a JSON text. Raises `ValueError`, `DuplicateKey` among them, or `RecursionError`."""
    raw = source.encode() if isinstance(source, str) else bytes(source)
    value = _decode_any(raw)
    if not nothing_dropped(raw, raw.count(b":"), value):
        _look_closer(raw)
    return value


def read(content: bytes) -> Any:
    """The value of a JSON document that a person wrote or a file holds. Raises `ValueError`, which says what is wrong:
    not JSON, a key twice (and where), half a character, or more than `bounds` allows.
    """
    try:
        bounds.check(content)
        return decode(content)
    except bounds.OutOfBounds:
        raise
    except DuplicateKey as error:
        raise DuplicateKey(f"{error} ({place_of_duplicate(content.decode())}); keep one of the two") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {why_unreadable(content, error)}") from None


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
        return r"it holds half a character, such as \ud800 alone; write whole ones"
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


def place_of_duplicate(text: str) -> str:
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
                return f"line {line}, column {token.start() - text.rfind(chr(10), 0, token.start())}"
            keys.add(key)
    return ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
