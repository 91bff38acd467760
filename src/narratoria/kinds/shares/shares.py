"""Shares of the processes of tools: a session that has one waits its turn for a place, and is held to its quotas."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from narratoria.errors import OVERLOADED, QUOTA_EXCEEDED, CallFailure, NarratoriaError
from narratoria.kinds.shares.exemption import exempt
from narratoria.kinds.shares.fair_queue import FairQueue, Place
from narratoria.kinds.shares.limits import ShareLimits
from narratoria.kinds.shares.quotas import Meters, Quota

if TYPE_CHECKING:
    from narratoria.session import Draft, Session

MOST_PER_SESSION: Final = 1_000
"""Calls of one session that may wait at once."""
_WHOSE: Final = ("this session", "this player", "this tool")
MOST_REMEMBERED: Final = 20_000
"""Players and sessions whose use is remembered; those that have used the least of late are forgotten first."""


class TurnRefused(NarratoriaError):
    """A turn was not begun. `seconds` is the time after which it may be tried again."""

    code = "quota"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Overload(TurnRefused):
    """A turn was not begun because there is too much to do for everybody."""

    code = "overloaded"


class Shares:
    """The places and the quotas of all sessions of a process, of one event loop.

        shares = Shares(ShareLimits(processes=8, session=Quota(processes=4)))
        session.share = shares.of(session.id)

    A session without a share is not limited, and pays nothing for all this.
    """

    def __init__(self, limits: ShareLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self.places = FairQueue(limits.processes, clock=clock)
        self.elsewhere = FairQueue(None, clock=clock)
        """Processes on other machines, which need no place here."""
        self.waiting = 0
        self.turns = 0
        self.refused_turns = 0
        self.shed_turns = 0
        self.refused_calls = 0
        self.cpu_seconds = 0.0
        self._tools: dict[str, FairQueue] = {}
        self._meters: dict[tuple[str, str], Meters] = {}

    def of(self, session: str, player: str = "") -> Share:
        """Return the share of a session. Its use is remembered by its id."""
        return Share(self, session, player)

    def meters(self, kind: str, name: str, quota: Quota) -> Meters:
        """Return the meters of a player, a session or a tool, made when they are first asked for."""
        found = self._meters.get((kind, name))
        if found is None:
            if len(self._meters) >= MOST_REMEMBERED:
                self._forget()
            found = self._meters[kind, name] = Meters(quota, self.clock())
        return found

    def _forget(self) -> None:
        now = self.clock()
        unused = [key for key, one in self._meters.items() if one.unused(now)]
        for key in unused or [*self._meters][: MOST_REMEMBERED // 10]:
            del self._meters[key]

    def queue_of(self, tool: str, most: int) -> FairQueue:
        """Return the queue for the places of a tool, of which at most so many run at a time."""
        return self._tools.setdefault(tool, FairQueue(most, clock=self.clock))

    def check(self) -> None:
        """Refuse a turn while there is too much to do."""
        most = self.limits.turns
        wait = self.places.delay()
        if (most is not None and self.turns >= most) or wait > self.limits.overload_seconds:
            wait = max(wait, 1.0)
            raise Overload(f"too many stories are being told here now; try again in {_time(wait)}", wait)


class Share:
    """The share of one session. `player` is whoever takes its turns, and may change between them."""

    def __init__(self, shares: Shares, session: str, player: str = "") -> None:
        self.shares = shares
        self.session = session
        self.player = player
        self._waiting = 0
        self.holding = 0
        self._standstill: contextlib.ExitStack | None = None

    # --- turns ---------------------------------------------------------------------------------------------

    def begin_turn(self) -> Callable[[], None]:
        """Begin a turn; return the function that ends it. Raise `TurnRefused` if there is nothing left for it, or
        `Overload` if there is too much to do for everybody.
        """
        try:
            self._check_quotas()
            self.shares.check()
        except Overload:
            self.shares.shed_turns += 1
            raise
        except TurnRefused:
            self.shares.refused_turns += 1
            raise
        return self.resume_turn()

    def resume_turn(self) -> Callable[[], None]:
        """Count a turn that was begun before and is never refused; return the function that ends it."""
        self.shares.turns += 1
        ended = False

        def end() -> None:
            nonlocal ended
            self.shares.turns -= not ended
            ended = True

        return end

    def _check_quotas(self) -> None:
        now, session, player = self.shares.clock(), self._of_session, self._of_player
        if wait := session.out_of_cpu(now):
            message = f"this story has used the computing time there is for now; try again in {_time(wait)}"
        elif wait := player.out_of_cpu(now):
            message = f"you have used the computing time there is for now; try again in {_time(wait)}"
        elif wait := session.before_call(now):
            message = f"this story has done enough for this minute; try again in {_time(wait)}"
        elif wait := player.before_call(now):
            message = f"you have done enough for this minute; try again in {_time(wait)}"
        else:
            return
        raise TurnRefused(message, wait)

    # --- calls ---------------------------------------------------------------------------------------------

    async def take(self, tool: str, draft: Draft, *, here: bool = True) -> CallPlace:
        """Wait for a place for the process of a call, here or on another machine.

        Raise `QUOTA_EXCEEDED` if the session, its player or the tool has no CPU time left, or no call within the time
        that one may wait; `OVERLOADED` if nothing came free in that time, or too many wait.
        """
        shares = self.shares
        quota = shares.limits.tools.get(tool)
        own = self._of_session, self._of_player
        meters = own if quota is None else (*own, shares.meters("tool", tool, quota))
        try:
            free = exempt.get()
            pause = 0.0 if free else self._checked(tool, meters)
            place = CallPlace(self, tool, quota, meters, draft.root, here=here)
            try:
                if not free and (pause or not place.reached()):
                    await self._wait(place, draft, pause)
            except BaseException:
                place.give_up()
                raise
        except CallFailure:
            shares.refused_calls += 1
            raise
        self.holding += 1
        self.look(draft.root)
        return place

    def _checked(self, tool: str, meters: tuple[Meters, ...]) -> float:
        """Return the seconds for which a call has to wait because of the rate of calls; refuse one that would wait for
        too long, or for which there is no CPU time.
        """
        now, pause = self.shares.clock(), 0.0
        longest = self.shares.limits.wait_seconds
        for one, whose in zip(meters, _WHOSE, strict=False):
            if wait := one.out_of_cpu(now):
                raise _refusal(f"{tool}: the CPU time of {whose} is used up; there is more in {_time(wait)}")
            pause = max(pause, wait := one.before_call(now))
            if wait > longest:
                raise _refusal(f"{tool}: {whose} makes too many calls; the next may begin in {_time(wait)}")
        return pause

    async def _wait(self, place: CallPlace, draft: Draft, pause: float) -> None:
        shares, root, tool = self.shares, draft.root, place.tool
        if shares.waiting >= shares.limits.waiting or self._waiting >= MOST_PER_SESSION:
            raise _refusal(f"{tool}: too many calls wait for a place; try again later", OVERLOADED)
        shares.waiting += 1
        self._waiting += 1
        try:
            await asyncio.sleep(0)  # the pipeline arms the limits of a call that waits
            with root.approvals.clock.standstill() as hold:
                hold(limit for one in (draft, *draft.enclosing) for limit in one.limits)
                self.look(root)
                async with asyncio.timeout(shares.limits.wait_seconds):
                    await asyncio.sleep(pause)
                    while not place.reached():
                        await place.wait()
        except TimeoutError:
            longest = f"{shares.limits.wait_seconds:g} s"
            raise _refusal(
                f"{tool}: no place for its process came free within {longest}; try again later", OVERLOADED
            ) from None
        finally:
            shares.waiting -= 1
            self._waiting -= 1
            self.look(root)

    def look(self, root: Session) -> None:
        """Let the time limits of the session's plans stand still while all it does is wait."""
        starves = bool(self._waiting) and not self.holding
        if starves and self._standstill is None:
            self._standstill = contextlib.ExitStack()
            hold = self._standstill.enter_context(root.approvals.clock.standstill())
            hold(limit for each in root.approvals.limits for limit in each)
        elif not starves and self._standstill is not None:
            standstill, self._standstill = self._standstill, None
            standstill.close()

    @property
    def _of_session(self) -> Meters:
        return self.shares.meters("session", self.session, self.shares.limits.session)

    @property
    def _of_player(self) -> Meters:
        return self.shares.meters("player", self.player, self.shares.limits.player)


class CallPlace:
    """The place of one call: one among those of its tool, if that has a quota, and one of the machine."""

    def __init__(
        self,
        share: Share,
        tool: str,
        quota: Quota | None,
        meters: tuple[Meters, ...],
        root: Session,
        *,
        here: bool,
    ) -> None:
        self.tool = tool
        self._share = share
        self._meters = meters
        self._root = root
        self._most = None if quota is None else quota.processes
        self._here = here
        self._among_tool: Place | None = None
        self._of_machine: Place | None = None
        self._count(1)

    def reached(self) -> bool:
        """Ask for what is missing; tell if the call may begin."""
        share, shares = self._share, self._share.shares
        if self._most is not None and self._among_tool is None:
            self._among_tool = shares.queue_of(self.tool, self._most).ask(share.player, share.session)
        if self._among_tool is not None and not self._among_tool.granted:
            return False
        if self._of_machine is None:
            queue, limits = shares.places if self._here else shares.elsewhere, shares.limits
            self._of_machine = queue.ask(
                share.player,
                share.session,
                player_most=limits.player.processes,
                session_most=limits.session.processes,
            )
        return self._of_machine.granted

    async def wait(self) -> None:
        """Wait for what was asked for last."""
        asked = self._of_machine or self._among_tool
        if asked is not None:
            await asked.wait()

    def charge(self, cpu_seconds: float) -> None:
        """Count the CPU time of a process of the call."""
        shares = self._share.shares
        shares.cpu_seconds += cpu_seconds
        for one in self._meters:
            if one.cpu is not None:
                one.cpu.take(cpu_seconds, shares.clock())

    def give_up(self) -> None:
        """Leave the queues: the call does not begin."""
        self._count(-1)
        self._leave()

    def release(self) -> None:
        """Give the place to the next: the call's process has ended."""
        self._share.holding -= 1
        self._leave()
        self._share.look(self._root)

    def _count(self, calls: int) -> None:
        now = self._share.shares.clock()
        for one in self._meters:
            if one.calls is not None:
                one.calls.take(calls, now)

    def _leave(self) -> None:
        for one in (self._of_machine, self._among_tool):
            if one is not None:
                one.release()


def _refusal(message: str, code: str = QUOTA_EXCEEDED) -> CallFailure:
    return CallFailure(code, message, recoverable=False)


def _time(seconds: float) -> str:
    """Return a time in a form that many languages share."""
    return f"{math.ceil(seconds)} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"
