"""The effect of a tool of somebody else's server: what it did there stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from narratoria.events import JsonObject
from narratoria.tools.contract import Effect
from narratoria.tools.contract.effects import EffectCall


@dataclass(frozen=True, kw_only=True)
class OutsideEffect(Effect):
    """An effect at a server that we cannot take back. A tool has it unless its server says that it only reads."""

    type: ClassVar[str] = "outside"
    keys: ClassVar[Mapping[str, JsonObject]] = {}
    required_keys: ClassVar[tuple[str, ...]] = ()
    undoable: ClassVar[bool] = False
    reversible: bool = False

    @property
    def reaches_outside(self) -> bool:
        return True

    def consequence(self) -> str:
        return "acts outside the session"

    async def perform(self, a_call: EffectCall) -> Any:
        return None
