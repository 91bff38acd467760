"""The output of a process, passed on to its call as it arrives; without the secrets that the process was given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import msgspec

from narratoria.events import Asset, ToolEvent
from narratoria.kinds.conversation import Conversation
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.kinds.process.surroundings import Surroundings
from narratoria.tools.tool import ToolContext


class Output(Conversation):
    """The output of a process so far, passed on as it arrives."""

    env: Mapping[bytes, bytes] = MappingProxyType({})
    """Variables of this call alone."""
    spent: Callable[[float], None] | None = None
    """Called with the CPU seconds of the process."""

    def settled(self, outcome: ProcessOutcome) -> ProcessOutcome:
        """Return the ending of the process as it may be told."""
        return outcome


class Discreet(Output):
    """The output of a process that was given secrets, without them."""

    def __init__(self, context: ToolContext, folder: Path | None, surroundings: Surroundings) -> None:
        super().__init__(context, folder)
        self.surroundings = surroundings
        self.env = surroundings.env

    def hear(self, events: list[ToolEvent]) -> Awaitable[None] | None:
        return super().hear(self.surroundings.events(events))

    async def receive(self, event: Asset, arrived: Path | str) -> None:
        for hidden in self.surroundings.events([event]):
            await super().receive(cast(Asset, hidden), arrived)

    def shown(self, event: Asset) -> Asset:
        return msgspec.structs.replace(event, path=self.surroundings.redaction.text(event.path))

    def clean(self, content: bytes) -> bytes:
        return self.surroundings.redaction.content(content)

    def settled(self, outcome: ProcessOutcome) -> ProcessOutcome:
        return self.surroundings.outcome(outcome)
