"""Approvals: questions to a person before a call, their answers, and the time limits that stand still meanwhile.

A question is an `approval_requested` in the journal, its answer an `approval_given`. After a crash the resumed turn
asks the same question under the same id, and takes an answer that was already recorded.

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer.approve() if input(f"{request.tool.name}? ") == "y" else ApprovalAnswer.refuse("no")

    session.approvals.approver = ask

A program that answers later, such as a web server, sets `session.approvals.attended = True`, reads `pending`, and calls
`answer(id, …)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from narratoria.errors import ApprovalNotOpen, JournalError
from narratoria.events import ApprovalGiven, ApprovalRequested, JsonObject
from narratoria.session.stopped_clock import StoppedClock, TimeLimit
from narratoria.unicode_text import legible

if TYPE_CHECKING:
    from narratoria.session.draft import Draft
    from narratoria.session.session import Session
    from narratoria.tools.tool import Tool

Decision: TypeAlias = Literal["approved", "edited", "refused"]
_Key: TypeAlias = tuple[
    str, str, str, int
]  # the whole call, the tool, its input, and which of equal questions it is
MOST_REMEMBERED: Final = 256  # answers of calls outside a turn

NOBODY: Final = "narratoria"
"""The name under which a call is refused where no person could be asked."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The answer to a question: the decision, the edited input or the reason, and who gave it."""

    decision: Decision
    input: JsonObject | None = None
    reason: str = ""
    by: str = ""

    @classmethod
    def approve(cls, *, by: str = "") -> ApprovalAnswer:
        """Let the call run as it is."""
        return cls("approved", by=by)

    @classmethod
    def edit(cls, input: Mapping[str, Any], *, by: str = "") -> ApprovalAnswer:  # noqa: A002 - its name everywhere
        """Let the call run with another input."""
        return cls("edited", dict(input), by=by)

    @classmethod
    def refuse(cls, reason: str = "", *, by: str = "") -> ApprovalAnswer:
        """Refuse the call. The narrator gets the reason."""
        return cls("refused", reason=reason, by=by)


@dataclass(frozen=True, slots=True, eq=False)
class ApprovalRequest:
    """A question: may this tool be called with this input?"""

    id: str
    tool: Tool[Any, Any]
    input: JsonObject
    reason: str
    call: str
    turn: int | None = None
    check: Callable[[JsonObject], Any] = field(default=lambda edited: None, repr=False)
    """Raise `ArgumentsInvalid` for an edited input that the tool would refuse."""


class Approver(Protocol):
    """An async function that asks a person."""

    async def __call__(self, request: ApprovalRequest, /) -> ApprovalAnswer: ...


def approving(by: str) -> Approver:
    """Return an approver that approves everything, for where somebody has decided beforehand."""

    async def approve(request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer.approve(by=by)

    return approve


@dataclass(slots=True, eq=False)
class _Open:
    request: ApprovalRequest
    answered: asyncio.Future[ApprovalAnswer]


@dataclass(slots=True)
class _Remembered:
    """A question of this turn, also one from before a crash, and its answer."""

    request: ApprovalRequested
    given: ApprovalGiven | None = None


class Approvals:
    """The questions of a session that are open, and the answers of its present turn."""

    def __init__(self, session: Session) -> None:
        self.approver: Approver | None = None
        self.attended = False
        """True if somebody reads `pending` and calls `answer`."""
        self.limits: list[tuple[asyncio.Timeout, ...]] = []  # of the plans that run
        self.waiting: list[tuple[list[Draft], Callable[[Iterable[TimeLimit]], None]]] = []
        self._session = session
        self._open: dict[str, _Open] = {}
        self._remembered: dict[_Key, _Remembered] = {}
        self._closed: set[str] = set()
        self.clock = StoppedClock()  # stops the time limits of the session's calls and plans

    @property
    def available(self) -> bool:
        """Tell if there is anybody to ask."""
        return self.approver is not None or self.attended

    @property
    def pending(self) -> list[ApprovalRequest]:
        """The open questions, oldest first."""
        return [one.request for one in self._open.values() if not one.answered.done()]

    def answer(self, id: str, answer: ApprovalAnswer) -> None:  # noqa: A002 - of the question
        """Answer an open question. Raise `ApprovalNotOpen` if it is not, and `ArgumentsInvalid` for an edited input
        that the tool would refuse; the question then stays open.
        """
        waiting = self._open.get(id)
        if waiting is None or waiting.answered.done():
            known = waiting is not None or id in self._closed or id in self._asked_before()
            raise ApprovalNotOpen(id, known=known)
        if answer.decision == "edited":
            waiting.request.check(answer.input or {})
        waiting.answered.set_result(answer)

    def _asked_before(self) -> set[str]:
        return {one.request.id for one in self._remembered.values()}

    async def ask(
        self,
        tool: Tool[Any, Any],
        input: JsonObject,  # noqa: A002 - its name everywhere
        reason: str,
        call: str,
        within: Session | Draft,
        limits: Iterable[TimeLimit],
        check: Callable[[JsonObject], Any],
    ) -> ApprovalAnswer:
        """Ask, and wait for the answer; both are in the journal before this returns. `within` is the session or draft
        of the call. The `limits` stand still meanwhile, as do those of the session's plans.
        """
        whole = _whole_call(within)  # the id of the call that it is part of, if anybody records
        place = _place(within, tool.name, input)
        key = _key(tool.name, input, whole or call, place)
        known = self._remembered.get(key)
        if known is not None and known.given is not None and known.given.decision != "cancelled":
            return _as_answer(known.given)
        if known is None or known.given is not None:  # one that was cancelled stays closed
            known = self._remember(key, self._question(tool, input, reason, call, whole))
            await self._write_down(known.request)
        request = ApprovalRequest(
            known.request.id, tool, input, known.request.reason, call, self._session.turn, check
        )
        try:
            with self.clock.standstill() as hold:
                hold([*limits, *_limits(within), *(one for each in self.limits for one in each)])
                self.waiting.append((_drafts(within), hold))
                try:
                    answer = await self._wait(request)
                finally:
                    self.waiting = [one for one in self.waiting if one[1] is not hold]
        except BaseException:
            known.given = ApprovalGiven(id=request.id, call=call, decision="cancelled")
            self._session.record(known.given)
            raise
        known.given = ApprovalGiven(
            id=request.id,
            call=call,
            decision=answer.decision,
            input=answer.input,
            reason=legible(answer.reason),
            by=legible(answer.by),
        )
        await self._write_down(known.given)
        return answer

    def _question(
        self, tool: Tool[Any, Any], given: JsonObject, reason: str, call: str, whole: str | None
    ) -> ApprovalRequested:
        return ApprovalRequested(
            id=f"approval-{self._session.seq + 1}",  # the number of its record
            call=call,
            within=whole,
            tool=tool.name,
            title=tool.title or "",
            input=given,
            reason=legible(reason),
        )

    def hold(self, draft: Draft) -> None:
        """Stop the time limits of a call that began to wait only now, if it waits for a question."""
        for drafts, hold in self.waiting:
            if any(one is draft for one in drafts):
                hold(draft.limits)

    async def _wait(self, request: ApprovalRequest) -> ApprovalAnswer:
        waiting = _Open(request, asyncio.get_running_loop().create_future())
        self._open[request.id] = waiting
        asking: asyncio.Task[None] | None = None
        try:
            if self.approver is not None:
                asking = asyncio.ensure_future(_put(self.approver, waiting))
            return await waiting.answered
        finally:
            del self._open[request.id]
            self._closed.add(request.id)
            if asking is not None and not asking.done():
                asking.cancel()
                await asyncio.wait([asking])

    async def _write_down(self, event: ApprovalRequested | ApprovalGiven) -> None:
        self._session.record(event)
        if self._session.journal is not None:
            with contextlib.suppress(JournalError):  # the turn's end tries again, and tells the player
                await self._session.journal.flush()

    # --- of a turn -----------------------------------------------------------------------------------------

    def _remember(self, key: _Key, request: ApprovalRequested) -> _Remembered:
        if self._session.turn is None and len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)))
        found = self._remembered[key] = _Remembered(request)
        return found

    def recall(self, events: Sequence[ApprovalRequested | ApprovalGiven]) -> None:
        """Take up the questions and answers of a turn that a crash left open, from its records."""
        by_id: dict[str, _Remembered] = {}
        for event in events:
            if isinstance(event, ApprovalRequested):
                places = range(len(events))
                keys = (_key(event.tool, event.input, event.within or event.call, at) for at in places)
                key = next(one for one in keys if one not in self._remembered)
                by_id[event.id] = self._remembered[key] = _Remembered(event)
            elif event.id in by_id:
                by_id[event.id].given = event

    def end_turn(self) -> None:
        """Forget the answers of the turn. A question of it that was not asked again is closed as cancelled."""
        for one in self._remembered.values():
            if one.given is None:
                self._session.record(
                    ApprovalGiven(id=one.request.id, call=one.request.call, decision="cancelled")
                )
                self._closed.add(one.request.id)
        self._remembered.clear()


async def _put(approver: Approver, waiting: _Open) -> None:
    """Put a question to the approver. What it raises is raised where the answer is waited for."""
    try:
        answer = await approver(waiting.request)
        if not isinstance(answer, ApprovalAnswer):
            raise TypeError(
                f"the approver must return an ApprovalAnswer, got {type(answer).__name__}; "
                f"write ApprovalAnswer.approve(), .edit(input) or .refuse(reason)"
            )
        if answer.decision == "edited":
            waiting.request.check(answer.input or {})
    except BaseException as error:
        if not waiting.answered.done():
            waiting.answered.set_exception(error)
            return
        raise
    if not waiting.answered.done():
        waiting.answered.set_result(answer)


def _as_answer(given: ApprovalGiven) -> ApprovalAnswer:
    decision: Any = given.decision
    return ApprovalAnswer(decision, given.input, given.reason, given.by)


def _key(tool: str, given: JsonObject, whole: str, place: int) -> _Key:
    return whole, tool, json.dumps(given, sort_keys=True, default=repr), place


def _drafts(within: Session | Draft) -> list[Draft]:
    """Return the drafts of the calls around a call, the innermost first."""
    found: list[Draft] = []
    while (above := getattr(within, "parent", None)) is not None:
        found.append(within)  # type: ignore[arg-type]  # only a draft has a parent
        within = above
    return found


def _whole_call(within: Session | Draft) -> str | None:
    return next((one.call_id for one in reversed(_drafts(within)) if one.call_id), None)


def _place(within: Session | Draft, tool: str, given: JsonObject) -> int:
    """Return how many equal questions the present attempt of the whole call has asked before."""
    outermost = next((one for one in reversed(_drafts(within)) if one.call_id), None)
    if outermost is None:
        return 0
    if outermost.asked is None:
        outermost.asked = {}
    key = _key(tool, given, "", 0)
    outermost.asked[key] = outermost.asked.get(key, 0) + 1
    return outermost.asked[key] - 1


def _limits(within: Session | Draft) -> list[asyncio.Timeout]:
    """Return the time limits of the calls around a call."""
    return [limit for draft in _drafts(within) for limit in draft.limits]
