"""Limits on what one player may send to a server: requests and bytes in a minute, and the size of one body.

A bucket holds a minute's worth and fills evenly, so a page that asks for much at once is not stopped. Each server
counts for itself. The operator is not limited, and a request that another server has sent on was counted there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria.errors import NarratoriaError
from narratoria.web.access import FORWARDED
from narratoria.web.callers import caller_of
from narratoria.web.refusals import refusal

MINUTE: Final = 60.0
MEGABYTE: Final = 1024 * 1024
MOST: Final = 10_000
"""Players whose counts are kept; those with full buckets are forgotten first."""
MAX_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class PlayerRates:
    """Amounts that one player may send to one server."""

    requests: float = 600  # in a minute
    body_bytes: float = 64 * MEGABYTE  # in a minute
    largest_body: int = 32 * MEGABYTE


class TooMuch(NarratoriaError):
    """A player has sent too much for now."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class UploadTooLarge(NarratoriaError):
    """The body is larger than a player may send."""


class Bucket:
    """An amount that fills evenly up to a minute's worth."""

    __slots__ = ("_at", "_left", "_most")

    def __init__(self, most: float, now: float) -> None:
        self._most = self._left = most
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Take an amount, or return the seconds after which it can be taken."""
        self._left = min(self._most, self._left + (now - self._at) * self._most / MINUTE)
        self._at = now
        lacking = min(amount, self._most) - self._left
        if lacking > 0:
            return lacking * MINUTE / self._most
        self._left -= amount  # more than a minute's worth is paid for afterwards
        return 0.0

    def is_full(self, now: float) -> bool:
        return self._left + (now - self._at) * self._most / MINUTE >= self._most


class PlayerLimits:
    """Refuses the requests of a player who sends too many: 429, with the seconds to wait."""

    def __init__(
        self, app: ASGIApp, *, rates: PlayerRates, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app = app
        self._rates = rates
        self._clock = clock
        self._buckets: dict[str, tuple[Bucket, Bucket]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        if scope["type"] != "http" or FORWARDED in scope or caller.get("role", "operator") == "operator":
            await self.app(scope, receive, send)
            return
        requests, bodies = self._of(caller["player"])
        headers = Headers(scope=scope)
        wait = requests.take(1, self._clock())
        if wait:
            seconds = math.ceil(wait)
            answer = refusal(headers, 429, "too_many", seconds=seconds)
            answer.headers["Retry-After"] = str(seconds)
            await answer(scope, receive, send)
            return
        declared = headers.get("content-length", "")
        if declared.isdecimal() and (len(declared) > MAX_DIGITS or int(declared) > self._rates.largest_body):
            size = f"{self._rates.largest_body:,}"
            await refusal(headers, 413, "too_large", size=size)(scope, receive, send)
            return
        await self.app(scope, self._counted(receive, bodies), send)

    def _of(self, player: str) -> tuple[Bucket, Bucket]:
        found = self._buckets.get(player)
        if found is None:
            now = self._clock()
            if len(self._buckets) >= MOST:
                full = [name for name, both in self._buckets.items() if all(one.is_full(now) for one in both)]
                for name in full or [next(iter(self._buckets))]:
                    del self._buckets[name]
            found = self._buckets[player] = (
                Bucket(self._rates.requests, now),
                Bucket(self._rates.body_bytes, now),
            )
        return found

    def _counted(self, receive: Receive, bodies: Bucket) -> Receive:
        """Count the bytes of a body while it is read; whoever reads it gets the refusal."""
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request" and (size := len(message.get("body", b""))):
                read += size
                if read > self._rates.largest_body:
                    raise UploadTooLarge(f"the body has more than {self._rates.largest_body:,} bytes")
                wait = bodies.take(size, self._clock())
                if wait:
                    raise TooMuch("you have sent too much in a short time; wait a moment", math.ceil(wait))
            return message

        return counted
