"""A tool's slots as a clause fills them, each value with how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from narratoria.narrator.local.tool_profiles import Slot

KNOWN: Final = 1.0  # a value the story knows: an enum's word, a named thing, a number, a quotation
WORDS: Final = 0.6  # the player's own words
GUESS: Final = 0.3  # taken from the context, or from likeness of meaning

Likeness: TypeAlias = Callable[[str, str], float]  # of meaning, between two texts; 0 where unknown


@dataclass(frozen=True, slots=True)
class Recent:
    """The things spoken of, the latest last."""

    things: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # stem → things of that kind in state
    said: tuple[str, ...] = ()  # of `things`, those spoken of in this prompt
    people: frozenset[str] = frozenset()  # of the things in state, those that are somebody
    groups: tuple[tuple[str, ...], ...] = ()  # what was named together

    def of_kind(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for word in words for value in self.kinds.get(word, ())))


@dataclass(slots=True)
class Filling:
    input: dict[str, Any] = field(default_factory=dict)
    strength: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)  # slot → values, where the clause lists several
    used: set[int] = field(default_factory=set)  # indices of the tokens that some slot accounts for
    spans: dict[str, tuple[int, ...]] = field(default_factory=dict)  # slot → the tokens of its value
    refers: bool = False  # a pronoun was resolved
    unfit: list[str] = field(default_factory=list)  # what cannot be taken, in words for the player

    def put(self, slot: Slot, value: Any, strength: float, tokens: Sequence[int] = ()) -> None:
        self.input[slot.name] = value
        self.strength[slot.name] = strength
        self.spans[slot.name] = tuple(tokens)
        self.used.update(tokens)
