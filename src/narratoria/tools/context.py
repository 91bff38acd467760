"""The context of a handler: the session as its call sees it, and the verbs of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, get_args, overload

import msgspec

from narratoria.errors import PromptEvaluationError
from narratoria.events import (
    PROTOCOL_VERSION,
    Asset,
    JsonObject,
    Log,
    LogLevel,
    StatePatch,
    ToolEvent,
    UiEvent,
    decode_tool_event,
    encode,
)
from narratoria.spelling import spelled
from narratoria.tools import schema
from narratoria.tools.schema.copying import copied
from narratoria.unicode_text import check_text, legible

if TYPE_CHECKING:
    from narratoria.session.draft import Draft
    from narratoria.session.memory import Memory
    from narratoria.session.resources.resources import Filesystem, ResourceContext
    from narratoria.tools.deadline import BudgetTracker, Deadline
    from narratoria.tools.tool import Tool, ToolResult

P = TypeVar("P")
R = TypeVar("R")
_LEVELS: Final = get_args(LogLevel)


@dataclass(frozen=True, slots=True)
class CallScope:
    """Values that all calls of one evaluation share; made once, not per call."""

    prompt: Any = None
    rendered_prompt: Any = None
    adapter: Any = None
    deadline: Deadline | None = None
    budget_tracker: BudgetTracker | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    loop_id: str = "default"
    agent_id: str = "default"

    def time_limit(self, seconds: float | None) -> float | None:
        """Return the timeout of a step: at most `seconds`, and not beyond the deadline."""
        return seconds if self.deadline is None else self.deadline.within(seconds)


class Pipeline(Protocol):
    """The interface of the pipeline, `narratoria.run.executor.ToolExecutor`, to the rooms below it."""

    @property
    def scope(self) -> CallScope:
        """The settings that the calls of this pipeline share."""

    def has_tool(self, name: str) -> bool:
        """Tell if there is a tool of that name."""

    async def execute(self, name: Any, args: Any, *, session: Draft) -> ToolResult[Any]:
        """Run a tool within a draft."""

    async def compensate(
        self, tool: str | Tool[Any, Any], args: Mapping[str, Any], *, session: Draft
    ) -> ToolResult[Any]:
        """Run a tool that takes an effect back."""

    async def drop(self, draft: Draft) -> None:
        """Discard a draft, and take back its effects outside the session."""


class ToolConfig(dict[str, Any]):
    """The host program's settings (`CallScope.config`), by key or as attributes, and the name of the called tool."""

    def __init__(self, settings: Mapping[str, Any], tool_name: str) -> None:
        super().__init__(settings)
        self.tool_name = tool_name

    @property
    def toolName(self) -> str:  # noqa: N802 - 004's name
        return self.tool_name

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(map(str, self)) or "none"
            raise AttributeError(f"config has no {name!r}; configured: {known}") from None


@spelled(signal="is called cancelled here: a flag, and context.beat() raises once it is set")
class ToolContext(msgspec.Struct, eq=False):
    """The context a handler gets, with the verbs of the protocol.

    An in-process tool emits the same events as a process: `log`, `patch`, `asset`, `ui`.
    """

    # 002 `ToolContext`, 004 `ToolContext`.

    tool: Tool[Any, Any]
    session: Draft
    call_id: str
    executor: Pipeline
    scope: CallScope
    time_limit: float | None = None  # seconds this attempt may take
    outputs: JsonObject | None = (
        None  # of the plan's calls this one depends on: the calls' own, not to be changed
    )
    receipt: Any = None  # what an effect's apply() returned, for its rollback
    cancelled: bool = (
        False  # 004 `signal`: nobody waits for this call any more; a plain handler should stop soon
    )
    _dependencies: JsonObject | None = None

    prompt = property(lambda self: self.scope.prompt, doc="The active prompt, when an evaluation runs.")
    rendered_prompt = property(lambda self: self.scope.rendered_prompt, doc="What was rendered from it.")
    adapter = property(lambda self: self.scope.adapter, doc="The provider's adapter.")

    @property
    def dependencies(self) -> JsonObject | None:
        """The outputs of the plan's calls that this one depends on, null where one failed. A copy for this attempt."""
        if self._dependencies is None and self.outputs is not None:
            self._dependencies = copied(self.outputs)
        return self._dependencies

    @property
    def deadline(self) -> Deadline | None:
        """The time at which the call must have ended."""
        return self.scope.deadline

    @property
    def budget_tracker(self) -> BudgetTracker | None:
        """The budget of the call, and the part that is left."""
        return self.scope.budget_tracker

    @property
    def config(self) -> ToolConfig:
        """The call's own settings."""
        return ToolConfig(self.scope.config, self.tool.name)

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.session.id

    @property
    def loop_id(self) -> str:
        """The id of the agent loop, if there is one."""
        return self.scope.loop_id

    @property
    def agent_id(self) -> str:
        """The id of the agent, if there is one."""
        return self.scope.agent_id

    @property
    def resources(self) -> ResourceContext:
        """The resources of the session: filesystem, clock and those of the program."""
        return self.session.resources

    @property
    def filesystem(self) -> Filesystem:
        """Shorthand for `context.resources.get(Filesystem)`."""
        # 002, "Resource Access".
        return self.session.resources.filesystem

    @property
    def memory(self) -> Memory:
        """The memory of the session, in the draft of this call."""
        return self.session.memory

    def beat(self) -> None:
        """Record a heartbeat of a long operation; raise once the call is over, which ends the handler."""
        if self.cancelled:
            raise PromptEvaluationError(
                f"{self.tool.name}: the call {self.call_id} is over; nobody waits for it"
            )
        self.session.beat(self.call_id)

    @overload
    async def call(self, tool: Tool[P, R], args: P | Mapping[str, Any]) -> ToolResult[R]: ...
    @overload
    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult[Any]: ...
    async def call(self, tool: str | Tool[Any, Any], args: Any) -> ToolResult[Any]:
        """Run another tool as part of this call: one transaction, the same pipeline. `args` are an object of JSON data,
        or an instance of the tool's params type.
        """
        return await self.executor.execute(tool, args, session=self.session)

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[Trial]:
        """Open a part of this call that can be abandoned: its changes are then dropped, and the call goes on. Its
        assets and choices are kept, like those of a failed call.
        """
        trial = Trial(self.tool, self.session.draft(), self.call_id, self.executor, self.scope)
        try:
            yield trial
        except BaseException:
            await self._leave(trial)
            raise
        if trial.abandoned:
            await self._leave(trial)
        else:
            trial.session.commit(self.call_id)
            self.session.hear(trial.session, kept=True)

    async def _leave(self, trial: Trial) -> None:
        try:
            await self.executor.drop(trial.session)
            if trial.session not in trial.session.root.dropping:  # else it was closed, and drops itself
                trial.session.keep(self.call_id)
        finally:
            self.session.hear(trial.session, kept=False)

    def emit(self, event: ToolEvent) -> None:
        """Put an event of the protocol into the call's draft and the session's stream.

        Raise TypeError if a field has a wrong type: a struct made in Python has not been checked yet.
        """
        if isinstance(event, StatePatch):
            schema.dump_finite(event.patch, "context.emit: the patch")
        try:
            checked = decode_tool_event(encode(event))
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"context.emit: {type(event).__name__}: {error}") from None
        self._emit(checked)

    def _emit(self, event: ToolEvent) -> None:
        if self.cancelled:
            return  # a worker thread that outlived its timeout must not speak for the call any more
        self.session.emit(self.call_id, event)

    def emit_all(self, events: Sequence[ToolEvent]) -> None:
        """Emit many decoded events at once, on the loop's thread, none of them an asset."""
        if not self.cancelled:
            self.session.emit_all(self.call_id, events)

    def log(self, message: str, level: LogLevel = "info", **fields: Any) -> None:
        """Write a `log` event; `progress=0.5` moves the progress bar."""
        if not isinstance(message, str):
            raise TypeError(f"context.log: message must be text, got {type(message).__name__}")
        if level not in _LEVELS:
            raise ValueError(f"context.log: level must be one of {', '.join(_LEVELS)}, got {level!r}")
        kept = schema.dump(fields) if fields else None
        self._emit(Log(version=PROTOCOL_VERSION, level=level, message=legible(message), fields=kept))

    def patch(self, patch: JsonObject) -> None:
        """Change the session's state by a merge patch. The patch is copied: changing the object afterwards has no
        effect.
        """
        # 000 §4.2.
        self._emit(StatePatch(version=PROTOCOL_VERSION, patch=_object(patch, "context.patch: the patch")))

    def asset(
        self,
        path: str | Path,
        *,
        kind: str,
        media_type: str,
        asset_id: str | None = None,
        metadata: JsonObject | None = None,
    ) -> None:
        """Keep a file as an asset of the call, and show it."""
        self._emit(
            Asset(
                version=PROTOCOL_VERSION,
                asset_id=check_text(asset_id or Path(path).name, "context.asset: asset_id"),
                kind=check_text(kind, "context.asset: kind"),
                media_type=check_text(media_type, "context.asset: media_type"),
                path=check_text(str(path), "context.asset: path"),
                metadata=None if metadata is None else _object(metadata, "context.asset: metadata"),
            )
        )

    def ui(self, event: str, payload: JsonObject | None = None) -> None:
        """Write a `ui_event` for the client."""
        name = check_text(event, "context.ui: event")
        kept = None if payload is None else _object(payload, "context.ui: payload")
        self._emit(UiEvent(version=PROTOCOL_VERSION, event=name, payload=kept))

    def choices(self, *choices: str) -> None:
        """Offer the player choices: `ui("narrative_choice", …)`."""
        # 000 §4.4.
        self.ui("narrative_choice", {"choices": list(choices)})


def _object(value: JsonObject, what: str) -> JsonObject:
    """Return a copy of an object as JSON data."""
    own = schema.dump_finite(value, what)
    if type(own) is not dict:
        raise TypeError(f"{what} must be an object, got {type(value).__name__}")
    return own


class Trial(ToolContext, eq=False):
    """The context inside `attempt()`."""

    abandoned: bool = False

    def abandon(self) -> None:
        """Drop what was done inside `attempt()` when it ends."""
        self.abandoned = True
