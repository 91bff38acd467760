"""Which tools count as completed (004 `DependencyPrecondition`): those whose calls were kept."""

from dataclasses import dataclass

import pytest

from narratoria.events import TurnCommitted, TurnStarted
from narratoria.kinds.compose import Branch, conditional, sequence
from narratoria.kinds.function import tool
from narratoria.play.history import redo, undo
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import (
    CascadeEffect,
    DependencyPrecondition,
    StateChangeEffect,
    preconditions_from_data,
)
from narratoria.tools.tool import ToolContext, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


def step(name, *, fails=False, effects=(), preconditions=()):
    @tool(description=f"Does {name}.", name=name, effects=effects, preconditions=preconditions)
    async def run(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.error(f"{name} failed") if fails else ToolResult.ok(None, name)

    return run


def after(name):
    return [DependencyPrecondition(tool=name)]


def cannot(context, result):
    raise OSError("the disk is full")


kept = sequence([step("a"), step("b", preconditions=after("a"))], name="kept")
dropped = sequence([step("a"), step("bad", fails=True)], name="dropped", stop_on_error=True)
abandoned = conditional([Branch(lambda result, context: False, [step("a")])], [step("b")], name="abandoned")
failed_cascade = step(
    "failed_cascade",
    effects=[CascadeEffect(trigger_tool="a"), StateChangeEffect(state="x", value=1, apply=cannot)],
)
nested = sequence([dropped, step("b", preconditions=after("a"))], name="nested")

CASES = pytest.mark.parametrize(
    ("whole", "completed"),
    [
        (kept, {"kept", "a", "b"}),
        (dropped, set()),
        (abandoned, {"abandoned", "b"}),
        (failed_cascade, set()),
        (nested, set()),
    ],
    ids=lambda one: getattr(one, "name", None),
)


@CASES
async def test_only_what_was_kept_counts_as_completed(whole, completed):
    session = Session()
    await ToolRegistry([whole, step("a")]).execute(whole.name, {}, session=session)
    assert session.completed_tools == completed


@CASES
async def test_a_session_opened_again_counts_the_same(whole, completed, tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    journal = store.create(Session(assets=store.assets))
    session = journal.session
    registry = ToolRegistry([whole, step("a")])
    session.turn = 1
    session.record(TurnStarted(turn=1, prompt="go"))
    await registry.execute(whole.name, {}, session=session)
    session.record(TurnCommitted(turn=1))
    session.turn = None
    await journal.commit_turn()
    assert session.completed_tools == completed
    assert store.restore(session.id).completed_tools == completed
    await undo(journal, registry)
    assert session.completed_tools == set()
    await redo(journal)
    assert session.completed_tools == completed
    await journal.close()
    assert store.restore(session.id).completed_tools == completed
    store.close()


async def test_a_part_sees_what_the_parts_before_it_completed():
    assert (await ToolRegistry([kept]).execute("kept", {})).success
    refused = await ToolRegistry([nested]).execute("nested", {})
    assert "tool 'a' must have completed" in str(refused.value["results"][1].error.suggestions)


@pytest.mark.parametrize("status", ["completed", "available"])
async def test_the_names_of_dependencies_are_folded_like_any_other(status):
    manifest = [{"type": "dependency", "tool": "web:scrape", "status": status}]
    registry = ToolRegistry([step("web_scrape"), step("b", preconditions=preconditions_from_data(manifest))])
    session = Session()
    await registry.execute("web:scrape", {}, session=session)
    assert (await registry.execute("b", {}, session=session)).success


async def test_on_a_fresh_session_it_is_known_which_tools_are_available():
    present = step("b", preconditions=[DependencyPrecondition(tool="dep:a", status="available")])
    absent = step("c", preconditions=[DependencyPrecondition(tool="missing", status="available")])
    registry = ToolRegistry([step("dep_a"), present, absent])
    assert (await registry.validate_preconditions(present, registry.context(present, Session()))).passed
    assert (await registry.validate_preconditions(present)).passed
    assert not (await registry.validate_preconditions(absent)).passed


async def test_each_registry_knows_its_own_tools():
    present = step("b", preconditions=[DependencyPrecondition(tool="a", status="available")])
    session = Session()
    both, alone = ToolRegistry([step("a"), present]), ToolRegistry([present])
    assert (await both.execute("b", {}, session=session)).success
    assert not (await alone.execute("b", {}, session=session)).success
    assert (await both.validate_preconditions(present, both.context(present, session))).passed
