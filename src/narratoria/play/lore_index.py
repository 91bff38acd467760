"""Lore by the words that could let it fire: of a large book only a few entries are tried on a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from narratoria.lore.entries import LoreEntry

_WORD: Final = re.compile(r"\w+")


class Listed(NamedTuple):
    """A piece of lore: its reference, its kind, and when it fires."""

    ref: str
    kind: str
    entry: LoreEntry


class LoreIndex:
    """Entries by the first word of each of their keywords. What cannot be found that way is tried on every text."""

    def __init__(self, entries: Iterable[Listed]) -> None:
        self._entries = list(entries)
        self._by_word: dict[str, list[int]] = {}
        self._others: list[int] = []
        for number, one in enumerate(self._entries):
            words = {_first_word(key) for key in one.entry.keywords}
            if one.entry.always or not words or None in words:
                self._others.append(number)
                continue
            for word in words:
                self._by_word.setdefault(word or "", []).append(number)

    def __len__(self) -> int:
        return len(self._entries)

    def candidates(self, text: str) -> list[Listed]:
        """Return the entries that may fire on a text, in their order."""
        found = set(self._others)
        if self._by_word:
            for word in {one.casefold() for one in _WORD.findall(text)}:
                found.update(self._by_word.get(word, ()))
        return [self._entries[number] for number in sorted(found)]


def _first_word(key: str) -> str | None:
    """Return the word that a text must have for a keyword to stand in it; None if there is none: of an expression, of a
    script that does not set words apart, of signs alone.
    """
    if key.startswith("/") or "_" in key or any(letter.isalnum() and ord(letter) >= 0x2E80 for letter in key):
        return None
    found = _WORD.search(key)
    return found[0].casefold() if found else None
