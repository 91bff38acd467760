"""Phrases that players may type, made from the patterns of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from narratoria.narrator.english.words import (
    AUXILIARIES,
    DETERMINERS,
    PARTICLES,
    PREPOSITIONS,
    PRONOUNS,
    SUBJECTS,
)
from narratoria.narrator.rules.patterns import NOWHERE, Op, Pattern

_WALKS: Final = 6  # tries per phrase wanted: many walks end in a phrase that is known already
_LONGEST: Final = 40
_MOVING: Final = frozenset({"go", "walk", "climb", "head", "run", "return", "move", "hurry"})
_NO_ARTICLE: Final = (
    PREPOSITIONS | PARTICLES | DETERMINERS | PRONOUNS | AUXILIARIES | SUBJECTS
    | {"everything", "me", "them", "north", "south", "east", "west", "home", "going", "fast", "who", "what"}
)  # fmt: skip


def phrases(patterns: Sequence[Pattern], limit: int) -> list[str]:
    """At most `limit` phrases that fit the patterns, a fair share of each, plain ones first.

    A group that captures anything stands in them as `{name}`.
    """
    share = max(1, limit // max(1, len(patterns)))
    found: dict[str, None] = {}
    for pattern in patterns:
        own: dict[str, None] = {}
        for phrase in _walks(pattern.program, share * _WALKS):
            if len(own) >= share or len(found) + len(own) >= limit:
                break
            if phrase and phrase not in found:
                own.setdefault(phrase)
        found.update(own)
    return list(found)


def _walks(program: Sequence[Op], count: int) -> Iterator[str]:
    """Ways through a pattern's program. At each fork the way least taken is next, so every word gets its turn."""
    taken: Counter[int] = Counter()
    for _ in range(count):
        words: list[str] = []
        pc, group = 0, ""
        while program[pc][0] != "match" and len(words) < _LONGEST:
            kind, text, jump, _ = program[pc]
            if kind == "word":
                words.append(text)
                pc += 1
            elif kind == "any":
                words.append(f"{{{group}}}")
                pc += 1
            elif kind == "mark":
                group = "" if group else text
                pc += 1
            elif kind == "jump":
                pc = jump
            else:
                pc = _way(program, pc, taken)
                taken[pc] += 1
        yield " ".join(words)


def _way(program: Sequence[Op], pc: int, taken: Counter[int]) -> int:
    """The next instruction after the fork at `pc`."""
    _, _, jump, other = program[pc]
    if program[other][0] == "any" or program[jump][0] == "any":  # "..." and longer captures: not said
        return other if program[jump][0] == "any" else jump
    if program[other - 1][:2] == ("word", NOWHERE):  # may be left out: now and then it is said
        return jump if taken[jump] * 2 + 1 < taken[other] else other
    ways = []
    while program[pc][0] == "split" and program[pc][1:] != ("", 0, 0):
        ways.append(program[pc][2])
        pc = program[pc][3]
        if program[pc][:2] == ("word", NOWHERE):
            break
    return min(ways, key=lambda way: taken[way])


def readable(phrase: str) -> str:
    """A phrase as an offer to the player: "wind clockwork" becomes "Wind the clockwork"."""
    said: list[str] = []
    before = ""
    for index, word in enumerate(phrase.split()):
        if (index == 1 or before in PREPOSITIONS) and word not in _NO_ARTICLE:
            said += ["to", "the"] if before in _MOVING else ["the"]
        said.append(word)
        before = word
    text = " ".join(said)
    return text[:1].upper() + text[1:]
