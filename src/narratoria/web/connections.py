"""Limits on connections: their number, and the time each may take.

uvicorn waits for the rest of a request for ever, and accepts every connection. On one machine an attacker has the
player's own address, so a full server does not turn the new connection away: it ends the one that has waited longest
without a request. Streams are long and stay: an answer is only given up when nobody reads it.

A client may send further requests before it has its answer. They wait in one queue for all such connections, and until
the answer before is sent: so a few hundred clients that send without reading do not hold up one that waits for each.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ACCEPTED_AT_ONCE: Final = 16
"""Connections accepted at once, beyond the limit; asyncio has one number for this and for the queue."""
QUEUE: Final = 1_024
"""Connections the system holds until they are accepted. A client that finds the queue full tries again after a
second.
"""
AHEAD_AT_ONCE: Final = 4
"""Requests sent ahead that are begun at once, of all connections together."""
AHEAD_SECONDS: Final = 0.005
TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\nConnection: close\r\n"
    b'Content-Length: 85\r\n\r\n{"error": "too_many_connections", "message": "Close some windows, or wait a moment."}'
)
TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on connections, and seconds they may wait."""

    total: int = 1_000
    per_address: int = 400
    streams: int = 300
    header: float = 10.0
    """Seconds from the first byte of a request, or from a connection without one, to the end of its header."""
    body: float = 20.0
    """Seconds without a byte of the body; a whole body may take this and a second for each `rate` bytes."""
    rate: int = 1_000
    unread: float = 60.0
    """Seconds without a byte of the answer being read."""

    @classmethod
    def of_this_process(cls, total: int | None = None) -> Limits:
        """Return limits for half of the files this process may open, `total` at most; the rest is for tools, journals
        and assets.
        """
        usual = cls()
        most = min(total or usual.total, max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
        address = min(usual.per_address, most - most // 4)
        return cls(total=most, per_address=address, streams=min(usual.streams, address * 3 // 4))


class Connections:
    """All connections of a server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: dict[Connection, str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._queue: deque[Connection] = deque()  # those whose next request was sent ahead
        self._serving: asyncio.TimerHandle | None = None

    def enqueue(self, one: Connection) -> None:
        """Let a connection go on with a request that it sent ahead, when its turn comes."""
        self._queue.append(one)
        if self._serving is None:
            self._serving = asyncio.get_running_loop().call_later(AHEAD_SECONDS, self._serve)

    def _serve(self) -> None:
        self._serving = None
        for _ in range(min(AHEAD_AT_ONCE, len(self._queue))):
            self._queue.popleft().go_on()
        if self._queue and self._serving is None:
            self._serving = asyncio.get_running_loop().call_later(AHEAD_SECONDS, self._serve)

    def end_stalled(self) -> None:
        """End the connections whose answers nobody reads, and those whose requests are half sent: the server's end
        would wait for them.
        """
        for one in list(self._open):
            if one.flow.write_paused or (not one.is_waiting and one.cycle.more_body):
                one.transport.abort()

    def admit(self, newcomer: Connection, address: str) -> bool:
        """Accept a connection, if need be in the place of one that only waits."""
        of_address = [one for one, whose in self._open.items() if whose == address]
        rivals = None
        if len(of_address) >= self.limits.per_address:
            rivals = of_address
        elif len(self._open) >= self.limits.total:
            rivals = list(self._open)
        if rivals is not None:
            waiting = [one for one in rivals if one.is_waiting]
            if not waiting:
                return False
            longest = min(waiting, key=lambda one: (one.served, one.since))
            longest.transport.abort()
            self.forget(
                longest
            )  # at once: it is lost only in the loop's next round, and others come in this one
        self._open[newcomer] = address
        if self._timer is None:
            self._look_again()
        return True

    def forget(self, one: Connection) -> None:
        self._open.pop(one, None)

    def _look_again(self) -> None:
        shortest = min(self.limits.header, self.limits.body, self.limits.unread)
        self._timer = asyncio.get_running_loop().call_later(shortest / 4, self._look)

    def _look(self) -> None:
        """End overdue connections. Nothing is checked while there are none."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for one in list(self._open):
            one.look(now, self.limits)
        if self._open:
            self._look_again()

    def protocol(self) -> type[Connection]:
        """Return the class of this server's connections, as uvicorn wants it."""
        return type("Connection", (Connection,), {"house": self})


class Connection(H11Protocol):
    """uvicorn's connection, with time limits."""

    house: Connections

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.since = self.loop.time()  # it has waited for a request since then
        self.served = False
        self._admitted = False
        self._begun: float | None = None  # the first byte of the request under way
        self._heard = 0.0
        self._received = 0
        self._unsent = 0
        self._read_at = 0.0
        self._queued = False  # the next request is here, and waits for its turn

    @property
    def is_waiting(self) -> bool:
        """Tell if no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._admitted = self.house.admit(self, self.client[0] if self.client else "")
        if not self._admitted:
            transport.write(TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.house.forget(self)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._admitted:
            return
        now = self.loop.time()
        if self._begun is None:
            self._begun = now
            self._received = 0
        self._heard = now
        self._received += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        self.served = True
        self.since = self.loop.time()
        self._begun = None
        self._queued = self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])
        super().on_response_complete()
        if self._queued and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.flow.pause_reading()
            self.house.enqueue(self)

    def handle_events(self) -> None:
        if not self._queued:
            super().handle_events()

    def go_on(self) -> None:
        """Begin the request that was sent ahead, once the answer before it is sent."""
        if self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size():
            self.house.enqueue(self)
            return
        self._queued = False
        self.since = self.loop.time()
        self.flow.resume_reading()
        self.handle_events()

    def look(self, now: float, limits: Limits) -> None:
        """End this connection if it is overdue."""
        if self._is_unread(now, limits.unread):
            self.transport.abort()
        elif not self.transport.is_closing() and self._is_late(now, limits):
            if self.is_waiting or not self.cycle.response_started:
                self.transport.write(TOO_SLOW)
            self.transport.close()

    def _is_unread(self, now: float, seconds: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent or not self._unsent:
            self._read_at = now
        self._unsent = unsent
        return bool(unsent) and now - self._read_at > seconds

    def _is_late(self, now: float, limits: Limits) -> bool:
        if self._queued:
            return False
        if self.is_waiting:
            return now - (self.since if self._begun is None else self._begun) > limits.header
        if not self.cycle.more_body or self.flow.read_paused:  # it is our turn
            return False
        begun = self._heard if self._begun is None else self._begun
        whole = limits.body + self._received / limits.rate
        return now - self._heard > limits.body or now - begun > whole
