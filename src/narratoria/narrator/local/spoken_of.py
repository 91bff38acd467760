"""The things spoken of so far, for the pronouns that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from narratoria.narrator.english.clauses import split_clauses, tokenize
from narratoria.narrator.english.named_things import EntityFinder
from narratoria.narrator.english.phrases import Reading, read
from narratoria.narrator.local.filled_slots import Recent
from narratoria.narrator.local.lists import named_together
from narratoria.narrator.local.tool_matching import Candidate

_MEANS: Final = ("with", "using")  # "it" is rather what something is done to than what it is done with


class SpokenOf:
    """Grows clause by clause, the latest last."""

    def __init__(self, finder: EntityFinder, past: Iterable[str]) -> None:
        """`past` are the player's last prompts."""
        self.things: list[str] = []
        self.values: list[str] = []
        self.groups: list[tuple[str, ...]] = []  # things named together, for "them"
        for prompt in past:
            for clause in split_clauses(tokenize(prompt)):
                reading = read(clause, finder)
                self.groups += named_together(reading)
                named = (phrase.mention.entity for phrase in reading.phrases if phrase.mention)
                self.things += [entity.value for entity in named if entity.firm]
        self._before = len(self.things)

    @property
    def said(self) -> list[str]:
        """The things of this prompt."""
        return self.things[self._before :]

    def recent(self, kinds: Mapping[str, tuple[str, ...]], people: frozenset[str]) -> Recent:
        """All of it, as slots are filled from it."""
        said, groups = tuple(self.said), tuple(self.groups)
        return Recent(tuple(self.things), tuple(self.values), kinds, said, people, groups)

    def add(self, reading: Reading, chosen: Candidate | None) -> None:
        """Adds the things of a clause, and the values of the call it became."""
        if chosen is None:
            plain = (p for p in reading.phrases if not (p.pronoun or p.quoted or p.clausal or p.mention))
            self.things += [phrase.text for phrase in plain]
        phrases = sorted(reading.phrases, key=lambda phrase: phrase.prep not in _MEANS)
        named = [phrase.mention or phrase.about for phrase in phrases]
        self.things += [mention.entity.value for mention in named if mention]
        lists = chosen.filling.lists.values() if chosen else named_together(reading)
        self.groups += [tuple(map(str, several)) for several in lists]
        if chosen:
            means = {at for p in phrases if p.prep in _MEANS for at in range(p.start, p.end)}
            self._add_values(chosen, means)

    def _add_values(self, chosen: Candidate, means: set[int]) -> None:
        spans, given = chosen.filling.spans, chosen.filling.input
        for slot in sorted(chosen.tool.slots, key=lambda slot: means.isdisjoint(spans.get(slot.name, ()))):
            value = given.get(slot.name)
            if isinstance(value, str):
                self.values.append(value)
                if slot.kind == "text" and not slot.quoted:
                    self.things.append(value)
