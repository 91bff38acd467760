"""A new kind of effect, precondition or backoff is one class: its manifest keys and its schema come with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from narratoria.tools.contract import Effect, Precondition
from narratoria.tools.contract.contract_data import _Kinds
from narratoria.tools.contract.effects import EffectCall
from narratoria.tools.tool import ToolContext


@dataclass(frozen=True, kw_only=True)
class BellEffect(Effect):
    """Rings a bell of the state."""

    type: ClassVar[str] = "permission"  # also the name of a kind of precondition
    keys: ClassVar[Mapping[str, Any]] = {"bellName": {"type": "string"}}
    required_keys: ClassVar[tuple[str, ...]] = ("bellName",)
    bell_name: str

    def consequence(self) -> str:
        return f"ring {self.bell_name}"

    async def perform(self, a_call: EffectCall) -> Any:
        a_call.context.session.add_state_change(f"rung.{self.bell_name}", "increment", 1)


@dataclass(frozen=True, kw_only=True)
class NightPrecondition(Precondition):
    """It is night."""

    type: ClassVar[str] = "night"
    keys: ClassVar[Mapping[str, Any]] = {}
    required_keys: ClassVar[tuple[str, ...]] = ()

    def requirement(self) -> str:
        return "it must be night"

    def holds(self, context: ToolContext) -> bool:
        return context.session.state.get("night") is True


def test_an_effect_named_like_a_precondition_is_read_as_an_effect() -> None:
    effects, preconditions = _Kinds("effects", [BellEffect]), _Kinds("preconditions", [NightPrecondition])
    read = effects.read([{"type": "permission", "bellName": "dinner"}], "", lambda cls, fields: cls(**fields))
    assert read == [BellEffect(bell_name="dinner")]
    assert read[0].description == "ring dinner"
    night = preconditions.read([{"type": "night", "critical": False}], "", lambda cls, fields: cls(**fields))
    assert night == [NightPrecondition(critical=False)]
    assert effects.schema["items"]["oneOf"][0]["required"] == ["type", "bellName"]
