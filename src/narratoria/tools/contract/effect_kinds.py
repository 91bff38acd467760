"""The kinds of effect: a change of state, a memory, a notification, a cascade."""
# 004.

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.events import JsonObject
from narratoria.spelling import keywords_spelled, spelled
from narratoria.state import StateChange, lookup, plain
from narratoria.tools import schema
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.effect_values import check_templates
from narratoria.tools.contract.effects import Effect, EffectCall
from narratoria.tools.contract.expectations import ConditionError
from narratoria.tools.contract.keys import OBJECT, TEXT

if TYPE_CHECKING:
    from narratoria.tools.tool import ToolContext, ToolResult

MemoryScope: TypeAlias = Literal["working", "short-term", "long-term", "episodic"]

_CHANGES = ("set", "clear", "increment", "decrement")
_OPERATIONS = ("write", "delete", "update")
_SCOPES = ("working", "short-term", "long-term", "episodic")


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class StateChangeEffect(Effect):
    """Changes one value of the state. Evaluated at commit, so two parallel increments give 2."""

    type: ClassVar[str] = "state_change"
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "state": TEXT,
        "value": {},
        "change": {"enum": list(_CHANGES)},
    }
    required_keys: ClassVar[tuple[str, ...]] = ("state",)
    state: str
    change: StateChange = "set"
    value: Any = None

    def __post_init__(self) -> None:
        _one_of("state_change effect: change", self.change, _CHANGES)
        check_templates(self.value, "state_change effect: value")
        if self.apply is None and self.change == "set" and self.value is None:
            raise ToolValidationError("state_change effect: set needs a value; clear removes one")
        if self.change in ("increment", "decrement") and not _may_be_number(self.value):
            raise ToolValidationError(f"state_change effect: value: expected a number, got {self.value!r}")
        super().__post_init__()

    def consequence(self) -> str:
        return f"{self.change} state {self.state!r}"

    def writes(self) -> Sequence[str]:
        return (f"the state {self.state!r}",) if self.change in ("set", "clear") else ()  # increments add up

    def destroys(self) -> bool:
        return self.change == "clear" or super().destroys()

    def repeats_without_change(self) -> bool:
        return self.change in ("set", "clear") and not self.reaches_outside

    async def perform(self, a_call: EffectCall) -> Any:
        session = a_call.context.session
        before = plain(lookup(session.state, self.state))
        value = a_call.fill(self.value)
        session.add_state_change(self.state, self.change, value)
        return {"before": before, "value": value}

    def retract(self, context: ToolContext, receipt: Any) -> None:
        if self.change == "increment":
            context.session.add_state_change(self.state, "decrement", receipt["value"])
        elif self.change == "decrement":
            context.session.add_state_change(self.state, "increment", receipt["value"])
        elif receipt["before"] is None:
            context.session.add_state_change(self.state, "clear", None)
        else:
            context.session.add_state_change(self.state, "set", receipt["before"])


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class MemoryEffect(Effect):
    """Writes, updates or deletes one memory."""

    type: ClassVar[str] = "memory"
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "key": TEXT,
        "value": {},
        "scope": {"enum": list(_SCOPES)},
        "operation": {"enum": list(_OPERATIONS)},
    }
    required_keys: ClassVar[tuple[str, ...]] = ("scope", "key")
    scope: MemoryScope
    operation: Literal["write", "delete", "update"] = "write"
    key: str
    value: Any = None

    def __post_init__(self) -> None:
        _one_of("memory effect: scope", self.scope, _SCOPES)
        _one_of("memory effect: operation", self.operation, _OPERATIONS)
        check_templates(self.value, "memory effect: value")
        super().__post_init__()

    def consequence(self) -> str:
        return f"{self.operation} {self.scope} memory {self.key!r}"

    def writes(self) -> Sequence[str]:
        return () if self.operation == "update" else (f"the {self.scope} memory {self.key!r}",)

    def destroys(self) -> bool:
        return self.operation == "delete" or super().destroys()

    def repeats_without_change(self) -> bool:
        return self.scope != "episodic" and not self.reaches_outside

    async def perform(self, a_call: EffectCall) -> Any:
        memory = a_call.context.memory
        before = memory.read(self.scope, self.key)
        if self.operation == "delete":
            memory.delete(self.scope, self.key)
        elif self.operation == "write":
            memory.write(self.scope, self.key, a_call.fill(self.value))
        else:
            memory.update(self.scope, self.key, a_call.fill(self.value))
        return {"before": before}

    def retract(self, context: ToolContext, receipt: Any) -> None:
        if self.scope == "episodic":
            return  # append-only: the entry goes with the draft that holds it
        if receipt["before"] is None:
            context.memory.delete(self.scope, self.key)
        else:
            context.memory.write(self.scope, self.key, receipt["before"])


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class NotificationEffect(Effect):
    """Publishes a notification after the call is committed. It cannot be undone."""

    # 004: notifications cannot be undone.

    type: ClassVar[str] = "notification"
    keys: ClassVar[Mapping[str, JsonObject]] = {"event": TEXT, "payload": {}}
    required_keys: ClassVar[tuple[str, ...]] = ("event",)
    undoable: ClassVar[bool] = False
    event: str
    payload: Any = None
    reversible: bool = False

    def __post_init__(self) -> None:
        check_templates(self.payload, "notification effect: payload")
        super().__post_init__()

    def consequence(self) -> str:
        return f"notify {self.event!r}"

    def leaves_session(self) -> bool:
        return True

    def destroys(self) -> bool:
        return False  # it only adds

    def notifies(self, event: str) -> bool:
        return self.event == event

    async def perform(self, a_call: EffectCall) -> Any:
        a_call.context.session.notify(self.event, a_call.fill(self.payload))


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class CascadeEffect(Effect):
    """Calls another tool, through the pipeline, when the condition on the result holds."""

    type: ClassVar[str] = "cascade"
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "triggerTool": TEXT,
        "triggerCondition": OBJECT,
        "input": OBJECT,
    }
    required_keys: ClassVar[tuple[str, ...]] = ("triggerTool",)
    trigger_tool: str
    trigger_condition: Callable[[ToolResult[Any]], bool | Awaitable[bool]] | JsonObject | None = None
    input: Any = None
    reversible: bool = False

    @property
    def lasts(self) -> bool:
        return False  # the call that it makes asks for itself

    def __post_init__(self) -> None:
        check_templates(self.input, "cascade effect: input")
        self._condition()
        super().__post_init__()

    def _condition(self) -> Condition | None:
        if callable(self.trigger_condition) or self.trigger_condition is None:
            return None
        try:
            return condition(self.trigger_condition, "triggerCondition")
        except ConditionError as error:
            raise ToolValidationError(f"cascade effect: {error}") from None

    def consequence(self) -> str:
        return f"call {self.trigger_tool!r}"

    def leaves_session(self) -> bool:
        return True  # the other tool may

    async def perform(self, a_call: EffectCall) -> Any:
        if callable(self.trigger_condition):
            holds = self.trigger_condition(a_call.result)
            triggered = await holds if isinstance(holds, Awaitable) else holds
        else:
            when = self._condition()
            triggered = when is None or when.holds(schema.dump(a_call.result.value))
        if not triggered:
            return None
        result = await a_call.cascade(self.trigger_tool, a_call.fill(self.input or {}))
        if not result.success:
            raise NarratoriaError(f"{self.trigger_tool}: {result.message}")
        return {"tool": self.trigger_tool, "call": result.metadata.call_id if result.metadata else ""}


def _may_be_number(value: Any) -> bool:
    """Tell if a value may be a number: None is a step of 1; a template is known only when the call is made."""
    return value is None or (isinstance(value, dict | int | float) and not isinstance(value, bool))


def _one_of(where: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ToolValidationError(f"{where}: expected one of {', '.join(known)}, got {value!r}")
