"""Resources by scope (002 "Resource Access"), and how a failing call puts them back."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from narratoria.kinds.function import tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.session.resources.resources import (
    Filesystem,
    ResourceContext,
    ResourceError,
    ResourceRegistry,
)
from narratoria.tools.tool import ToolContext, ToolResult


class Counter:
    """A resource that can be restored as a whole."""

    def __init__(self) -> None:
        self.count = 0
        self.closed = False

    def snapshot(self) -> int:
        return self.count

    def restore(self, snapshot: int) -> None:
        self.count = snapshot

    def close(self) -> None:
        self.closed = True


class Door:
    """A resource that can only be closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def registry() -> ResourceRegistry:
    return ResourceRegistry()


def test_a_singleton_is_one_instance_for_all_calls(registry: ResourceRegistry) -> None:
    registry.bind(Counter, Counter)
    first, second = ResourceContext(registry), ResourceContext(registry)
    assert first.get(Counter) is second.get(Counter)


def test_a_tool_call_resource_is_one_per_call_and_closed_when_the_call_ends(
    registry: ResourceRegistry,
) -> None:
    registry.bind(Door, Door, "tool_call")
    good, bad = ResourceContext(registry), ResourceContext(registry)
    kept, dropped = good.get(Door), bad.get(Door)
    assert kept is good.get(Door)
    assert kept is not dropped
    good.commit()
    bad.discard()
    assert (kept.closed, dropped.closed) == (1, 1)


def test_a_prototype_is_new_each_time_and_closed_only_when_the_call_fails(registry: ResourceRegistry) -> None:
    registry.bind(Door, Door, "prototype")
    good, bad = ResourceContext(registry), ResourceContext(registry)
    one, other, lost = good.get(Door), good.get(Door), bad.get(Door)
    assert one is not other
    good.commit()
    bad.discard()
    assert [one.closed, other.closed, lost.closed] == [0, 0, 1]


def test_an_unknown_scope_and_a_second_binding_are_refused(registry: ResourceRegistry) -> None:
    with pytest.raises(ResourceError, match="singleton, tool_call, prototype"):
        registry.bind(Door, Door, "eternal")  # type: ignore[arg-type]
    registry.bind(Door, Door)
    with pytest.raises(ResourceError, match="bound already"):
        registry.provide(Door, Door())


def test_what_is_not_bound_is_a_clear_error(registry: ResourceRegistry) -> None:
    registry.provide("map", {})
    with pytest.raises(ResourceError, match="no resource browser: bind or provide it first; there is map"):
        ResourceContext(registry).get("browser")


def test_has_makes_nothing(registry: ResourceRegistry) -> None:
    made: list[Counter] = []

    def make() -> Counter:
        made.append(Counter())
        return made[-1]

    registry.bind(Counter, make, name="counter")
    context = ResourceContext(registry)
    assert context.has(Counter)
    assert context.has("counter")
    assert not context.has("door")
    assert made == []


def test_a_resource_may_have_a_type_and_a_name(registry: ResourceRegistry) -> None:
    registry.bind(Counter, Counter, name="counter")
    context = ResourceContext(registry)
    assert context.get("counter") is context.get(Counter)


def test_a_factory_may_ask_for_other_resources(registry: ResourceRegistry) -> None:
    registry.bind(Counter, Counter)
    registry.bind("pair", lambda resources: (resources.get(Counter), "pair"))
    context = ResourceContext(registry)
    assert context.get("pair")[0] is context.get(Counter)


def test_factories_that_need_each_other_are_refused_with_the_chain(registry: ResourceRegistry) -> None:
    registry.bind("a", lambda resources: resources.get("b"))
    registry.bind("b", lambda resources: resources.get("a"))
    with pytest.raises(ResourceError, match="a needs itself: a -> b -> a"):
        ResourceContext(registry).get("a")


def test_an_async_factory_is_refused(registry: ResourceRegistry) -> None:
    async def make() -> Counter:
        return Counter()

    registry.bind(Counter, make)
    with pytest.raises(ResourceError, match="its factory is async"):
        ResourceContext(registry).get(Counter)


def test_a_resource_that_only_closes_asynchronously_is_refused(registry: ResourceRegistry) -> None:
    class Late:
        async def aclose(self) -> None: ...

    registry.bind(Late, Late)
    with pytest.raises(ResourceError, match="aclose"):
        ResourceContext(registry).get(Late)


def test_a_failing_factory_leaves_nothing_and_the_next_call_works(registry: ResourceRegistry) -> None:
    ready = False

    def make() -> Counter:
        if not ready:
            raise ConnectionError("not yet")
        return Counter()

    registry.bind(Counter, make)
    context = ResourceContext(registry)
    with pytest.raises(ConnectionError):
        context.get(Counter)
    context.discard()
    ready = True
    assert ResourceContext(registry).get(Counter).count == 0


# --- taking back -----------------------------------------------------------------------------------------


def test_a_discard_restores_the_snapshot_taken_at_the_first_use(registry: ResourceRegistry) -> None:
    counter = Counter()
    counter.count = 5
    registry.provide(Counter, counter)
    context = ResourceContext(registry)
    counter.count = 6  # before this call first looks at it
    context.get(Counter).count += 10
    context.get(Counter).count += 10
    assert context.discard() == ()
    assert counter.count == 6


def test_a_commit_keeps_what_was_done(registry: ResourceRegistry) -> None:
    counter = Counter()
    registry.provide(Counter, counter)
    context = ResourceContext(registry)
    context.get(Counter).count = 3
    context.commit()
    context.discard()
    assert counter.count == 3


def test_a_resource_first_made_in_a_failing_call_is_closed_and_made_anew(registry: ResourceRegistry) -> None:
    registry.bind(Counter, Counter)
    failing = ResourceContext(registry)
    lost = failing.get(Counter)
    failing.discard()
    assert lost.closed
    later = ResourceContext(registry).get(Counter)
    assert later is not lost
    assert not later.closed


def test_a_resource_made_in_a_failing_call_stays_when_a_sibling_uses_it(registry: ResourceRegistry) -> None:
    registry.bind(Door, Door)
    failing, sibling = ResourceContext(registry), ResourceContext(registry)
    shared = failing.get(Door)
    assert sibling.get(Door) is shared
    failing.discard()
    assert shared.closed == 0
    sibling.commit()
    assert ResourceContext(registry).get(Door) is shared


def test_what_was_provided_is_never_closed(registry: ResourceRegistry) -> None:
    door = Door()
    registry.provide(Door, door)
    context = ResourceContext(registry)
    context.get(Door)
    context.discard()
    registry.close()
    assert door.closed == 0


def test_closing_the_registry_closes_what_it_made_once(registry: ResourceRegistry) -> None:
    registry.bind(Door, Door, name="door")
    context = ResourceContext(registry)
    door = context.get(Door)
    context.commit()
    registry.close()
    registry.close()
    assert door.closed == 1


def test_restoring_while_a_sibling_used_the_resource_is_detected_and_said(registry: ResourceRegistry) -> None:
    counter = Counter()
    registry.provide(Counter, counter)
    failing, sibling = ResourceContext(registry), ResourceContext(registry)
    failing.get(Counter)
    sibling.get(Counter).count = 7
    sibling.commit()
    (problem,) = failing.discard()
    assert "Counter was restored as a whole while another call used it" in problem


def test_calls_one_after_the_other_are_no_overlap(registry: ResourceRegistry) -> None:
    registry.provide(Counter, Counter())
    for _ in range(3):
        context = ResourceContext(registry)
        context.get(Counter).count += 1
        context.commit()
    last = ResourceContext(registry)
    last.get(Counter).count = 99
    assert last.discard() == ()
    assert ResourceContext(registry).get(Counter).count == 3


def test_a_look_at_a_resource_before_the_call_is_no_overlap(registry: ResourceRegistry) -> None:
    registry.bind(Counter, Counter)
    ResourceContext(registry).get(Counter)  # a precondition's check: neither committed nor discarded
    call = ResourceContext(registry)
    call.get(Counter).count = 5
    assert call.discard() == ()
    assert ResourceContext(registry).get(Counter).count == 0


def test_every_resource_is_restored_even_when_one_restore_fails(registry: ResourceRegistry) -> None:
    class Broken(Counter):
        def restore(self, snapshot: int) -> None:
            raise OSError("disk gone")

    first, broken, last = Counter(), Broken(), Counter()
    for name, resource in (("first", first), ("broken", broken), ("last", last)):
        registry.provide(name, resource)
    context = ResourceContext(registry)
    for name in ("first", "broken", "last"):
        context.get(name).count = 5
    assert context.discard() == ("resource broken: OSError: disk gone",)
    assert (first.count, last.count) == (0, 0)


def test_a_resource_that_fails_to_close_is_said_and_fails_no_commit(registry: ResourceRegistry) -> None:
    class Stuck(Door):
        def close(self) -> None:
            raise OSError("it is stuck")

    registry.bind(Stuck, Stuck, "tool_call")
    registry.bind(Door, Door, "tool_call")
    context = ResourceContext(registry)
    door = context.get(Door)
    context.get(Stuck)
    assert context.commit() == ("resource Stuck: OSError: it is stuck",)
    assert door.closed == 1


# --- nesting ---------------------------------------------------------------------------------------------


def test_a_nested_call_commits_into_the_one_around_it(registry: ResourceRegistry) -> None:
    counter = Counter()
    registry.provide(Counter, counter)
    outer = ResourceContext(registry)
    inner = ResourceContext(registry, outer)
    inner.get(Counter).count = 4
    inner.commit()
    assert counter.count == 4
    assert outer.discard() == ()
    assert counter.count == 0


def test_a_failing_nested_call_keeps_what_the_outer_one_did(registry: ResourceRegistry) -> None:
    counter = Counter()
    registry.provide(Counter, counter)
    outer = ResourceContext(registry)
    outer.get(Counter).count = 1
    inner = ResourceContext(registry, outer)
    inner.get(Counter).count = 2
    assert inner.discard() == ()
    assert counter.count == 1


def test_a_resource_made_in_a_nested_call_falls_with_the_outer_one(registry: ResourceRegistry) -> None:
    registry.bind(Door, Door)
    outer = ResourceContext(registry)
    inner = ResourceContext(registry, outer)
    door = inner.get(Door)
    inner.commit()
    assert door.closed == 0
    outer.discard()
    assert door.closed == 1
    assert ResourceContext(registry).get(Door) is not door


def test_drafts_of_siblings_do_not_disturb_each_other(registry: ResourceRegistry) -> None:
    files = MemoryFilesystem()
    registry.provide(Filesystem, files)
    failing, sibling = ResourceContext(registry), ResourceContext(registry)
    failing.filesystem.write_text("a.txt", "a")
    sibling.filesystem.write_text("b.txt", "b")
    sibling.commit()
    assert failing.discard() == ()
    assert files.list() == ["b.txt"]


@pytest.mark.parametrize("bound", ["provided", "made in the nested call"])
def test_a_draft_of_a_nested_call_goes_through_the_draft_of_the_outer(
    registry: ResourceRegistry, bound: str
) -> None:
    files = MemoryFilesystem()
    if bound == "provided":
        registry.provide(Filesystem, files)
    else:
        registry.bind(Filesystem, lambda: files)
    outer = ResourceContext(registry)
    inner = ResourceContext(registry, outer)
    inner.filesystem.write_text("a.txt", "a")
    inner.commit()
    assert outer.filesystem.read_text("a.txt") == "a"
    assert files.list() == []
    outer.commit()
    assert files.list() == ["a.txt"]


def test_a_context_that_touches_nothing_holds_nothing(registry: ResourceRegistry) -> None:
    context = ResourceContext(registry)
    context.commit()
    assert context.discard() == ()
    assert context._held is None


def test_one_instance_is_made_when_threads_ask_at_once(registry: ResourceRegistry) -> None:
    made: list[Any] = []
    registry.bind("slow", lambda: made.append(1) or object())

    async def main() -> list[Any]:
        contexts = [ResourceContext(registry) for _ in range(20)]
        return await asyncio.gather(*(asyncio.to_thread(one.get, "slow") for one in contexts))

    assert len(set(map(id, asyncio.run(main())))) == 1
    assert len(made) == 1


def test_a_call_that_is_over_gets_no_more_resources(registry: ResourceRegistry) -> None:
    registry.bind(Door, Door)
    for end in (ResourceContext.commit, ResourceContext.discard):
        context = ResourceContext(registry)
        end(context)
        with pytest.raises(ResourceError, match="the call that asks for it is over"):
            context.get(Door)


@pytest.mark.parametrize("scope", ["singleton", "tool_call", "prototype"])
def test_a_resource_finished_after_its_call_was_given_up_is_closed(
    registry: ResourceRegistry, scope: Any
) -> None:
    """A timeout discards the call while its worker thread still makes the resource; nothing waits."""
    begun, go_on, door = threading.Event(), threading.Event(), Door()

    def make() -> Door:
        begun.set()
        assert go_on.wait(10)
        return door

    registry.bind(Door, make, scope)
    context = ResourceContext(registry)
    refusals: list[ResourceError] = []

    def work() -> None:
        try:
            context.get(Door)
        except ResourceError as refusal:
            refusals.append(refusal)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    assert context.discard() == ()  # returns although the factory is still at work
    go_on.set()
    thread.join()
    assert len(refusals) == 1
    assert door.closed == 1


async def test_what_a_failing_call_could_not_put_back_is_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    class Rusty(Counter):
        def restore(self, snapshot: int) -> None:
            raise OSError("rusted shut")

    @dataclass(frozen=True)
    class Turn:
        by: int

    @tool(description="Turn the counter, and fail.")
    async def turn(params: Turn, *, context: ToolContext) -> ToolResult[None]:
        context.resources.get(Rusty).count += params.by
        return ToolResult.error("it is stuck")

    session = Session()
    session.resources.provide(Rusty, Rusty())
    result = await ToolRegistry([turn]).execute("turn", {"by": 1}, session=session)
    assert result.message == "it is stuck"
    assert caplog.messages == ["resource Rusty: OSError: rusted shut"]


def test_a_session_s_drafts_hand_out_the_session_s_resources() -> None:
    session = Session()
    session.resources.provide(Filesystem, MemoryFilesystem({"a.txt": "a"}))
    draft = session.draft()
    assert draft.resources.get(Filesystem).read_text("a.txt") == "a"
    assert draft.resources.filesystem is draft.resources.get(Filesystem)


async def test_a_call_that_succeeds_closes_what_was_made_for_it_and_one_that_fails_too() -> None:
    session = Session()
    session.resources.bind(Door, Door, "tool_call")
    opened: list[Door] = []

    @tool(description="Opens a door.")
    async def open_door(stuck: bool, context: ToolContext) -> ToolResult[None]:
        opened.append(context.resources.get(Door))
        return ToolResult.failed("it is stuck") if stuck else ToolResult.ok(None)

    registry = ToolRegistry([open_door])
    for stuck in (False, True):
        result = await registry.execute("open_door", {"stuck": stuck}, session=session)
        assert result.success is not stuck
    assert [door.closed for door in opened] == [1, 1]
