"""The paraphrase narrator: finds the rule of a story that a prompt means in other words.

A clause that fits no rule by its words is compared, by sentence embeddings, with phrases that do. The nearest is
given to the rules in its place, so a story's conditions, cases and gates hold however the wish was worded. Where it is
not certain which is meant, the story asks back; what is near to nothing is refused. Both in the story's tone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from narratoria.narrator.embedding.minilm import Embedder
from narratoria.narrator.english.lexicon import entry
from narratoria.narrator.english.normalise import quotes_said
from narratoria.narrator.english.second_thoughts import corrected
from narratoria.narrator.english.words import PARTICLES, PREPOSITIONS, VERBS
from narratoria.narrator.local.suggestions import Reminder
from narratoria.narrator.paraphrase.rule_meanings import Meanings, stems
from narratoria.narrator.paraphrase.rule_phrases import readable
from narratoria.narrator.paraphrase.rule_search import RuleSearch, Understanding
from narratoria.narrator.protocol import Declaration, NarratorRequest, Refusal
from narratoria.narrator.rules.fillable import fill
from narratoria.narrator.rules.patterns import MAX_PROMPT
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.run.plan import PlanDocument

_CHOICES: Final = 3
REFUSAL: Final[Sequence[str]] = entry("rule_lines.refusal")
LEFT_BE: Final = "You let it be."


class ParaphraseNarrator:
    """Leads a prompt to the rules by what it means; raises `Refusal` where it means none of them.

    With `yields`, a question back is a `Refusal` too: a narrator behind this one may know what is meant.
    """

    name = "paraphrase"

    def __init__(
        self,
        scripted: ScriptedNarrator,
        embedder: Embedder,
        *,
        refusal: Sequence[str] = REFUSAL,
        yields: bool = False,
    ) -> None:
        self.scripted = scripted
        self.refusal = tuple(refusal) or REFUSAL
        self._yields = yields
        self._choices: Sequence[str] = ()  # of the last answer
        self._embedder = embedder
        self._meanings: Meanings | None = None
        self._lock = threading.Lock()

    def declare(self, speaker: str = "") -> Declaration:
        return replace(self.scripted.declare(speaker), choices=self._choices)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """The rules' plan for what the prompt means. It thinks in a thread: the loop stays free."""
        return await asyncio.to_thread(self.plan_now, request)

    def plan_now(self, request: NarratorRequest) -> PlanDocument:
        found = self.understand(request)
        self._choices = ()
        if found.doubts:
            return self._ask_back(found, request)
        if found.actions:
            plan = self.scripted.compose(request, found.actions)
            return _with(plan, self.scripted.undone(found.missed, request))
        if found.left_be:
            return msgspec.structs.replace(self.scripted.compose(request, []), narrative=LEFT_BE)
        if found.asked:
            raise Refusal(_vary(self.scripted.rules.unanswered, request), self._offers(request))
        raise self._refuse(request)

    def _ask_back(self, found: Understanding, request: NarratorRequest) -> PlanDocument:
        """The plan of what is certain, and the question whether one of the other actions is meant."""
        wording = (self._words_for(one.rule, request, one.state, one.case) for one in found.doubts)
        choices = list(dict.fromkeys(words for words in wording if words))
        rules = self.scripted.rules
        lines = rules.confirm if found.doubts[0].is_final and len(found.doubts) == 1 else rules.unclear
        quoted = (", or " if rules.language.contracts else ", ").join(f"“{choice}”" for choice in choices)
        line = str(fill(_vary(lines, request), {"choices": quoted}, {}))
        if not choices and lines is rules.unclear:
            raise self._refuse(request)
        if self._yields and not found.actions:
            raise Refusal(line, choices)
        self._choices = choices
        return _with(self.scripted.compose(request, found.actions), line, "\n\n")

    def understand(self, request: NarratorRequest) -> Understanding:
        request = replace(request, prompt=corrected(quotes_said(request.prompt[:MAX_PROMPT])))
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
            phrase = self._words_for(rules[name], request, request.state)
            if phrase is not None:
                offers.setdefault(phrase)
            if len(offers) == _CHOICES:
                break
        return list(offers)

    def _words_for(
        self, rule: Rule, request: NarratorRequest, state: Mapping[str, Any], case: Case | None = None
    ) -> str | None:
        """The words for this case of the rule: a choice on the page, the author's, or a phrase like the prompt.

        For no case in particular, words that do something now and do not end the story.
        """
        said = stems(self.meanings.plain(request.prompt[:MAX_PROMPT]))
        made = sorted(self.meanings.phrases_of(rule.id), key=lambda phrase: -len(said & stems(phrase)))
        for phrase in [*request.choices, *rule.offer, *map(readable, filter(_reads_well, made))]:
            meant = self.scripted.answer(phrase, request, state)
            if meant is None or meant.rule is not rule:
                continue
            if meant.case is case or (
                case is None and meant.acts and not meant.is_final and not rule.fallback
            ):
                return phrase
        return None


def _reads_well(phrase: str) -> bool:
    first, *rest = phrase.split()
    return first in VERBS and bool(rest) and rest[-1] not in PREPOSITIONS | PARTICLES


def _with(plan: PlanDocument, line: str, gap: str = " ") -> PlanDocument:
    """The plan with one more line in its narrative."""
    narrative = gap.join(part for part in (plan.narrative, line) if part)
    return msgspec.structs.replace(plan, narrative=narrative or None)


def _vary(texts: Sequence[str], request: NarratorRequest) -> str:
    return texts[len(request.history) % len(texts)]
