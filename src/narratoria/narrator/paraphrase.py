"""Meaning over a story's own rules: what the player says in other words becomes what the author foresaw.

A clause that fits no rule by its words is compared, by sentence embeddings, with phrases that do. The nearest is
given to the rules in its place, so a story's conditions, cases and gates hold however the wish was worded. What
is near to nothing is refused, in the story's tone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from narratoria.events import JsonObject
from narratoria.narrator.clauses import Clause, mender, split_clauses, tokenize
from narratoria.narrator.embedding import CachedEmbedder, Embedder
from narratoria.narrator.entities import EntityFinder
from narratoria.narrator.meanings import SOMETHING, Meaning, Meanings, Said, spoken, stems
from narratoria.narrator.phrases import Reading, read
from narratoria.narrator.protocol import NarratorRequest, Refusal
from narratoria.narrator.scripted import Action, ScriptedNarrator, foresee
from narratoria.narrator.vectors import Vectors
from narratoria.narrator.wording import readable
from narratoria.narrator.words import DETERMINERS, stem
from narratoria.plan import PlanDocument
from narratoria.state import plain

# Chosen on evals/paraphrases/development.jsonl; a score is at most 1.6, likeness of meaning at most 1 of it.
TO_TELL: Final = 0.65  # what a rule must score to be told,
TO_ACT: Final = 0.8  # and what to be done: a wrong deed is worse than a wrong word
MARGIN: Final = 0.01  # between the best rule and the next; below it nobody can tell which was meant
STRANGER: Final = 0.32  # how much nearer than an everyday request that no rule is for
_OFFERED: Final = 0.04  # what the page offers just now is a little likelier to be meant,
_DOABLE: Final = 0.06  # and so is what can be done just now
_CONSIDERED: Final = 16
_FRAMES: Final = 6
_CHOICES: Final = 3
_MAX_PROMPT: Final = 2_000
REFUSAL: Final = (
    "You look for a way to do that, and there is none here.",
    "That is not to be done here, or not by you, or not tonight.",
)
LEFT_BE: Final = "You let it be."
_NO_THINGS: Final = EntityFinder(())


@dataclass(frozen=True, slots=True)
class _Understood:
    action: Action
    score: float


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

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """The rules' plan for what the prompt means. It thinks in a thread: the loop stays free."""
        return await asyncio.to_thread(self.plan_now, request)

    def plan_now(self, request: NarratorRequest) -> PlanDocument:
        actions, left_be = self.understand(request)
        if not actions:
            if left_be:
                return msgspec.structs.replace(self.scripted.compose(request, []), narrative=LEFT_BE)
            raise self._refuse(request)
        return self.scripted.compose(request, actions)

    def understand(self, request: NarratorRequest) -> tuple[list[Action], bool]:
        """What the rules do for each clause, and whether there was nothing but clauses that rule a deed out."""
        return _Thought(self, request).actions()

    @property
    def meanings(self) -> Meanings:
        """The phrases of the rules, embedded when first needed; the vectors are kept on disk."""
        with self._lock:
            if self._meanings is None:
                self._meanings = Meanings(self.scripted.rules, self._embedder)
            return self._meanings

    def embed(self, texts: Sequence[str]) -> Vectors:
        if isinstance(self._embedder, CachedEmbedder):
            return self._embedder.embed(texts, keep=False)  # what a player types does not pile up on disk
        return self._embedder.embed(texts)

    def say(self, text: str) -> Said:
        return Said.of(self.meanings.plain(text) or SOMETHING, self.embed)

    def knows_word(self, word: str) -> bool:
        return self._embedder.knows_word(word)

    def _refuse(self, request: NarratorRequest) -> Refusal:
        said = {turn.narrative for turn in request.history[-1:]}
        lines = [line for line in self.refusal if line not in said] or list(self.refusal)
        return Refusal(lines[len(request.history) % len(lines)], self._offers(request))

    def _offers(self, request: NarratorRequest) -> list[str]:
        """What is offered now, else what the rules could do now, nearest to the prompt first."""
        if request.choices:
            return list(request.choices[:_CHOICES])
        said = self.say(request.prompt[:_MAX_PROMPT])
        offers: dict[str, str] = {}
        for meaning in self.meanings.nearest(said, 8 * _CONSIDERED):
            if "{" in meaning.phrase:
                continue
            action = self.scripted.answer(meaning.phrase, request, request.state)
            if action and action.available and not action.rule.fallback and action.rule.id not in offers:
                offers[action.rule.id] = readable(meaning.phrase)
                if len(offers) == _CHOICES:
                    break
        return list(offers.values())


class _Thought:
    """One prompt on its way to the rules."""

    def __init__(self, narrator: ParaphraseNarrator, request: NarratorRequest) -> None:
        self.narrator = narrator
        self.request = request
        self.meanings = narrator.meanings
        self.state: JsonObject = plain(request.state)
        self.thing = ""  # what was spoken of last, for "it"
        offered = [choice for choice in request.choices if self._answer(choice)]
        self.offered = {choice: narrator.say(choice) for choice in offered}

    def actions(self) -> tuple[list[Action], bool]:
        found: list[Action] = []
        asked = False
        for clause in self._clauses():
            if clause.negated:
                continue
            asked = True
            for part in _conjuncts(clause):
                if found and len(part.tokens) == 1 and self._answer(part.text) is None:
                    continue  # a word left over: "to the next | floor"
                action = self._understand(part)
                if action is not None and not (found and action.rule is found[-1].rule):
                    found.append(action)
                    self.state = foresee(action, self.state)
        return found, not asked

    def _clauses(self) -> list[Clause]:
        mend = mender(self.meanings.vocabulary(), self.narrator.knows_word)
        verbs = {stem(phrase.split()[0]) for phrase in self.meanings.phrases}
        tokens = tokenize(self.request.prompt[:_MAX_PROMPT], mend)
        return split_clauses(tokens, lambda word: stem(word) in verbs)

    def _answer(self, words: str) -> Action | None:
        return self.narrator.scripted.answer(words, self.request, self.state)

    def _understand(self, clause: Clause) -> Action | None:
        reading = read(clause, _NO_THINGS)
        text = self._resolved(reading)
        by_words = self._answer(text)
        if by_words is not None and not by_words.rule.fallback:
            return by_words
        meant = self._mean(text, reading)
        return by_words if by_words is not None and (meant is None or meant.rule.fallback) else meant

    def _resolved(self, reading: Reading) -> str:
        """The clause with "it" replaced by what was spoken of before."""
        words = [token.text if token.quoted else token.low for token in reading.tokens]
        nouns = [p for p in reading.phrases if not p.pronoun and not p.quoted and not p.clausal]
        if self.thing:
            for phrase in reading.phrases:
                if phrase.pronoun in ("it", "them", "that", "one") and not phrase.owner:
                    words[phrase.start : phrase.end] = [self.thing] + [""] * (phrase.end - phrase.start - 1)
        if nouns:
            self.thing = nouns[0].text
        return " ".join(word for word in words if word)

    def _mean(self, text: str, reading: Reading) -> Action | None:
        said = self.narrator.say(text)
        best: dict[str, _Understood] = {}
        for meaning in self._candidates(said, reading):
            action = self._answer(meaning.phrase)
            if action is None or (action.rule.fallback and action.rule.id not in meaning.rules):
                continue
            score = meaning.score + _DOABLE * _acts(action)
            held = best.get(action.rule.id)
            if held is None or score > held.score:
                best[action.rule.id] = _Understood(action, score)
        ranked = sorted(best.values(), key=lambda one: -one.score)
        if not ranked:
            return None
        first = ranked[0]
        second = ranked[1].score if len(ranked) > 1 else 0.0
        least = TO_ACT if _acts(first.action) else TO_TELL
        needed = max(least, self.meanings.strangeness(said) + STRANGER)
        return first.action if first.score >= needed and first.score - second >= MARGIN else None

    def _candidates(self, said: Said, reading: Reading) -> Iterator[Meaning]:
        frames = 0
        for meaning in self.meanings.nearest(said, _CONSIDERED):
            if "{" not in meaning.phrase:
                yield meaning
            elif frames < _FRAMES:
                frames += 1
                yield from self._filled(meaning, said, reading)
        for choice, known in self.offered.items():
            score = self.meanings.score(said, known.text, (known.vector, known.deed))
            yield Meaning(choice, score + _OFFERED)

    def _filled(self, meaning: Meaning, said: Said, reading: Reading) -> Iterator[Meaning]:
        """A phrase with groups, filled with what the player spoke of and the phrase does not name itself."""
        own = stems(spoken(meaning.phrase))
        things = [p.text for p in reading.phrases if not p.pronoun and not stems(p.text) <= own]
        slots = [word for word in meaning.phrase.split() if word.startswith("{")]
        if len(things) < len(slots):
            return
        values = dict(zip(slots, things, strict=False))
        phrase = " ".join(values.get(word, word) for word in meaning.phrase.split())
        known = self.narrator.say(phrase)
        yield Meaning(
            phrase, self.meanings.score(said, known.text, (known.vector, known.deed)), meaning.rules
        )


def _acts(action: Action) -> bool:
    """Whether the world is other after it."""
    return bool(action.case.patch) or any(call.required for call in action.case.calls)


def _conjuncts(clause: Clause) -> list[Clause]:
    """ "grab the oil and the rope" is two deeds with one verb."""
    words = [token.low for token in clause.tokens]
    joints = [at for at in range(1, len(words) - 1) if words[at] == "and" and words[at + 1] in DETERMINERS]
    for at in joints:
        things = [index for index in range(1, at) if words[index] in DETERMINERS]
        if things:
            head = clause.tokens[: things[-1]]
            rest = replace(clause, tokens=(*head, *clause.tokens[at + 1 :]))
            return [replace(clause, tokens=clause.tokens[:at]), *_conjuncts(rest)]
    return [clause]
