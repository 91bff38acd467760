"""What a tool is, what its handler gets, and what comes back.

`Tool` is one noun for every kind: a typed function, a process, a composition, a tool of a remote server. The
factories in `narratoria.tools` make them; `narratoria.executor` is the only place that runs them.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar, overload

import msgspec

from narratoria import schema
from narratoria.errors import EXECUTION_FAILED, PromptEvaluationError, ToolValidationError
from narratoria.events import (
    PROTOCOL_VERSION,
    Asset,
    JsonObject,
    Log,
    LogLevel,
    StatePatch,
    ToolEvent,
    UiEvent,
)
from narratoria.retry import RetryPolicies, RetryPolicy

if TYPE_CHECKING:
    from narratoria.contract import Effect, Precondition
    from narratoria.deadline import BudgetTracker, Deadline
    from narratoria.session.draft import Draft
    from narratoria.session.memory import Memory
    from narratoria.session.resources import Filesystem, ResourceContext

P = TypeVar("P")
R = TypeVar("R")

NAME_PATTERN: Final = re.compile(r"[a-z0-9_-]{1,64}")
DEFAULT_TIMEOUT: Final = 30.0


class ToolError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a call failed, as data (004)."""

    code: str
    message: str
    recoverable: bool = True
    suggestions: tuple[str, ...] = ()
    details: JsonObject | None = None


class ResultMetadata(msgspec.Struct, frozen=True):
    """004: duration and timestamp in seconds; milliseconds live only on the wire."""

    duration: float
    timestamp: float
    tool_name: str
    attempts: int = 1
    call_id: str = ""
    degraded: tuple[str, ...] = ()  # descriptions of the non-critical preconditions that did not hold


class _ErrorAccess:
    """`ToolResult.error("…")` makes a failure; `result.error` is why it failed.

    The seeds use one name for both (002 the factory, 004 the field), and a reader finds each where expected.
    """

    @overload
    def __get__(self, instance: None, owner: type[ToolResult[Any]]) -> Callable[..., ToolResult[Any]]: ...
    @overload
    def __get__(self, instance: ToolResult[Any], owner: type[ToolResult[Any]]) -> ToolError | None: ...
    def __get__(
        self, instance: ToolResult[Any] | None, owner: type[ToolResult[Any]]
    ) -> Callable[..., ToolResult[Any]] | ToolError | None:
        return owner.failed if instance is None else instance.failure


class ToolResult(msgspec.Struct, Generic[R], frozen=True):
    """The outcome of a call: never an exception (002, "Predictable failures")."""

    message: str
    value: R | None = None
    success: bool = True
    exclude_value_from_context: bool = False
    failure: ToolError | None = None
    metadata: ResultMetadata | None = None

    error: ClassVar[_ErrorAccess] = _ErrorAccess()

    @classmethod
    def ok(cls, value: R, message: str = "", *, exclude_value_from_context: bool = False) -> ToolResult[R]:
        return cls(message, value, True, exclude_value_from_context)

    @classmethod
    def failed(
        cls,
        message: str,
        *,
        code: str = EXECUTION_FAILED,
        recoverable: bool = True,
        suggestions: Sequence[str] = (),
        details: JsonObject | None = None,
        value: R | None = None,
    ) -> ToolResult[R]:
        """A failed result; also reached as `ToolResult.error(…)`."""
        error = ToolError(
            code=code,
            message=message,
            recoverable=recoverable,
            suggestions=tuple(suggestions),
            details=details,
        )
        return cls(message, value, False, False, error)

    def render(self) -> str:
        """The text a model is shown: the message, then the value unless it is excluded."""
        if self.value is None or self.exclude_value_from_context:
            return self.message
        value = schema.dump_json(self.value)
        return f"{self.message}\n{value}" if self.message else value


class ToolExample(msgspec.Struct, Generic[P, R], frozen=True):
    """A call worth imitating (002): description of at most 200 characters, and typed input and output."""

    description: str
    input: P
    output: R | None = None


@dataclass(frozen=True, slots=True)
class CallScope:
    """What all calls of one evaluation share; made once, not per call."""

    prompt: Any = None
    rendered_prompt: Any = None
    adapter: Any = None
    deadline: Deadline | None = None
    budget_tracker: BudgetTracker | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    loop_id: str = "default"
    agent_id: str = "default"


class Pipeline(Protocol):
    """What runs tools: `narratoria.executor.ToolExecutor`, seen from below."""

    @property
    def scope(self) -> CallScope: ...

    async def execute(
        self, name: str | Tool[Any, Any], args: Mapping[str, Any], *, session: Draft
    ) -> ToolResult[Any]: ...

    async def drop(self, draft: Draft) -> None: ...


class ToolContext(msgspec.Struct, eq=False):
    """What a handler gets (002 `ToolContext`, 004 `ToolContext`), and the verbs of the protocol.

    An in-process tool emits the same events as a process: `log`, `patch`, `asset`, `ui`.
    """

    tool: Tool[Any, Any]
    session: Draft
    call_id: str
    executor: Pipeline
    scope: CallScope
    time_limit: float | None = None  # seconds this attempt may take
    dependencies: JsonObject | None = None  # outputs of the plan's calls this one depends on
    receipt: Any = None  # what an effect's apply() returned, for its rollback
    cancelled: bool = (
        False  # 004 `signal`: nobody waits for this call any more; a plain handler should stop soon
    )

    prompt = property(lambda self: self.scope.prompt, doc="The active prompt, when an evaluation runs.")
    rendered_prompt = property(lambda self: self.scope.rendered_prompt, doc="What was rendered from it.")
    adapter = property(lambda self: self.scope.adapter, doc="The provider's adapter.")

    @property
    def deadline(self) -> Deadline | None:
        return self.scope.deadline

    @property
    def budget_tracker(self) -> BudgetTracker | None:
        return self.scope.budget_tracker

    @property
    def config(self) -> Mapping[str, Any]:
        return self.scope.config

    @property
    def session_id(self) -> str:
        return self.session.id

    @property
    def loop_id(self) -> str:
        return self.scope.loop_id

    @property
    def agent_id(self) -> str:
        return self.scope.agent_id

    @property
    def resources(self) -> ResourceContext:
        return self.session.resources

    @property
    def filesystem(self) -> Filesystem:
        """002: shorthand for `context.resources.get(Filesystem)`."""
        return self.session.resources.filesystem

    @property
    def memory(self) -> Memory:
        return self.session.memory

    def beat(self) -> None:
        """A heartbeat for long operations: notes that the handler lives, and ends it once the call is over."""
        if self.cancelled:
            raise PromptEvaluationError(
                f"{self.tool.name}: the call {self.call_id} is over; nobody waits for it"
            )
        self.session.beat(self.call_id)

    async def call(self, tool: str | Tool[Any, Any], args: Mapping[str, Any]) -> ToolResult[Any]:
        """Run another tool as part of this call: one transaction, the same pipeline."""
        return await self.executor.execute(tool, args, session=self.session)

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[Trial]:
        """A part of this call that can be abandoned: what it did is then dropped, the call goes on."""
        trial = Trial(self.tool, self.session.draft(), self.call_id, self.executor, self.scope)
        try:
            yield trial
        except BaseException:
            await self.executor.drop(trial.session)
            raise
        if trial.abandoned:
            await self.executor.drop(trial.session)
        else:
            trial.session.commit(self.call_id)

    def emit(self, event: ToolEvent) -> None:
        """Put an event of the protocol into the call's draft and the session's stream."""
        if self.cancelled:
            return  # a worker thread that outlived its timeout must not speak for the call any more
        self.session.emit(self.call_id, event)

    def emit_all(self, events: Sequence[ToolEvent]) -> None:
        """The same for many at once, on the loop's thread, none of them an asset."""
        if not self.cancelled:
            self.session.emit_all(self.call_id, events)

    def log(self, message: str, level: LogLevel = "info", **fields: Any) -> None:
        self.emit(Log(version=PROTOCOL_VERSION, level=level, message=message, fields=fields or None))

    def patch(self, patch: JsonObject) -> None:
        """Change the session's state (000 §4.2). Taken as it is now: changing the object afterwards has no effect."""
        self.emit(StatePatch(version=PROTOCOL_VERSION, patch=schema.dump(patch)))

    def asset(
        self,
        path: str | Path,
        *,
        kind: str,
        media_type: str,
        asset_id: str | None = None,
        metadata: JsonObject | None = None,
    ) -> None:
        self.emit(
            Asset(
                version=PROTOCOL_VERSION,
                asset_id=asset_id or Path(path).name,
                kind=kind,
                media_type=media_type,
                path=str(path),
                metadata=metadata,
            )
        )

    def ui(self, event: str, payload: JsonObject | None = None) -> None:
        self.emit(UiEvent(version=PROTOCOL_VERSION, event=event, payload=payload))

    def choices(self, *choices: str) -> None:
        """Offer the player what to do next: `ui("narrative_choice", …)` (000 §4.4)."""
        self.ui("narrative_choice", {"choices": list(choices)})


class Trial(ToolContext, eq=False):
    """The context inside `attempt()`."""

    abandoned: bool = False

    def abandon(self) -> None:
        self.abandoned = True


ToolHandler = Callable[..., ToolResult[R] | Awaitable[ToolResult[R]]]


class Tool(Generic[P, R]):
    """A capability: its name, what it takes and gives, what must hold before and what follows after.

    `Tool[Light, Lit](name=…, description=…, handler=…)`; the types may also come from the handler's annotations.
    Instead of a params type, `parameters` may hold a JSON Schema (processes, remote tools): the handler then
    gets the validated mapping.
    """

    __slots__ = (
        "accepts_overrides", "description", "effects", "ends_itself", "examples", "handler", "inline", "is_async",
        "kind", "name", "parameters", "params_type", "parse", "permissions", "preconditions", "result_type", "retry",
        "skill", "timeout", "title",
    )  # fmt: skip

    _types: ClassVar[tuple[Any, Any] | None] = None

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item: Any) -> Any:
            if not isinstance(item, tuple) or any(isinstance(one, TypeVar) for one in item):
                return super().__class_getitem__(item)
            return type(cls.__name__, (cls,), {"_types": item, "__slots__": (), "__module__": cls.__module__})

    def __init__(
        self,
        name: str,
        description: str,
        handler: ToolHandler[R],
        examples: Sequence[ToolExample[P, R]] = (),
        accepts_overrides: bool = True,
        *,
        parameters: Mapping[str, Any] | None = None,
        preconditions: Sequence[Precondition] = (),
        effects: Sequence[Effect] = (),
        timeout: float | None = DEFAULT_TIMEOUT,
        retry: RetryPolicy = RetryPolicies.NONE,
        inline: bool = False,
        skill: str | None = None,
        permissions: Sequence[str] = (),
        kind: str = "function",
        title: str | None = None,
        ends_itself: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.handler = handler
        self.examples = tuple(examples)
        self.accepts_overrides = accepts_overrides
        self.preconditions = tuple(preconditions)
        self.effects = tuple(effects)
        self.timeout = timeout
        self.retry = retry
        self.inline = inline
        self.skill = skill
        self.permissions = tuple(permissions)
        self.kind = kind
        self.title = title
        # The handler keeps `context.time_limit` itself and can then say more than that time is up (a process: its
        # stderr); the pipeline's own timer stands behind it.
        self.ends_itself = ends_itself
        self.is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        _check_name(name)
        _check_text(description, f"tool {name!r}: description")
        if not callable(handler):
            raise ToolValidationError(f"tool {name!r}: handler is not callable: {handler!r}")
        if timeout is not None and not timeout > 0:
            raise ToolValidationError(f"tool {name!r}: timeout must be more than 0 seconds, got {timeout!r}")
        self.params_type, self.result_type = self._types or _handler_types(handler)
        if parameters is not None:
            self.parameters: Mapping[str, Any] = parameters
            self.parse: Callable[[Mapping[str, Any]], Any] = schema.parser_for_schema(parameters, name=name)
        else:
            if self.params_type is Any:
                raise ToolValidationError(
                    f"tool {name!r}: annotate the handler's first parameter with a dataclass, "
                    f"write Tool[Params, Result](…), or pass parameters=<JSON Schema>"
                )
            self.parameters = schema.schema_for(self.params_type, name=name)
            self.parse = schema.parser_for(self.params_type, name=name)
        self._check_examples()

    def _check_examples(self) -> None:
        for index, example in enumerate(self.examples):
            where = f"tool {self.name!r}: examples[{index}]"
            _check_text(example.description, f"{where}.description")
            for label, value, expected in (
                ("input", example.input, self.params_type),
                ("output", example.output, self.result_type),
            ):
                if expected is Any or not isinstance(expected, type) or value is None:
                    continue
                if not isinstance(value, expected):
                    raise ToolValidationError(
                        f"{where}.{label}: expected {expected.__name__}, got {type(value).__name__}"
                    )
            try:
                self.parse(schema.dump(example.input))
            except ToolValidationError as error:
                raise ToolValidationError(f"{where}.input: {error}") from None

    def __repr__(self) -> str:
        return f"<Tool {self.name} ({self.kind})>"


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise ToolValidationError(
            f"tool name {name!r}: use 1-64 of the characters a-z 0-9 _ - (so web:scrape becomes web_scrape)"
        )


def _check_text(text: str, what: str) -> None:
    if not isinstance(text, str) or not len(text.strip()) >= 1 or len(text) > 200:
        raise ToolValidationError(f"{what}: needs 1-200 characters, got {len(str(text))}")


def _handler_types(handler: Callable[..., Any]) -> tuple[Any, Any]:
    """(params, result) from the handler's annotations; `Any` where it does not say."""
    function = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        hints = typing.get_type_hints(function)
    except (
        NameError
    ):  # names known only to the type checker: try what resolves among locals of the definition
        hints = _local_hints(function)
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "context")]
    params = hints.get(names[0], Any) if names else Any
    returned = hints.get("return", Any)
    if typing.get_origin(returned) is ToolResult or getattr(returned, "__origin__", None) is ToolResult:
        returned = typing.get_args(returned)[0]
    else:
        returned = Any
    return (type(None) if params is None else params), returned


def _local_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations that can be evaluated one by one, with the closure's and the caller's names in reach."""
    frame = inspect.currentframe()
    scopes: dict[str, Any] = dict(getattr(function, "__globals__", {}))
    while frame is not None:
        scopes = (
            {**frame.f_locals, **scopes}
            if frame.f_globals is getattr(function, "__globals__", None)
            else scopes
        )
        frame = frame.f_back
    hints: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if not isinstance(annotation, str):
            hints[name] = annotation
            continue
        try:
            hints[name] = eval(annotation, scopes)  # noqa: S307 - the author's own annotation
        except NameError:
            hints[name] = Any
    return hints
