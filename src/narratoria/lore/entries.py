"""Lore that fires: on words, and on conditions over state. Reading it needs no model."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria import bounds
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.expectations import ConditionError
from narratoria.tools.schema.tables import Table, read_as

Logic: TypeAlias = Literal["any", "all", "not_any", "not_all"]

ANY_STATE: Final = Condition()
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
        return self._any_in(self.keywords, text) and self._second_test(text)

    def _second_test(self, text: str) -> bool:
        if not self.also:
            return True
        found = [self._any_in((word,), text) for word in self.also]
        passed = any(found) if self.logic in ("any", "not_any") else all(found)
        return passed != self.logic.startswith("not")

    def _any_in(self, keywords: tuple[str, ...], text: str) -> bool:
        pattern = _pattern(keywords, self.case_sensitive)
        return pattern is not None and pattern.search(text) is not None


@lru_cache(maxsize=16_384)
def _pattern(keywords: tuple[str, ...], case_sensitive: bool) -> re.Pattern[str] | None:
    """Whole words where a script has spaces; every key is escaped, so no key can be a slow expression."""
    parts = [_bounded(word.strip()) for word in keywords if word.strip()]
    if not parts:
        return None
    return re.compile("|".join(parts), 0 if case_sensitive else re.IGNORECASE)


def _bounded(word: str) -> str:
    before = r"(?<!\w)" if _spaced(word[0]) else ""
    after = r"(?!\w)" if _spaced(word[-1]) else ""
    return before + re.escape(word) + after


def _spaced(character: str) -> bool:
    """Tell if the character's script sets words apart by spaces; Chinese and Japanese do not."""
    return character.isalnum() and ord(character) < 0x2E80


def active(entries: Iterable[LoreEntry], text: str, state: Mapping[str, Any]) -> list[LoreEntry]:
    """The entries that fire, in their order."""
    return sorted((entry for entry in entries if entry.fires(text, state)), key=lambda entry: entry.order)


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
        return LoreInvalid(f"lore {name!r}: key {key!r}: {problem}")

    try:
        table = read_as(_FrontMatter, bounds.decode_toml(header), invalid)
        when = condition(table.when)
    except tomllib.TOMLDecodeError as error:
        raise LoreInvalid(f"lore {name!r}: the lines between +++ are not TOML: {error}") from None
    except ConditionError as error:
        raise invalid("when", str(error)) from None
    except bounds.OutOfBounds as error:
        raise LoreInvalid(f"lore {name!r}: the lines between +++: {error}") from None
    return LoreEntry(
        "", table.keywords, table.also, table.logic, when, table.always, order=table.order, name=name
    )
