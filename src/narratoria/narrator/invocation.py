"""Asking a narrator. It is foreign code: it may raise anything, hang, or refuse to be cancelled. What it says after its
time is heard by nobody.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import msgspec

from narratoria.errors import NarratoriaError, PlanRejected, describe
from narratoria.events import ModelAsked, Notice
from narratoria.narrator.protocol import (
    Declaration,
    Narrator,
    NarratorRequest,
    NoMatch,
    Reteller,
    Review,
    Reviewer,
    declaration_of,
)
from narratoria.run.plan import ExecutionResult, PlanDocument, PlanMetadata
from narratoria.tools.cancellation import TooSlow, outcome_within


def readable(text: str) -> str:
    """The text with question marks for lone surrogates, which JSON cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_written(plan: PlanDocument) -> PlanDocument:
    """The plan as its JSON has it, checked whole: a narrator in Python may put anything into one.

    Raises `PlanRejected`. What its metadata say is the turn's to decide.
    """
    told = readable(plan.narrative) if isinstance(plan.narrative, str) else plan.narrative
    plan = msgspec.structs.replace(plan, narrative=told, metadata=PlanMetadata()).checked()
    return PlanDocument.from_json(plan.to_json())


class NarratorFailed(NarratoriaError):
    """A narrator raised, was too slow, or gave something that is not a plan."""


async def ask(narrator: Narrator, request: NarratorRequest, seconds: float) -> PlanDocument:
    """Its plan, within `seconds`. Raises `NoMatch` or `PlanRejected` as the narrator does, `NarratorFailed` for
    everything else that can go wrong; what it had said by then is taken back."""
    voice = _LentCallbacks(request)
    try:
        plan = await _answer(narrator, voice.lent(), seconds)
    except NarratoriaError:
        voice.unsay()
        raise
    finally:
        voice.silent = True
    return plan


class _LentCallbacks:
    """The callbacks lent to a narrator, silent when its time is up."""

    def __init__(self, request: NarratorRequest) -> None:
        self.request = request
        self.silent = False
        self.spoke = False

    def lent(self) -> NarratorRequest:
        return dataclasses.replace(
            self.request, say=self.say, unsay=self.unsay, note=self.note, spent=self.spent
        )

    def say(self, text: str) -> None:
        if not self.silent:
            self.spoke = True
            self.request.say(text)

    def note(self, text: str) -> None:
        if not self.silent:
            self.request.note(text)

    def spent(self, asked: ModelAsked) -> None:
        if not self.silent:
            self.request.spent(asked)

    def unsay(self) -> None:
        if self.spoke and not self.silent:
            self.spoke = False
            self.request.unsay()


async def _answer(narrator: Narrator, request: NarratorRequest, seconds: float) -> PlanDocument:
    try:
        plan, error = await outcome_within(seconds, lambda: narrator.plan(request))
    except TooSlow as late:
        raise NarratorFailed(f"no plan {late}") from None
    if isinstance(error, NoMatch | PlanRejected):
        raise error
    if error is not None:
        ours = isinstance(error, NarratoriaError)  # its text is written for people
        raise NarratorFailed((ours and str(error)) or describe(error)) from error
    if not isinstance(plan, PlanDocument):
        raise NarratorFailed(f"the narrator returned {type(plan).__name__}, not a PlanDocument")
    return plan


async def retold_by(
    narrator: Reteller, request: NarratorRequest, narrative: str, objections: Sequence[str], seconds: float
) -> str:
    """Its new narrative, within `seconds`. Raises what the narrator raises, `TooSlow` when time is up."""
    told, error = await outcome_within(seconds, lambda: narrator.retell(request, narrative, objections))
    if error is not None:
        raise error if isinstance(error, Exception) else NarratorFailed(describe(error)) from error
    if not isinstance(told, str):
        raise NarratorFailed(f"it told {type(told).__name__} again, not text")
    return told


async def review_of(
    narrator: Reviewer,
    request: NarratorRequest,
    plan: PlanDocument | None,
    traces: Sequence[ExecutionResult],
    seconds: float,
) -> Review:
    """Its review of a turn. It has `seconds` for itself, and as much again for each generation the turn has left: it
    may have the narrative told again so often. Raises `NarratorFailed` for whatever goes wrong.
    """
    again = max(0, request.generations - request.attempt) if plan is not None else 0
    voice = _LentCallbacks(request)
    try:
        review, error = await outcome_within(
            seconds * (1 + again), lambda: narrator.review(voice.lent(), plan, traces, seconds)
        )
    except TooSlow as late:
        raise NarratorFailed(f"no review {late}") from None
    finally:
        voice.silent = True
    if error is not None:
        raise NarratorFailed(f"its review failed: {describe(error)}") from error
    if not isinstance(review, Review):
        raise NarratorFailed(f"its review is {type(review).__name__}, not a Review")
    lists = (review.receipts, review.problems, review.notices)
    if not isinstance(review.narrative, str | None) or not all(isinstance(one, Sequence) for one in lists):
        raise NarratorFailed(
            "its review has a field of a wrong type: a narrative is text or None, the others are lists"
        )
    if not all(isinstance(one, Notice) for one in review.notices):
        raise NarratorFailed("its review has a notice that is no Notice")
    return review


def declared_by(narrator: Narrator, speaker: str) -> Declaration:
    """Its declaration for an answer of `speaker`. Raises `NarratorFailed` for whatever goes wrong."""
    try:
        declared = declaration_of(narrator, speaker)
    except Exception as error:  # foreign code: what it raises costs the declaration, not the turn
        raise NarratorFailed(f"its declaration failed: {describe(error)}") from error
    if not isinstance(declared, Declaration):
        raise NarratorFailed(f"it declared {type(declared).__name__}, not a Declaration")
    if (
        not isinstance(declared.choices, Sequence)
        or not isinstance(declared.narrated_calls, Collection)
        or not isinstance(declared.passed_over, Mapping)
        or not isinstance(declared.failures, Mapping)
    ):
        raise NarratorFailed("its declaration has a field of a wrong type")
    return declared
