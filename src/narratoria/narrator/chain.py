"""Several narrators, asked in turn: the first that has an answer speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from narratoria.errors import NarratoriaError, PlanRejected
from narratoria.narrator.invocation import NarratorFailed, ask
from narratoria.narrator.protocol import (
    Declaration,
    Learner,
    Narrator,
    NarratorRequest,
    NoMatch,
    Refusal,
    Reteller,
    declaration_of,
)
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import GENERATION_TIMEOUT

_SHARE: Final = 0.8  # of the time left, for a narrator with others behind it
_LAST_SHARE: Final = 0.95  # for the last one: the template needs next to none


@dataclass(slots=True)
class _Course:
    """The progress of the chain with one request."""

    at: int = 0  # who is asked next
    refusal: Refusal | None = None
    refuser: str = ""
    passed_over: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


class ChainNarrator:
    """Falls through on no match, failure or time-out; `last_speaker` and `passed_over` say what happened.

    A narrator that learns from its failure (a model whose answer could not be read) is asked again in the turn's next
    generation, as long as there is one: `plan` then raises `PlanRejected`, and goes on where it was. One that
    failed for good (a server that hangs) is not asked again in the same turn. `failures` has both kinds, but nobody
    who just had nothing to say.

    An honest refusal ("nothing here can do that") is kept while the later narrators are asked, and is the answer
    when none of them knows better. The last narrator, usually the template, is asked only when there is none.
    """

    def __init__(
        self,
        narrators: Sequence[Narrator],
        *,
        last_resort: Narrator | None = None,
        time_limit: float = GENERATION_TIMEOUT,
        on_refusal: Callable[[Refusal], None] = lambda refusal: None,
    ) -> None:
        self.narrators = tuple(narrators)
        self.last_resort = last_resort
        self.time_limit = time_limit
        self.on_refusal = on_refusal
        self.last_speaker = ""
        self.last_choices: tuple[str, ...] = ()
        self.passed_over: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._given_up: dict[int, str] = {}  # in this turn, by place: two may have one name
        self._left_off: tuple[str, int, _Course] | None = None  # prompt and attempt to go on with

    @property
    def name(self) -> str:
        return self.last_speaker or " → ".join(one.name for one in self.narrators)

    def declare(self, speaker: str = "") -> Declaration:
        """The declaration of the narrator called `speaker`, with how the chain came to it."""
        declared = [(one.name, declaration_of(one)) for one in self.narrators]
        of_speaker = next((own for name, own in declared if name == speaker), Declaration())
        return replace(
            of_speaker,
            reads_memories=any(own.reads_memories for _, own in declared),
            choices=self.last_choices,
            passed_over=self.passed_over,
            failures=self.failures,
        )

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        course = self._set_out(request)
        self.last_choices = ()
        self.passed_over, self.failures = course.passed_over, course.failures
        clock = asyncio.get_running_loop().time
        end = clock() + self.time_limit
        while course.at < len(self.narrators):
            narrator = self.narrators[course.at]
            # The caller waits as long as for one narrator: a slow one must leave time for the next.
            behind = len(self.narrators) - course.at - 1
            share = max(0.0, end - clock()) * (_SHARE if behind else _LAST_SHARE)
            plan = await self._hear(narrator, request, course, share)
            if plan is not None:
                self.last_speaker = narrator.name
                self.last_choices = tuple(declaration_of(narrator).choices)
                return plan
            course.at += 1
        # After an action that failed, "I don't know how to do that" would deny a skill that is there.
        failed = request.last_trace is not None and not request.last_trace.success
        if request.lore and not failed:
            self.last_speaker, self.last_choices = "lore", course.refusal.choices if course.refusal else ()
            return request.answer("\n\n".join(request.lore))
        if course.refusal is not None and not (failed and self.last_resort is not None):
            self.last_speaker = course.refuser
            self.last_choices = course.refusal.choices
            self.on_refusal(course.refusal)
            return PlanDocument(narrative=course.refusal.narrative)
        if self.last_resort is not None:
            self.last_speaker = self.last_resort.name
            return await self.last_resort.plan(request)
        self.last_speaker = ""
        raise NoMatch("; ".join(f"{name}: {why}" for name, why in self.passed_over.items()) or "no narrator")

    def _set_out(self, request: NarratorRequest) -> _Course:
        left_off, self._left_off = self._left_off, None
        if request.attempt == 1:
            self._given_up = {}
        elif left_off is not None and left_off[:2] == (request.prompt, request.attempt):
            return left_off[2]
        return _Course()

    async def _hear(
        self, narrator: Narrator, request: NarratorRequest, course: _Course, seconds: float
    ) -> PlanDocument | None:
        """One narrator's plan; None where it is the next one's turn."""
        if course.at in self._given_up:
            course.passed_over[narrator.name] = self._given_up[course.at]
            return None
        try:
            return await ask(narrator, request, seconds)
        except Refusal as error:
            if course.refusal is None:
                course.refusal, course.refuser = error, narrator.name
            course.passed_over[narrator.name] = str(error)
        except NoMatch as error:
            course.passed_over[narrator.name] = str(error) or "no match"
        except (NarratorFailed, PlanRejected) as error:
            self._weigh(error, narrator, request, course)
        return None

    def _weigh(
        self,
        error: NarratorFailed | PlanRejected,
        narrator: Narrator,
        request: NarratorRequest,
        course: _Course,
    ) -> None:
        """A failure: worth the turn's next generation, or not."""
        own = error.__cause__ if isinstance(error, NarratorFailed) and error.__cause__ is not None else error
        again = isinstance(narrator, Learner) and narrator.learns_from(own)
        if again and request.attempt < request.generations:
            self._left_off = (request.prompt, request.attempt + 1, course)
            self.last_speaker = narrator.name
            raise error if isinstance(error, PlanRejected) else PlanRejected([str(error)])
        why = str(error)
        course.passed_over[narrator.name] = course.failures[narrator.name] = why
        self._given_up[course.at] = why

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str:
        """The last speaker's new narrative; `PlanRejected` where another attempt may be better."""
        for narrator in self.narrators:
            if narrator.name == self.last_speaker and isinstance(narrator, Reteller):
                try:
                    return await narrator.retell(request, narrative, objections)
                except NarratoriaError as error:
                    if isinstance(narrator, Learner) and narrator.learns_from(error):
                        raise PlanRejected(getattr(error, "problems", [str(error)])) from error
                    raise
        raise NoMatch(f"{self.last_speaker or 'nobody'} tells a thing only once")
