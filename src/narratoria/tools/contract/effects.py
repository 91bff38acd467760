"""Effects: changes after a successful call, applied in order and undone in reverse. `effect_kinds` has the kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from narratoria.errors import (
    DeadlineExceededError,
    NarratoriaError,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
    advice,
    describe,
    unwritten,
)
from narratoria.events import JsonObject
from narratoria.tools import schema
from narratoria.tools.cancellation import contained
from narratoria.tools.contract.author_functions import arity, call, check_declared
from narratoria.tools.contract.effect_values import Source, check_templates, fill

if TYPE_CHECKING:
    from narratoria.tools.tool import Tool, ToolContext, ToolResult

Cascade: TypeAlias = Callable[[str, JsonObject], Awaitable["ToolResult[Any]"]]

ROLLBACK_TIMEOUT = 30.0  # for tools that have no timeout of their own


class EffectFailed(NarratoriaError):
    """An effect could not be applied; those before it were taken back. `effect` and `index` name it."""

    def __init__(self, effect: Effect, index: int, reason: object) -> None:
        super().__init__(
            f"effects[{index}] ({effect.type}: {effect.description}) failed: {reason}{advice(reason)}"
        )
        self.effect = effect
        self.index = index


@dataclass(frozen=True, slots=True)
class EffectCall:
    """The call that an effect follows, for its templates."""

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
    """A rollback as data: a call of `tool`, through the pipeline, with an `input` taken from the call it undoes.

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
        """Call the tool that takes the effect back; raise `NarratoriaError` if it fails."""
        if self.tool is None:
            raise NarratoriaError(f"the operation {self.operation!r} is of no executable")
        result = await context.executor.compensate(self.tool, arguments, session=context.session)
        if not result.success:
            raise NarratoriaError(result.message)


# --- an effect -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One effect. `apply` takes (context, result, params) or fewer, `rollback` (context) or nothing.

    `apply` returns the receipt: JSON data that `rollback` finds in `context.receipt`, also in a later run of the
    program. Without `apply`, the effect is part of the call's draft and goes with it. A `rollback` that is a
    `Compensation` takes back what the handler itself did outside; its receipt is the input it will be called with.
    """

    description: str = ""
    reversible: bool = True
    apply: Callable[..., Any] | None = None
    rollback: Callable[..., Any] | Compensation | None = None

    type: ClassVar[str]
    """Its `type` in a manifest."""
    keys: ClassVar[Mapping[str, JsonObject]] = {}
    """The keys of its own that it has in a manifest, each with its JSON Schema."""
    required_keys: ClassVar[tuple[str, ...]] = ()
    """Those of them that a manifest must have."""
    undoable: ClassVar[bool] = True
    """True if it may have a rollback in a manifest."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(getattr(cls, "type", None), str):
            raise TypeError(f"{cls.__name__} has no type: say the word for it in a manifest")

    @classmethod
    def from_manifest(cls, fields: dict[str, Any]) -> Self:
        """Make the effect of what a manifest says, by the names of the fields."""
        if "rollback" in fields:
            if not fields.setdefault("reversible", True):
                raise ToolValidationError("it has a rollback, but says that it is not reversible")
            fields["rollback"] = Compensation(**fields["rollback"])
        return cls(**fields)

    def __post_init__(self) -> None:
        check_declared(self, f"{self.type} effect")
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
        """Tell if taking it back needs the author's code, rather than the session alone."""
        return self.apply is not None or self.rollback is not None

    @property
    def is_taken_back(self) -> bool:
        """Tell if an undo can take it back: it is reversible, and not an `apply` without a `rollback`."""
        return self.reversible and (self.rollback is not None or self.apply is None)

    @property
    def lasts(self) -> bool:
        """Tell if it stays whatever an undo does, so that a person may want to approve it first."""
        return not self.is_taken_back

    # --- what others ask of it: lint, the hints for MCP hosts, the report of an undo

    def writes(self) -> Sequence[str]:
        """Return what it sets, such as "the state 'lamp'", where one of two calls in no order would be lost."""
        return ()

    def leaves_session(self) -> bool:
        """Tell if something outside the session may notice it."""
        return self.reaches_outside

    def destroys(self) -> bool:
        """Tell if it cannot be taken back, or removes something."""
        return not self.reversible or (self.apply is not None and self.rollback is None)

    def repeats_without_change(self) -> bool:
        """Tell if applying it again with the same arguments changes nothing more."""
        return False

    def notifies(self, event: str) -> bool:
        """Tell if it publishes notifications of that name."""
        return False

    def consequence(self) -> str:
        """Return a description of the effect, for an author who gave none."""
        raise unwritten(self, "consequence")

    async def perform(self, a_call: EffectCall) -> Any:
        """Apply the effect in its default way; return the receipt."""
        raise unwritten(self, "perform")

    def retract(self, context: ToolContext, receipt: Any) -> None:
        """Take back what `perform` did."""

    async def apply_to(self, a_call: EffectCall) -> Any:
        """Apply the effect to a call, and return its receipt."""
        if isinstance(self.rollback, Compensation):
            arguments = a_call.fill(self.rollback.input or {})
            await self._apply_to(a_call)
            return arguments
        return await self._apply_to(a_call)

    async def _apply_to(self, a_call: EffectCall) -> Any:
        if self.apply is None:
            return await self.perform(a_call)
        takes: int = getattr(self, "_apply_takes", 3)
        arguments = (a_call.context, a_call.result, a_call.params)[:takes]
        return await call(self.apply, *arguments, within=a_call.context.tool.timeout)

    async def roll_back(self, context: ToolContext, receipt: Any) -> None:
        """Take the effect back."""
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


# --- applying and taking back --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AppliedEffect:
    """An effect that was applied, and the receipt that takes it back."""

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

    With `keep`, which gets each effect as soon as it is applied, the caller takes them back: a cascade may have
    applied others in between, and the order must hold over all of them.
    """
    applied: list[AppliedEffect] = []
    a_call = EffectCall(context, result, params, cascade)
    for index, effect in enumerate(effects):
        try:
            one = AppliedEffect(effect, index, await contained(effect.apply_to(a_call)))
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
    """Take back effects in reverse order; a rollback that fails is reported and the others go on.

    A cancellation does not stop it half way; it is passed on at the end.
    """
    await undisturbed(asyncio.ensure_future(take_back(applied, context)))


async def undisturbed(work: asyncio.Future[None]) -> None:
    """Wait until the work is done, also if the waiting task is cancelled; pass the cancellation on at the end."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    work.result()


async def take_back(applied: Sequence[AppliedEffect], context: ToolContext) -> None:
    """Do the work of `rollback_effects`, in a task of its own."""
    for one in reversed(applied):
        if not one.effect.reversible:
            continue
        try:
            await contained(one.effect.roll_back(context, one.receipt))
        except (Exception, asyncio.CancelledError) as error:  # 004: "Log but continue with other rollbacks"
            reason = str(error) or describe(error)
            context.session.report(
                f"effects[{one.index}] ({one.effect.description}) was not taken back: {reason}"
            )
