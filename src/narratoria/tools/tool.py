"""The tool and its examples.

`Tool` is one class for every kind: a typed function, a process, a composition, a tool of a remote server. The
factories in `narratoria.kinds` make them; only `narratoria.run.executor` runs them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    get_args,
)

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.spelling import keywords_spelled, spelled
from narratoria.tools import schema
from narratoria.tools.context import CallScope, Pipeline, ToolContext, Trial
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_positive, check_seconds
from narratoria.tools.handler_types import handler_types
from narratoria.tools.node_resources import Resources
from narratoria.tools.read_only import held_to_reading
from narratoria.tools.retry import RetryPolicies, RetryPolicy, check_waits
from narratoria.tools.tool_result import ResultMetadata, ToolError, ToolResult
from narratoria.tools.value_types import mismatch, plain_type

if TYPE_CHECKING:
    from narratoria.tools.contract import Effect, Precondition

__all__ = [
    "CallScope",
    "Pipeline",
    "ResultMetadata",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolExample",
    "ToolHandler",
    "ToolResult",
    "Trial",
    "fold_name",
]

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)
R = TypeVar("R")

NAME_PATTERN: Final = re.compile(r"[a-z0-9_-]{1,64}")
SERVER_NAME_PATTERN: Final = re.compile(r"[a-z0-9_-]{1,64}\.[a-z0-9_-]{1,64}")
LONGEST_DESCRIPTION: Final = 200
DEFAULT_TIMEOUT: Final = 30.0
Approval: TypeAlias = Literal["always", "irreversible", "never"]


class ToolExample(msgspec.Struct, Generic[P, R], frozen=True):
    """An example call: a description of at most 200 characters, and typed input and output."""

    # 002, "ToolExample".

    description: str
    input: P
    output: R | None = None

    @property
    def arguments(self) -> Any:
        """The input as a call has it: JSON data, and `{}` for a tool without parameters."""
        return {} if self.input is None else schema.dump(self.input)


class ToolHandler(Protocol[P_contra, R]):
    """The function that does a tool's work: `def handle(params, *, context) -> ToolResult[R]`, plain or async."""

    # 002.

    def __call__(
        self, params: P_contra, /, *, context: ToolContext
    ) -> ToolResult[R] | Awaitable[ToolResult[R]]: ...


class ToolKind(msgspec.Struct, frozen=True):
    """A kind of tool, as data: what the pipeline and the journal do differently for tools of that kind."""

    name: str
    ends_itself: bool = False
    """The handler keeps `context.time_limit` itself and can then say more than that time is up (a process: its
    stderr). The pipeline's own timer stands behind it."""
    returns_its_patches: bool = False
    """The value is the merge of the call's patches, which the journal has already."""
    made_of_tools: bool = False
    """True for a composition: a failed part keeps its verdict, and the time limit follows from the parts."""
    foreign: bool = False
    """True for tools that were not written for us, such as those of an MCP server: they are named `server.tool`, and
    the rules for our own authors, such as the length of a description, do not refuse them."""
    local_files: bool = False
    """True if the paths in its `asset` events are of this machine. For other kinds they are refused, and not read."""
    is_function: bool = False
    """True if the handler is the author's own Python function: it takes objects, and no request is sent."""


FUNCTION: Final = ToolKind("function", is_function=True)


@keywords_spelled(execute="handler")
@spelled(
    execute="is no method here: await registry.execute(name, args), or context.call(tool, args) in a handler"
)
class Tool(Generic[P, R]):
    """A tool: its name, its parameters and result, its preconditions and effects, and its handler.

    `Tool[Light, Lit](name=…, description=…, handler=…)`; the types may also come from the handler's annotations.
    Instead of a params type, `parameters` may hold a JSON Schema (processes, remote tools): the handler then
    gets the validated mapping.
    """

    __slots__ = (
        "accepts_overrides", "approval", "description", "effects", "ends_itself", "engine", "examples", "guarded",
        "handler", "inline", "is_async",
        "kind", "name", "origin", "parameters", "params_type", "parse", "parts", "permissions", "plain_result",
        "plan_timeout", "preconditions", "read_only", "repeats", "resources", "result_type", "retry", "skill",
        "timeout", "title",
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
        handler: ToolHandler[P, R],
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
        kind: ToolKind = FUNCTION,
        title: str | None = None,
        origin: Path | str | None = None,
        read_only: bool = False,
        approval: Approval | None = None,
        repeatable: bool | None = None,
        resources: Resources | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.handler = handler
        self.examples = tuple(examples)
        self.accepts_overrides = accepts_overrides
        self.preconditions = tuple(preconditions)
        self.effects = tuple(effects)
        self.approval = approval
        self.timeout = timeout
        self.plan_timeout = DEFAULT_TIMEOUT if timeout is None else timeout  # a plan gives every call a limit
        self.retry = retry
        self.repeats = repeatable  # as its source says; None where that follows from the rest
        self.resources = resources  # of the machine it runs on; None where nobody asked for any
        self.engine: Any = None  # `kinds.remote` sets it: the engine that runs it elsewhere
        self.inline = inline
        self.skill = skill
        self.permissions = tuple(permissions)
        self.kind = kind
        self.title = title
        self.ends_itself = kind.ends_itself
        self.origin = origin  # the file it was loaded from, or the server it is of, in words
        self.parts: tuple[Tool[Any, Any], ...] = ()  # of a composition
        self.is_async = _is_async(handler)
        self.read_only = read_only  # it changes nothing, which is checked after each call
        self._check_settings()
        # true where something stands before a call
        self.guarded = bool(self.preconditions) or self.asks(approval) is not None
        self.params_type, self.result_type = self._types or handler_types(handler, ToolResult)
        self.plain_result = plain_type(self.result_type)  # a value of this type needs no check
        self.parameters, self.parse = self._parameters(parameters)
        self._check_examples()
        if read_only:
            self.handler = held_to_reading(handler, is_async=self.is_async)

    def _check_settings(self) -> None:
        what, timeout = f"tool {self.name!r}", self.timeout
        _check_name(self.name, self.kind)
        _check_text(self.description, f"{what}: description", self.kind)
        if not callable(self.handler):
            raise ToolValidationError(f"{what}: handler is not callable: {self.handler!r}")
        if timeout is not None:
            check_positive(f"{what}: timeout", timeout)
        if not self.kind.made_of_tools:
            check_seconds(f"{what}: timeout", timeout, LONGEST_TIMEOUT)
        _check_made(f"{what}: ", self.preconditions, self.effects, self.retry)
        if self.approval is not None and self.approval not in get_args(Approval):
            raise ToolValidationError(
                f"{what}: approval is one of {', '.join(get_args(Approval))}, got {self.approval!r}"
            )
        check_waits(f"{what}: retry: backoff", self.retry)
        if self.read_only and self.effects:
            raise ToolValidationError(
                f"{what}: it is declared read-only and has effects; take one of the two out"
            )

    @property
    def repeatable(self) -> bool:
        """Tell if a call that may have been carried out may be made again: it only reads, leaves nothing that stays,
        or has a policy of retries.
        """
        if self.repeats is not None:
            return self.repeats
        if self.read_only or self.retry.max_retries:
            return True
        stays = any(one.lasts and one.destroys() for one in self.effects)
        return not stays and all(part.repeatable for part in self.parts)

    def asks(self, approval: Approval | None) -> str | None:
        """Return the reason for which a call needs a person's approval under that rule, or None."""
        if approval == "always":
            return "it always asks first"
        if approval == "irreversible":
            lasting = [one.description for one in self.effects if one.lasts]
            return f"it cannot be undone: {'; '.join(lasting)}" if lasting else None
        return None

    def _parameters(
        self, given: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], Any]]:
        """The JSON Schema of the params, given or made of their type, and the parser of arguments."""
        if given is not None:
            return given, schema.parser_for_schema(given, name=self.name)
        if self.params_type is Any:
            raise ToolValidationError(
                f"tool {self.name!r}: annotate the handler's first parameter with a dataclass, "
                f"write Tool[Params, Result](…), or pass parameters=<JSON Schema>"
            )
        made = schema.schema_for(self.params_type, name=self.name)
        return made, schema.parser_for(self.params_type, name=self.name)

    def _check_examples(self) -> None:
        for index, example in enumerate(self.examples):
            where = f"tool {self.name!r}: examples[{index}]"
            _check_text(example.description, f"{where}.description")
            for label, value, expected in (
                ("input", example.input, self.params_type),
                ("output", example.output, self.result_type),
            ):
                nothing = value is None or (value == {} and expected in (None, type(None)))
                # the parser judges the fields of an input, in the words that a caller gets
                by_class = label == "input" and isinstance(expected, type) and isinstance(value, expected)
                wrong = None if nothing or by_class else mismatch(value, expected)
                if wrong is not None:
                    raise ToolValidationError(f"{where}.{label}: expected {wrong}")
            try:
                self.parse(example.arguments)
            except ToolValidationError as error:
                raise ToolValidationError(f"{where}.input: {error}") from None

    def __repr__(self) -> str:
        return f"<Tool {self.name} ({self.kind.name})>"


def fold_name(name: str) -> str:
    """Return the name under which a tool is registered: `web:scrape` becomes `web_scrape`."""
    # 004 writes names with colons.
    return name.replace(":", "_") if isinstance(name, str) else ""


def _is_async(handler: Any) -> bool:
    call = getattr(handler, "__call__", None)  # noqa: B004 - an object with an async __call__
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


def _check_name(name: str, kind: ToolKind) -> None:
    if isinstance(name, str) and kind.foreign and SERVER_NAME_PATTERN.fullmatch(name):
        return
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise ToolValidationError(
            f"tool name {name!r}: use 1-64 of the characters a-z 0-9 _ - (so web:scrape becomes web_scrape)"
        )


def _check_made(
    where: str, preconditions: Sequence[object], effects: Sequence[object], retry: object
) -> None:
    """Refuse preconditions, effects and retries that are not of our classes."""
    # 004 writes them as objects; `contract_data` reads such data.
    for what, each in (("preconditions", preconditions), ("effects", effects)):
        for index, one in enumerate(each):
            if isinstance(one, Mapping):
                raise ToolValidationError(
                    f"{where}{what}[{index}] is data; make it with a class of narratoria.tools.contract, or with "
                    f"{what}_from_data from there"
                )
    if not isinstance(retry, RetryPolicy):
        raise ToolValidationError(
            f"{where}retry is {type(retry).__name__}; make a RetryPolicy, or read data with "
            f"narratoria.tools.retry.policy_from_data"
        )


def _check_text(text: str, what: str, kind: ToolKind = FUNCTION) -> None:
    if isinstance(text, str) and text.strip() and (kind.foreign or len(text) <= LONGEST_DESCRIPTION):
        return
    if isinstance(text, str) and text and not text.strip():
        raise ToolValidationError(f"{what}: needs 1-{LONGEST_DESCRIPTION} characters, and not only blanks")
    raise ToolValidationError(f"{what}: needs 1-{LONGEST_DESCRIPTION} characters, got {len(str(text))}")
