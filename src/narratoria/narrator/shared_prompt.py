"""A prompt divided between rules and a narrator behind them: the rules do some of its actions, tools the others.

It is divided only where the rules understood every clause at the beginning, or a clause at the end that needs nothing
of what comes before it, and every other clause is an order. A prompt whose clauses belong together (a condition, an
order word, a list, speech) goes to one narrator as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.mood import Mood, mood
from narratoria.narrator.english.second_thoughts import corrected
from narratoria.narrator.english.words import NOUNISH, VERBS, split_name
from narratoria.narrator.protocol import (
    Declaration,
    Narrator,
    NarratorRequest,
    NoMatch,
    PastTurn,
    declaration_of,
)
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.patterns import bare, clauses, meaningful
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator, foresee, is_hedged, unused
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.state import plain
from narratoria.tools.contract.conditions import Condition

_TIES: Final = words("story_rules.ties")
_QUOTES: Final = frozenset('"“”«»')


@dataclass(frozen=True, slots=True)
class _Share:
    """The part of a prompt that the rules know, and the other."""

    actions: list[Action]
    said: str
    rest: str
    comes_first: bool


class BehindRules:
    """A narrator that plans the part of a prompt which the rules in front of it do not understand."""

    def __init__(self, narrator: Narrator, rules: ScriptedNarrator) -> None:
        self._narrator = narrator
        self._rules = rules
        self._narrated = frozenset[str]()  # ids of the last plan's calls that are the rules'

    @property
    def name(self) -> str:
        return self._narrator.name

    def declare(self, speaker: str = "") -> Declaration:
        return replace(declaration_of(self._narrator, speaker), narrated_calls=self._narrated)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """Its plan for the whole prompt, or the rules' plan for their share and its own for the rest."""
        share = self._share(request)
        self._narrated = frozenset()
        if share is None:
            return await self._narrator.plan(request)
        known = self._rules.compose(request, share.actions)
        if not share.comes_first:  # the rules' share has no calls then
            return _joined(await self._narrator.plan(replace(request, prompt=share.rest)), known)
        self._narrated = frozenset(call.tool_id for call in known.tools)
        state = plain(request.state)
        for action in share.actions:
            state = foresee(action, state)
        spoken = PastTurn(share.said, known.narrative or "")  # what "it" may mean in the rest
        asked = replace(request, prompt=share.rest, state=state, history=[*request.history, spoken])
        return _joined(known, await self._narrator.plan(asked))

    def _share(self, request: NarratorRequest) -> _Share | None:
        """None where one narrator should read the whole."""
        prompt = corrected(request.prompt)
        actions, missed = self._rules.understand(request)
        words = set(prompt.casefold().replace(",", " ").split())
        tied = is_hedged(prompt) or not _TIES.isdisjoint(words) or not _QUOTES.isdisjoint(prompt)
        if not actions or not missed or tied:
            return None
        orders = [self._is_order(one, request) for one in missed]
        if not any(orders):  # "look around and the chest": read as a whole, it might become another action
            raise NoMatch("what the rules leave of it is no order")
        # What rules offer, or end every plan with, is about the state they leave; here more is done to it.
        ends = self._rules.rules.closing or any(a.case.choices or a.rule.fallback for a in actions)
        if ends or not all(orders) or not all(action.available for action in actions):
            return None
        pieces = clauses(prompt, self._rules.rules.language)
        if pieces[-len(missed) :] == missed:
            head, tail = _cut(prompt, pieces, len(pieces) - len(missed))
            return _Share(actions, head, tail, comes_first=True)
        if pieces[: len(missed)] == missed and all(map(_is_told_anyhow, actions)):
            head, tail = _cut(prompt, pieces, len(missed))
            return _Share(actions, tail, head, comes_first=False)
        return None

    def _is_order(self, clause: str, request: NarratorRequest) -> bool:
        language = self._rules.rules.language
        words = bare(meaningful(clause, language), language)
        if not words or mood(list(words)) is not Mood.ORDER:
            return False
        actions = {word for card in request.tools for word in split_name(card.name)}
        return words[0] in VERBS or words[0] in NOUNISH or words[0] in actions


def _is_told_anyhow(action: Action) -> bool:
    """Tell if the words of a rule do not depend on the state, and so may follow calls the rules know nothing of."""
    [case, *others] = action.rule.cases
    named = slots([*case.narrative, *(case.then or ())])
    depends = others or case.when != Condition() or any(name.startswith("state.") for name in named)
    return not depends and not case.calls and not case.patch


def _cut(prompt: str, pieces: list[str], count: int) -> tuple[str, str]:
    """The prompt up to the end of so many pieces, and from the beginning of the next."""
    spelled = [r"\s+".join(map(re.escape, piece.split())) for piece in pieces[: count + 1]]
    found = re.search(rf"({'.*?'.join(spelled[:-1])}).*?({spelled[-1]})", prompt, re.DOTALL)
    return (prompt[: found.end(1)].strip(), prompt[found.start(2) :].strip()) if found else ("", prompt)


def _joined(first: PlanDocument, second: PlanDocument) -> PlanDocument:
    """One plan: the second's calls wait for the first's, and their ids do not collide."""
    before = [call.tool_id for call in first.tools]
    names: dict[str, str] = {}
    for call in second.tools:
        names[call.tool_id] = unused(call.tool_id, [*before, *names.values()])

    def later(call: PlannedCall) -> PlannedCall:
        needs = [*before, *(names[one] for one in call.dependencies)]
        return msgspec.structs.replace(call, tool_id=names[call.tool_id], dependencies=needs)

    told = [part for part in (first.narrative, second.narrative) if part]
    return msgspec.structs.replace(
        first, narrative=" ".join(told) or None, tools=[*first.tools, *map(later, second.tools)]
    )
