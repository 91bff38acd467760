"""Lore that fires: on words, and on conditions over state. Reading it needs no model."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria import bounds
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.toml_lines import key_lines, key_path, nearest_line, toml_fault
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.expectations import ConditionError
from narratoria.tools.contract.regex import Regex, compile_regex
from narratoria.tools.schema.tables import Table, read_as

Logic: TypeAlias = Literal["any", "all", "not_any", "not_all"]

ANY_STATE: Final = Condition()
_EXPRESSION: Final = re.compile(r"\A/(.+)/([a-z]*)\Z", re.DOTALL)
_LONGEST: Final = 500  # characters of an expression
_TRIED_ON: Final = 4_000  # characters of a text that expressions are tried on
_FRONT_MATTER: Final = re.compile(r"\A\+\+\+[ \t]*\r?\n(.*?)\r?\n\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class LoreInvalid(NarratoriaError):
    """A lore file cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class LoreEntry:
    """A piece of lore that fires on words and on conditions over state; where both are given, on both."""

    text: str
    keywords: tuple[str, ...] = ()  # one of them must occur
    also: tuple[str, ...] = ()  # a second test, read by `logic`
    logic: Logic = "any"
    when: Condition = ANY_STATE
    always: bool = False  # needs no keyword
    case_sensitive: bool = False
    order: int = 100  # lower comes first
    name: str = ""

    def fires(self, text: str, state: Mapping[str, Any]) -> bool:
        if not self.text or not self.when.holds(state):
            return False
        if self.always or not self.keywords:
            return self.always or self.when != ANY_STATE
        return self.keyword_in(text) is not None

    def keyword_in(self, text: str) -> str | None:
        """The keyword that stands in `text`, as it stands there, if the second test agrees."""
        found = self._find(self.keywords, text)
        if found is None or not self.also:
            return found
        second = [self._find((word,), text) is not None for word in self.also]
        passed = any(second) if self.logic in ("any", "not_any") else all(second)
        return found if passed != self.logic.startswith("not") else None

    def _find(self, keywords: tuple[str, ...], text: str) -> str | None:
        words, expressions = _matchers(keywords, self.case_sensitive)
        found = words and words.search(text)
        if found:
            return found[0]
        key, one = next((each for each in expressions if each[1].search(text[:_TRIED_ON])), ("", None))
        return (
            next(filter(one.search, text[:_TRIED_ON].split()), key).strip(".,;:!?…“”'\"()") if one else None
        )


def expression(key: str) -> Regex | None:
    """A keyword written as `/an expression/i`, for the matcher that takes linear time; None for plain words. Raise
    `LoreInvalid` for one that it cannot take, or that is too large."""
    found = _EXPRESSION.match(key)
    if found is None:
        return None
    flags = "".join(flag for flag in "ims" if flag in found[2])
    try:
        compiled = compile_regex(f"(?{flags}){found[1]}" if flags else found[1])
    except NarratoriaError as error:
        raise LoreInvalid(str(error).partition("; ")[0]) from None
    if len(key) > _LONGEST or compiled.longest < _TRIED_ON:
        raise LoreInvalid(f"the expression {key[:100]!r} is too large; use shorter repeats, or words")
    return compiled


@lru_cache(maxsize=16_384)
def _matchers(
    keywords: tuple[str, ...], case_sensitive: bool
) -> tuple[re.Pattern[str] | None, tuple[tuple[str, Regex], ...]]:
    """Whole words where a script has spaces, escaped, so that no word can be a slow expression; and expressions."""
    compiled = [(key, _usable(key)) for key in keywords if key.strip()]
    parts = [_bounded(key.strip()) for key, one in compiled if one is None]
    words = re.compile("|".join(parts), 0 if case_sensitive else re.IGNORECASE) if parts else None
    return words, tuple((key, one) for key, one in compiled if one is not None)


def _usable(key: str) -> Regex | None:
    with contextlib.suppress(LoreInvalid):  # what cannot be one stands for itself
        return expression(key)
    return None


def _bounded(word: str) -> str:
    before = r"(?<!\w)" if _spaced(word[0]) else ""
    after = r"(?!\w)" if _spaced(word[-1]) else ""
    return before + re.escape(word) + after


def _spaced(character: str) -> bool:
    """Tell if the character's script sets words apart by spaces; Chinese and Japanese do not."""
    return character.isalnum() and ord(character) < 0x2E80


def front_matter(name: str, text: str) -> tuple[LoreEntry | None, str]:
    """The front matter of a lore file, the lines between `+++`, as an entry without text, and the rest of the file."""
    header = _FRONT_MATTER.match(text)
    return (None, text) if header is None else (_entry(name, header[1]), text[header.end() :])


class _FrontMatter(Table, frozen=True, kw_only=True):
    when: JsonObject = msgspec.field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    logic: Logic = "any"
    always: bool = False
    order: int = 100


def _entry(name: str, header: str) -> LoreEntry:
    def invalid(key: str, problem: str) -> LoreInvalid:
        line = nearest_line(key_lines(header), key_path(key))
        return LoreInvalid(f"lore {name!r}, line {line + 1}: key {key!r}: {problem}")  # +++ is in line 1

    try:
        table = read_as(_FrontMatter, bounds.decode_toml(header), invalid)
        when = condition(table.when)
    except tomllib.TOMLDecodeError as error:
        problem, line = toml_fault(header, error)
        raise LoreInvalid(f"lore {name!r}, line {line + 1}: between +++: {problem}") from None
    except ConditionError as error:
        raise invalid("when", str(error)) from None
    except bounds.OutOfBounds as error:
        raise LoreInvalid(f"lore {name!r}, line {(error.line or 0) + 1}: between +++: {error}") from None
    return LoreEntry(
        "", table.keywords, table.also, table.logic, when, table.always, order=table.order, name=name
    )
