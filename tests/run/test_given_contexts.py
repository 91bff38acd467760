"""A context that the host program made with `registry.context`, and what is executed with it."""

from dataclasses import dataclass

import pytest

from narratoria.errors import NarratoriaError
from narratoria.kinds.function import tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import NotificationEffect, StateChangeEffect
from narratoria.tools.tool import ToolContext, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


@tool(description="Lights a torch.")
async def light(params: Nothing, *, context: ToolContext) -> ToolResult[object]:
    context.patch({"lit": context.session.state.get("lit", 0) + 1})
    return ToolResult.ok(context.memory.read("working", "who"))


@tool(description="Fails.")
async def fail(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"failed": True})
    return ToolResult.error("no")


REGISTRY = ToolRegistry([light, fail])


async def test_a_call_with_a_context_outside_any_call_is_kept_in_its_session():
    session = Session()
    context = REGISTRY.context(light, session)
    for count in (1, 2):
        assert (await REGISTRY.execute("light", {}, context)).success
        assert session.state == {"lit": count} == context.session.state
    assert "light" in session.completed_tools
    assert not (await REGISTRY.execute("fail", {}, context)).success
    assert session.state == {"lit": 2}


async def test_what_was_changed_through_the_context_before_is_seen_and_kept_once():
    session = Session()
    context = REGISTRY.context(light, session)
    context.memory.write("working", "who", "Ada")
    context.patch({"lit": 5})
    assert session.state == {}, "until it is executed with"
    assert (await REGISTRY.execute("light", {}, context)).value == "Ada"
    assert (await REGISTRY.execute("light", {}, context)).success
    assert session.state == {"lit": 7}


async def test_a_call_with_the_context_of_a_running_call_is_part_of_that_call():
    session = Session()

    @tool(description="Lights and fails.")
    async def outer(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        assert (await REGISTRY.execute("light", {}, context)).success
        inside = REGISTRY.context(light, context.session)
        assert (await REGISTRY.execute("light", {}, inside)).success
        assert context.session.state == {"lit": 2} and session.state == {}
        return ToolResult.error("no")

    result = await ToolRegistry([outer]).execute("outer", {}, session=session)
    assert result.message == "no" and session.state == {}


COUNT = StateChangeEffect(description="count", state="n", change="increment")


async def test_effects_applied_with_such_a_context_are_kept():
    counting = tool(description="Counts.", name="counting", effects=[COUNT])(light.handler)
    session = Session()
    context = REGISTRY.context(counting, session)
    await REGISTRY.apply_effects(counting, ToolResult.ok(None), context)
    assert session.state == {"n": 1}


async def test_effects_are_applied_all_or_none():
    undone = []

    def broken(context, result):
        raise RuntimeError("broken")

    effects = [
        COUNT,
        NotificationEffect(
            description="tell",
            event="e",
            reversible=True,
            apply=lambda context, result: None,
            rollback=lambda context: undone.append(1),
        ),
        NotificationEffect(description="break", event="e", apply=broken),
    ]
    breaking = tool(description="Counts.", name="counting", effects=effects)(light.handler)
    session = Session()
    context = REGISTRY.context(breaking, session)
    with pytest.raises(NarratoriaError, match="broken"):
        await REGISTRY.apply_effects(breaking, ToolResult.ok(None), context)
    assert session.state == {} == context.session.state and undone == [1]
