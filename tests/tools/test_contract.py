"""What must hold before a call and what follows it (004 "Precondition System", "Effect System")."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from narratoria.errors import PromptEvaluationError, ToolValidationError
from narratoria.events import Notice, Notification
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.state import MISSING
from narratoria.tools.contract import (
    AppliedEffect,
    CascadeEffect,
    CustomPrecondition,
    DependencyPrecondition,
    Effect,
    EffectFailed,
    MemoryEffect,
    NotificationEffect,
    PermissionPrecondition,
    Precondition,
    ResourcePrecondition,
    StateChangeEffect,
    StatePrecondition,
    apply_effects,
    effects_from_data,
    effects_schema,
    matches,
    preconditions_from_data,
    preconditions_schema,
    rollback_effects,
    validate,
)
from narratoria.tools.contract.regex import TextTooLong, compile_regex
from narratoria.tools.tool import CallScope, Tool, ToolContext, ToolResult


@dataclass(frozen=True)
class Light:
    target: str
    brightness: int = 1


@dataclass(frozen=True)
class Lit:
    target: str
    lit: bool


async def light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult.ok(Lit(params.target, True), "The torch catches.")


def a_tool(
    name: str = "light_torch",
    *,
    preconditions: Sequence[Precondition] = (),
    effects: Sequence[Effect] = (),
    handler: Callable[..., Any] = light,
    timeout: float | None = 30.0,
) -> Tool[Any, Any]:
    return Tool(
        name, "Light something.", handler, preconditions=preconditions, effects=effects, timeout=timeout
    )


def in_context(session: Session, tool: Tool[Any, Any] | None = None) -> ToolContext:
    tool = tool or a_tool()
    executor = ToolRegistry([tool]).executor
    return ToolContext(
        tool=tool, session=session.draft(), call_id="call-1", executor=executor, scope=CallScope()
    )


class Listener:
    """A sink that keeps what a session says."""

    full = False

    def __init__(self, session: Session) -> None:
        self.records: list[Record] = []
        session.attach(self)

    def push(self, record: Record) -> None:
        self.records.append(record)

    async def wait(self) -> None: ...

    @property
    def notices(self) -> list[str]:
        return [one.event.message for one in self.records if isinstance(one.event, Notice)]

    @property
    def notifications(self) -> list[tuple[str, Any]]:
        return [
            (one.event.event, one.event.payload)
            for one in self.records
            if isinstance(one.event, Notification)
        ]


async def no_cascade(name: str, args: dict[str, Any]) -> ToolResult[Any]:
    raise AssertionError(f"nothing should trigger {name}")


async def passes(precondition: Precondition, session: Session) -> bool:
    tool = a_tool(preconditions=[precondition])
    return (await validate(tool, in_context(session, tool))).passed


# --- the five kinds of precondition --------------------------------------------------------------------


async def test_a_resource_is_there_by_name_or_by_type_or_it_is_not() -> None:
    session = Session()
    precondition = ResourcePrecondition(resource="browser")
    assert not await passes(precondition, session)
    session.resources.provide("browser", object())
    assert await passes(precondition, session)
    assert not await passes(ResourcePrecondition(resource=Path), session)
    session.resources.provide(Path, Path("/"))
    assert await passes(ResourcePrecondition(resource=Path), session)


async def test_a_state_value_is_looked_up_by_its_path() -> None:
    precondition = StatePrecondition(state="browser.error", expected_value=False)
    assert await passes(precondition, Session(state={"browser": {"error": False}}))
    assert not await passes(precondition, Session(state={"browser": {"error": True}}))
    assert await passes(precondition, Session()), "004: an error that was never set is none"


async def test_a_state_is_judged_by_a_predicate_or_by_operators() -> None:
    """004's rate limit, in Python and as data."""
    for expected in (lambda left: left is not None and left > 0, {"$gt": 0}):
        precondition = StatePrecondition(state="api.rateLimit.remaining", expected_value=expected)
        assert await passes(precondition, Session(state={"api": {"rateLimit": {"remaining": 3}}}))
        assert not await passes(precondition, Session(state={"api": {"rateLimit": {"remaining": 0}}}))
        assert not await passes(precondition, Session())


async def test_a_state_without_an_expectation_must_only_be_there() -> None:
    precondition = StatePrecondition(state="inventory.torch")
    assert await passes(precondition, Session(state={"inventory": {"torch": {"lit": False}}}))
    assert not await passes(precondition, Session(state={"inventory": {"rope": 1}}))


async def test_a_permission_was_granted_or_it_was_not() -> None:
    precondition = PermissionPrecondition(permission="web:scrape")
    assert await passes(precondition, Session(permissions=["web:scrape"]))
    assert not await passes(precondition, Session(permissions=["web:read"]))


async def test_a_dependency_has_completed_in_this_session() -> None:
    registry = ToolRegistry(
        [a_tool("first"), a_tool("second", preconditions=[DependencyPrecondition(tool="first")])]
    )
    session = Session()
    refused = await registry.execute("second", {"target": "x"}, session=session)
    assert refused.error is not None
    assert refused.error.code == "PRECONDITION_FAILED"
    assert refused.error.suggestions == ("tool 'first' must have completed",)
    await registry.execute("first", {"target": "x"}, session=session)
    assert (await registry.execute("second", {"target": "x"}, session=session)).success


async def test_a_dependency_is_available_when_it_is_registered() -> None:
    needs = a_tool("second", preconditions=[DependencyPrecondition(tool="first", status="available")])
    alone = await ToolRegistry([needs]).execute("second", {"target": "x"})
    assert not alone.success
    assert (await ToolRegistry([needs, a_tool("first")]).execute("second", {"target": "x"})).success


@pytest.mark.parametrize("answer", [True, False])
async def test_a_custom_check_decides_plain_or_async_with_or_without_the_context(answer: bool) -> None:
    async def with_context(context: ToolContext) -> bool:
        return context.session.has_permission("x") or answer

    async def without() -> bool:
        return answer

    for check in (with_context, without, lambda: answer, lambda context: answer):
        assert await passes(CustomPrecondition(id="moon-is-full", check=check), Session()) is answer


async def test_an_own_check_replaces_the_default_of_every_kind() -> None:
    for make in (
        lambda check: ResourcePrecondition(resource="none", check=check),
        lambda check: StatePrecondition(state="none", check=check),
        lambda check: PermissionPrecondition(permission="none", check=check),
        lambda check: DependencyPrecondition(tool="none", check=check),
    ):
        assert await passes(make(lambda: True), Session())
        assert not await passes(make(lambda: False), Session())


async def test_a_check_can_read_memory_as_004_does() -> None:
    session = Session()
    session.memory.write("working", "browser.error", True)

    async def check(context: ToolContext) -> bool:
        return context.memory.read("working", "browser.error") is not True

    assert not await passes(StatePrecondition(state="browser.error", check=check), session)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: CustomPrecondition(id="x"), "needs a check"),
        (lambda: ResourcePrecondition(resource="x", availability="maybe"), "required or preferred"),  # type: ignore[arg-type]
        (lambda: DependencyPrecondition(tool="x", status="soon"), "completed or available"),  # type: ignore[arg-type]
        (
            lambda: StatePrecondition(state="x", expected_value={"$near": 3}),
            r"\$near: unknown operator; did you mean '\$ne'\?",
        ),
        (
            lambda: StatePrecondition(state="x", expected_value={"$quux": 3}),
            r"\$quux: unknown operator; known: ",
        ),
        (lambda: StatePrecondition(state="x", expected_value={"$in": 3}), r"\$in: expected a list"),
        (lambda: StatePrecondition(state="x", expected_value={"$matches": "("}), "not a regular expression"),
        (
            lambda: StatePrecondition(state="x", expected_value={"$gt": 1, "b": 2}),
            "'b' is not an operator",
        ),
        (lambda: StatePrecondition(state="x", expected_value={"$not": {"$exists": 1}}), r"\$exists"),
        (
            lambda: PermissionPrecondition(permission="x", check=lambda a, b: True),
            "more than the 1 positional",
        ),
        (lambda: PermissionPrecondition(permission="x", check=5), "expected a function"),  # type: ignore[arg-type]
    ],
)
def test_a_precondition_that_could_never_be_checked_is_refused_when_it_is_made(
    make: Callable[[], Any], reason: str
) -> None:
    with pytest.raises(ToolValidationError, match=reason):
        make()


# --- conditions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected", "holds"),
    [
        (1, 1, True), (1, 1.0, True), (True, 1, False), (1, True, False), ("1", 1, False), (None, None, True),
        (MISSING, None, True), (MISSING, False, True), (None, False, True), (MISSING, {"$ne": True}, True),
        (MISSING, {"$ne": False}, False), (MISSING, {"$in": [False]}, True), (0, False, False),
        ([None], [False], False),
        ([1, {"a": True}], [1, {"a": True}], True), ([1], [True], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (5, {"$gt": 4}, True), (5, {"$gt": 5}, False), (5, {"$gte": 5}, True),
        (5, {"$lt": 6, "$gt": 4}, True), (5, {"$lte": 4}, False), ("b", {"$gt": "a"}, True),
        ("5", {"$gt": 4}, False), (True, {"$gt": 0}, False),
        (MISSING, {"$gt": 0}, False), (MISSING, {"$lt": 0}, False),
        ("a", {"$in": ["a", "b"]}, True), (1, {"$in": [True]}, False), ("c", {"$notIn": ["a"]}, True),
        (0, {"$exists": True}, True), (MISSING, {"$exists": True}, False),
        (MISSING, {"$exists": False}, True), (None, {"$exists": True}, False), (None, {"$missing": True}, True),
        (["rope", "lamp"], {"$contains": "rope"}, True), ("a rope", {"$contains": "rope"}, True),
        ({"rope": 1}, {"$contains": "rope"}, True), (5, {"$contains": 5}, False),
        ("room-12", {"$matches": r"^room-\d+$"}, True), (12, {"$matches": "12"}, False),
        (3, {"$not": {"$gt": 5}}, True), (3, {"$not": 3}, False), ({}, {}, True), (1, {}, False),
        ({"$gt": 1}, {"$eq": {"$gt": 1}}, True),
    ],
)  # fmt: skip
def test_an_expectation_compares_as_json_and_coerces_nothing(value: Any, expected: Any, holds: bool) -> None:
    assert matches(value, expected) is holds


async def test_no_regular_expression_of_a_manifest_holds_up_the_loop() -> None:
    text = "a" * 27 + "!"
    begun = time.perf_counter()
    for pattern in ("^(a+)+$", "^(a|aa)+$", "(.*a){12}b", r"^(\w+\s?)*$"):
        matches(text * 100, {"$matches": pattern})
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize(
    "pattern", ["[ab]*a[ab]{1000}c", r"(\w{1,100} ?){1,20}x", "(a|b|ab){1000}c", "(.{0,30}){0,20}x$"]
)
def test_a_large_expression_is_tried_on_short_texts_only(pattern: str) -> None:
    longest = compile_regex(pattern).longest
    assert longest >= 500
    begun = time.perf_counter()
    matches(("ab" * longest)[: longest - 1] + "x", {"$matches": pattern})
    assert time.perf_counter() - begun < 2
    with pytest.raises(TextTooLong, match=r"smaller repeat counts|\$contains"):
        matches("a" * (longest + 1), {"$not": {"$matches": pattern}})  # fails, whichever way it is asked


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^(?!admin)", r"\$not"), (r"(a)\1", "back-references"), (r"end\Z", r"`\$`"), ("[", "bracket"),
        ("(a{1,1000}){1,1000}", "repeat counts"), ("\ud800", "compile"), (3, "no text"),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_run_in_linear_time_is_refused_with_the_way_out(
    pattern: Any, reason: str
) -> None:
    with pytest.raises(ToolValidationError, match=reason):
        StatePrecondition(state="x", expected_value={"$matches": pattern})


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b+", "abba", True), ("^b", "abba", False), ("a$", "a\n", False), ("(?i)ÉTÉ", "l'été", True),
        (r"^\w+$", "été", False), (r"^\p{L}+$", "été", True), ("(?m)^b$", "a\nb", True), ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True), ("x", "\ud800x", True),
    ],
)  # fmt: skip
def test_an_expression_is_searched_for_as_the_pattern_of_a_json_schema_is(
    pattern: str, text: str, found: bool
) -> None:
    assert matches(text, {"$matches": pattern}) is found


# --- the check of them all -----------------------------------------------------------------------------


async def test_all_are_checked_and_reported_even_after_a_critical_failure() -> None:
    called: list[str] = []

    def check(name: str, answer: bool) -> Callable[[], bool]:
        return lambda: called.append(name) or answer  # type: ignore[func-returns-value]

    tool = a_tool(
        preconditions=[
            CustomPrecondition(id="a", check=check("a", False)),
            CustomPrecondition(id="b", check=check("b", True)),
            CustomPrecondition(id="c", check=check("c", False), critical=False),
        ]
    )
    report = await validate(tool, in_context(Session(), tool))
    assert called == ["a", "b", "c"]
    assert [one.passed for one in report.results] == [False, True, False]
    assert (report.passed, report.critical_failed, report.can_proceed, report.degraded_mode) == (
        False, True, False, False,
    )  # fmt: skip


async def test_a_non_critical_failure_alone_means_degraded_mode() -> None:
    tool = a_tool(
        preconditions=[
            ResourcePrecondition(resource="gpu", availability="preferred", description="A GPU helps")
        ]
    )
    report = await validate(tool, in_context(Session(), tool))
    assert (report.passed, report.critical_failed, report.can_proceed, report.degraded_mode) == (
        False, False, True, True,
    )  # fmt: skip
    assert report.suggestions == ("A GPU helps",)
    result = await ToolRegistry([tool]).execute("light_torch", {"target": "x"})
    assert result.success
    assert result.metadata is not None
    assert result.metadata.degraded == ("A GPU helps",)


async def test_nothing_to_check_passes() -> None:
    report = await validate(a_tool(), in_context(Session()))
    assert (report.passed, report.can_proceed, report.degraded_mode) == (True, True, False)


async def test_a_check_that_raises_is_a_failed_check_and_the_next_one_is_made() -> None:
    def broken() -> bool:
        raise LookupError("no such moon")

    tool = a_tool(
        preconditions=[CustomPrecondition(id="moon", check=broken), PermissionPrecondition(permission="x")]
    )
    report = await validate(tool, in_context(Session(permissions=["x"]), tool))
    assert isinstance(report.results[0].error, LookupError)
    assert [one.passed for one in report.results] == [False, True]
    assert report.suggestions == ("moon must hold (the check failed: no such moon)",)


async def test_what_ends_an_evaluation_is_not_a_failed_check() -> None:
    def over() -> bool:
        raise PromptEvaluationError("it is over")

    tool = a_tool(preconditions=[CustomPrecondition(id="x", check=over)])
    with pytest.raises(PromptEvaluationError):
        await validate(tool, in_context(Session(), tool))


async def test_a_check_that_never_answers_is_ended_by_the_tools_timeout() -> None:
    async def never() -> bool:
        await asyncio.Event().wait()
        return True

    tool = a_tool(preconditions=[CustomPrecondition(id="oracle", check=never)], timeout=0.02)
    began = time.perf_counter()
    report = await validate(tool, in_context(Session(), tool))
    assert time.perf_counter() - began < 2
    assert report.critical_failed
    assert "not finished within 0.02 s" in report.suggestions[0]


async def test_a_check_sees_but_cannot_change_the_session() -> None:
    def meddling(context: ToolContext) -> bool:
        context.patch({"meddled": True})
        return False

    session = Session()
    registry = ToolRegistry([a_tool(preconditions=[CustomPrecondition(id="x", check=meddling)])])
    await registry.execute("light_torch", {"target": "x"}, session=session)
    assert "meddled" not in session.state


# --- the four kinds of effect --------------------------------------------------------------------------


async def run(effects: Sequence[Effect], session: Session, *others: Tool[Any, Any]) -> ToolResult[Any]:
    registry = ToolRegistry([a_tool(effects=effects), *others])
    return await registry.execute("light_torch", {"target": "torch", "brightness": 4}, session=session)


@pytest.mark.parametrize(
    ("effect", "after"),
    [
        (StateChangeEffect(state="a.b", change="set", value=5), {"a": {"b": 5}, "n": 1}),
        (StateChangeEffect(state="n", change="clear"), {}),
        (StateChangeEffect(state="n", change="increment"), {"n": 2}),
        (StateChangeEffect(state="n", change="increment", value=2.5), {"n": 3.5}),
        (StateChangeEffect(state="n", change="decrement", value=4), {"n": -3}),
        (StateChangeEffect(state="m", change="increment"), {"n": 1, "m": 1}),
    ],
)
async def test_a_state_change_is_made_when_the_call_commits(effect: Effect, after: dict[str, Any]) -> None:
    session = Session(state={"n": 1})
    assert (await run([effect], session)).success
    assert session.snapshot() == after


async def test_two_parallel_increments_give_two() -> None:
    session = Session(state={"n": 0})
    effect = StateChangeEffect(state="n", change="increment")
    await asyncio.gather(*(run([effect], session) for _ in range(20)))
    assert session.state["n"] == 20


async def test_an_increment_of_text_fails_the_call_and_changes_nothing() -> None:
    session = Session(state={"n": "many"})
    effects = [StateChangeEffect(state="a", value=1), StateChangeEffect(state="n", change="increment")]
    result = await run(effects, session)
    assert result.error is not None
    assert result.error.code == "EFFECT_FAILED"
    assert "effects[1]" in result.error.message
    assert session.snapshot() == {"n": "many"}


async def test_a_memory_is_written_updated_and_deleted() -> None:
    session = Session()
    await run([MemoryEffect(scope="short-term", key="seen", value={"a": 1})], session)
    assert session.memory.read("short-term", "seen") == {"a": 1}
    await run([MemoryEffect(scope="short-term", key="seen", operation="update", value={"b": 2})], session)
    assert session.memory.read("short-term", "seen") == {"a": 1, "b": 2}
    await run([MemoryEffect(scope="short-term", key="seen", operation="delete")], session)
    assert session.memory.read("short-term", "seen") is None


async def test_a_notification_is_published_once_the_call_is_committed_and_only_then() -> None:
    session = Session()
    listener = Listener(session)
    notify = NotificationEffect(event="file:changed", payload={"path": {"$input": "target"}})
    await run([notify], session)
    assert listener.notifications == [("file:changed", {"path": "torch"})]
    await run([notify, StateChangeEffect(state="x", value={"$result": "nowhere"})], session)
    assert len(listener.notifications) == 1


async def test_values_come_from_the_result_the_input_and_the_state() -> None:
    session = Session(state={"hour": {"now": 3}})
    value = {
        "who": {"$result": "target"},
        "all": {"$result": ""},
        "how": [{"$input": "brightness"}],
        "when": {"$state": "hour"},
        "else": {"$result": "smoke", "$default": "none"},
        "as_is": {"$literal": {"$result": "target"}},
    }
    assert (await run([StateChangeEffect(state="log", value=value)], session)).success
    assert session.snapshot()["log"] == {
        "who": "torch",
        "all": {"target": "torch", "lit": True},
        "how": [4],
        "when": {"now": 3},
        "else": "none",
        "as_is": {"$result": "target"},
    }


async def test_a_value_that_is_not_there_fails_the_effect_and_says_what_to_add() -> None:
    result = await run([StateChangeEffect(state="log", value={"$result": "smoke"})], Session())
    assert result.error is not None
    assert "nothing at 'smoke'; add $default" in result.error.message


async def test_a_cascade_calls_the_other_tool_through_the_pipeline() -> None:
    session = Session()

    async def ring(params: Light, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"rang_for": params.target})
        return ToolResult.ok(None, "Ding.")

    cascade = CascadeEffect(trigger_tool="ring", input={"target": {"$result": "target"}})
    assert (await run([cascade], session, a_tool("ring", handler=ring))).success
    assert session.state["rang_for"] == "torch"
    assert "ring" in session.completed_tools


@pytest.mark.parametrize(
    ("condition", "triggers"),
    [
        (None, True),
        ({"lit": True}, True),
        ({"lit": False}, False),
        ({"lit": True, "target": {"$in": ["candle"]}}, False),
        ({"": {"$contains": "lit"}}, True),
        (lambda result: result.value.lit, True),
        (lambda result: not result.value.lit, False),
    ],
)
async def test_a_cascade_depends_on_its_condition(condition: Any, triggers: bool) -> None:
    called: list[str] = []

    async def ring(params: Light, *, context: ToolContext) -> ToolResult[None]:
        called.append(params.target)
        return ToolResult.ok(None)

    cascade = CascadeEffect(trigger_tool="ring", trigger_condition=condition, input={"target": "bell"})
    assert (await run([cascade], Session(), a_tool("ring", handler=ring))).success
    assert called == (["bell"] if triggers else [])


async def test_a_failed_cascade_is_a_failed_effect_and_takes_the_call_back() -> None:
    session = Session()

    async def fail(params: Light, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"half": "done"})
        return ToolResult.failed("The bell is cracked.")

    effects = [
        StateChangeEffect(state="lit", value=True),
        CascadeEffect(trigger_tool="ring", input={"target": "x"}),
    ]
    result = await run(effects, session, a_tool("ring", handler=fail))
    assert result.error is not None
    assert result.error.code == "EFFECT_FAILED"
    assert "The bell is cracked." in result.error.message
    assert session.snapshot() == {}


async def test_a_cascade_that_triggers_itself_ends_with_a_reason() -> None:
    session = Session()
    effects = [CascadeEffect(trigger_tool="light_torch", input={"target": "again"})]
    result = await run(effects, session)
    assert result.error is not None
    assert "nested" in result.error.message
    assert (await run([], session)).success, "the next call works"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: StateChangeEffect(state="x", change="double"), "set, clear, increment, decrement"),  # type: ignore[arg-type]
        (lambda: MemoryEffect(scope="eternal", key="x"), "working, short-term, long-term, episodic"),  # type: ignore[arg-type]
        (lambda: MemoryEffect(scope="working", key="x", operation="read"), "write, delete, update"),  # type: ignore[arg-type]
        (lambda: CascadeEffect(trigger_tool="x", trigger_condition={"a": {"$near": 1}}), r"\$near"),
        (lambda: StateChangeEffect(state="x", apply=lambda a, b, c, d: 1), "more than the 3 positional"),
        (lambda: StateChangeEffect(state="x", value=1, rollback="no"), "expected a function"),  # type: ignore[arg-type]
        (lambda: StateChangeEffect(state="x"), "set needs a value"),
        (lambda: StateChangeEffect(state="x", change="increment", value="1"), "expected a number"),
        (
            lambda: StateChangeEffect(state="x", value=[{"a": {"$result": 5}}]),
            r"value\[0\]\.a\.\$result: expected a",
        ),
        (lambda: MemoryEffect(scope="working", key="x", value={"$input": "a", "b": 1}), "not with 'b'"),
        (lambda: NotificationEffect(event="x", payload={"$state": None}), r"payload\.\$state"),
        (lambda: CascadeEffect(trigger_tool="x", input={"a": {"$result": 1}}), r"input\.a\.\$result"),
    ],
)
def test_an_effect_that_could_never_be_applied_is_refused_when_it_is_made(
    make: Callable[[], Any], reason: str
) -> None:
    with pytest.raises(ToolValidationError, match=reason):
        make()


# --- order, failure and rollback -----------------------------------------------------------------------


def tracing(trace: list[str], name: str, *, fails: bool = False, **more: Any) -> Effect:
    async def apply(context: ToolContext, result: ToolResult[Any]) -> dict[str, str]:
        trace.append(f"apply {name}")
        if fails:
            raise OSError("the disk is full")
        return {"receipt": name}

    def rollback(context: ToolContext) -> None:
        trace.append(f"rollback {context.receipt['receipt']}")

    return StateChangeEffect(state="x", description=name, apply=apply, **{"rollback": rollback, **more})


async def test_effects_are_applied_in_order_and_taken_back_in_reverse_with_their_receipts() -> None:
    trace: list[str] = []
    effects = [tracing(trace, "one"), tracing(trace, "two"), tracing(trace, "three", fails=True)]
    with pytest.raises(
        EffectFailed, match=r"effects\[2\] \(state_change: three\) failed: the disk is full"
    ) as caught:
        await apply_effects(effects, in_context(Session()), ToolResult.ok(None), None, no_cascade)
    assert trace == ["apply one", "apply two", "apply three", "rollback two", "rollback one"]
    assert (caught.value.index, caught.value.effect) == (2, effects[2])
    assert isinstance(caught.value.__cause__, OSError)


async def test_what_was_applied_is_returned_with_its_receipts() -> None:
    trace: list[str] = []
    effects = [tracing(trace, "one"), NotificationEffect(event="e")]
    applied = await apply_effects(effects, in_context(Session()), ToolResult.ok(None), None, no_cascade)
    assert applied == [AppliedEffect(effects[0], 0, {"receipt": "one"}), AppliedEffect(effects[1], 1, None)]


async def test_a_failing_rollback_is_reported_and_passed_over() -> None:
    session = Session()
    listener = Listener(session)
    trace: list[str] = []

    def broken(context: ToolContext) -> None:
        raise PermissionError("locked")

    effects = [
        tracing(trace, "one"),
        tracing(trace, "two", rollback=broken),
        tracing(trace, "three", fails=True),
    ]
    with pytest.raises(EffectFailed):
        await apply_effects(effects, in_context(session), ToolResult.ok(None), None, no_cascade)
    assert trace[-1] == "rollback one"
    assert listener.notices == ["effects[1] (two) was not taken back: locked"]


async def test_what_is_not_reversible_is_left_alone() -> None:
    trace: list[str] = []
    effects = [tracing(trace, "one", reversible=False), tracing(trace, "two", fails=True)]
    with pytest.raises(EffectFailed):
        await apply_effects(effects, in_context(Session()), ToolResult.ok(None), None, no_cascade)
    assert trace == ["apply one", "apply two"]


async def test_an_effect_that_claims_to_be_reversible_without_a_rollback_is_reported() -> None:
    session = Session()
    listener = Listener(session)
    effects = [
        StateChangeEffect(state="x", description="one", apply=lambda: None),
        tracing([], "two", fails=True),
    ]
    with pytest.raises(EffectFailed):
        await apply_effects(effects, in_context(session), ToolResult.ok(None), None, no_cascade)
    assert listener.notices == ["effects[0] (one) was not taken back: it has an apply but no rollback"]


async def test_an_effect_on_a_file_is_taken_back_when_a_later_one_fails(tmp_path: Path) -> None:
    """004's file:write: rollback removes what was written, or restores what was there."""
    file = tmp_path / "log.txt"
    file.write_text("before")

    def write(context: ToolContext, result: ToolResult[Lit], params: Light) -> str:
        old = file.read_text()
        file.write_text(params.target)
        return old

    def restore(context: ToolContext) -> None:
        file.write_text(context.receipt)

    keep = StateChangeEffect(state="written", value=True, apply=write, rollback=restore)
    assert (await run([keep], Session())).success
    assert file.read_text() == "torch"
    file.write_text("before")
    session = Session()
    result = await run([keep, tracing([], "x", fails=True)], session)
    assert not result.success
    assert file.read_text() == "before"


async def test_cancelling_half_way_takes_back_what_was_done_and_stays_cancelled() -> None:
    trace: list[str] = []
    reached = asyncio.Event()

    async def stuck() -> None:
        reached.set()
        await asyncio.Event().wait()

    async def slow_rollback() -> None:
        await asyncio.sleep(0)
        trace.append("rolled back slowly")

    effects = [
        tracing(trace, "one"),
        StateChangeEffect(state="x", apply=lambda: None, rollback=slow_rollback),
        StateChangeEffect(state="x", apply=stuck),
    ]
    task = asyncio.create_task(
        apply_effects(effects, in_context(Session()), ToolResult.ok(None), None, no_cascade)
    )
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert trace == ["apply one", "rolled back slowly", "rollback one"]


async def test_cancelling_again_does_not_stop_the_rollback() -> None:
    trace: list[str] = []
    rolling, go_on = asyncio.Event(), asyncio.Event()

    async def slow_rollback() -> None:
        rolling.set()
        await go_on.wait()
        trace.append("rolled back")

    effect = StateChangeEffect(state="x", apply=lambda: None, rollback=slow_rollback)
    task = asyncio.create_task(rollback_effects([AppliedEffect(effect, 0)], in_context(Session())))
    await rolling.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert trace == ["rolled back"]


async def test_effects_and_rollbacks_that_never_end_are_ended_by_the_tools_timeout() -> None:
    session = Session()
    listener = Listener(session)

    async def never() -> None:
        await asyncio.Event().wait()

    effects = [
        StateChangeEffect(state="x", description="one", apply=lambda: None, rollback=never),
        StateChangeEffect(state="x", description="two", apply=never),
    ]
    tool = a_tool(timeout=0.02)
    with pytest.raises(EffectFailed, match=r"two\) failed: not finished within 0.02 s"):
        await apply_effects(effects, in_context(session, tool), ToolResult.ok(None), None, no_cascade)
    assert listener.notices == ["effects[0] (one) was not taken back: not finished within 0.02 s"]


async def test_what_ends_an_evaluation_rolls_back_and_passes_through() -> None:
    trace: list[str] = []

    def over() -> None:
        raise PromptEvaluationError("it is over")

    effects = [tracing(trace, "one"), StateChangeEffect(state="x", apply=over)]
    with pytest.raises(PromptEvaluationError):
        await apply_effects(effects, in_context(Session()), ToolResult.ok(None), None, no_cascade)
    assert trace == ["apply one", "rollback one"]


async def test_a_receipt_that_cannot_be_kept_fails_the_effect_and_is_taken_back() -> None:
    trace: list[str] = []
    effect = StateChangeEffect(state="x", apply=object, rollback=lambda: trace.append("rolled back"))
    with pytest.raises(EffectFailed, match="receipt that cannot be kept in the journal"):
        await apply_effects([effect], in_context(Session()), ToolResult.ok(None), None, no_cascade)
    assert trace == ["rolled back"]


async def test_declared_effects_are_taken_back_without_any_code() -> None:
    session = Session(state={"n": 5, "name": "old"})
    session.memory.write("working", "kept", "before")
    context = in_context(session)
    effects = [
        StateChangeEffect(state="n", change="increment", value=3),
        StateChangeEffect(state="n", change="decrement"),
        StateChangeEffect(state="name", value="new"),
        StateChangeEffect(state="fresh", value=1),
        MemoryEffect(scope="working", key="kept", value="after"),
        MemoryEffect(scope="working", key="made", value=1),
        MemoryEffect(scope="working", key="gone", operation="delete"),
    ]
    applied = await apply_effects(effects, context, ToolResult.ok(None), None, no_cascade)
    assert context.session.state["n"] == 7
    await rollback_effects(applied, context)
    context.session.commit("call-1")
    assert session.snapshot() == {"n": 5, "name": "old"}
    assert session.memory.read("working", "kept") == "before"
    assert not session.memory.has("working", "made")


def test_only_effects_with_code_of_their_own_reach_outside() -> None:
    assert not StateChangeEffect(state="x", change="clear").reaches_outside
    assert StateChangeEffect(state="x", apply=lambda: None).reaches_outside
    assert StateChangeEffect(state="x", change="clear", rollback=lambda: None).reaches_outside


# --- as data in a manifest -----------------------------------------------------------------------------

PRECONDITIONS = [
    {
        "type": "resource",
        "resource": "browser",
        "availability": "preferred",
        "description": "Faster with one",
    },
    {"type": "state", "state": "door.open", "expectedValue": False},
    {"type": "permission", "permission": "file:write", "critical": False},
    {"type": "dependency", "tool": "torch-lighter", "status": "available"},
]
EFFECTS = [
    {"type": "state_change", "state": "door.opened", "change": "increment"},
    {"type": "memory", "scope": "long-term", "operation": "write", "key": "door", "value": {"$result": ""}},
    {"type": "notification", "event": "door:opened", "payload": {"by": {"$input": "who"}}},
    {
        "type": "cascade",
        "triggerTool": "torch-lighter",
        "triggerCondition": {"dark": True},
        "input": {"action": "light_torch"},
    },
]


def test_a_manifest_holds_preconditions_and_effects() -> None:
    resource, state, permission, dependency = preconditions_from_data(PRECONDITIONS)
    assert resource == ResourcePrecondition(
        resource="browser", availability="preferred", description="Faster with one", critical=False
    )
    assert state == StatePrecondition(state="door.open", expected_value=False)
    assert permission == PermissionPrecondition(permission="file:write", critical=False)
    assert dependency == DependencyPrecondition(tool="torch-lighter", status="available")
    assert effects_from_data(EFFECTS) == (
        StateChangeEffect(state="door.opened", change="increment"),
        MemoryEffect(scope="long-term", key="door", value={"$result": ""}),
        NotificationEffect(event="door:opened", payload={"by": {"$input": "who"}}),
        CascadeEffect(
            trigger_tool="torch-lighter", trigger_condition={"dark": True}, input={"action": "light_torch"}
        ),
    )


def test_the_published_schemas_accept_what_is_accepted_and_refuse_what_is_refused() -> None:
    for schema, good in ((preconditions_schema(), PRECONDITIONS), (effects_schema(), EFFECTS)):
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert jsonschema_rs.is_valid(schema, good)
        assert not jsonschema_rs.is_valid(schema, [{**good[0], "colour": 1}])
        assert not jsonschema_rs.is_valid(schema, [{"type": "wish"}])


def test_a_custom_precondition_in_a_manifest_refers_to_a_registered_check() -> None:
    def moon() -> bool:
        return True

    (custom,) = preconditions_from_data([{"type": "custom", "id": "moon"}], checks={"moon": moon})
    assert custom == CustomPrecondition(id="moon", check=moon)
    with pytest.raises(ToolValidationError, match=r"preconditions\[0\]: no check .* 'moon'; registered: sun"):
        preconditions_from_data([{"type": "custom", "id": "moon"}], checks={"sun": moon})


def test_every_mistake_in_a_manifest_is_named_by_index_and_key() -> None:
    with pytest.raises(ToolValidationError) as caught:
        preconditions_from_data(
            [
                {"type": "permission", "permision": "x"},
                {"type": "wish"},
                "text",
                {"type": "resource", "resource": "x", "availability": "often", "critical": "yes"},
                {"type": "state", "state": "x", "expectedValue": {"$near": 1}},
            ],
            name="lamp",
        )
    message = str(caught.value)
    assert message.startswith("tool 'lamp': ")
    for problem in (
        "preconditions[0].permission: missing; it is required",
        "preconditions[0].permision: unknown key; known: type, description, critical, permission",
        "preconditions[1].type: expected one of resource, state, permission, dependency, custom",
        "preconditions[2].type: ",
        'preconditions[3].availability: expected one of "required", "preferred", got "often"',
        'preconditions[3].critical: expected boolean, got "yes"',
        "preconditions[4]: state precondition: expectedValue.$near: unknown operator",
    ):
        assert problem in message


@pytest.mark.parametrize("data", [None, {}, "text", 5])
def test_what_is_not_a_list_is_refused(data: Any) -> None:
    with pytest.raises(ToolValidationError, match="effects: expected an array"):
        effects_from_data(data)
    with pytest.raises(ToolValidationError, match="preconditions: expected an array"):
        preconditions_from_data(data)


async def test_a_cascade_awaits_an_async_condition() -> None:
    async def never(result: ToolResult[Any]) -> bool:
        return False

    session = Session()
    cascade = CascadeEffect(trigger_tool="ring", trigger_condition=never)
    assert (await run([cascade], session, a_tool("ring"))).success
    assert "ring" not in session.completed_tools


def test_an_async_expectation_is_refused_since_nobody_would_await_it() -> None:
    async def positive(value: Any) -> bool:
        return False

    with pytest.raises(ToolValidationError, match="give it as check="):
        StatePrecondition(state="keys", expected_value=positive)
