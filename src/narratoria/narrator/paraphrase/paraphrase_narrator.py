"""The paraphrase narrator: finds the rule of a story that a prompt means in other words.

A clause that fits no rule by its words is compared, by sentence embeddings, with phrases that do. The nearest is
given to the rules in its place, so a story's conditions, cases and gates hold however the wish was worded. What
is near to nothing is refused, in the story's tone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from narratoria.narrator.embedding.minilm import Embedder
from narratoria.narrator.english.second_thoughts import corrected
from narratoria.narrator.local.suggestions import Reminder
from narratoria.narrator.paraphrase.rule_meanings import Meanings
from narratoria.narrator.paraphrase.rule_phrases import readable
from narratoria.narrator.paraphrase.rule_search import RuleSearch, Understanding
from narratoria.narrator.protocol import Declaration, NarratorRequest, Refusal
from narratoria.narrator.rules.patterns import MAX_PROMPT
from narratoria.narrator.rules.rule_file import Rule
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator
from narratoria.run.plan import PlanDocument

_CHOICES: Final = 3
REFUSAL: Final = (
    "You look for a way to do that, and there is none here.",
    "That is not to be done here, or not by you, or not tonight.",
)
LEFT_BE: Final = "You let it be."


class ParaphraseNarrator:
    """Leads a prompt to the rules by what it means; raises `Refusal` where it means none of them."""

    name = "paraphrase"

    def __init__(
        self, scripted: ScriptedNarrator, embedder: Embedder, *, refusal: Sequence[str] = REFUSAL
    ) -> None:
        self.scripted = scripted
        self.refusal = tuple(refusal) or REFUSAL
        self._embedder = embedder
        self._meanings: Meanings | None = None
        self._lock = threading.Lock()

    def declare(self, speaker: str = "") -> Declaration:
        return self.scripted.declare(speaker)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """The rules' plan for what the prompt means. It thinks in a thread: the loop stays free."""
        return await asyncio.to_thread(self.plan_now, request)

    def plan_now(self, request: NarratorRequest) -> PlanDocument:
        found = self.understand(request)
        turn = len(request.history)
        if found.confirm is not None:
            line = _vary(self.scripted.rules.confirm, turn)
            if not found.actions:
                raise Refusal(line, self._plainly(found.confirm, request))
            plan = self.scripted.compose(request, found.actions)
            return msgspec.structs.replace(plan, narrative=f"{plan.narrative or ''}\n\n{line}".strip())
        if found.actions:
            plan = self.scripted.compose(request, found.actions)
            told = [plan.narrative, self.scripted.undone(found.missed, request)]
            return msgspec.structs.replace(plan, narrative=" ".join(part for part in told if part) or None)
        if found.left_be:
            return msgspec.structs.replace(self.scripted.compose(request, []), narrative=LEFT_BE)
        if found.asked:
            raise Refusal(_vary(self.scripted.rules.unanswered, turn), self._offers(request))
        raise self._refuse(request)

    def understand(self, request: NarratorRequest) -> Understanding:
        request = replace(request, prompt=corrected(request.prompt[:MAX_PROMPT]))
        return RuleSearch(self.scripted, self.meanings, request).understanding()

    @property
    def meanings(self) -> Meanings:
        """The phrases of the rules."""
        with self._lock:
            if self._meanings is None:
                self._meanings = Meanings(self.scripted.rules, self._embedder)
            return self._meanings

    def embed_all(self, state: Mapping[str, Any]) -> None:
        """Embed the phrases before they are needed, those first that may be meant in this state."""
        self.meanings.embed_all(state)

    def _refuse(self, request: NarratorRequest) -> Refusal:
        said = {turn.narrative for turn in request.history[-1:]}
        lines = [line for line in self.refusal if line not in said] or list(self.refusal)
        return Refusal(lines[len(request.history) % len(lines)], self._offers(request))

    def _plainly(self, action: Action, request: NarratorRequest) -> list[str]:
        """Choices: first the words that ask for exactly this action, then what is offered already."""
        for choice in request.choices:
            meant = self.scripted.answer(choice, request, request.state)
            if meant is not None and meant.rule is action.rule:
                return [choice, *[other for other in request.choices if other != choice]][:_CHOICES]
        phrase = self._phrase_for(action.rule, request, request.state)
        return [*([phrase] if phrase else []), *request.choices][:_CHOICES]

    def _offers(self, request: NarratorRequest) -> list[str]:
        """The choices on the page, else actions the rules could do now: first about things of a recalled memory, then
        nearest to the prompt."""
        reminder = Reminder(request.recall())
        if request.choices:
            return sorted(request.choices, key=reminder.rank)[:_CHOICES]
        said = self.meanings.say(request.prompt[:MAX_PROMPT])
        rules = {rule.id: rule for rule in self.scripted.rules.rules}
        open_now = self.meanings.rules_for(said, request.state)
        nearest = self.meanings.nearest(said, open_now, 256)
        near = [name for meaning in nearest for name in sorted(meaning.rules)]
        offers: dict[str, None] = {}
        names = dict.fromkeys([*near, *rules])
        for name in sorted(names, key=lambda name: reminder.rank(*self.meanings.phrases_of(name))):
            phrase = self._phrase_for(rules[name], request, request.state, offered=True)
            if phrase is not None:
                offers.setdefault(phrase)
            if len(offers) == _CHOICES:
                break
        return list(offers)

    def _phrase_for(
        self, rule: Rule, request: NarratorRequest, state: Mapping[str, Any], *, offered: bool = False
    ) -> str | None:
        """The plainest words that make the rule act now; of an offer, nothing that ends the story."""
        for phrase in self.meanings.phrases_of(rule.id):
            if "{" in phrase or " " not in phrase:
                continue
            action = self.scripted.answer(phrase, request, state)
            does_it = action is not None and action.rule is rule and action.acts
            if does_it and not (offered and (rule.fallback or (action is not None and action.is_final))):
                return readable(phrase)
        return None


def _vary(texts: Sequence[str], turn: int) -> str:
    return texts[turn % len(texts)]
