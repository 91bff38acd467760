"""Inclusion of patterns: tells if everything that one pattern fits is fitted by others too.

A pattern is a small machine that reads words. Two are compared by running both over the same words, as far as they
differ; what takes too many steps counts as not included, so the answer "yes" is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from narratoria.narrator.rules.patterns import MAX_CAPTURED_WORDS, REST, Choice, Group, Part, Parts, Pattern

MOST_STEPS: Final = 4_000
OTHER: Final = "\0"  # a word that no pattern names


class _UpTo(NamedTuple):
    """At most so many words, any."""

    words: int


_State: TypeAlias = tuple[Part | _UpTo, ...]  # the parts that are still to be read
_Moves: TypeAlias = dict[str, set[_State]]  # by the word; OTHER means any


def included(one: Pattern, others: Sequence[Pattern]) -> bool:
    """Tell if every phrase that `one` fits is fitted by some of `others`."""
    begin = frozenset(_closure([other.parts for other in others]))
    waiting = [(state, begin) for state in _closure([one.parts])]
    seen = set(waiting)
    while waiting:
        if len(seen) > MOST_STEPS:
            return False
        state, there = waiting.pop()
        if not state and () not in there:
            return False
        moves = _moves([state])
        theirs = _moves(there)
        anything = theirs.get(OTHER, set())
        for word, targets in moves.items():
            # A word that may be any must be accepted as one that nobody names, and as each that somebody names.
            words = {OTHER, *theirs} if word == OTHER else {word}
            for read in words:
                after = frozenset(_closure(theirs.get(read, set()) | anything))
                for target in _closure(targets):
                    pair = (target, after)
                    if pair not in seen:
                        seen.add(pair)
                        waiting.append(pair)
    return True


def sample(pattern: Pattern) -> list[str]:
    """Return one phrase that the pattern fits, as short as its first alternatives are."""
    return list(_sample(pattern.parts))


def _sample(parts: Parts) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Group) and not part.ways:
            yield OTHER
        elif isinstance(part, Choice | Group):
            if not (isinstance(part, Choice) and part.optional):
                yield from _sample(part.ways[0])
        elif part != REST:
            yield part


def _moves(states: Iterable[_State]) -> _Moves:
    """Return where a word leads from any of these states, which begin with something that reads a word."""
    found: _Moves = {}
    for state in states:
        if not state:
            continue
        head, tail = state[0], state[1:]
        if head == REST:
            found.setdefault(OTHER, set()).add(state)
        elif isinstance(head, str):
            found.setdefault(head, set()).add(tail)
        elif isinstance(head, _UpTo):
            found.setdefault(OTHER, set()).add((_UpTo(head.words - 1), *tail))
        elif isinstance(head, Group):
            found.setdefault(OTHER, set()).add((_UpTo(MAX_CAPTURED_WORDS - 1), *tail))
    return found


def _closure(states: Iterable[_State]) -> set[_State]:
    """Return the states that are reached without a word, each at its end or before a word."""
    found: set[_State] = set()
    waiting = list(states)
    seen = set(waiting)
    while waiting:
        state = waiting.pop()
        head, tail = (state[0], state[1:]) if state else (None, ())
        further: list[_State] = []
        if isinstance(head, Choice | Group) and head.ways:
            further = [(*way, *tail) for way in head.ways]
            if isinstance(head, Choice) and head.optional:
                further.append(tail)
        else:
            if not (isinstance(head, _UpTo) and head.words == 0):
                found.add(state)
            if head == REST or isinstance(head, _UpTo):
                further = [tail]
        for one in further:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found
