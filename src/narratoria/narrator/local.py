"""The local narrator: any catalogue, no server. It goes by meaning, and admits what it cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from narratoria.narrator.amends import amended
from narratoria.narrator.clauses import Clause, Token, mender, split_clauses, tokenize
from narratoria.narrator.embedding import CachedEmbedder, Embedder
from narratoria.narrator.entities import EntityFinder, find_entities
from narratoria.narrator.filling import Recent
from narratoria.narrator.lists import alternatives, leaves_over, left_out, pairs, spread, with_tail, without
from narratoria.narrator.matching import NONE, Candidate, Sense, ToolIndex, fingerprint
from narratoria.narrator.mood import Mood
from narratoria.narrator.phrases import Phrase, Reading, read
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard
from narratoria.narrator.replies import (
    UNKNOWN,
    WHICH,
    document,
    not_understood,
    quoted_after_colon,
    what_is_wanting,
)
from narratoria.narrator.suggestions import suggest
from narratoria.narrator.vectors import Vectors, np
from narratoria.narrator.words import DETERMINERS, NOUNISH, VERBS, stem
from narratoria.plan import PlanDocument, PlannedCall

_CHOICES: Final = 3
_MAX_CALLS: Final = 24
_MAX_PROMPT: Final = 2_000  # characters; what follows is not read
_MAX_NAMES: Final = 4_000
_THE: Final = Token("the", "the")  # what follows it is no verb


@dataclass(slots=True)
class _Step:
    """A clause that became calls."""

    clause: int
    calls: list[PlannedCall]
    refers_to: int | None


class LocalNarrator:
    """Splits a prompt into clauses, finds the tool each one means and fills its input."""

    def __init__(self, embedder: Embedder, *, threshold: float = 0.0, name: str = "local") -> None:
        """`threshold` is added to what a tool must score to be called: above 0 refuses more, below 0 less."""
        self._embedder = embedder
        self._tuned = embedder.tuned()
        self._threshold = threshold
        self._name = name
        self._indexes: dict[bytes, ToolIndex] = {}
        self._names: dict[str, Vectors] = {}
        self._working: dict[tuple[bytes, frozenset[str], str], bool] = {}

    @property
    def name(self) -> str:
        return self._name

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """The plan for `request.prompt`, or `Refusal`. It thinks in a thread: the loop stays free."""
        return await asyncio.to_thread(self.plan_now, request)

    def plan_now(self, request: NarratorRequest) -> PlanDocument:
        written = quoted_after_colon(request.prompt[:_MAX_PROMPT])
        if written is not None:
            quoting = replace(request, prompt=written[0])
            if _Thought(self, quoting).takes_down(written[1]):
                return _Thought(self, quoting).plan()
        return _Thought(self, request).plan()

    def warm_up(self, tools: Sequence[ToolCard]) -> None:
        """Embed a catalogue before the first prompt arrives."""
        self.index(tools)

    def index(self, tools: Sequence[ToolCard]) -> ToolIndex:
        key = fingerprint(tools)
        if key not in self._indexes:
            if len(self._indexes) >= 16:
                self._indexes.pop(next(iter(self._indexes)))
            self._indexes[key] = ToolIndex.build(tools, self._embedder, self._tuned)
        return self._indexes[key]

    def outweighs(self, candidate: Candidate) -> bool:
        """Whether it is likelier meant than nothing at all."""
        return candidate.own_score > NONE + self._threshold

    def embed(self, texts: Sequence[str], *, tuned: bool = False) -> Vectors:
        embedder = self._tuned if tuned else self._embedder
        if isinstance(embedder, CachedEmbedder):
            return embedder.embed(texts, keep=False)
        return embedder.embed(texts)

    def embed_names(self, texts: Sequence[str]) -> Vectors:
        """The same for names of things, which recur from turn to turn."""
        fresh = [text for text in texts if text not in self._names]
        if fresh:
            if len(self._names) > _MAX_NAMES:
                self._names.clear()
                fresh = list(texts)
            self._names.update(zip(fresh, self.embed(fresh), strict=True))
        return np.stack([self._names[text] for text in texts])

    def knows_word(self, word: str) -> bool:
        return self._embedder.knows_word(word)

    def remember(self, key: tuple[bytes, frozenset[str], str], find: Callable[[], bool]) -> bool:
        """Whether a choice works, found out once per catalogue and set of things."""
        if key not in self._working:
            if len(self._working) > _MAX_NAMES:
                self._working.clear()
            self._working[key] = find()
        return self._working[key]


def observe(narrator: LocalNarrator, request: NarratorRequest) -> list[list[Candidate]]:
    """Per clause that asks for something: all tools, best first."""
    thought = _Thought(narrator, request)
    with suppress(Refusal):  # what was weighed is of interest, not the verdict
        thought.plan()
    return thought.observed


class _Thought:
    """One prompt on its way to a plan."""

    def __init__(self, narrator: LocalNarrator, request: NarratorRequest) -> None:
        self.narrator = narrator
        self.request = request
        self.prompt = request.prompt[:_MAX_PROMPT]
        self.index = narrator.index(request.tools)
        self.finder = EntityFinder(find_entities(request.state))
        self.kinds, self.people = self.finder.kinds(), self.finder.people()
        self.verbs = {verb for tool in self.index.tools for verb in tool.verbs}
        self.mend = mender(self.index.words() | self.finder.vocabulary(), narrator.knows_word)
        self.steps: list[_Step] = []
        self.unknown: list[Clause] = []
        self.almost: list[Candidate] = []
        self.things = self._past_things()
        self.before = len(self.things)  # what follows was spoken of in this prompt
        self.values: list[str] = []
        self.observed: list[list[Candidate]] = []
        self.held_back = self.open_choice = False
        self.left_out: dict[int, list[Phrase]] = {}

    def plan(self) -> PlanDocument:
        clauses, asked = self._understand()
        self._hold_back(clauses)
        if not self.steps:
            if clauses and not asked:
                return document(self.request, "So be it: nothing is done.", [])
            raise self._refusal()
        return document(self.request, self._narrative(), self._ordered(clauses))

    def _hold_back(self, clauses: Sequence[Clause]) -> None:
        """What waits for a deed that was not understood is not done without it, nor one of two that were offered."""
        done = {step.clause for step in self.steps}
        either = {i for at, clause in enumerate(clauses) if clause.either for i in (at - 1, at)}
        lost = {index for index, clause in enumerate(clauses) if self._is_lost(clause)}
        if either and either <= done:
            self.open_choice = True
            lost |= either
        grown = True
        while grown:
            late = {index for index in done - lost if lost & set(clauses[index].after)}
            grown = bool(late)
            lost |= late
        self.held_back = any(step.clause in lost for step in self.steps)
        self.steps = [step for step in self.steps if step.clause not in lost]

    def _is_lost(self, clause: Clause) -> bool:
        bidden = clause.mood is Mood.ORDER or (clause.mood is Mood.QUESTION and "?" not in self.prompt)
        return bidden and any(clause is other for other in self.unknown)

    def reaches(self, tool: ToolCard) -> bool:
        """Whether the prompt leads to this tool and no other, with all of it understood."""
        self._understand()
        paths = {call.tool_path for step in self.steps for call in step.calls}
        return paths == {tool.path or tool.name} and not self.unknown

    def takes_down(self, text: str) -> bool:
        """Whether the prompt ends in a call that takes `text` as words to be written or said."""
        if not any(slot.quoted for tool in self.index.tools for slot in tool.slots):
            return False
        self._understand()
        last = self.steps[-1].calls[-1] if self.steps else None
        return last is not None and text in last.input.values() and not self.unknown

    def _understand(self) -> tuple[list[Clause], bool]:
        """The clauses, each considered, and whether any of them asks for something."""
        tokens = self.finder.join_titles(tokenize(self.prompt, self.mend))
        meant = amended(tokens, self._is_verb)
        if meant != tokens:  # "cancel the concert, no wait, move it": what it is was said, though taken back
            for clause in split_clauses(tokens, self._is_verb)[:1]:
                self._remember(read(clause, self.finder), None)
        clauses = split_clauses(meant, self._is_verb)
        self._leave_out(clauses)
        readings = {
            index: self._read(clauses, index) for index, clause in enumerate(clauses) if not clause.negated
        }
        sense = self._embed(readings.values())
        for index, clause in enumerate(clauses):
            if index in readings:
                self._consider(index, clause, readings[index], sense, readings)
            else:
                self._remember(read(clause, self.finder), None)
        return clauses, bool(readings)

    def _is_verb(self, word: str) -> bool:
        return stem(word) in self.verbs

    def _leave_out(self, clauses: list[Clause]) -> None:
        """Notes for each clause what its exceptions name: "charge every robot except Bolt"."""
        for index, clause in enumerate(clauses):
            main = index + clause.excepts
            if clause.excepts and 0 <= main < len(clauses):
                exception = read(Clause((_THE, *clause.tokens)), self.finder)
                self.left_out.setdefault(main, []).extend(left_out(exception))
                clauses[main] = with_tail(clauses[main], exception)

    def _read(self, clauses: Sequence[Clause], index: int) -> Reading:
        """A clause; where it only goes on with the one before ("also the cellar"), with the deed of that."""
        reading = read(clauses[index], self.finder)
        verb = reading.verb
        acts = verb in VERBS or verb in NOUNISH or stem(verb) in self.verbs
        if clauses[index].continues and (verb == "do" or not acts):
            before = read(clauses[index - 1], self.finder)
            start = before.phrases[0].start if before.phrases else before.body
            deed = tuple(token for token in before.tokens[:start] if token.low not in DETERMINERS)
            if deed:
                return read(Clause(deed + clauses[index].tokens[reading.body if acts else 0 :]), self.finder)
        return reading

    # --- understanding ---------------------------------------------------------------------------------

    def _embed(self, readings: Iterable[Reading]) -> Sense:
        clauses: dict[str, None] = {}
        texts: dict[str, None] = {}
        for reading in readings:
            clauses.setdefault(reading.text)
            texts.update(dict.fromkeys(p.text for p in reading.phrases if not p.pronoun and not p.quoted))
        whole = [*clauses, *(text for text in texts if text not in clauses)]
        if not whole:
            return Sense({}, {}, self._embed_tuned)
        tuned = self.narrator.embed(list(clauses), tuned=True)
        plain = self.narrator.embed(whole)
        return Sense(
            dict(zip(whole, plain, strict=True)), dict(zip(clauses, tuned, strict=True)), self._embed_tuned
        )

    def _embed_tuned(self, texts: Sequence[str]) -> Vectors:
        return self.narrator.embed(texts, tuned=True)

    def _consider(
        self,
        index: int,
        clause: Clause,
        reading: Reading,
        sense: Sense,
        readings: Mapping[int, Reading],
    ) -> None:
        best = self._choose(reading, sense, clause.mood)
        if not reading.phrases and index + 1 in readings and len(reading.tokens) <= 2:
            # "pick up and examine the cup": the first verb may share the object of the second.
            following = readings[index + 1]
            shared = read(Clause(reading.tokens + following.tokens[following.body :]), self.finder)
            other = self._choose(shared, self._embed([shared]), clause.mood)
            self.observed.pop()
            if other and (best is None or other.score > best.score):
                reading, best = shared, other
        each = self._choose_each(reading, clause.mood)
        if each:
            for one, chosen in each:
                self._call(index, clause, chosen, one)
                self._remember(one, chosen)
            return
        if best is None:
            self.unknown.append(clause)
        else:
            self._call(index, clause, best, reading)
        self._remember(reading, best)

    def _choose_each(self, reading: Reading, mood: Mood) -> list[tuple[Reading, Candidate]]:
        """The calls of a list of pairs, "Pip to the pond and Bolt to the shed"; empty where it is none."""
        chosen: list[tuple[Reading, Candidate]] = []
        almost, observed = len(self.almost), len(self.observed)
        for clause in pairs(reading):
            one = read(clause, self.finder)
            best = self._choose(one, self._embed([one]), mood)
            if best is None or (chosen and best.tool is not chosen[0][1].tool):
                chosen = []
                break
            chosen.append((one, best))
        del self.almost[almost:], self.observed[observed:]
        return chosen

    def _choose(self, reading: Reading, sense: Sense, mood: Mood) -> Candidate | None:
        """The tool the clause means, with its input; None where nothing here does that."""
        ranked = self.index.rank(reading, self._recent(), sense, mood)
        self.observed.append(ranked)
        for candidate in ranked:
            if mood is not Mood.ORDER and mood not in candidate.tool.answers:
                continue  # a question about a deed is not the deed; what tells may answer it
            filling = candidate.filling
            if mood is Mood.ORDER and (either := alternatives(reading, filling, candidate.tool.slots)):
                filling.unfit.append(f"Which of them do you mean: {either}?")
            wanting = filling.missing or filling.unfit or not candidate.tool.accepts(filling.input)
            meant = self.narrator.outweighs(candidate)
            # What means a disabled tool, undoes this one or gives it what it cannot take, is not handed to the
            # next best: that would do something else altogether.
            if candidate.opposite or candidate.alien or self._disabled(candidate.tool.card):
                return None
            if meant and not wanting:
                return candidate
            if wanting and (meant or stem(reading.verb) in candidate.tool.verbs):
                self.almost.append(candidate)
            if candidate.names_the_deed or not (meant or wanting):
                return None
        return None

    def _recent(self) -> Recent:
        return Recent(
            tuple(self.things), tuple(self.values), self.kinds, tuple(self.things[self.before :]), self.people
        )

    def _disabled(self, card: ToolCard) -> bool:
        disabled = self.request.disabled_skills
        return card.name in disabled or (card.skill is not None and card.skill in disabled)

    def _call(self, index: int, clause: Clause, best: Candidate, reading: Reading) -> None:
        before = len(self.steps)
        calls: list[PlannedCall] = []
        inputs = without(
            spread(best.tool.slots, best.filling), self.left_out.get(index, ()), best.filling, reading
        )
        if inputs is None or self._leaves_over(reading, best):
            self.unknown.append(clause)
            return
        for values in inputs:
            number = sum(len(step.calls) for step in self.steps) + len(calls) + 1
            calls.append(_planned(best.tool.card, values, number))
        calls = [call for call in calls if not self._repeats(call)]
        if not calls or number > _MAX_CALLS:
            return
        source = self.steps[-1].clause if best.filling.refers and before else None
        self.steps.append(_Step(index, calls, source))

    def _leaves_over(self, reading: Reading, best: Candidate) -> bool:
        return leaves_over(
            reading, spread(best.tool.slots, best.filling), best.filling, self._recent(), best.tool.slots
        )

    def _repeats(self, call: PlannedCall) -> bool:
        """The last call over again: to lie down and sleep is one rest."""
        if not self.steps:
            return False
        last = self.steps[-1].calls[-1]
        return last.tool_path == call.tool_path and last.input == call.input

    def _remember(self, reading: Reading, chosen: Candidate | None) -> None:
        """Keep what was spoken of, for the pronouns that follow."""
        plain = [p for p in reading.phrases if not (p.pronoun or p.quoted or p.clausal or p.mention)]
        self.things += [phrase.text for phrase in plain if chosen is None]
        self.things += [phrase.mention.entity.value for phrase in reading.phrases if phrase.mention]
        for slot in chosen.tool.slots if chosen else ():
            value = chosen.filling.input.get(slot.name) if chosen else None
            if isinstance(value, str):
                self.values.append(value)
                if slot.kind == "text" and not slot.quoted:
                    self.things.append(value)

    def _past_things(self) -> list[str]:
        things: list[str] = []
        for turn in self.request.history[-3:]:
            for clause in split_clauses(tokenize(turn.prompt)):
                for phrase in read(clause, self.finder).phrases:
                    if phrase.mention and phrase.mention.entity.firm:
                        things.append(phrase.mention.entity.value)
        return things

    # --- answering -------------------------------------------------------------------------------------

    def _ordered(self, clauses: Sequence[Clause]) -> list[PlannedCall]:
        """The calls with their dependencies: order words, and pronouns that point to an earlier deed."""
        ids: dict[int, list[str]] = {}
        for step in self.steps:
            ids.setdefault(step.clause, []).extend(call.tool_id for call in step.calls)
        calls = []
        for step in self.steps:
            before = list(clauses[step.clause].after)
            if step.refers_to is not None and step.clause not in clauses[step.refers_to].after:
                before.append(step.refers_to)
            needs = list(dict.fromkeys(i for clause in before for i in ids.get(clause, ())))
            calls += [
                PlannedCall(tool_id=c.tool_id, tool_path=c.tool_path, input=c.input, dependencies=needs)
                for c in step.calls
            ]
        return calls

    def _narrative(self) -> str | None:
        if not self.unknown:
            return None
        rest = " What waits for it is left undone." if self.held_back else ""
        return f"{not_understood(self.unknown[0])}{rest}"

    def _refusal(self) -> Refusal:
        choices = self._suggestions()
        if self.almost:
            return Refusal(what_is_wanting(self.almost[0]), choices)
        if self.open_choice:
            return Refusal(WHICH, choices)
        if self.held_back and self.unknown:
            return Refusal(f"{not_understood(self.unknown[0])} So nothing is done.", choices)
        return Refusal(UNKNOWN, choices)

    def _suggestions(self) -> list[str]:
        """Two or three things that can be done, nearest in meaning to the prompt first."""
        prompt = self.narrator.embed([self.prompt])[0]
        tools = [tool for tool in self.index.nearest(prompt, 3 * _CHOICES) if not self._disabled(tool.card)]
        if self.almost:
            wanted = self.almost[0].tool
            tools = [wanted, wanted, *(tool for tool in tools if tool is not wanted)]
        choices: list[str] = []
        spoken = frozenset(self.things[self.before :])
        recalled = self.request.recall()
        for text, tool in suggest(tools, self.finder.entities, self.narrator.embed_names, spoken, recalled):
            if len(choices) < _CHOICES and text not in choices and self._works(text, tool.card):
                choices.append(text)
        return choices

    def _works(self, text: str, card: ToolCard) -> bool:
        """Whether the choice, typed, would do what it says."""
        request = replace(self.request, prompt=text, history=())
        known = (fingerprint(self.request.tools), frozenset(e.value for e in self.finder.entities), text)
        return self.narrator.remember(known, lambda: _Thought(self.narrator, request).reaches(card))


def _planned(card: ToolCard, values: dict[str, Any], number: int) -> PlannedCall:
    return PlannedCall(tool_id=f"{card.name}{number}", tool_path=card.path or card.name, input=values)
