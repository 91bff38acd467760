"""What follows a successful call: the four kinds of 004, applied in order and taken back in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from narratoria import schema
from narratoria.contract.calls import arity, call
from narratoria.contract.conditions import Condition, condition
from narratoria.contract.expectations import ConditionError
from narratoria.contract.templates import Source, check_templates, fill
from narratoria.errors import (
    DeadlineExceededError,
    NarratoriaError,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
    advice,
)
from narratoria.events import JsonObject
from narratoria.spelling import keywords_spelled, spelled
from narratoria.state import StateChange, lookup, plain

if TYPE_CHECKING:
    from narratoria.tool import Tool, ToolContext, ToolResult

MemoryScope: TypeAlias = Literal["working", "short-term", "long-term", "episodic"]
Cascade: TypeAlias = Callable[[str, JsonObject], Awaitable["ToolResult[Any]"]]

ROLLBACK_TIMEOUT = 30.0  # for tools that have no timeout of their own

_CHANGES = ("set", "clear", "increment", "decrement")
_OPERATIONS = ("write", "delete", "update")
_SCOPES = ("working", "short-term", "long-term", "episodic")


class EffectFailed(NarratoriaError):
    """An effect could not be applied; those before it were taken back. `effect` and `index` name it."""

    def __init__(self, effect: Effect, index: int, reason: object) -> None:
        super().__init__(
            f"effects[{index}] ({effect.type}: {effect.description}) failed: {reason}{advice(reason)}"
        )
        self.effect = effect
        self.index = index


@dataclass(frozen=True, slots=True)
class _Call:
    """What an effect may speak of."""

    context: ToolContext
    result: ToolResult[Any]
    params: Any
    cascade: Cascade

    def fill(self, value: Any) -> Any:
        return fill(value, self._read)

    def _read(self, source: Source) -> Any:
        if source == "$state":
            return self.context.session.state
        return schema.dump(self.result.value if source == "$result" else self.params)


@dataclass(frozen=True, kw_only=True)
class Compensation:
    """A rollback that is data: a call of `tool`, through the pipeline, with an `input` taken from the call it undoes.

    `tool` is the name of one in the catalogue, or a tool itself. A manifest may name an `operation` of its executable
    instead, which `process_tool` makes a tool of.
    """

    tool: str | Tool[Any, Any] | None = None
    operation: str | None = None
    input: Any = None

    def __post_init__(self) -> None:
        if (self.tool is None) == (self.operation is None):
            raise ToolValidationError("rollback: expected either a tool or an operation")
        check_templates(self.input, "rollback: input")

    async def run(self, context: ToolContext, arguments: JsonObject) -> None:
        if self.tool is None:
            raise NarratoriaError(f"the operation {self.operation!r} is of no executable")
        result = await context.executor.compensate(self.tool, arguments, session=context.session)
        if not result.success:
            raise NarratoriaError(result.message)


# --- the four kinds ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Effect:
    """What the four share. `apply` takes (context, result, params) or fewer, `rollback` (context) or nothing.

    What `apply` returns is the receipt: JSON data that `rollback` finds in `context.receipt`, also in a later
    run of the program. Without `apply`, the effect is part of the call's draft and goes with it. A `rollback` that is a
    `Compensation` takes back what the handler itself did outside; its receipt is the input it will be called with.
    """

    description: str = ""
    reversible: bool = True
    apply: Callable[..., Any] | None = None
    rollback: Callable[..., Any] | Compensation | None = None

    type: ClassVar[str]

    def __post_init__(self) -> None:
        for name, most in (("apply", 3), ("rollback", 1)):
            function = getattr(self, name)
            if function is not None and not isinstance(function, Compensation):
                object.__setattr__(
                    self, f"_{name}_takes", arity(function, most, f"{self.type} effect: {name}")
                )
        if not self.description:
            object.__setattr__(self, "description", self.consequence())

    @property
    def reaches_outside(self) -> bool:
        """Whether taking it back needs the author's code, rather than the session alone."""
        return self.apply is not None or self.rollback is not None

    def consequence(self) -> str:
        """The effect in words, for where the author gave none."""
        raise NotImplementedError

    async def perform(self, a_call: _Call) -> Any:
        """Apply by default; returns the receipt."""
        raise NotImplementedError

    def retract(self, context: ToolContext, receipt: Any) -> None:
        """Take back what `perform` did."""

    async def apply_to(self, a_call: _Call) -> Any:
        if isinstance(self.rollback, Compensation):
            arguments = a_call.fill(self.rollback.input or {})
            await self._apply_to(a_call)
            return arguments
        return await self._apply_to(a_call)

    async def _apply_to(self, a_call: _Call) -> Any:
        if self.apply is None:
            return await self.perform(a_call)
        takes: int = getattr(self, "_apply_takes", 3)
        arguments = (a_call.context, a_call.result, a_call.params)[:takes]
        return await call(self.apply, *arguments, within=a_call.context.tool.timeout)

    async def roll_back(self, context: ToolContext, receipt: Any) -> None:
        if isinstance(self.rollback, Compensation):
            await self.rollback.run(context, receipt)
        elif self.rollback is not None:
            context.receipt = receipt
            takes: int = getattr(self, "_rollback_takes", 1)
            await call(self.rollback, *(context,)[:takes], within=context.tool.timeout or ROLLBACK_TIMEOUT)
        elif self.apply is not None:
            raise NarratoriaError("it has an apply but no rollback")
        else:
            self.retract(context, receipt)


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class StateChangeEffect(_Effect):
    """Changes one value of the state. Evaluated at commit, so two parallel increments give 2."""

    type: ClassVar[str] = "state_change"
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

    async def perform(self, a_call: _Call) -> Any:
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
class MemoryEffect(_Effect):
    """Writes, updates or deletes one memory."""

    type: ClassVar[str] = "memory"
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

    async def perform(self, a_call: _Call) -> Any:
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
class NotificationEffect(_Effect):
    """Tells whoever listens, once the call is committed. 004: notifications cannot be undone."""

    type: ClassVar[str] = "notification"
    event: str
    payload: Any = None
    reversible: bool = False

    def __post_init__(self) -> None:
        check_templates(self.payload, "notification effect: payload")
        super().__post_init__()

    def consequence(self) -> str:
        return f"notify {self.event!r}"

    async def perform(self, a_call: _Call) -> Any:
        a_call.context.session.notify(self.event, a_call.fill(self.payload))


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class CascadeEffect(_Effect):
    """Calls another tool, through the pipeline, when the condition on the result holds."""

    type: ClassVar[str] = "cascade"
    trigger_tool: str
    trigger_condition: Callable[[ToolResult[Any]], bool | Awaitable[bool]] | JsonObject | None = None
    input: Any = None
    reversible: bool = False

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

    async def perform(self, a_call: _Call) -> Any:
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


Effect: TypeAlias = StateChangeEffect | MemoryEffect | NotificationEffect | CascadeEffect


def _may_be_number(value: Any) -> bool:
    """None is a step of 1; a template is known only when the call is made."""
    return value is None or (isinstance(value, dict | int | float) and not isinstance(value, bool))


def _one_of(where: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ToolValidationError(f"{where}: expected one of {', '.join(known)}, got {value!r}")


# --- applying and taking back --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AppliedEffect:
    effect: Effect
    index: int
    receipt: Any = None


async def apply_effects(
    effects: Sequence[Effect],
    context: ToolContext,
    result: ToolResult[Any],
    params: Any,
    cascade: Cascade,
    keep: Callable[[AppliedEffect], None] | None = None,
) -> list[AppliedEffect]:
    """Apply in order. On a failure, take back those applied, in reverse, and raise `EffectFailed`.

    With `keep`, which is handed each effect as soon as it is applied, taking back is left to whoever keeps them: a
    cascade may have applied others in between, and the order must hold over all of them.
    """
    applied: list[AppliedEffect] = []
    a_call = _Call(context, result, params, cascade)
    for index, effect in enumerate(effects):
        try:
            one = AppliedEffect(effect, index, await effect.apply_to(a_call))
            (keep or applied.append)(one)
            if effect.reaches_outside:
                _check_receipt(one.receipt)
        except (PromptEvaluationError, VisibilityExpansionRequired, DeadlineExceededError):
            await rollback_effects(applied, context)
            raise  # 002, failure table: these end or redirect the evaluation
        except Exception as error:
            await rollback_effects(applied, context)
            raise EffectFailed(effect, index, error) from error
        except BaseException:  # cancelled half way: what was done outside is taken back all the same
            await rollback_effects(applied, context)
            raise
    return applied


def _check_receipt(receipt: Any) -> None:
    try:
        schema.dump(receipt)
    except ToolValidationError as error:
        raise NarratoriaError(
            f"apply returned a receipt that cannot be kept in the journal: {error}"
        ) from None


async def rollback_effects(applied: Sequence[AppliedEffect], context: ToolContext) -> None:
    """Take back in reverse order what can be taken back; a rollback that fails is reported and passed over.

    Being cancelled meanwhile does not stop it half way; the cancellation is passed on when it is through.
    """
    work = asyncio.ensure_future(_roll_back(applied, context))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    work.result()


async def _roll_back(applied: Sequence[AppliedEffect], context: ToolContext) -> None:
    for one in reversed(applied):
        if not one.effect.reversible:
            continue
        try:
            await one.effect.roll_back(context, one.receipt)
        except Exception as error:  # 004: "Log but continue with other rollbacks"
            context.session.report(
                f"effects[{one.index}] ({one.effect.description}) was not taken back: {error}"
            )
