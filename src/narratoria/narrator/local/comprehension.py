"""One prompt on its way to calls: its clauses, and the tool and input that each of them means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from narratoria.narrator.english.clauses import Clause, has_more_clauses, split_clauses
from narratoria.narrator.english.mood import Mood, is_conditional
from narratoria.narrator.english.named_things import EntityFinder, find_entities
from narratoria.narrator.english.noun_phrases import Phrase
from narratoria.narrator.english.phrases import Reading, read
from narratoria.narrator.english.second_thoughts import amended
from narratoria.narrator.english.tokens import Token, mender, tokenize
from narratoria.narrator.english.words import split_name, stem
from narratoria.narrator.local.filled_slots import Recent
from narratoria.narrator.local.lists import left_out, named_together, pairs, spread, without
from narratoria.narrator.local.near_calls import NearCall, near_calls, of_kind
from narratoria.narrator.local.tool_matching import Candidate, Knowledge, Sense, is_certain
from narratoria.narrator.local.tool_profiles import ToolProfile
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.run.plan import PlannedCall

MAX_PROMPT: Final = 2_000  # characters; what follows is not read
_MAX_CALLS: Final = 24
_THE: Final = Token("the", "the")  # what follows it is no verb
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


@dataclass(slots=True)
class Step:
    """A clause that became calls."""

    clause: int
    calls: list[PlannedCall]
    refers_to: int | None


class Scene:
    """The tools there are and the things of the world, by which a prompt is understood."""

    def __init__(self, knowledge: Knowledge, request: NarratorRequest) -> None:
        self.index = knowledge.index(request.tools)
        self.finder = EntityFinder(find_entities(request.state))
        self.kinds, self.people = self.finder.kinds(), self.finder.people()
        self.verbs = {verb for tool in self.index.tools for verb in tool.verbs}
        self.verbs |= {stem("-".join(split_name(one.card.name))) for one in self.index.tools}  # "x-ray Luna"
        self.writes = any(slot.quoted for tool in self.index.tools for slot in tool.slots)
        self.mend = mender(self.index.words() | self.finder.vocabulary(), knowledge.knows_word)

    def is_verb(self, word: str) -> bool:
        return stem(word) in self.verbs


class Comprehension:
    """The calls a prompt asks for, and the clauses of it that were not understood."""

    def __init__(self, knowledge: Knowledge, request: NarratorRequest, scene: Scene | None = None) -> None:
        self.knowledge = knowledge
        self.request = request
        self.prompt = request.prompt[:MAX_PROMPT]
        self.scene = scene or Scene(knowledge, request)
        self.index, self.finder = self.scene.index, self.scene.finder
        self.steps: list[Step] = []
        self.unknown: list[Clause] = []
        self.almost: list[Candidate] = []
        self.spoken_of = SpokenOf(self.finder, (turn.prompt for turn in request.history[-3:]))
        self.observed: list[list[Candidate]] = []
        self.doubtful: list[list[Candidate]] = []  # what each clause may mean that is asked back about
        self.conditional = False  # "if he is hungry, …": nothing of it is done
        self.taken_back = False  # all of it: "drain the reef? No way."
        self.left_out: dict[int, list[Phrase]] = {}
        self.cut = len(request.prompt) > MAX_PROMPT  # there is more in it than was read
        self.clauses = self._listen()
        self.readings = {
            index: read(clause, self.finder)
            for index, clause in enumerate(self.clauses)
            if not clause.negated
        }

    def _listen(self) -> list[Clause]:
        tokens = self.finder.join_titles(tokenize(self.prompt, self.scene.mend))
        meant = amended(tokens, self.scene.is_verb)
        if meant != tokens:  # "cancel the concert, no wait, move it": what it is was said, though taken back
            for clause in split_clauses(tokens, self.scene.is_verb)[:1]:
                self.spoken_of.add(read(clause, self.finder), None)
                self.taken_back = clause.mood is Mood.ORDER and not any(t.low[0].isalnum() for t in meant)
        clauses = split_clauses(meant, self.scene.is_verb, dictates=self.scene.writes)
        clauses = clauses[:-1] if self.cut else clauses  # the last one may be half of what was said
        self.cut |= has_more_clauses(meant, self.scene.is_verb)
        self.conditional = is_conditional([token.low for token in meant if not token.quoted])
        if self.conditional:  # nobody here knows if it is so
            clauses = [replace(c, mood=Mood.MUSING) if c.mood is Mood.ORDER else c for c in clauses]
        self._leave_out(clauses)
        return clauses

    def understand(self) -> tuple[list[Clause], bool]:
        """The clauses, each considered, and whether any of them asks for something."""
        sense = self.embed(self.readings.values())
        for index, clause in enumerate(self.clauses):
            if index in self.readings:
                self._consider(index, clause, sense)
            else:
                self.spoken_of.add(read(clause, self.finder), None)
        return self.clauses, bool(self.readings)

    def _leave_out(self, clauses: list[Clause]) -> None:
        """Notes for each clause the things its exceptions name: "charge every robot except Bolt"."""
        for index, clause in enumerate(clauses):
            main = index + clause.excepts
            if clause.excepts and 0 <= main < len(clauses):
                exception = read(Clause((_THE, *clause.tokens)), self.finder)
                self.left_out.setdefault(main, []).extend(left_out(exception))

    def likeliest(self, count: int) -> list[ToolProfile]:
        """The tools nearest to what was asked; of a prompt that asks for nothing, to the prompt."""
        if not self.observed:
            return self.index.nearest(self.knowledge.embed([self.prompt])[0], count)
        scores: dict[str, tuple[float, ToolProfile]] = {}
        for candidate in (one for ranked in self.observed for one in ranked):
            known = scores.get(candidate.tool.card.name)
            if known is None or candidate.score > known[0]:
                scores[candidate.tool.card.name] = (candidate.score, candidate.tool)
        return [tool for _, tool in sorted(scores.values(), key=lambda one: -one[0])[:count]]

    @property
    def excepted(self) -> frozenset[str]:
        """The things that were left out: "every herb but the foxglove"."""
        phrases = (phrase for left in self.left_out.values() for phrase in left)
        return frozenset(phrase.mention.entity.value for phrase in phrases if phrase.mention)

    def leads_to(self, call: NearCall) -> bool:
        """Tell if the prompt leads to this call alone, and all of it is understood."""
        self.understand()
        made = [(one.tool_path, one.input) for step in self.steps for one in step.calls]
        return made == [(call.tool.card.name, call.input)] and not self.unknown

    def near_calls(self) -> list[NearCall]:
        """The calls that the clauses asked back about may mean, the likeliest of each first."""
        words = [token.low for token in tokenize(self.prompt, self.scene.mend)]
        said = [value for value in self.spoken_of.said if value not in self.excepted]
        calls = [
            call for ranked in self.doubtful for call in near_calls(ranked, self.finder.entities, said, words)
        ]
        return [
            call
            for call in sorted(calls, key=lambda call: -call.likely)
            if not is_disabled(call.tool.card, self.request)
        ]

    def takes_down(self, text: str) -> bool:
        """Tell if the prompt ends in a call that takes `text` as words to be written or said."""
        if not self.scene.writes:
            return False
        self.understand()
        last = self.steps[-1].calls[-1] if self.steps else None
        return last is not None and text in last.input.values() and not self.unknown

    def embed(self, readings: Iterable[Reading]) -> Sense:
        """The meaning of the clauses and their phrases, all at once: many texts cost little more than one."""
        clauses: dict[str, None] = {}
        texts: dict[str, None] = {}
        for reading in readings:
            clauses.setdefault(reading.text)
            texts.update(dict.fromkeys(p.text for p in reading.phrases if not p.pronoun and not p.quoted))
        whole = [*clauses, *(text for text in texts if text not in clauses)]
        if not whole:
            return Sense({}, {})
        plain = dict(zip(whole, self.knowledge.embed(whole), strict=True))
        tuned = dict(zip(clauses, self.knowledge.embed(list(clauses), tuned=True), strict=True))
        return Sense(plain, tuned)

    def _consider(self, index: int, clause: Clause, sense: Sense) -> None:
        reading = self.readings[index]
        best = self._choose(reading, sense, clause.mood)
        if not reading.phrases and index + 1 in self.readings and len(reading.tokens) <= 2:
            # "pick up and examine the cup": the first verb may share the object of the second.
            following = self.readings[index + 1]
            shared = read(Clause(reading.tokens + following.tokens[following.body :]), self.finder)
            other = self._choose(shared, self.embed([shared]), clause.mood)
            self.observed.pop()
            if other and other.names_the_action and (best is None or other.score > best.score):
                reading, best = shared, other
        each = self._choose_each(reading, clause.mood)
        if each:
            for one, chosen in each:
                self._call(index, clause, chosen, one)
                self.spoken_of.add(one, chosen)
            return
        ranked = self.observed[-1]
        best = self._of_things_here(best) if best else None
        if best is not None and is_certain(best, ranked, self.knowledge.bar):
            self._call(index, clause, best, reading)
        else:
            self.unknown.append(clause)
            self.doubtful.append([best, *(one for one in ranked if one is not best)] if best else ranked)
        self.spoken_of.add(reading, best)

    def _of_things_here(self, chosen: Candidate) -> Candidate | None:
        """The candidate, unless it is about a thing that is not here: where every example of a slot names a thing of
        the state, no other is taken. Nor may "it" be a thing of another kind than the slot's."""
        here = {one.value for one in self.finder.entities}
        firm = [one for one in self.finder.entities if one.firm]
        for slot in chosen.tool.slots:
            value = chosen.filling.input.get(slot.name)
            if slot.kind != "text" or slot.quoted or not isinstance(value, str) or value in here:
                continue
            shown = {str(values[slot.name]) for _, values in chosen.tool.examples if slot.name in values}
            if shown and shown <= here and slot.preps <= {""}:  # who gets it need not be known
                unfit = replace(chosen.filling, unfit=[f"There is no {value} here."])
                self.almost.append(replace(chosen, filling=unfit))
                return None
            if chosen.filling.refers and of_kind(slot, firm):
                return None
        return chosen

    def _choose_each(self, reading: Reading, mood: Mood) -> list[tuple[Reading, Candidate]]:
        """The calls of a list of pairs, "Pip to the pond and Bolt to the shed"; empty where it is none."""
        chosen: list[tuple[Reading, Candidate]] = []
        almost, observed = len(self.almost), len(self.observed)
        ones = [read(clause, self.finder) for clause in pairs(reading)]
        sense = self.embed(ones)
        for one in ones:
            best = self._choose(one, sense, mood)
            if best is None or (chosen and best.tool is not chosen[0][1].tool):
                chosen = []
                break
            chosen.append((one, best))
        del self.almost[almost:], self.observed[observed:]
        return chosen

    def _choose(self, reading: Reading, sense: Sense, mood: Mood) -> Candidate | None:
        """The tool the clause means, with its input; None where nothing here does that."""
        recent = self.spoken_of.recent(self.scene.kinds, self.scene.people)
        ranked = self.index.rank(reading, recent, sense, mood)
        self.observed.append(ranked)
        passed_over = False  # a likelier tool lacks something: another must account for every word
        for candidate in ranked:
            if mood is not Mood.ORDER and mood not in candidate.tool.answers:
                continue  # a question about an action is not the action; what tells may answer it
            # What means a disabled tool, undoes this one or gives it what it cannot take, is not handed to the
            # next best: that would do something else altogether.
            if candidate.opposite or is_disabled(candidate.tool.card, self.request):
                return None
            if not candidate.grounded:
                continue
            meant = candidate.own_score > self.knowledge.bar
            if meant and not candidate.is_wanting and not (passed_over and candidate.leaves_words_over):
                return candidate
            passed_over |= meant and candidate.is_wanting
            if candidate.is_wanting and (meant or stem(reading.verb) in candidate.tool.verbs):
                self.almost.append(candidate)
            if candidate.names_the_action or not (meant or candidate.is_wanting):
                return None
        return None

    def _call(self, index: int, clause: Clause, best: Candidate, reading: Reading) -> None:
        before = len(self.steps)
        calls: list[PlannedCall] = []
        every = spread(best.tool.slots, best.filling)
        inputs = without(every, self.left_out.get(index, ()), best.filling, reading)
        if inputs is None:
            self.unknown.append(clause)
            return
        for values in inputs:
            number = sum(len(step.calls) for step in self.steps) + len(calls) + 1
            calls.append(planned(best.tool.card, values, number))
        calls = [call for call in calls if not self._repeats(call)]
        if not calls or number > _MAX_CALLS:
            self.cut |= bool(calls)
            return
        source = self.steps[-1].clause if best.filling.refers and before else None
        self.steps.append(Step(index, calls, source))

    def _repeats(self, call: PlannedCall) -> bool:
        """The last call over again: to lie down and sleep is one rest."""
        if not self.steps:
            return False
        last = self.steps[-1].calls[-1]
        return last.tool_path == call.tool_path and last.input == call.input


def planned(card: ToolCard, values: dict[str, Any], number: int = 1) -> PlannedCall:
    return PlannedCall(tool_id=f"{card.name}{number}", tool_path=card.name, input=values)


def is_disabled(card: ToolCard, request: NarratorRequest) -> bool:
    """Tell if the tool, or the skill it is of, is switched off for this request."""
    return card.name in request.disabled_skills or (
        card.skill is not None and card.skill in request.disabled_skills
    )
