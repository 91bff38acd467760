"""In-process publish and subscribe. A failing subscriber is reported; its exception never reaches the publisher."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

logger = logging.getLogger("narratoria")

E = TypeVar("E")
Handler = Callable[[Any], None]


class ToolInvoked(msgspec.Struct, frozen=True):
    """Telemetry of one call."""

    # 002, "Runtime Dispatch", step 8.

    tool: str
    call_id: str
    session_id: str
    params: Any
    result: Any
    duration: float
    attempts: int


class SubscriberFailed(msgspec.Struct, frozen=True):
    """Published when a subscriber raised; subscribe to it to see them."""

    event: Any
    error: str


class Dispatcher:
    """Subscribers by event type; those of `object` get every event."""

    __slots__ = ("_audience", "_handlers", "heard")

    def __init__(self) -> None:
        self.heard = False  # whether anybody ever subscribed; what nobody hears need not be made
        self._handlers: dict[type, tuple[Handler, ...]] = {}
        self._audience: dict[
            type, tuple[Handler, ...]
        ] = {}  # who hears a type, `object` included; made when asked

    def subscribe(self, event_type: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call `handler` with every event of exactly this type; return a function that unsubscribes it."""
        self._handlers[event_type] = (*self._handlers.get(event_type, ()), handler)
        self._audience = {}
        self.heard = True

        def unsubscribe() -> None:
            left = tuple(one for one in self._handlers.get(event_type, ()) if one is not handler)
            self._handlers[event_type] = left
            self._audience = {}

        return unsubscribe

    def publish(self, event: Any) -> None:
        """Call the handlers of an event, in the order in which they subscribed."""
        audience = self._audience.get(type(event))
        if audience is None:
            handlers = self._handlers
            audience = (*handlers.get(type(event), ()), *handlers.get(object, ()))
            self._audience[type(event)] = audience
        for handler in audience:
            try:
                handler(event)
            except Exception as error:
                self._report(event, error)

    def _report(self, event: Any, error: Exception) -> None:
        logger.exception("a subscriber of %s failed", type(event).__name__)
        if not isinstance(event, SubscriberFailed):
            self.publish(SubscriberFailed(event, f"{type(error).__name__}: {error}"))
