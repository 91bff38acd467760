"""The knowledge that greedy players share of a story: the cases that answered, and the change each made to the state.

A player asks it for words: for a case that never answered and may answer now, or for the next step to a state in which
one may. Nothing is called for that: the rules tell which case would answer, and the state after it is foreseen from
what the case changed the last time.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from narratoria.authoring.ways import Change, Ways, reached_when
from narratoria.events import JsonObject
from narratoria.narrator.paraphrase.rule_phrases import phrases, readable
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.narrator.rules.scripted import ScriptedNarrator

Aim: TypeAlias = tuple[str, int]
"""A case: the id of its rule, and its number there."""

_PHRASES: Final = 40  # made of each rule
_WORDS_TRIED: Final = 15  # in one search for words that reach a case
_CASES_TRIED: Final = 6  # in one turn
_GIVEN_UP: Final = 4  # situations without words for a case that seemed open
_SLOT: Final = re.compile(r"\{(\w+)\}")
_THINGS: Final = ("it", "stone", "door", "water")


class ExploredStory:
    """The rules of a story, and what players found out about them."""

    def __init__(self, narrator: ScriptedNarrator, start: JsonObject) -> None:
        self.narrator = narrator
        self.start = start
        self.rules = {rule.id: rule for rule in narrator.rules.rules}
        self.reached: Counter[Aim] = Counter()
        self.changes: dict[Aim, Change] = {}
        self.said: dict[Aim, str] = {}  # words that a case answered
        self.searched: Counter[Aim] = Counter()  # situations in which there were no words for it
        self._in_vain: set[tuple[Aim, int]] = set()  # each with the situation
        self._no_way: set[tuple[bytes, int, Aim]] = set()  # from a state, with so many changes known
        self._no_step: set[tuple[bytes, Aim]] = set()  # from a state: another rule takes its words
        self.claimed: dict[Aim, int] = {}  # by the player who is on the way to it
        self._numbers = {id(case): at for rule in narrator.rules.rules for at, case in enumerate(rule.cases)}
        self._when = {
            (rule.id, at): reached_when(rule, at)
            for rule in self.rules.values()
            for at in range(len(rule.cases))
        }
        self._ways: Ways[Aim] = Ways(self._when.values())
        self._phrases: dict[str, list[str]] = {}

    def aim_of(self, rule: Rule, case: Case) -> Aim:
        return rule.id, self._numbers[id(case)]

    def case(self, aim: Aim) -> Case:
        return self.rules[aim[0]].cases[aim[1]]

    def ends(self, aim: Aim) -> bool:
        """Tell if this case ends the story."""
        return "ending" in self.case(aim).patch

    def learn(self, aims: Sequence[Aim], before: JsonObject, after: JsonObject) -> None:
        """Note the cases that answered a turn; one that answered alone has made the change."""
        self.reached.update(aims)
        for aim in aims:
            self.claimed.pop(aim, None)
        if len(aims) == 1:
            self.changes[aims[0]] = Change.between(before, after)

    # --- words ---------------------------------------------------------------------------------------------

    def command(self, rule: Rule, state: Mapping[str, Any], chance: random.Random) -> str:
        """Some words that fit the patterns of a rule."""
        known = self._phrases.get(rule.id)
        if known is None:
            known = self._phrases[rule.id] = phrases(rule.patterns, _PHRASES) or [rule.id]
        things = [*_names(state), *_THINGS]
        return readable(_SLOT.sub(lambda _: chance.choice(things), chance.choice(known)))

    def words_for(self, aim: Aim, state: JsonObject, chance: random.Random) -> str | None:
        """Words that this case answers in this state, alone; None if none were found."""
        tried = set[str]()
        for number in range(_WORDS_TRIED):
            known = self.said.get(aim) if number == 0 else None
            words = known or self.command(self.rules[aim[0]], state, chance)
            if words not in tried and self._is_answered_by(aim, words, state):
                self.said[aim] = words
                return words
            tried.add(words)
        return None

    def _is_answered_by(self, aim: Aim, words: str, state: JsonObject) -> bool:
        request = NarratorRequest(words, state)
        action = self.narrator.answer(words, request, state)  # cheaper, and nearly always right
        if action is None or self.aim_of(action.rule, action.case) != aim:
            return False
        actions, _ = self.narrator.understand(request)
        return [self.aim_of(action.rule, action.case) for action in actions] == [aim]

    # --- aims ----------------------------------------------------------------------------------------------

    def open_aims(self, state: JsonObject) -> list[Aim]:
        """The cases that may answer in this state: past those of the same rule that surely do."""
        found: list[Aim] = []
        for rule in self.rules.values():
            for at, case in enumerate(rule.cases):
                if case.when.may_hold(state):
                    found.append((rule.id, at))
                    if not case.when.reads_words:
                        break
        return found

    def new_aims(self, player: int) -> set[Aim]:
        """The cases that never answered and that no other player is on the way to."""
        return {
            (rule.id, at)
            for rule in self.rules.values()
            for at in range(len(rule.cases))
            if self._is_new((rule.id, at)) and self.claimed.get((rule.id, at), player) == player
        }

    def _is_new(self, aim: Aim) -> bool:
        return not self.reached[aim] and self.searched[aim] < _GIVEN_UP

    def next_here(
        self, wanted: set[Aim], state: JsonObject, chance: random.Random, *, ends_first: bool
    ) -> tuple[Aim, str] | None:
        """One of the wanted cases that answers here, and the words for it. Those that leave the state as it is come
        first, so that a state is made use of before it is left; endings come last or first.
        """
        opened = self.open_aims(state)
        situation = hash(tuple(opened))
        here = [aim for aim in opened if aim in wanted and (aim, situation) not in self._in_vain]
        chance.shuffle(here)
        here.sort(key=lambda aim: self._order(aim, ends_first))
        for aim in here[:_CASES_TRIED]:
            words = self.words_for(aim, state, chance)
            if words is not None:
                return aim, words
            self._in_vain.add((aim, situation))
            self.searched[aim] += 1
        return None

    def _order(self, aim: Aim, ends_first: bool) -> tuple[bool, ...]:
        rule, case = self.rules[aim[0]], self.case(aim)
        is_known = any(self.reached[rule.id, at] for at in range(len(rule.cases)))
        return rule.is_final(case) != ends_first, case.acts, is_known

    # --- ways ----------------------------------------------------------------------------------------------

    def avoid(self, step: Aim, state: JsonObject) -> None:
        """Note that a case that seemed open does not answer in this state."""
        self._no_step.add((self._ways.signature(state), step))

    def way_to(self, wanted: set[Aim], state: JsonObject) -> list[Aim]:
        """The cases to go through until a wanted one may answer, and that one; empty if none was found."""
        here, known = self._ways.signature(state), len(self.changes)
        goals = [(aim, self._when[aim]) for aim in sorted(wanted) if (here, known, aim) not in self._no_way]
        if not goals:
            return []
        acting = [
            (aim, self._when[aim], change)
            for aim, change in self.changes.items()
            if self.case(aim).acts and not self.ends(aim)
        ]
        avoided = {aim for at, aim in self._no_step if at == here}
        return self._ways.find(
            state, acting, goals, avoided, lambda aim: self._no_way.add((here, known, aim))
        )


def _names(state: Mapping[str, Any]) -> list[str]:
    """Words for things: the keys of the state, which are often their names."""
    found: list[str] = []
    for key, value in state.items():
        found.append(key)
        if isinstance(value, Mapping):
            found += map(str, value)
    return found[:50]
