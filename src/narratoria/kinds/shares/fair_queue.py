"""Places that are shared fairly: first between players, then between the sessions of a player.

The next free place goes to the player, and of that one to the session, that has used the least place time among those
that wait. One that comes or comes back begins where the others are: it neither saves time up nor pays for time in which
nobody else waited. Inside a session, calls are served in their order.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

LEAST: Final = 0.01
"""Seconds of place time that every call uses at least: several that begin at the same moment count too."""
_FEW: Final = 64  # parties that are kept without a look at whether they still matter
_WEIGHT: Final = 0.1  # of the newest call in the mean


class Waiter:
    """A call that waits for a place, or has one."""

    __slots__ = ("granted", "since", "woken")

    def __init__(self) -> None:
        self.granted = False
        self.since = 0.0  # when it got its place
        self.woken: asyncio.Future[None] | None = None

    def grant(self, now: float) -> None:
        self.granted, self.since = True, now
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)


class Party:
    """A player, a session, or all of them: it holds places, and parties below it or calls of its own wait for some."""

    __slots__ = (
        "_began",
        "_floor",
        "_used",
        "above",
        "below",
        "holding",
        "key",
        "line",
        "listed",
        "most",
        "ready",
        "waiting",
    )

    def __init__(self, key: str, above: Party | None, most: int | None) -> None:
        self.key = key
        self.above = above
        self.most = most
        self.holding = 0
        self.waiting = 0
        self.below: dict[str, Party] = {}
        self.ready: list[
            tuple[float, int, Party]
        ] = []  # a heap of those below that wait, by what they have used
        self.listed = False  # in the heap above
        self.line: deque[Waiter] = deque()
        self._used = 0.0
        self._began = 0.0  # sum of the times at which the held places were got
        self._floor = 0.0  # what the last one served below had used

    def used(self, now: float) -> float:
        """Return the place time it has used, with that of the places it holds."""
        return self._used + max(self.holding * LEAST, self.holding * now - self._began)

    def held(self, now: float) -> float:
        """Return for how long the places it holds are held, in the mean."""
        return now - self._began / self.holding if self.holding else 0.0

    @property
    def has_room(self) -> bool:
        return self.most is None or self.holding < self.most

    @property
    def is_idle(self) -> bool:
        return not self.holding and not self.waiting

    def child(self, key: str, most: int | None) -> Party:
        found = self.below.get(key)
        if found is None:
            if len(self.below) >= _FEW and len(self.below) & (len(self.below) - 1) == 0:  # at each doubling
                self._forget()
            found = self.below[key] = Party(key, self, most)
        if found.is_idle:
            found._used = max(found._used, self._floor)
        return found

    def _forget(self) -> None:
        """Drop those that would begin anew anyway."""
        for key, one in [*self.below.items()]:
            if one.is_idle and one._used <= self._floor:
                del self.below[key]

    def lists(self, order: int, now: float) -> None:
        """Put it into the heap above."""
        if not self.listed and self.above is not None:
            self.listed = True
            heapq.heappush(self.above.ready, (self.used(now), order, self))

    def next(self, now: float) -> Waiter | None:
        """Take the call out that gets the next place; None if none of those that wait may have one now."""
        if not self.has_room:
            return None
        if self.line:
            return self._leaving(self.line.popleft())
        aside: list[tuple[float, int, Party]] = []
        found: Waiter | None = None
        while found is None and self.ready:
            used, order, one = heapq.heappop(self.ready)
            if not one.waiting:
                one.listed = False
                continue
            if (by_now := one.used(now)) > used:
                heapq.heappush(self.ready, (by_now, order, one))
                continue
            found = one.next(now)
            if found is not None:
                self._floor = max(self._floor, used)
            if one.waiting:
                aside.append((used, order, one))
            else:
                one.listed = False
        for entry in aside:
            heapq.heappush(self.ready, entry)
        return found

    def _leaving(self, waiter: Waiter) -> Waiter:
        for one in self.up():
            one.waiting -= 1
        return waiter

    def up(self) -> Iterator[Party]:
        """Yield this party and those above it."""
        party: Party | None = self
        while party is not None:
            yield party
            party = party.above

    def hold(self, now: float) -> None:
        self.holding += 1
        self._began += now

    def release(self, since: float, now: float) -> None:
        self.holding -= 1
        self._began = self._began - since if self.holding else 0.0
        self._used += max(LEAST, now - since)


class Place:
    """A place that a call holds, or waits for, until `release`."""

    __slots__ = ("_party", "_queue", "_waiter")

    def __init__(self, queue: FairQueue, party: Party, waiter: Waiter) -> None:
        self._queue = queue
        self._party: Party | None = party
        self._waiter = waiter

    @property
    def granted(self) -> bool:
        """True once the call may begin."""
        return self._waiter.granted

    async def wait(self) -> None:
        """Wait until the call may begin. Whoever is cancelled meanwhile has to `release` it too."""
        if not self._waiter.granted:
            self._waiter.woken = asyncio.get_running_loop().create_future()
            await self._waiter.woken

    def release(self) -> None:
        """Give it to the next, or leave the queue; a second time does nothing."""
        party, self._party = self._party, None
        if party is not None:
            self._queue.release(party, self._waiter)


class FairQueue:
    """A number of places, None for any, and the calls that wait for one. It is of one event loop."""

    def __init__(self, places: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.places = places
        self._clock = clock
        self._order = 0
        self._all = Party("", None, places)
        self._parties: dict[Waiter, Party] = {}
        self._mean = 0.0  # seconds that calls hold a place

    @property
    def holding(self) -> int:
        """Places that are taken."""
        return self._all.holding

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return self._all.waiting

    def delay(self) -> float:
        """Return how long the first call of another session would wait, as far as one can know: each session that
        waits now may be served once before it.
        """
        if self.places is None or self.holding < self.places:
            return 0.0
        now = self._clock()
        ahead = 1 + sum(
            1 for player in self._all.below.values() for one in player.below.values() if one.waiting
        )
        return ahead * max(self._mean, self._all.held(now)) / self.places

    def ask(
        self, player: str, session: str, *, player_most: int | None = None, session_most: int | None = None
    ) -> Place:
        """Ask for a place of a session of a player, each of which may hold only so many at once."""
        party = self._all.child(player, player_most).child(session, session_most)
        waiter = Waiter()
        self._line_up(party, waiter)
        return Place(self, party, waiter)

    def _line_up(self, party: Party, waiter: Waiter) -> None:
        now = self._clock()
        self._order += 1
        party.line.append(waiter)
        self._parties[waiter] = party
        for one in party.up():
            one.waiting += 1
            one.lists(self._order, now)
        self._serve(now)

    def _serve(self, now: float) -> None:
        while (waiter := self._all.next(now)) is not None:
            for one in self._parties.pop(waiter).up():
                one.hold(now)
            waiter.grant(now)

    def release(self, party: Party, waiter: Waiter) -> None:
        now = self._clock()
        if waiter.granted:
            self._mean += (now - waiter.since - self._mean) * (_WEIGHT if self._mean else 1.0)
            for one in party.up():
                one.release(waiter.since, now)
            self._serve(now)
        else:
            party.line.remove(waiter)
            del self._parties[waiter]
            for one in party.up():
                one.waiting -= 1
        if self._all.is_idle:  # nobody owes anything to anybody then
            self._all = Party("", None, self.places)
