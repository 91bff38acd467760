"""The registry of tools."""
# 004 `ToolRegistry`.

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.run.approval import ApprovalPolicy, checked_policy
from narratoria.run.background_loop import run_sync
from narratoria.run.effect_application import apply_effects
from narratoria.run.executor import ToolExecutor
from narratoria.run.middleware import Around, checked_around
from narratoria.spelling import spelled
from narratoria.tools.contract import PreconditionResult, validate
from narratoria.tools.contract.regex import compile_regex
from narratoria.tools.schema.excerpts import quoted
from narratoria.tools.tool import Tool, ToolContext, ToolResult, fold_name

if TYPE_CHECKING:
    from narratoria.session.draft import Draft
    from narratoria.session.session import Session

ENTRY_POINT_GROUP = "narratoria.tools"
P = TypeVar("P")
R = TypeVar("R")


@spelled(
    createDefaultContext="is called context here: registry.context(tool)",
    validateArguments="is tool.parse(args) here",
    validateToolDefinition="is done by Tool(…) itself",
    validateSchema="is done by Tool(…) itself",
)
class ToolRegistry:
    """Tools by name. `web:scrape` is found as `web_scrape`: names are folded, permission names keep colons.

    `around` is the middleware of every pipeline over this registry: of plans, turns and games too. So is `approval`: a
    function that tells which calls a person must approve.
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any, Any]] = (),
        *,
        around: Sequence[Around] = (),
        approval: ApprovalPolicy | None = None,
    ) -> None:
        self.around = checked_around(around)
        self._approval = checked_policy(approval)
        self.tools: dict[str, Tool[Any, Any]] = {}  # by name, in the order they were registered
        self._executor: ToolExecutor | None = None
        self.register_all(tools)

    def register(self, tool: Tool[Any, Any]) -> None:
        """Add a tool; a second one of its name is refused."""
        if not isinstance(tool, Tool):
            raise ToolValidationError(
                f"not a tool: {tool!r}; decorate the function with @tool, or make a Tool(…)"
            )
        if (there := self.tools.get(tool.name)) is not None:
            both = f" ({there.origin} and {tool.origin})" if there.origin and tool.origin else ""
            raise ToolValidationError(
                f"tool {tool.name!r} is already registered{both}; unregister it first, or give one of them another name"
            )
        self.tools[tool.name] = tool

    def register_all(self, tools: Iterable[Tool[Any, Any]]) -> None:
        """Add several tools."""
        for one in tools:
            self.register(one)

    def register_entry_points(self) -> tuple[str, ...]:
        """Register the tools that installed packages offer under `narratoria.tools`: a tool, or a function giving
        several.
        """
        added = []
        for point in entry_points(group=ENTRY_POINT_GROUP):
            offered = point.load()
            if callable(offered) and not isinstance(offered, Tool):
                offered = offered()
            for one in [offered] if isinstance(offered, Tool) else offered:
                self.register(one)
                added.append(one.name)
        return tuple(added)

    def unregister(self, name: str) -> None:
        """Remove a tool by its name."""
        self.tools.pop(fold_name(name), None)

    def get(self, name: str) -> Tool[Any, Any] | None:
        """Return a tool by its name, or None."""
        return self.tools.get(name) or self.tools.get(fold_name(name))

    def find_part(self, name: str) -> Tool[Any, Any] | None:
        """Return the tool of a name, also one that is only part of a registered composition; None if two parts share
        the name.
        """
        if (registered := self.get(name)) is not None:
            return registered
        waiting, seen = [*self.tools.values()], dict[int, Tool[Any, Any]]()
        while waiting:
            one = waiting.pop()
            if id(one) not in seen:
                seen[id(one)] = one
                waiting += one.parts
        found = [one for one in seen.values() if one.name == name]
        return found[0] if len(found) == 1 else None

    def has(self, name: str) -> bool:
        """Tell if there is a tool of that name."""
        return self.get(name) is not None

    def list(self) -> ToolList:
        """Return all tools, in the order they were added."""
        return [*self.tools.values()]

    def search(self, pattern: str) -> ToolList:
        """Return the tools whose name or description matches a regular expression, whatever the case.

        The dialect is that of `$matches`: linear in time, so the expression may come from anyone.
        """
        try:
            found = compile_regex(f"(?i){pattern}")
        except ToolValidationError as error:
            raise NarratoriaError(f"search pattern {error}") from None
        return [one for one in self.tools.values() if found.search(one.name) or found.search(one.description)]

    def __iter__(self) -> Iterator[Tool[Any, Any]]:
        return iter([*self.tools.values()])

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def approval(self) -> ApprovalPolicy | None:
        """The function that tells which calls a person must approve. A new one holds for pipelines made after it."""
        return self._approval

    @approval.setter
    def approval(self, policy: ApprovalPolicy | None) -> None:
        self._approval, self._executor = checked_policy(policy), None

    @property
    def executor(self) -> ToolExecutor:
        """The pipeline over this registry."""
        if self._executor is None:
            self._executor = ToolExecutor(self)
        return self._executor

    @overload
    def execute(
        self,
        name: Tool[P, R],
        args: P | Mapping[str, Any],
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> Coroutine[Any, Any, ToolResult[R]]: ...
    @overload
    def execute(
        self,
        name: str,
        args: Mapping[str, Any],
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> Coroutine[Any, Any, ToolResult[Any]]: ...
    def execute(
        self,
        name: str | Tool[Any, Any],
        args: Any,
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> Coroutine[Any, Any, ToolResult[Any]]:
        """Run a tool, by name or itself, through the pipeline; with no session given, in a fresh one. To be awaited.

        `args` are an object of JSON data, or an instance of the tool's params type.

        With the `context` of another call it becomes part of that call, under its deadline and budget. With one that
        `registry.context` made it is a call in the session of that context.
        """
        if context is not None:
            executor = self._within(context, session)
            return executor.execute(name, args, session=_settled(context))
        return (self._executor or self.executor).execute(name, args, session=session)

    @overload
    def execute_sync(
        self,
        name: Tool[P, R],
        args: P | Mapping[str, Any],
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> ToolResult[R]: ...
    @overload
    def execute_sync(
        self,
        name: str,
        args: Mapping[str, Any],
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> ToolResult[Any]: ...
    def execute_sync(
        self,
        name: Any,
        args: Any,
        context: ToolContext | None = None,
        *,
        session: Session | Draft | None = None,
    ) -> ToolResult[Any]:
        """Run a tool and wait for it: `execute` for programs without an event loop."""
        return run_sync(self.execute(name, args, context, session=session))

    def _within(self, context: ToolContext, session: Session | Draft | None) -> ToolExecutor:
        if not isinstance(context, ToolContext):
            raise _no_context("execute", context, "for a session write session=…")
        if session is not None:
            raise ToolValidationError("execute: a context brings its own session; give one of them")
        outer = context.executor
        if not isinstance(outer, ToolExecutor):
            return ToolExecutor(self, scope=context.scope)
        return ToolExecutor(self, scope=context.scope, around=outer.around, approval=outer.approval)

    def context(self, tool: Tool[Any, Any], session: Session | Draft | None = None) -> ToolContext:
        """Return a context outside any call, to check preconditions and to execute with; with no session given, over
        a fresh one. Changes made through it are kept as soon as something is executed with it.
        """
        # 004 `createDefaultContext`.
        _check_tool("context", tool)
        return self.executor.context(tool, session)

    async def validate_preconditions(
        self, tool: Tool[Any, Any], context: ToolContext | None = None
    ) -> PreconditionResult:
        """Check all preconditions of a tool, without running it."""
        _check_tool("validate_preconditions", tool)
        if context is None:
            context = self.context(tool)
        elif not isinstance(context, ToolContext):
            raise _no_context("validate_preconditions", context, _MAKE_ONE)
        return await validate(tool, context)

    async def apply_effects(
        self, tool: Tool[Any, Any], result: ToolResult[Any], context: ToolContext, params: Any = None
    ) -> None:
        """Apply a tool's effects for a result, all of them or none. The pipeline does this itself."""
        _check_tool("apply_effects", tool)
        if not isinstance(context, ToolContext):
            raise _no_context("apply_effects", context, _MAKE_ONE)
        async with context.attempt() as trial:
            await apply_effects(self._within(context, None), tool, params, trial, result)
        _settled(context)


def _check_tool(what: str, given: Any) -> None:
    if not isinstance(given, Tool):
        named = f"registry.get({quoted(given)})" if isinstance(given, str) else "registry.get(name)"
        raise ToolValidationError(
            f"{what} takes a tool there, not {type(given).__name__}; for one by its name write {named}"
        )


def _no_context(what: str, given: Any, hint: str) -> ToolValidationError:
    return ToolValidationError(f"{what} takes a context there, not {type(given).__name__}; {hint}")


def _settled(context: ToolContext) -> Session | Draft:
    """The session to call in with a context. One outside any call has nobody else to commit its changes."""
    draft = context.session
    if context.call_id:
        return draft
    draft.commit("")
    context.session = draft.parent.draft()
    return draft.parent


_MAKE_ONE: Final = "for a session write registry.context(tool, session)"

ToolList = list[Tool[Any, Any]]  # inside the class, `list` is the method
