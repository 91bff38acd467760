"""Reading what models write: the JSON in an answer, and one text of it while it is still being written."""

from __future__ import annotations

import json
from typing import Any, Final

from narratoria.errors import ArgumentsInvalid
from narratoria.strict_json import unique

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_decoder: Final = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=unique)


def json_in(text: str) -> Any:
    """Return the JSON object in an answer; text before it and code fences around it are ignored."""
    _, closing, after = text.rpartition("</think>")
    candidate = after if closing else text
    start = candidate.find("{")
    if start < 0:
        raise ArgumentsInvalid([f"no JSON object in {_shown(candidate)}"])
    try:
        found, end = _decoder.raw_decode(candidate, start)
    except (ValueError, RecursionError) as error:
        raise ArgumentsInvalid([f"not JSON: {error}"]) from None
    rest = candidate[end:].strip().strip("`").strip()
    if rest:
        raise ArgumentsInvalid(
            [f"one JSON object and nothing else was asked for; after it came {_shown(rest)}"]
        )
    return found


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


class TextOf:
    """The value of one top-level key of a JSON object, decoded while the object is still arriving.

    Feed it the pieces of the stream; it returns the pieces of the text. No I/O; only the key being read and a started
    escape are kept.
    """

    def __init__(self, key: str, limit: int = 1_000_000) -> None:
        self.key = key
        self.left = limit
        self.done = False
        self._depth = 0
        self._in_string = False
        self._wanted = False  # inside the value we are here for
        self._key_read = ""  # the last string at depth 1
        self._after_colon = False
        self._escape = ""  # a started escape, with its backslash
        self._high = 0  # the first half of a surrogate pair

    def feed(self, piece: str) -> str:
        if self.done:
            return ""
        out: list[str] = []
        for char in piece:
            if self._in_string:
                self._string(char, out)
            else:
                self._structure(char)
            if self._wanted and not self._in_string:
                self.done = True
                break
        text = "".join(out)[: self.left]
        self.left -= len(text)
        self.done = self.done or self.left <= 0
        return text

    def _structure(self, char: str) -> None:
        if char == '"':
            self._in_string = True
            self._wanted = self._depth == 1 and self._after_colon and self._key_read == self.key
            if not self._after_colon:
                self._key_read = ""
        elif char in "{[":
            self._depth += 1
            self._after_colon = char == "["  # the strings of an array are values, never keys
        elif char in "}]":
            self._depth -= 1
            self._after_colon = self._depth > 1
        elif char == ":":
            self._after_colon = True
        elif char == ",":
            self._after_colon = self._depth != 1

    def _string(self, char: str, out: list[str]) -> None:
        if self._escape:
            self._escaped(char, out)
        elif char == "\\":
            self._escape = "\\"
        elif char == '"':
            self._in_string = False
        else:
            self._take(char, out)

    def _escaped(self, char: str, out: list[str]) -> None:
        self._escape += char
        if self._escape[1] != "u":
            self._escape = ""
            self._take(_ESCAPES.get(char, ""), out)
        elif len(self._escape) == 6:
            digits, self._escape = self._escape[2:], ""
            try:
                code = int(digits, 16)
            except ValueError:
                return  # not JSON: the whole answer will be refused
            if 0xD800 <= code < 0xDC00:
                self._high = code
            elif 0xDC00 <= code < 0xE000:
                if self._high:
                    self._take(chr(0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)), out)
                self._high = 0
            else:
                self._take(chr(code), out)

    def _take(self, char: str, out: list[str]) -> None:
        if self._wanted:
            out.append(char)
        elif self._depth == 1 and not self._after_colon and len(self._key_read) < 64:
            self._key_read += char
