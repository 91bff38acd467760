"""Variables for one call of an executable that may hold secrets, and events and failures without these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from narratoria.errors import ToolFailure
from narratoria.events import Asset, ToolEvent
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.kinds.redaction import Redaction
from narratoria.typed_values import convert


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Variables beside the standard ones, made anew for each call; the secrets among them reach no journal."""

    env: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)
    redaction: Redaction = field(default_factory=Redaction)

    def events(self, events: list[ToolEvent]) -> list[ToolEvent]:
        """Return events without the secrets. The path of an asset stays as it is: a file has to be found."""
        return [self._event(event) for event in events]

    def _event(self, event: ToolEvent) -> ToolEvent:
        data = self.redaction.data(msgspec.to_builtins(event))
        hidden: ToolEvent = convert(data, type(event))
        if isinstance(event, Asset) and isinstance(hidden, Asset):
            return msgspec.structs.replace(hidden, path=event.path)
        return hidden

    def outcome(self, outcome: ProcessOutcome) -> ProcessOutcome:
        """Return the ending of a process without the secrets."""
        done = outcome.done
        if done is not None and done.summary:
            done = msgspec.structs.replace(done, summary=self.redaction.text(done.summary))
        head = outcome.after_done_head.decode("utf-8", "replace")
        return replace(
            outcome,
            done=done,
            stderr=self.redaction.text(outcome.stderr),
            after_done_head=self.redaction.text(head).encode() if head else b"",
        )

    def failure(self, failure: ToolFailure) -> ToolFailure:
        """Return a failure without the secrets."""
        return type(failure)(
            failure.code,
            self.redaction.text(failure.message),
            recoverable=failure.recoverable,
            suggestions=[self.redaction.text(one) for one in failure.suggestions],
            details=self.redaction.data(failure.details),
        )


Surround: TypeAlias = Callable[[], Surroundings]
