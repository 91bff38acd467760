"""The resources that a tool needs of the machine it runs on."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Amount = Annotated[float, Meta(ge=0, le=1_000_000)]


class Resources(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The resources of one call: a node of the cluster must have them free."""

    cpu: Amount = 1.0
    gpu: Amount = 0.0
    memory: Annotated[int, Meta(ge=0)] | None = None
    """Bytes of main memory."""
    custom: dict[str, Amount] = msgspec.field(default_factory=dict)
    """Resources that the nodes were given by name, such as `{"fast-disk": 1}`."""

    def told(self) -> str:
        """Return the resources for a message."""
        asked = {"cpu": self.cpu, "gpu": self.gpu, "memory": self.memory, **self.custom}
        return ", ".join(f"{name} {amount:g}" for name, amount in asked.items() if amount) or "nothing"
