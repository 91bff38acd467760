"""One call: its settings that differ from the tool's own, and the record of its attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from narratoria.events import JsonObject, ToolEvent
from narratoria.tools.retry import RetryPolicy

if TYPE_CHECKING:
    from narratoria.session import Draft


class Call(msgspec.Struct, eq=False):
    """Settings of one call that differ from the tool's own, and the record of its attempts."""

    call_id: str | None = None
    tool_id: str | None = None
    plan_id: str | None = None
    policy: RetryPolicy | None = None
    timeout: float | None = None
    dependencies: JsonObject | None = None
    first_attempt: int = 1
    events: list[ToolEvent] = []
    committed: list[ToolEvent] = []  # those of the attempt that succeeded
    attempts: int = 0
    inside: bool = False  # its middleware runs, and records the result
    approval: bool | None = None  # True: a person must approve it; False: it needs no approval
    cascade: bool = False  # an effect of another call made it; only set if `inside`
    ended: tuple[Any, tuple[str, ...]] | None = None  # params and unmet preconditions of a call `inside`

    @property
    def retries(self) -> int:
        return self.attempts - 1 if self.attempts else 0

    def time_limit(self, of_tool: float | None) -> float | None:
        """Return the timeout of an attempt: the call's own, or else that of its tool."""
        return of_tool if self.timeout is None else self.timeout

    def note(self, draft: Draft) -> None:
        """Record that an attempt is over."""
        self.attempts += 1
        self.events.extend(draft.events)
