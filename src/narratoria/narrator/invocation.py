"""Asking a narrator. It is foreign code: it may raise anything, hang, or refuse to be cancelled.

The question is asked in a task of its own. When time is up the task is cancelled and given a moment; one that swallows
its cancellation is left behind, and what it says later is heard by nobody.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from narratoria.errors import NarratoriaError, PlanRejected, describe
from narratoria.events import ModelAsked, Notice
from narratoria.narrator.protocol import (
    Declaration,
    Narrator,
    NarratorRequest,
    NoMatch,
    Review,
    Reviewer,
    declaration_of,
)
from narratoria.run.plan import ExecutionResult, PlanDocument, PlanMetadata

GRACE: Final = 0.5
_left_behind: set[asyncio.Task[Any]] = set()  # a task nobody refers to could vanish in mid-flight


def readable(text: str) -> str:
    """The text with question marks for lone surrogates, which JSON cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_written(plan: PlanDocument) -> PlanDocument:
    """The plan as its JSON has it, checked whole: a narrator in Python may put anything into one.

    Raises `PlanRejected`. What its metadata say is the turn's to decide.
    """
    named = plan.request_id if isinstance(plan.request_id, str) else None
    try:
        plan.check()  # first, since what is nested too deeply cannot be written
        told = readable(plan.narrative) if isinstance(plan.narrative, str) else plan.narrative
        plain = msgspec.structs.replace(plan, narrative=told, metadata=PlanMetadata())
        return PlanDocument.from_json(plain.to_json())
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise PlanRejected([f"$: not JSON data: {describe(error)}"], plan_id=named) from None


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
    speaking = asyncio.create_task(_speak(lambda: narrator.plan(request)))
    try:
        await asyncio.wait({speaking}, timeout=seconds)
    finally:
        if not speaking.done():
            await _stop(speaking)
    if not speaking.done():
        raise NarratorFailed(f"no plan within {seconds:.3g} s, and it does not stop")
    if speaking.cancelled():
        raise NarratorFailed(f"no plan within {seconds:.3g} s")
    plan, error = speaking.result()
    if isinstance(error, NoMatch | PlanRejected):
        raise error
    if error is not None:
        ours = isinstance(error, NarratoriaError)  # its text is written for people
        raise NarratorFailed((ours and str(error)) or describe(error)) from error
    if not isinstance(plan, PlanDocument):
        raise NarratorFailed(f"the narrator returned {type(plan).__name__}, not a PlanDocument")
    return plan


async def review_of(
    narrator: Reviewer,
    request: NarratorRequest,
    plan: PlanDocument | None,
    traces: Sequence[ExecutionResult],
    seconds: float,
) -> Review:
    """Its review of a turn. Raises `NarratorFailed` for whatever goes wrong."""
    review, error = await _speak(lambda: narrator.review(request, plan, traces, seconds))
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


async def _speak(question: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    try:
        return await question(), None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit: a narrator does not end the program
        return None, error


async def _stop(speaking: asyncio.Task[Any]) -> None:
    speaking.cancel()
    await asyncio.wait({speaking}, timeout=GRACE)
    if not speaking.done():
        _left_behind.add(speaking)
        speaking.add_done_callback(_left_behind.discard)
