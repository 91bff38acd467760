"""What a reader of the specifications types works, or is refused with the name to use (002 and 004, name by name)."""

import copy
import importlib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import narratoria
from narratoria import RetryPolicies, RetryPolicy, Session, Tool, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.agent.planning import (
    AddStep,
    Plan,
    PlanningStrategy,
    PlanningToolsSection,
    PlanStep,
    ReadPlan,
    SetupPlan,
    UpdateStep,
)
from narratoria.agent.prompt import MarkdownSection, Prompt, RenderedPrompt
from narratoria.errors import (
    DeadlineExceededError,
    PromptEvaluationError,
    PromptValidationError,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.kinds.compose import conditional, parallel, sequence
from narratoria.play.turn import TurnSettings
from narratoria.run.plan import (
    CallResult,
    ExecutionResult,
    PlanDocument,
    PlanMetadata,
    PlannedCall,
    PlanRetry,
)
from narratoria.session import ToolInvoked
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.session.resources.resources import Filesystem
from narratoria.spelling import ELSEWHERE
from narratoria.tools.contract import (
    CascadeEffect,
    CustomPrecondition,
    MemoryEffect,
    NotificationEffect,
    PermissionPrecondition,
    ResourcePrecondition,
    StateChangeEffect,
    StatePrecondition,
    effects_from_data,
    preconditions_from_data,
    rollback_effects,
    validate,
)
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.retry import ExponentialBackoff, FixedBackoff, LinearBackoff, policy_from_data
from narratoria.tools.tool import CallScope, ToolExample, ToolHandler


@dataclass(frozen=True)
class Params:
    url: str = "http://example"


@dataclass(frozen=True)
class Result:
    url: str = ""
    notes: list[str] = field(default_factory=list)


def a_tool(handler, **options):
    return tool(description="Does what the test says.", name="one", **options)(handler)


async def answer(params: Params, *, context: ToolContext) -> ToolResult[Result]:
    return ToolResult.ok(Result(params.url), "found")


# --- 002 -----------------------------------------------------------------------------------------------


async def test_a_handler_is_typed_with_params_and_result():
    handler: ToolHandler[Params, Result] = answer
    one = Tool[Params, Result](
        name="one",
        description="Finds.",
        handler=handler,
        accepts_overrides=True,
        examples=(ToolExample(description="Find it.", input=Params(), output=Result()),),
    )
    assert (await ToolRegistry([one]).execute("one", {})).value == Result("http://example")


def test_a_result_has_the_fields_and_factories_of_002():
    result = ToolResult(message="m", value=1, success=True, exclude_value_from_context=True)
    assert result.render() == "m"
    assert ToolResult.ok(1, "m").render() == "m\n1"
    assert not ToolResult.error("m").success


async def test_a_context_has_the_fields_of_002():
    seen = []

    def handle(params: Params, *, context: ToolContext) -> ToolResult[Result]:
        fs = context.resources.get(Filesystem)
        assert fs is context.filesystem
        context.beat()
        for name in ("prompt", "rendered_prompt", "adapter", "session", "deadline", "budget_tracker"):
            getattr(context, name)
        assert context.session.dispatcher is not None
        return ToolResult.ok(Result(), "")

    session = Session()
    session.resources.provide(Filesystem, MemoryFilesystem())
    session.dispatcher.subscribe(ToolInvoked, seen.append)
    assert (await ToolRegistry([a_tool(handle)]).execute("one", {}, session=session)).success
    assert len(seen) == 1


def test_sections_bring_tools_and_render_in_order():
    one = a_tool(answer)
    section = MarkdownSection[Params](
        title="Guidance", key="guidance", template="Use tools when needed.", tools=[one]
    )
    rendered = Prompt(ns="seed", key="two", sections=[section]).render()
    assert isinstance(rendered, RenderedPrompt) and rendered.tools == (one,)
    with pytest.raises(PromptValidationError):
        twice = MarkdownSection[Params](title="Again", key="again", template="x", tools=[one])
        Prompt(ns="seed", key="two", sections=[section, twice]).render()


def test_the_planning_suite_has_the_names_of_002():
    section = PlanningToolsSection(session=Session())
    names = [one.name for one in section.tools]
    assert names == ["planning_setup_plan", "planning_add_step", "planning_update_step", "planning_read_plan"]
    SetupPlan(objective="o", initial_steps=("a",))
    AddStep(steps=("a",))
    UpdateStep(step_id=1, title="t", status="done")
    ReadPlan()
    Plan(objective="o", status="active", steps=(PlanStep(step_id=1, title="t", status="in_progress"),))
    assert {one.name for one in PlanningStrategy} == {
        "REACT",
        "PLAN_ACT_REFLECT",
        "GOAL_DECOMPOSE_ROUTE_SYNTHESISE",
    }


def test_the_exceptions_of_002_are_there():
    for one in (
        ToolValidationError,
        VisibilityExpansionRequired,
        PromptEvaluationError,
        DeadlineExceededError,
        PromptValidationError,
    ):
        assert issubclass(one, Exception)
    assert Deadline and BudgetTracker


# --- 004: tools, contexts, results ---------------------------------------------------------------------


async def test_a_tool_with_every_field_of_004():
    async def execute(args, context):
        return ToolResult.ok({"url": args["url"]}, "scraped")

    scrape = Tool(
        name="web_scrape",
        description="Extract content from a web page",
        parameters={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
        preconditions=[],
        effects=[],
        timeout=30,
        retry=RetryPolicies.STANDARD,
        handler=execute,
    )
    registry = ToolRegistry()
    registry.register(scrape)
    assert registry.has("web:scrape") and registry.get("web:scrape") is scrape
    assert registry.list() == [scrape] == registry.search("EXTRACT")
    result = await registry.execute("web:scrape", {"url": "http://example"})
    assert result.data == {"url": "http://example"} == result.value
    assert result.error is None and result.metadata.tool_name == "web_scrape"
    registry.unregister("web:scrape")
    assert registry.get("web:scrape") is None


async def test_execute_takes_the_context_of_another_call():
    inner = a_tool(answer)
    registry = ToolRegistry([inner])
    seen = []

    async def outer(params: Params, *, context: ToolContext) -> ToolResult[None]:
        async def write(params: Params, *, context: ToolContext) -> ToolResult[None]:
            seen.append((context.loop_id, context.session.depth))
            context.patch({"written": True})
            return ToolResult.ok(None)

        registry.register(tool(description="Writes.", name="write")(write))
        assert (await registry.execute("write", {}, context)).success
        assert (await registry.execute("one", {}, context=context)).data == Result("http://example")
        return ToolResult.error("the whole fails")

    from narratoria import ToolExecutor

    session = Session()
    whole = tool(description="Calls.", name="outer")(outer)
    await ToolExecutor(ToolRegistry([whole]), scope=CallScope(loop_id="loop-7")).execute(
        "outer", {}, session=session
    )
    assert seen == [("loop-7", 2)], "under the scope of that call, and within it"
    assert session.state == {}, "one transaction"


async def test_a_session_in_the_place_of_a_context_is_refused_with_the_keyword():
    registry = ToolRegistry([a_tool(answer)])
    with pytest.raises(ToolValidationError, match="write session="):
        await registry.execute("one", {}, Session())
    with pytest.raises(ToolValidationError, match="a context brings its own session"):
        await registry.execute("one", {}, registry.context(registry.get("one")), session=Session())


async def test_the_config_knows_the_tool_and_what_was_configured():
    seen = []

    async def look(params: Params, *, context: ToolContext) -> ToolResult[None]:
        config = context.config
        seen.append((config.toolName, config.tool_name, config.region, config["region"], dict(config)))
        config.nothing  # noqa: B018
        return ToolResult.ok(None)

    from narratoria import ToolExecutor

    executor = ToolExecutor(ToolRegistry([a_tool(look)]), scope=CallScope(config={"region": "north"}))
    result = await executor.execute("one", {})
    assert seen == [("one", "one", "north", "north", {"region": "north"})]
    assert "config has no 'nothing'; configured: region" in result.message


async def awaits(params: Params, *, context: ToolContext) -> ToolResult[None]:
    await context.memory.read("working", "browser.error")
    return ToolResult.ok(None)


async def awaits_as_check(context: ToolContext) -> bool:
    return await context.memory.read("working", "browser.error") is not True


async def awaits_as_effect(context: ToolContext, result: ToolResult[None]) -> None:
    await context.memory.write("working", "a", 1)


@pytest.mark.parametrize(
    "one",
    [
        a_tool(awaits),
        a_tool(answer, preconditions=[CustomPrecondition(id="mine", check=awaits_as_check)]),
        a_tool(answer, effects=[StateChangeEffect(state="a", apply=awaits_as_effect, rollback=lambda: None)]),
    ],
    ids=["handler", "check", "effect"],
)
async def test_awaiting_the_memory_is_refused_with_what_to_write(one):
    result = await ToolRegistry([one]).execute("one", {})
    assert not result.success and "without await" in result.message


CAMEL = [
    ("sessionId", "session_id"),
    ("loopId", "loop_id"),
    ("agentId", "agent_id"),
    ("signal", "cancelled"),
    ("renderedPrompt", "rendered_prompt"),
]


@pytest.mark.parametrize(("name", "ours"), CAMEL)
async def test_other_names_of_the_context_lead_to_ours(name, ours):
    registry = ToolRegistry([a_tool(answer)])
    context = registry.context(registry.get("one"))
    getattr(context, ours)
    with pytest.raises(AttributeError, match=f"is called {ours} here"):
        getattr(context, name)


@pytest.mark.parametrize(
    ("thing", "name", "ours"),
    [
        (ToolRegistry(), "registerAll", "register_all"),
        (ToolRegistry(), "validatePreconditions", "validate_preconditions"),
        (ToolRegistry(), "applyEffects", "apply_effects"),
        (RetryPolicies.QUICK, "maxRetries", "max_retries"),
        (RetryPolicies.QUICK, "retryableErrors", "retryable_errors"),
        (RetryPolicies.QUICK, "nonRetryableErrors", "non_retryable_errors"),
        (RetryPolicies.QUICK, "shouldRetry", "should_retry"),
        (StatePrecondition(state="a"), "expectedValue", "expected_value"),
        (CascadeEffect(trigger_tool="a"), "triggerTool", "trigger_tool"),
        (CascadeEffect(trigger_tool="a"), "triggerCondition", "trigger_condition"),
        (a_tool(answer), "acceptsOverrides", "accepts_overrides"),
        (ToolResult.ok(1), "excludeValueFromContext", "exclude_value_from_context"),
    ],
)
def test_other_names_lead_to_ours(thing, name, ours):
    getattr(thing, ours)
    with pytest.raises(AttributeError, match=f"{name} is called {ours} here"):
        getattr(thing, name)
    assert not hasattr(thing, name)


async def test_names_of_results_and_reports_lead_to_ours():
    registry = ToolRegistry([a_tool(answer)])
    metadata = (await registry.execute("one", {})).metadata
    assert metadata.duration >= 0 and metadata.timestamp > 0
    with pytest.raises(AttributeError, match="toolName is called tool_name here"):
        metadata.toolName  # noqa: B018
    report = await registry.validate_preconditions(registry.get("one"))
    for name, ours in (
        ("criticalFailed", "critical_failed"),
        ("canProceed", "can_proceed"),
        ("degradedMode", "degraded_mode"),
    ):
        getattr(report, ours)
        with pytest.raises(AttributeError, match=f"is called {ours} here"):
            getattr(report, name)


def test_a_tool_is_not_executed_by_itself():
    with pytest.raises(AttributeError, match=r"await registry.execute\(name, args\)"):
        a_tool(answer).execute  # noqa: B018
    with pytest.raises(TypeError, match="execute= is called handler= here"):
        Tool(name="one", description="Does.", execute=answer)


def test_keywords_lead_to_ours():
    with pytest.raises(TypeError, match="expectedValue= is called expected_value= here"):
        StatePrecondition(state="browser.error", expectedValue=False)
    with pytest.raises(TypeError, match="triggerTool= is called trigger_tool= here"):
        CascadeEffect(triggerTool="one")
    with pytest.raises(TypeError, match="acceptsOverrides= is called accepts_overrides= here"):
        Tool("one", "Does.", answer, acceptsOverrides=True)
    with pytest.raises(TypeError, match="maxRetries"):
        RetryPolicy(maxRetries=3)


def test_objects_in_the_place_of_a_contract_are_refused_with_the_way_to_read_them():
    precondition = {"type": "state", "state": "browser.error", "expectedValue": False}
    effect = {"type": "notification", "event": "api:error"}
    with pytest.raises(ToolValidationError, match=r"preconditions\[0\] is data; .*preconditions_from_data"):
        a_tool(answer, preconditions=[precondition])
    with pytest.raises(ToolValidationError, match=r"effects\[0\] is data; .*effects_from_data"):
        a_tool(answer, effects=[effect])
    with pytest.raises(ToolValidationError, match=r"retry is dict; .*policy_from_data"):
        a_tool(answer, retry={"maxRetries": 3})
    a_tool(
        answer,
        preconditions=preconditions_from_data([precondition]),
        effects=effects_from_data([effect]),
        retry=policy_from_data({"maxRetries": 3, "backoff": {"type": "fixed", "delay": 1}}),
    )


# --- 004: preconditions and effects as its examples write them -------------------------------------------


async def test_the_preconditions_of_004():
    async def is_available():
        return True

    preconditions = [
        ResourcePrecondition(
            description="Browser instance must be available",
            resource="browser",
            availability="required",
            critical=True,
            check=is_available,
        ),
        StatePrecondition(
            description="Rate limit must not be exceeded",
            state="api.rateLimit.remaining",
            expected_value=lambda v: v is None or v > 0,
            critical=True,
        ),
        PermissionPrecondition(
            description="User must have granted browser automation permission",
            permission="browser:automate",
            check=lambda ctx: ctx.session_id != "",
        ),
    ]
    one = a_tool(answer, preconditions=preconditions)
    registry = ToolRegistry([one])
    report = await validate(one, registry.context(one))
    assert report.passed and [check.error for check in report.results] == [None] * 3


async def test_the_effects_of_004():
    async def remember(ctx, result):
        if result.success:
            history = ctx.memory.read("short-term", "browser.history") or []
            history.append({"url": result.data.url})
            ctx.memory.write("short-term", "browser.history", history[-100:])

    async def forget(ctx):
        history = ctx.memory.read("short-term", "browser.history") or []
        ctx.memory.write("short-term", "browser.history", history[:-1])

    effects = [
        MemoryEffect(
            description="Store navigation history",
            scope="short-term",
            operation="update",
            key="browser.history",
            reversible=True,
            apply=remember,
            rollback=forget,
        ),
        NotificationEffect(event="file:changed", payload={"path": {"$result": "url"}}, rollback=lambda: None),
    ]
    session = Session()
    one = a_tool(answer, effects=effects)
    assert (await ToolRegistry([one]).execute("one", {}, session=session)).success
    assert session.memory.read("short-term", "browser.history") == [{"url": "http://example"}]
    assert rollback_effects


@pytest.mark.parametrize(
    ("make", "name", "ours"),
    [
        (RetryPolicy, "maxRetries", "max_retries"),
        (RetryPolicy, "retryableErrors", "retryable_errors"),
        (RetryPolicy, "shouldRetry", "should_retry"),
        (FixedBackoff, "delay", "seconds"),
        (LinearBackoff, "baseDelay", "base_delay"),
        (ExponentialBackoff, "baseDelay", "base_delay"),
        (ExponentialBackoff, "maxDelay", "max_delay"),
        (PlannedCall, "toolId", "tool_id"),
        (PlannedCall, "toolPath", "tool_path"),
        (PlannedCall, "retryPolicy", "retry_policy"),
        (PlanDocument, "requestId", "request_id"),
        (PlanDocument, "disabledSkills", "disabled_skills"),
        (PlanMetadata, "parentPlanId", "parent_plan_id"),
        (PlanRetry, "backoffMs", "backoff_ms"),
        (partial(parallel, [a_tool(answer)]), "maxConcurrency", "max_concurrency"),
        (partial(parallel, [a_tool(answer)]), "stopOnError", "stop_on_error"),
        (partial(sequence, [a_tool(answer)]), "stopOnError", "stop_on_error"),
        (partial(sequence, [a_tool(answer)]), "transformOutput", "transform_output"),
    ],
)
def test_keywords_of_the_specifications_lead_to_ours(make, name, ours):
    with pytest.raises(TypeError, match=f"{name}= is called {ours}= here"):
        make(**{name: 1})


@pytest.mark.parametrize(
    ("thing", "name", "ours"),
    [
        (PlanDocument(), "requestId", "request_id"),
        (PlanDocument().metadata, "generationAttempt", "generation_attempt"),
        (PlannedCall(tool_id="a", tool_path="b"), "toolId", "tool_id"),
        (ExecutionResult(plan_id="p", success=True), "toolResults", "tool_results"),
        (ExecutionResult(plan_id="p", success=True), "canReplan", "can_replan"),
        (CallResult(tool_id="a", ok=True, state="completed"), "retryCount", "retry_count"),
    ],
)
def test_names_of_plans_and_traces_lead_to_ours(thing, name, ours):
    getattr(thing, ours)
    with pytest.raises(AttributeError, match=f"{name} is called {ours} here"):
        getattr(thing, name)


def test_structs_in_our_spelling_are_as_before():
    plan = PlanDocument(request_id="p", tools=[PlannedCall(tool_id="a", tool_path="b")])
    assert PlanDocument.from_json(plan.to_json()) == plan == copy.copy(plan)
    with pytest.raises(TypeError, match="tool_path"):
        PlannedCall(tool_id="a")
    with pytest.raises(TypeError, match="nothing"):
        PlannedCall(tool_id="a", tool_path="b", nothing=1)


# --- names that lie elsewhere ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_name_of_the_specifications_that_lies_elsewhere_says_where(name):
    assert not hasattr(narratoria, name)
    with pytest.raises(AttributeError, match="what the specifications call so is"):
        getattr(narratoria, name)
    with pytest.raises(ImportError, match="what the specifications call so is"):
        __import__("narratoria", fromlist=[name])
    for place in ELSEWHERE[name].replace(",", " ").split():
        if place.startswith("narratoria."):
            module, _, attribute = place.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), place


def test_any_other_name_is_an_ordinary_attribute_error():
    assert not hasattr(narratoria, "nothing_of_the_kind")


def test_the_table_of_names_leads_to_names_that_are_there():
    text = (Path(__file__).parents[1] / "docs" / "decisions.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    for row in rows:
        for place in row[2].split("`")[1::2]:
            if place.startswith("narratoria.") and "(" not in place:
                module, _, attribute = place.rpartition(".")
                try:
                    importlib.import_module(place)
                except ImportError:
                    assert hasattr(importlib.import_module(module), attribute), place


@pytest.mark.parametrize(
    ("write", "advice"),
    [
        (lambda t, r: sequence([t], {"stopOnError": True}), "write stop_on_error=True"),
        (lambda t, r: parallel([t], {"maxConcurrency": 2, "timeout": 3}), "max_concurrency=2, timeout=3"),
        (lambda t, r: r.createDefaultContext, "registry.context(tool)"),
        (lambda t, r: r.validateArguments, "tool.parse(args)"),
        (lambda t, r: r.validateToolDefinition, "Tool(…)"),
        (lambda t, r: r.validateSchema, "Tool(…)"),
        (lambda t, r: narratoria.ToolValidator, "tool.parse(args)"),
    ],
)
def test_options_in_a_mapping_and_validators_are_refused_with_the_name_to_use(write, advice):
    @tool(description="Does nothing.")
    async def nothing(params: Reading, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    with pytest.raises((TypeError, AttributeError, ImportError)) as refused:
        write(nothing, ToolRegistry([nothing]))
    assert advice in str(refused.value)


async def test_a_conditional_without_a_fallback_may_say_none():
    whole = conditional([], None, name="whole")
    assert (await ToolRegistry([whole]).execute("whole", {})).error.code == "NO_BRANCH_MATCHED"


@pytest.mark.parametrize("timeout", ["30", True, 0, float("nan"), [3]])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(timeout):
    def nothing(params: Reading, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    with pytest.raises(ToolValidationError, match="timeout must be a number of seconds"):
        Tool("nothing", "Does nothing.", nothing, timeout=timeout)
    with pytest.raises(ToolValidationError, match="timeout must be a number of seconds"):
        parallel([Tool("nothing", "Does nothing.", nothing)], timeout=timeout)


@pytest.mark.parametrize(
    "write",
    [
        lambda: TurnSettings(generation_timeout=5000),
        lambda: Deadline.after(30_000),
        lambda: Budget(max_seconds=60_000),
    ],
)
def test_milliseconds_for_an_evaluation_are_refused(write):
    with pytest.raises(ToolValidationError, match="seconds, not in milliseconds"):
        write()


@dataclass(frozen=True)
class Reading:
    page: int = 1
