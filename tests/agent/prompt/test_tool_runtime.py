"""002, "Tool Runtime Specification": its tables and rules, row by row, through the whole pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from narratoria.agent.prompt import MarkdownSection, Prompt
from narratoria.errors import (
    DeadlineExceededError,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.kinds.function import tool
from narratoria.narrator.protocol import card
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session, ToolInvoked
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.session.resources.resources import Filesystem
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.tool import CallScope, Tool, ToolContext, ToolExample, ToolResult


@dataclass(frozen=True)
class Inner:
    count: int


@dataclass(frozen=True)
class Params:
    target: str
    inner: Inner | None = None


@dataclass(frozen=True)
class Result:
    found: str


async def echo(params: Params, *, context: ToolContext) -> ToolResult[Result]:
    return ToolResult.ok(Result(params.target), "done")


def make(handler: Callable[..., Any] = echo, **fields: Any) -> Tool[Params, Result]:
    return Tool[Params, Result](
        **{"name": "echo", "description": "Gives back.", "handler": handler, **fields}
    )


async def run(
    handler: Callable[..., Any], session: Session | None = None, scope: CallScope | None = None, **args: Any
) -> ToolResult[Any]:
    registry = ToolRegistry([make(handler)])
    executor = ToolExecutor(registry, scope=scope) if scope else ToolExecutor(registry)
    return await executor.execute("echo", args or {"target": "torch"}, session=session or Session())


# --- Core Schemas: Tool ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "light_torch", "web-scrape", "0", "x" * 64])
def test_tool_name_of_the_pattern_is_accepted(name: str) -> None:
    assert make(name=name).name == name


@pytest.mark.parametrize("name", ["", "Light", "a b", "web:scrape", "x" * 65, "é", "a\n"])
def test_tool_name_outside_the_pattern_is_refused(name: str) -> None:
    with pytest.raises(ToolValidationError, match="tool name"):
        make(name=name)


@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (200, True), (201, False)])
def test_tool_description_has_1_to_200_characters(length: int, fits: bool) -> None:
    if fits:
        assert make(description="x" * length).description == "x" * length
    else:
        with pytest.raises(ToolValidationError, match="1-200 characters"):
            make(description="x" * length)


def test_tool_handler_examples_and_accepts_overrides_are_fields() -> None:
    example = ToolExample("light it", Params("torch"), Result("torch"))
    one = make(examples=(example,), accepts_overrides=False)
    assert (one.handler, one.examples, one.accepts_overrides) == (echo, (example,), False)
    assert make().accepts_overrides


def test_a_handler_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ToolValidationError, match="not callable"):
        make("light")  # type: ignore[arg-type]


async def test_handler_signature_is_params_then_context_by_keyword() -> None:
    seen: list[Any] = []

    def handle(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        seen.extend([params, context])
        return ToolResult.ok(Result("x"))

    await run(handle)
    assert seen[0] == Params("torch")
    assert isinstance(seen[1], ToolContext)


# --- Core Schemas: ToolResult ----------------------------------------------------------------------------


def test_tool_result_ok_is_a_success_with_value_and_message() -> None:
    result = ToolResult.ok(Result("torch"), "It burns.")
    assert (result.message, result.value, result.success) == ("It burns.", Result("torch"), True)
    assert result.exclude_value_from_context is False


def test_tool_result_error_is_a_failure_without_value() -> None:
    result = ToolResult.error("It is wet.")
    assert (result.message, result.value, result.success) == ("It is wet.", None, False)


def test_tool_result_render_gives_the_message_and_the_value_as_json() -> None:
    assert ToolResult.ok(Result("torch"), "It burns.").render() == 'It burns.\n{"found":"torch"}'


def test_an_excluded_value_is_hidden_from_the_provider_but_not_from_the_caller() -> None:
    result = ToolResult.ok(Result("secret"), "Done.", exclude_value_from_context=True)
    assert result.render() == "Done."
    assert result.value == Result("secret")  # 002: not a security boundary


# --- Core Schemas: ToolContext ---------------------------------------------------------------------------


async def test_tool_context_has_every_field_of_the_table() -> None:
    session = Session()
    deadline, budget = Deadline.after(60), BudgetTracker(Budget(max_calls=5))
    adapter = object()
    rendered = Prompt(ns="t", key="p", sections=[MarkdownSection(title="A", key="a", template="")]).render()
    seen: dict[str, Any] = {}

    async def look(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        names = ("prompt", "rendered_prompt", "adapter", "deadline", "budget_tracker")
        seen.update({name: getattr(context, name) for name in names})
        seen["session"] = context.session.id
        return ToolResult.ok(Result("x"))

    scope = rendered.scope(adapter=adapter, deadline=deadline, budget_tracker=budget)
    await run(look, session, scope)
    assert seen == {
        "prompt": rendered.prompt,
        "rendered_prompt": rendered,
        "adapter": adapter,
        "session": session.id,
        "deadline": deadline,
        "budget_tracker": budget,
    }


async def test_deadline_and_budget_tracker_are_optional() -> None:
    async def look(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        assert context.deadline is None
        assert context.budget_tracker is None
        return ToolResult.ok(Result("x"))

    assert (await run(look)).success


async def test_resource_access_by_type_and_by_the_filesystem_shorthand() -> None:
    session = Session()
    session.resources.provide(Filesystem, MemoryFilesystem({"note": "hi"}))

    def my_handler(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        fs = context.resources.get(Filesystem)
        assert fs is context.filesystem
        return ToolResult.ok(Result(fs.read_text("note")))

    assert (await run(my_handler, session)).value == Result("hi")


async def test_beat_tells_that_a_long_operation_lives_and_ends_with_the_call() -> None:
    session = Session()
    beats: list[float] = []
    contexts: list[ToolContext] = []

    async def long(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        contexts.append(context)
        context.beat()
        beats.append(session.beats[context.call_id])
        return ToolResult.ok(Result("x"))

    assert (await run(long, session)).success
    assert beats[0] > 0
    assert session.beats == {}


async def test_handlers_publish_events_through_the_session_s_dispatcher() -> None:
    session = Session()
    heard: list[Any] = []
    session.dispatcher.subscribe(Result, heard.append)

    async def announce(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        context.session.dispatcher.publish(Result("announced"))
        return ToolResult.ok(Result("x"))

    await run(announce, session)
    assert heard == [Result("announced")]


# --- Core Schemas: ToolExample ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "says"),
    [
        (ToolExample("x" * 201, Params("a")), "description"),
        (ToolExample("", Params("a")), "description"),
        (ToolExample("wrong input", Result("a")), "input: expected Params, got Result"),
        (ToolExample("wrong output", Params("a"), Params("a")), "output: expected Result, got Params"),
    ],
)
def test_an_example_has_a_short_description_and_fitting_input_and_output(example: Any, says: str) -> None:
    with pytest.raises(ToolValidationError, match=says):
        make(examples=(example,))


# --- Runtime Dispatch ------------------------------------------------------------------------------------


async def test_step_1_an_unknown_tool_is_a_failed_result() -> None:
    result = await ToolRegistry([make()]).execute("ecko", {}, session=Session())
    assert result.error is not None
    assert result.error.code == "TOOL_NOT_FOUND"
    assert result.error.suggestions == ("did you mean 'echo'?",)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "target"),
        ({"target": 5}, "target"),
        ({"target": "a", "colour": "red"}, "colour"),
        ({"target": "a", "inner": {"count": 1, "extra": 2}}, r"inner.extra"),
        ({"target": "a", "inner": {"count": "x"}}, "inner.count"),
    ],
)
async def test_step_2_arguments_are_parsed_strictly_with_extra_keys_forbidden(
    args: dict[str, Any], says: str
) -> None:
    result = await ToolRegistry([make()]).execute("echo", args, session=Session())
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENTS"
    assert says in result.message


async def test_step_3_an_elapsed_deadline_refuses_the_call_before_the_handler_runs() -> None:
    ran: list[int] = []

    async def handler(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        ran.append(1)
        return ToolResult.ok(Result("x"))

    now = 100.0
    result = await run(handler, scope=CallScope(deadline=Deadline(99.0, clock=lambda: now)))
    assert not result.success
    assert result.error is not None
    assert result.error.code == "DEADLINE_EXCEEDED"
    assert ran == []


async def test_step_8_tool_invoked_is_published_for_successes_and_failures() -> None:
    session = Session()
    heard: list[ToolInvoked] = []
    session.dispatcher.subscribe(ToolInvoked, heard.append)
    await run(echo, session)

    async def fail(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        raise ValueError("no")

    await run(fail, session)
    assert [(one.tool, one.session_id, one.result.success) for one in heard] == [
        ("echo", session.id, True),
        ("echo", session.id, False),
    ]


async def test_step_9_the_result_comes_back_with_its_metadata() -> None:
    result = await run(echo)
    assert (result.success, result.value, result.message) == (True, Result("torch"), "done")
    assert result.metadata is not None
    assert result.metadata.tool_name == "echo"
    assert result.metadata.duration >= 0


# --- Failure Semantics -----------------------------------------------------------------------------------


class Ledger:
    def __init__(self) -> None:
        self.lines = 0

    def snapshot(self) -> int:
        return self.lines

    def restore(self, snapshot: int) -> None:
        self.lines = snapshot


class World:
    """A session with everything that could be left changed."""

    def __init__(self) -> None:
        self.session = Session(state={"torch": {"lit": False}})
        self.files = MemoryFilesystem({"note": "old"})
        self.ledger = Ledger()
        self.session.resources.provide(Filesystem, self.files)
        self.session.resources.provide(Ledger, self.ledger)

    def look(self) -> list[Any]:
        return [
            self.session.snapshot(),
            self.session.memory.export(),
            self.session[Result].all(),
            self.session.permissions,
            self.files.read_text("note"),
            self.files.list(),
            self.ledger.lines,
        ]


def meddle(context: ToolContext) -> None:
    context.patch({"torch": {"lit": True}})
    context.memory.write("long-term", "x", 1)
    context.session.dispatch(Result("meddled"))
    context.session.grant("everything")
    context.filesystem.write_text("note", "new")
    context.filesystem.write_text("other", "new")
    context.resources.get(Ledger).lines += 1


FAILURES: dict[str, tuple[Callable[[], Exception], type[Exception] | None, str]] = {
    "ToolValidationError is wrapped": (lambda: ToolValidationError("too wet"), None, "too wet"),
    "VisibilityExpansionRequired is re-raised": (
        lambda: VisibilityExpansionRequired("open", section_keys=["a"]),
        VisibilityExpansionRequired,
        "open",
    ),
    "PromptEvaluationError is re-raised": (
        lambda: PromptEvaluationError("stop"),
        PromptEvaluationError,
        "stop",
    ),
    "DeadlineExceededError becomes PromptEvaluationError": (
        lambda: DeadlineExceededError("late"),
        PromptEvaluationError,
        "late",
    ),
    "TypeError is wrapped with a descriptive message": (lambda: TypeError("bad type"), None, "TypeError"),
    "any other is wrapped": (lambda: OSError("disk full"), None, "disk full"),
}


@pytest.mark.parametrize("row", FAILURES)
@pytest.mark.parametrize("kind", ["async", "plain", "inline"])
async def test_exception_table_and_all_failure_paths_restore_state_and_resources(row: str, kind: str) -> None:
    error, raised, says = FAILURES[row]
    world = World()
    before = world.look()

    def plain(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        meddle(context)
        raise error()

    async def asynchronous(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        meddle(context)
        await asyncio.sleep(0)
        raise error()

    one = make(asynchronous if kind == "async" else plain, inline=kind == "inline")
    registry = ToolRegistry([one])
    if raised is not None:
        with pytest.raises(raised, match=says):
            await registry.execute("echo", {"target": "torch"}, session=world.session)
    else:
        result = await registry.execute("echo", {"target": "torch"}, session=world.session)
        assert not result.success
        assert result.value is None
        assert says in result.message
        assert says in result.render()  # 002: error messages are forwarded to the model
    assert world.look() == before


async def test_a_failed_result_restores_as_an_exception_does_and_may_carry_a_payload() -> None:
    world = World()
    before = world.look()

    async def give_up(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        meddle(context)
        return ToolResult("It will not burn.", Result("wet"), success=False)

    result = await run(give_up, world.session)
    assert (result.success, result.message, result.value) == (False, "It will not burn.", Result("wet"))
    assert world.look() == before


async def test_success_keeps_everything() -> None:
    world = World()

    async def handler(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        meddle(context)
        return ToolResult.ok(Result("x"))

    assert (await run(handler, world.session)).success
    assert world.session.state["torch"]["lit"] is True
    assert world.session.memory.read("long-term", "x") == 1
    assert world.session[Result].latest() == Result("meddled")
    assert world.session.has_permission("everything")
    assert (world.files.read_text("note"), world.files.list()) == ("new", ["note", "other"])
    assert world.ledger.lines == 1


@pytest.mark.parametrize("returned", [None, "text", {"success": True}, Result("bare")])
async def test_a_handler_that_returns_something_else_fails_with_a_descriptive_message(returned: Any) -> None:
    async def handler(params: Params, *, context: ToolContext) -> Any:
        return returned

    result = await run(handler)
    assert not result.success
    assert "must return a ToolResult" in result.message


async def test_a_value_of_the_wrong_type_fails_with_a_descriptive_message() -> None:
    async def handler(params: Params, *, context: ToolContext) -> ToolResult[Any]:
        return ToolResult.ok(Params("not a result"))

    result = await run(handler)
    assert not result.success
    assert "must be Result, got Params" in result.message


async def test_a_handler_with_the_wrong_signature_fails_with_a_descriptive_message() -> None:
    async def handler(params: Params) -> ToolResult[Result]:
        return ToolResult.ok(Result("x"))

    result = await run(handler)
    assert not result.success
    assert "TypeError" in result.message


# --- Limitations, and where we go further ----------------------------------------------------------------


def test_a_params_type_that_is_no_dataclass_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(ToolValidationError):

        @tool(description="Takes anything.")
        async def anything(params: dict, *, context: ToolContext) -> ToolResult[Result]:  # type: ignore[type-arg]
            return ToolResult.ok(Result("x"))


async def test_a_failed_sibling_leaves_its_neighbour_s_work_in_state_memory_and_files() -> None:
    world = World()
    both_began = asyncio.Barrier(2)

    async def handler(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        context.patch({params.target: True})
        context.memory.write("working", params.target, True)
        context.filesystem.write_text(params.target, "x")
        await both_began.wait()
        if params.target == "bad":
            raise ValueError("no")
        return ToolResult.ok(Result("x"))

    registry = ToolRegistry([make(handler)])
    results = await asyncio.gather(
        *(registry.execute("echo", {"target": one}, session=world.session) for one in ("bad", "good"))
    )
    assert [one.success for one in results] == [False, True]
    assert "bad" not in world.session.state
    assert world.session.state["good"] is True
    assert world.session.memory.keys("working") == ["good"]
    assert world.files.list() == ["good", "note"]


@pytest.mark.parametrize("given", [None, {}])
def test_a_tool_without_parameters_has_examples(given: Any) -> None:
    async def wait(params: None, *, context: ToolContext) -> ToolResult[int]:
        return ToolResult.ok(1)

    waits = Tool[None, int]("wait", "Waits.", wait, [ToolExample("wait a moment", given, 1)])
    prompt = Prompt(
        ns="n", key="k", sections=[MarkdownSection(title="T", key="t", template="x", tools=[waits])]
    )
    assert "- wait a moment: `{}` gives `1`" in prompt.render().text
    assert card(waits).examples == [{"description": "wait a moment", "input": {}}]
