"""Names of somebody rather than something: of people by their work or kin, and of animals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.words import stems_of

PEOPLE: Final = stems_of("beings.people")
ANIMALS: Final = stems_of("beings.animals")
SHIPS: Final = stems_of("beings.ships")  # "she"


def names_somebody(words: Sequence[str]) -> bool:
    """Tells if stems name a person: "old woman", "captain of the guard"; not "guard post", not "king's crown"."""
    return bool(words) and _head(words) in PEOPLE


def names_animal(words: Sequence[str]) -> bool:
    """Tells if stems name an animal."""
    return bool(words) and _head(words) in ANIMALS


def _head(words: Sequence[str]) -> str:
    """The noun of a name: before "of", and without a number behind it."""
    named = list(words[: words.index("of")] if "of" in words[1:] else words)
    while len(named) > 1 and (named[-1].isdecimal() or len(named[-1]) == 1):
        named.pop()
    return named[-1]
