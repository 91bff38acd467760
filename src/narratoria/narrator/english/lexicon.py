"""Reads `lexicon.toml`, the words of English that the narrators know.

An entry is named by its section and its key: `words("classes.determiners")`, `phrases("lead_ins.plain")`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import product
from typing import Any, Final, TypeAlias

Phrases: TypeAlias = frozenset[tuple[str, ...]]

_CHOICE: Final = re.compile(r"\(([^)]*)\)")
_PART: Final = re.compile(r"<<([\w.]+)>>")


@cache
def _lexicon() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("lexicon.toml").read_text("utf-8"))


def entry(name: str) -> Any:
    """An entry as the file has it."""
    found: Any = _lexicon()
    for key in name.split("."):
        found = found[key]
    return found


@cache
def words(name: str) -> frozenset[str]:
    """The words of an entry."""
    return frozenset(entry(name).split())


@cache
def phrases(name: str) -> Phrases:
    """The phrases of an entry, each as its words."""
    return phrases_in(entry(name))


def phrases_in(text: str) -> Phrases:
    """The phrases of a text: "(good|bad) idea / no" is two phrases of two words and one of one."""
    return frozenset(tuple(one.split()) for part in text.split("/") for one in _expanded(part))


def _expanded(phrase: str) -> Iterator[str]:
    """A phrase with each of its choices: "(good|bad) idea" as "good idea" and "bad idea"."""
    parts = _CHOICE.split(phrase)  # plain text and choices in turn
    ways = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
    return map("".join, product(*ways))


def pattern(name: str) -> re.Pattern[str]:
    """An expression of the lexicon, compiled; its case does not count."""
    return re.compile(_expression(name), re.IGNORECASE)


def _expression(name: str) -> str:
    found = entry(name)
    if not isinstance(found, str):
        return "|".join(found)
    section = name.rpartition(".")[0]

    def part(match: re.Match[str]) -> str:
        beside = "." not in match[1]
        return _expression(f"{section}.{match[1]}") if beside else "|".join(sorted(words(match[1])))

    return _PART.sub(part, "".join(line.strip() for line in found.strip().splitlines()))


def rows(name: str) -> list[list[str]]:
    """The phrases of an entry in order, for tables whose rows are words."""
    return [row.split() for row in entry(name).split("/")]


def starts(said: Sequence[str], openings: Phrases) -> bool:
    """Tell if words begin with one of the phrases."""
    return any(tuple(said[: len(phrase)]) == phrase for phrase in openings)
