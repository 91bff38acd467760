"""The local narrator: any catalogue, no server. It goes by meaning, and admits what it cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from narratoria.narrator.embedding.minilm import Embedder
from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.lexicon import entry, words
from narratoria.narrator.english.mood import Mood
from narratoria.narrator.english.tokens import closed_up
from narratoria.narrator.english.words import NOUNISH, VERBS, split_name
from narratoria.narrator.local.comprehension import (
    MAX_PROMPT,
    Comprehension,
    Scene,
    Step,
    is_disabled,
    planned,
)
from narratoria.narrator.local.near_calls import NearCall, call_in_form
from narratoria.narrator.local.suggestions import SOUND, suggest
from narratoria.narrator.local.tool_matching import Candidate, Knowledge
from narratoria.narrator.protocol import Declaration, NarratorRequest, Refusal
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.tools.schema.excerpts import shorten

_CHOICES: Final = 3
_ENOUGH: Final = 2  # rather than a third that may be far-fetched
_WEIGHED: Final = 9  # tools that may be offered
WHICH: Final = "Which of the two do you mean?"
CONDITION: Final = "I cannot tell whether that is so. Say what is to be done, and I will do it."
CUT: Final = "That was more than I can take in at once: what comes last is left undone."
TOO_LONG: Final = "That is more than I can take in at once. Say it in shorter requests, one after the other."
NEARLY: Final = "I am not sure what you mean. Is it one of these?"
UNKNOWN: Final = "I don't know how to do that here."
_BACK: Final[dict[str, str]] = entry("replies.said_back")


class LocalNarrator:
    """Splits a prompt into clauses, finds the tool each one means and fills its input."""

    name = "local"

    def __init__(self, embedder: Embedder, *, threshold: float = 0.0) -> None:
        """`threshold` is added to what a tool must score to be called: above 0 refuses more, below 0 less."""
        self._knowledge = Knowledge(embedder, threshold)
        self._choices: Sequence[str] = ()  # of the last plan: what it may mean besides

    def declare(self, speaker: str = "") -> Declaration:
        """Return what the narrator declares of itself."""
        return Declaration(lists_calls="always", choices=self._choices)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """The plan for `request.prompt`, or `Refusal`. It thinks in a thread: the loop stays free."""
        return await asyncio.to_thread(self.plan_now, request)

    def plan_now(self, request: NarratorRequest) -> PlanDocument:
        """Return the plan for a request, without a thread of its own."""
        self._choices = ()
        scene = Scene(self._knowledge, request)
        form = call_in_form(request.prompt[:MAX_PROMPT], scene.index.tools, scene.finder.entities)
        if form is not None and not is_disabled(form.tool.card, request):
            return request.answer(None, [planned(form.tool.card, dict(form.input))])
        written = quoted_after_colon(request.prompt[:MAX_PROMPT])
        if written is not None:
            quoting = replace(request, prompt=written[0])
            if self.comprehend(quoting).takes_down(written[1]):
                return self._answer(quoting)
        return self._answer(request)

    def _answer(self, request: NarratorRequest) -> PlanDocument:
        answer = _Answer(self.comprehend(request))
        plan = answer.plan()
        self._choices = answer.near() if answer.heard.unknown else ()
        return plan

    def comprehend(self, request: NarratorRequest) -> Comprehension:
        """A prompt that is still to be understood, by what is known here."""
        return Comprehension(self._knowledge, request)


class _Answer:
    """The answer to one prompt: a plan in order, or a reason why there is none and what could be asked."""

    def __init__(self, heard: Comprehension) -> None:
        self.heard = heard
        self.request = heard.request
        self.steps: list[Step] = []  # of what was heard, those that are taken
        self.held_back = self.open_choice = False

    def plan(self) -> PlanDocument:
        clauses, asked = self.heard.understand()
        self._hold_back(clauses)
        if not self.steps:
            if (clauses and not asked) or self.heard.taken_back:
                return self.request.answer("So be it: nothing is done.")
            raise self._refusal()
        return self.request.answer(self._narrative(), self._ordered(clauses))

    def _hold_back(self, clauses: Sequence[Clause]) -> None:
        """Holds back steps that wait for a clause that was not understood, and both of "this or that"."""
        done = {step.clause for step in self.heard.steps}
        either = {i for at, clause in enumerate(clauses) if clause.either for i in (at - 1, at)}
        lost = {index for index, clause in enumerate(clauses) if self._is_lost(clause)}
        if either & done and either <= done | lost:
            self.open_choice = True
            lost |= either
        grown = True
        while grown:
            late = {index for index in done - lost if lost & set(clauses[index].after)}
            grown = bool(late)
            lost |= late
        self.held_back = any(step.clause in lost for step in self.heard.steps)
        self.steps = [step for step in self.heard.steps if step.clause not in lost]

    def _is_lost(self, clause: Clause) -> bool:
        bidden = clause.mood is Mood.ORDER or (clause.mood is Mood.QUESTION and "?" not in self.heard.prompt)
        told = clause.tokens[0].low in words(
            "replies.tells_of"
        )  # "I am done for tonight": nothing waits for that
        return bidden and not told and any(clause is other for other in self.heard.unknown)

    def _ordered(self, clauses: Sequence[Clause]) -> list[PlannedCall]:
        """The calls with their dependencies: order words, and pronouns that point to an earlier call."""
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
        if not self.heard.unknown:
            return CUT if self.heard.cut else None
        rest = " What waits for it is left undone." if self.held_back else ""
        more = f" {CUT}" if self.heard.cut else ""
        return f"{not_understood(self.heard.unknown[0])}{rest}{more}"

    def _refusal(self) -> Refusal:
        near = self.near()
        choices = list(dict.fromkeys((*near, *self._suggestions())))[:_CHOICES]
        if self.heard.conditional:
            return Refusal(CONDITION, choices)
        if self.heard.cut and not self.heard.almost:
            return Refusal(TOO_LONG, choices)
        if self.heard.almost:
            return Refusal(what_is_wanting(self.heard.almost[0]), choices)
        if self.open_choice:
            return Refusal(WHICH, choices)
        if self.held_back and self.heard.unknown:
            return Refusal(f"{not_understood(self.heard.unknown[0])} So nothing is done.", choices)
        if near:
            return Refusal(NEARLY, choices)
        return Refusal(UNKNOWN, choices)

    def near(self) -> list[str]:
        """The calls that were nearly understood or held back, as requests."""
        taken = {id(step) for step in self.steps}
        tools = {tool.card.name: tool for tool in self.heard.index.tools}
        late = [call for step in self.heard.steps if id(step) not in taken for call in step.calls]
        calls = [NearCall(tools[call.tool_path], call.input) for call in late]
        return self._worded((*calls, *self.heard.near_calls()))

    def _worded(self, calls: Iterable[NearCall]) -> list[str]:
        """The first of these calls as requests: in the words of an example that leads there, else as a form."""
        found: dict[str, None] = {}
        for call in calls:
            found.setdefault(next((text for text in call.wordings if self._leads_to(text, call)), call.form))
            if len(found) == _CHOICES:
                break
        return list(found)

    def _leads_to(self, text: str, call: NearCall) -> bool:
        """Tell if a text leads to this call alone, in the scene that the prompt was typed in."""
        request = replace(self.request, prompt=text, history=())
        return Comprehension(self.heard.knowledge, request, self.heard.scene).leads_to(call)

    def _suggestions(self) -> list[str]:
        """Two or three things that can be done, nearest to what was asked first."""
        tools = [tool for tool in self.heard.likeliest(_WEIGHED) if not is_disabled(tool.card, self.request)]
        if self.heard.almost:
            wanted = self.heard.almost[0].tool
            tools = [wanted, wanted, *(tool for tool in tools if tool is not wanted)]
        spoken = frozenset(self.heard.spoken_of.said) - self.heard.excepted
        embed = self.heard.knowledge.embed_names
        calls = suggest(tools, self.heard.finder.entities, embed, spoken, self.request.recall())
        return self._worded(call for at, call in enumerate(calls) if at < _ENOUGH or call.likely == SOUND)


# --- words about what was not understood ----------------------------------------------------------------------


def not_understood(clause: Clause) -> str:
    """Says the clause back to the player: "my" becomes "your" where it is an order, else it is quoted."""
    first = clause.tokens[0].low
    if clause.mood is Mood.ORDER and (first in VERBS or first in NOUNISH):
        words = [first, *(_BACK.get(token.low, token.text) for token in clause.tokens[1:])]
        return f"I don't know how to {shorten(closed_up(words), 60)} here."
    said = shorten(closed_up(token.text for token in clause.tokens), 60)
    return f"I don't know what to do about “{said}” here."


def what_is_wanting(candidate: Candidate) -> str:
    """The reason why a tool that was meant is not called."""
    if candidate.filling.unfit:
        return candidate.filling.unfit[0]
    slot = next((s for s in candidate.tool.slots if s.name in candidate.filling.missing), None)
    if slot is None:
        return UNKNOWN
    what = str(slot.schema.get("description") or " ".join(split_name(slot.name)))
    return f"For that, I need to know more: {what.rstrip('.?')}?"


def quoted_after_colon(prompt: str) -> tuple[str, str] | None:
    """ "note on R-12: check the leader" with what follows the colon in quotation marks; None without a colon."""
    head, colon, tail = prompt.partition(": ")
    text = tail.strip()
    if not colon or not head.strip() or not text or '"' in text or "“" in text:
        return None
    return f'{head} "{text}"', text
