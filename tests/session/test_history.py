"""Moving between turns: everything a turn changed moves together."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from digging import Dig, Digger, Dug, Outside, new_game, play, world

from narratoria.errors import JournalError
from narratoria.events import TurnUndone, UndoStarted
from narratoria.kinds.compose import parallel, sequence
from narratoria.narrator.protocol import Declaration, NarratorRequest
from narratoria.play.history import (
    checkpoint,
    preview_undo,
    preview_undo_to,
    redo,
    redo_to,
    retry,
    return_to,
    show_variant,
    undo,
    undo_to,
)
from narratoria.play.turn import take_turn
from narratoria.run.plan import PlanDocument
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record
from narratoria.store.fold import fold
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store
from narratoria.store.timeline import Timeline
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult


async def test_undo_and_redo_move_the_whole_world(make_store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(make_store())
    worlds = [world(journal.session)]
    for prompt in ("dig 1", "dig 2", "dig 1", "talk"):
        await play(journal, registry, prompt)
        worlds.append(world(journal.session))
    for expected in reversed(worlds[:-1]):
        await undo(journal, registry)
        assert world(journal.session) == expected
    with pytest.raises(JournalError, match="nothing to undo"):
        await undo(journal, registry)
    for expected in worlds[1:]:
        await redo(journal)
        assert world(journal.session) == expected
    with pytest.raises(JournalError, match="nothing to redo"):
        await redo(journal)
    await undo(journal, registry)
    await journal.close()
    assert world(make_store().restore(journal.session.id)) == worlds[-2], "and a restored session agrees"


async def test_what_a_refusals_offer_hides_survives_undo_and_restoration(make_store, tmp_path: Path) -> None:
    class Refuses:
        name = "refuses"
        choices: tuple[str, ...] = ("Knock",)

        def declare(self, speaker: str = "") -> Declaration:
            return Declaration(choices=self.choices)

        async def plan(self, request: NarratorRequest) -> PlanDocument:
            return PlanDocument(narrative="No.")

    journal = new_game(make_store())
    journal.session.choices = ["Wait"]
    narrator, offered = Refuses(), []
    for hints in (("Knock",), ("Sing",), ()):
        narrator.choices = hints
        await take_turn(journal.session, "fly", narrator=narrator, registry=ToolRegistry())
        offered.append((journal.session.choices, journal.session.standing))
    assert offered == [(["Knock"], ["Wait"]), (["Sing"], ["Wait"]), (["Wait"], None)]
    await undo(journal, ToolRegistry())
    assert (journal.session.choices, journal.session.standing) == offered[1]
    await redo(journal)
    assert (journal.session.choices, journal.session.standing) == offered[2]
    await undo(journal, ToolRegistry())
    await journal.close()
    restored = make_store().restore(journal.session.id)
    assert (restored.choices, restored.standing) == offered[1]


async def test_a_turn_after_an_undo_gets_a_new_number_and_ends_the_redo(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1", "dig 2")
    await undo(journal, registry)
    (result,) = await play(journal, registry, "dig 5")
    assert result.turn == 3
    assert journal.timeline.turns == [1, 3]
    with pytest.raises(JournalError):
        await redo(journal)
    view = fold(store.read(journal.session.id))
    assert [(turn.turn, turn.undone) for turn in view.turns] == [(1, False), (2, True), (3, False)]
    await journal.close()


async def test_retry_gives_the_prompt_back_for_another_try(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    before = world(journal.session)
    await play(journal, registry, "dig 2")
    assert await retry(journal, registry) == "dig 2"
    assert world(journal.session) == before
    await journal.close()


async def test_undo_compensates_what_it_can_and_lists_what_it_cannot_first(
    make_store, tmp_path: Path
) -> None:
    outside = Outside(tmp_path)
    journal = new_game(make_store())
    await play(journal, outside.registry(), "ring 1")
    await journal.close()
    assert outside.world["bell"] == 1

    journal = make_store().open(journal.session.id)  # a later run of the program
    preview = await preview_undo(journal, outside.registry())
    assert preview.compensated == ["the bell rings"]
    assert preview.irreversible == ["ring: everyone hears it (irreversible)"]
    assert outside.world["bell"] == 1, "a preview does nothing"
    outcome = await undo(journal, outside.registry())
    assert outcome.irreversible == preview.irreversible
    assert outside.world == {"bell": 0, "heard": True, "receipt": {"ring": 1}}
    with pytest.raises(JournalError, match="outside the session"):
        await redo(journal)
    await journal.close()


async def test_without_its_tool_an_effect_is_listed_as_irreversible(store: Store, tmp_path: Path) -> None:
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "ring 1")
    preview = await preview_undo(journal, None)
    assert "ring: the bell rings (its tool is not here)" in preview.irreversible
    await journal.close()


class Bells:
    """A tool that rings several bells outside, each of its own effect."""

    def __init__(self) -> None:
        self.silenced: list[tuple[str, Any]] = []

    def registry(self, *names: str, stuck: bool = False, **changed: Any) -> ToolRegistry:
        async def ring(params: Dig, *, context: ToolContext) -> ToolResult[Dug]:
            return ToolResult.ok(Dug(params.n), message="rung")

        def effect(name: str) -> StateChangeEffect:
            def silence(context: ToolContext) -> None:
                if stuck:
                    raise OSError("it is stuck")
                self.silenced.append((name, context.receipt))

            given = {"apply": lambda context: f"receipt {name}", "rollback": silence, **changed}
            return StateChangeEffect(description=f"bell {name}", state=f"bells.{name}", value=True, **given)

        return ToolRegistry([Tool[Dig, Dug]("ring", "Rings.", ring, effects=[effect(one) for one in names])])


async def test_an_effect_is_taken_back_by_its_own_compensation_wherever_that_stands_now(store: Store) -> None:
    bells = Bells()
    journal = new_game(store)
    await play(journal, bells.registry("a", "b"), "ring 1")
    outcome = await undo(journal, bells.registry("c", "b", "a"))
    assert bells.silenced == [("b", "receipt b"), ("a", "receipt a")]
    assert outcome.compensated == ["bell b", "bell a"]
    await journal.close()


@pytest.mark.parametrize(
    ("names", "changed"),
    [(["a", "c"], {}), (["b", "a", "b"], {}), (["a", "b"], {"reversible": False})],
    ids=["another in its place", "two of its name elsewhere", "not to be taken back any more"],
)
async def test_an_effect_whose_compensation_cannot_be_told_is_listed_and_left(
    store: Store, names: list[str], changed: dict[str, Any]
) -> None:
    bells = Bells()
    journal = new_game(store)
    await play(journal, bells.registry("z", "b"), "ring 1")
    registry = bells.registry(*names, **changed)
    preview = await preview_undo(journal, registry)
    assert preview.compensated == []
    assert preview.irreversible[1] == "ring: bell b (its tool has changed since)"
    assert (await undo(journal, registry)).irreversible == preview.irreversible
    assert bells.silenced == []
    await journal.close()


async def test_an_effect_without_a_rollback_is_listed_as_staying_before_and_after(store: Store) -> None:
    registry = Bells().registry("a", rollback=None)
    journal = new_game(store)
    await play(journal, registry, "ring 1")
    preview = await preview_undo(journal, registry)
    assert preview.compensated == []
    assert preview.irreversible == ["ring: bell a (it has an apply but no rollback)"]
    outcome = await undo(journal, registry)
    assert (outcome.compensated, outcome.irreversible) == ([], preview.irreversible)
    await journal.close()


async def test_an_effect_of_a_part_is_taken_back_if_only_the_composition_is_registered(store: Store) -> None:
    bells = Bells()

    def registry() -> ToolRegistry:
        (ring,) = bells.registry("a")
        ring.name = "bell"
        return ToolRegistry([sequence([parallel([ring], name="inner")], name="ring")])

    journal = new_game(store)
    await play(journal, registry(), "ring 1")
    assert (await preview_undo(journal, registry())).compensated == ["bell a"]
    outcome = await undo(journal, registry())
    assert outcome.compensated == ["bell a"] and not outcome.irreversible
    assert bells.silenced == [("a", "receipt a")]
    await journal.close()


async def test_a_redo_is_refused_only_for_what_was_really_taken_back(make_store) -> None:
    bells = Bells()
    store = make_store()
    journal = new_game(store)
    await play(journal, bells.registry("a"), "ring 1")
    rung = world(journal.session)
    for tools in (None, bells.registry("a", stuck=True), bells.registry("c")):
        await undo(journal, tools)
        assert await redo(journal) == 1, "the bell still rings: nothing is missing"
        assert world(journal.session) == rung
    branch = store.open(store.branch(journal.session.id, 1).id)
    await undo(branch, bells.registry("a"))
    assert await redo(branch) == 1
    await branch.close()
    store.delete(branch.session.id)
    assert bells.silenced == []

    await undo(journal, bells.registry("a"))
    with pytest.raises(JournalError, match=r"ring: bell a\); that was taken back.*say 'ring 1' again"):
        await redo(journal)
    await journal.close()
    journal = make_store().open(journal.session.id)
    with pytest.raises(JournalError, match="that was taken back"):
        await redo(journal)
    await journal.close()


async def test_checkpoints_are_places_to_come_back_to(make_store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(make_store())
    await play(journal, registry, "dig 1")
    await checkpoint(journal, "before the deep")
    marked = world(journal.session)
    await play(journal, registry, "dig 2", "dig 3")
    await journal.close()
    journal = make_store().open(journal.session.id)
    undone = await return_to(journal, "before the deep", registry)
    assert [one.turn for one in undone] == [3, 2]
    assert world(journal.session) == marked
    with pytest.raises(JournalError, match="there are: before the deep"):
        await return_to(journal, "elsewhere", registry)
    await journal.close()


async def test_several_turns_are_undone_together_and_redone_together_or_not_at_all(
    store: Store, tmp_path: Path
) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    after_one = world(journal.session)
    await play(journal, registry, "dig 2", "dig 3")
    whole = world(journal.session)
    assert [one.prompt for one in await preview_undo_to(journal, 2, registry)] == ["dig 3", "dig 2"]
    assert [one.turn for one in await undo_to(journal, 2, registry)] == [3, 2]
    assert world(journal.session) == after_one
    assert await redo_to(journal, 3) == [2, 3]
    assert world(journal.session) == whole
    for none_of_these in (0, 4):
        with pytest.raises(JournalError, match="not a turn of the story"):
            await undo_to(journal, none_of_these, registry)
    await play(journal, registry, "ring 1")
    await undo_to(journal, 2, registry)
    with pytest.raises(JournalError, match="outside the session"):
        await redo_to(journal, 4)
    assert world(journal.session) == after_one, "the refused turn is the last of three, and none came back"
    assert await redo_to(journal, 3) == [2, 3]
    await journal.close()


async def test_a_redo_brings_the_names_of_its_turn_back(make_store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(make_store())
    await play(journal, registry, "dig 1", "dig 2")
    await checkpoint(journal, "deep")
    await undo(journal, registry)
    assert journal.timeline.checkpoints == {}
    assert fold(journal.store.read(journal.session.id)).checkpoints == {}
    await redo(journal)
    assert journal.timeline.checkpoints == {"deep": 2}
    await undo(journal, registry)
    await checkpoint(journal, "deep")  # the name is used for another place meanwhile
    await redo(journal)
    assert journal.timeline.checkpoints == {"deep": 1}
    assert fold(journal.store.read(journal.session.id)).checkpoints == {"deep": 1}
    await journal.close()
    again = make_store().open(journal.session.id)
    assert again.timeline.checkpoints == {"deep": 1}
    await again.close()


async def test_a_branch_shares_the_past_and_goes_its_own_way(make_store, tmp_path: Path) -> None:
    store = make_store()
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    fork = world(journal.session)
    await play(journal, registry, "dig 2")
    stored = store.query("SELECT count(*) FROM batches")[0][0]

    meta = store.branch(journal.session.id, 1, title="Another way")
    assert store.query("SELECT count(*) FROM batches")[0][0] == stored + 1, "only its beginning is written"
    other = store.open(meta.id)
    assert world(other.session) == fork
    await play(other, registry, "dig 7")
    assert journal.session.state["last"] == 2
    assert other.session.state["last"] == 7
    twig = store.branch(meta.id, 2)
    assert world(store.restore(twig.id)) == world(other.session)

    await undo(other, registry)
    await undo(other, registry)  # a turn of the shared past
    assert "holes" not in other.session.state
    assert [turn.prompt for turn in fold(store.read(journal.session.id)).told] == ["dig 1", "dig 2"]
    await journal.close()
    await other.close()

    store.delete(journal.session.id)
    assert [turn.prompt for turn in fold(store.read(twig.id)).told] == ["dig 1", "dig 7"]
    for one in (meta.id, twig.id):
        store.delete(one)
    assert store.query("SELECT count(*) FROM sessions")[0][0] == 0, (
        "the shared past goes with the last branch"
    )


async def test_a_branch_has_the_checkpoints_of_the_turns_it_shares(store: Store, tmp_path: Path) -> None:
    """A name is given after its turn has ended, perhaps much later."""
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    await checkpoint(journal, "lit")
    await play(journal, registry, "dig 2")
    await checkpoint(journal, "open")
    early, late = (store.branch(journal.session.id, turn) for turn in (1, 2))
    assert fold(store.read(early.id)).checkpoints == {"lit": 1}
    assert fold(store.read(late.id)).checkpoints == {"lit": 1, "open": 2}
    branch = store.open(early.id)
    marked = world(branch.session)
    await play(branch, registry, "dig 7")
    await return_to(branch, "lit", registry)
    assert world(branch.session) == marked
    await branch.close()
    await journal.close()


async def test_a_branch_leaves_its_parents_effects_alone(store: Store, tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    journal = new_game(store)
    await play(journal, outside.registry(), "ring 1")
    await journal.close()
    branch = store.open(store.branch(journal.session.id, 1).id)
    outcome = await undo(branch, outside.registry())
    assert outside.world["bell"] == 1
    assert any("branched from" in line for line in outcome.irreversible)
    await branch.close()


async def test_an_effect_stays_while_any_session_stands_on_it_and_goes_with_the_last(store: Store) -> None:
    bells = Bells()
    registry = bells.registry("a")
    journal = new_game(store)
    await play(journal, registry, "talk", "ring 1")
    early = store.branch(journal.session.id, 1)
    twig = store.branch(store.branch(journal.session.id, 2).id, 2)
    store.delete(store.meta(twig.id).parent or "")
    preview = await preview_undo(journal, registry)
    assert preview.irreversible == [f"ring: bell a (session {twig.id[:12]} shares it)"], early
    assert (await undo(journal, registry)).irreversible == preview.irreversible
    assert bells.silenced == [], "the branch has it still"

    branch = store.open(twig.id)
    assert (await undo(branch, registry)).compensated == ["bell a"]
    assert bells.silenced == [("a", "receipt a")], "nobody stands on it any more"
    for one in (journal, branch):
        with pytest.raises(JournalError, match="that was taken back"):
            await redo(one)
        await one.close()


async def test_what_a_branch_took_back_is_not_redone_by_its_parent_however_long_ago(make_store) -> None:
    bells, store = Bells(), make_store()
    registry = bells.registry("a")
    journal = new_game(store)
    await play(journal, registry, "ring 1")
    branch = store.open(store.branch(journal.session.id, 1).id)
    assert not (await undo(journal, registry)).compensated, "the branch has it still"
    assert (await undo(branch, registry)).compensated == ["bell a"]
    await play(branch, registry, "talk", "talk again")
    with pytest.raises(JournalError, match="that was taken back"):
        await redo(journal)
    await branch.close()
    await journal.close()
    again = make_store().open(journal.session.id)
    with pytest.raises(JournalError, match="that was taken back"):
        await redo(again)
    await again.close()


async def test_a_branch_takes_back_what_only_a_deleted_parent_shared(store: Store) -> None:
    bells = Bells()
    journal = new_game(store)
    await play(journal, bells.registry("a"), "ring 1")
    await journal.close()
    branch = store.open(store.branch(journal.session.id, 1).id)
    assert not (await preview_undo(branch, bells.registry("a"))).compensated
    store.delete(journal.session.id)
    assert (await undo(branch, bells.registry("a"))).compensated == ["bell a"]
    await branch.close()


async def test_undo_costs_the_turn_not_the_game(store: Store, tmp_path: Path) -> None:
    """Counted in statements, so that a loaded machine cannot make it fail."""
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    counts: list[int] = []
    query = store.query

    def counting(sql: str, values: tuple = ()) -> list:
        counts[-1] += 1
        return query(sql, values)

    store.query = counting  # type: ignore[method-assign]
    for turns in (3, 40):
        await play(journal, registry, *["dig 1"] * turns)
        counts.append(0)
        await undo(journal, registry)
    assert counts[1] <= counts[0] + 6, counts
    await journal.close()


@contextmanager
def full_disk(store: SqliteStore) -> Iterator[None]:
    refuse = (
        "CREATE TEMP TRIGGER no BEFORE INSERT ON batches BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    store.writer.run(lambda db: db.execute(refuse))
    yield
    store.writer.run(lambda db: db.execute("DROP TRIGGER no"))


def standing(journal: Journal) -> tuple[Any, ...]:
    return world(journal.session), copy.deepcopy(journal.timeline), journal.session.seq


async def test_a_move_that_cannot_be_saved_is_not_made(tmp_path: Path) -> None:
    """Neither now nor later, when there is room again."""
    store = SqliteStore(tmp_path / "sessions.db")
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    # More turns than the session remembers of its past, so that taking one back calls an older one to mind.
    await play(journal, registry, *[f"dig {n}" for n in range(1, 37)])
    await retry(journal, registry)
    await take_turn(journal.session, "dig 40", narrator=Digger(), registry=registry, origin="retry")
    await checkpoint(journal, "deep")
    before, heard = standing(journal), Heard()
    journal.session.attach(heard)
    moves: list[Callable[[], Awaitable[Any]]] = [
        lambda: undo(journal, registry),
        lambda: undo_to(journal, 2, registry),
        lambda: retry(journal, registry),
        lambda: show_variant(journal, 36, registry),
        lambda: checkpoint(journal, "other"),
    ]
    for move in moves:
        with full_disk(store), pytest.raises(JournalError, match=r"the disk is full.*it was not done$"):
            await move()
        assert standing(journal) == before
    assert heard.events == [], "nobody is told of what did not happen"
    await undo(journal, registry)
    assert [type(event) for event in heard.events] == [TurnUndone]
    undone = standing(journal)
    with full_disk(store), pytest.raises(JournalError, match="the disk is full"):
        await redo(journal)
    assert standing(journal) == undone
    await redo(journal)
    assert standing(journal)[:2] == before[:2]
    (result,) = await play(journal, registry, "dig 99")
    assert result.unsaved is None
    await journal.close()
    view = fold(store.read(journal.session.id))
    assert (len(view.told), view.checkpoints) == (37, {"deep": 37})
    assert world(store.restore(journal.session.id)) == world(journal.session)
    store.close()


async def test_the_end_of_an_undo_that_cannot_be_saved_is_left_to_be_made(tmp_path: Path) -> None:
    """The bell was taken back and that is on the disk; the session itself has not moved."""
    store = SqliteStore(tmp_path / "sessions.db")
    outside = Outside(tmp_path)
    journal = new_game(store)
    await play(journal, outside.registry(), "ring 1")
    before = world(journal.session)
    refuse = (
        "CREATE TEMP TRIGGER no BEFORE UPDATE OF last_seq ON sessions WHEN NEW.last_seq > "
        f"{journal.session.seq + 2} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    store.writer.run(lambda db: db.execute(refuse))
    with pytest.raises(JournalError, match="the disk is full"):
        await undo(journal, outside.registry())
    assert (outside.world["bell"], world(journal.session)) == (0, before)
    assert journal.timeline.undoing == 1
    store.writer.run(lambda db: db.execute("DROP TRIGGER no"))
    outcome = await undo(journal, outside.registry())
    assert (outside.world["bell"], outcome.compensated) == (0, ["the bell rings"])
    await journal.close()
    store.close()


class Heard:
    """Attached to the session itself, not to its journal."""

    full = False

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.events.append(record.event)


async def test_an_undo_that_cannot_be_saved_takes_nothing_back_outside(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    outside = Outside(tmp_path)
    journal = new_game(store)
    await play(journal, outside.registry(), "ring 1")
    before = standing(journal)
    with full_disk(store), pytest.raises(JournalError, match="the disk is full"):
        await undo(journal, outside.registry())
    assert outside.world["bell"] == 1
    assert standing(journal) == before, "a restart does not go on with it either"
    outcome = await undo(journal, outside.registry())
    assert (outside.world["bell"], outcome.compensated) == (0, ["the bell rings"])
    await journal.close()
    events = [record.event for record in store.read(journal.session.id)]
    said = next(n for n, event in enumerate(events) if isinstance(event, UndoStarted))
    assert said < next(n for n, event in enumerate(events) if isinstance(event, TurnUndone))
    store.close()


class ReadingCounted(SqliteStore):
    """A store that knows which turns were read from it."""

    turns_read: list[int]

    def read_turn(self, session_id: str, turn: int) -> list[Record]:
        self.turns_read.append(turn)
        return super().read_turn(session_id, turn)


async def test_a_turn_that_is_taken_back_is_read_once(tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    store = ReadingCounted(tmp_path / "sessions.db")
    journal = new_game(store)
    for _ in range(6):
        await play(journal, registry, "dig 1")
    store.turns_read = []
    await undo_to(journal, 2, registry)
    assert store.turns_read == [6, 5, 4, 3, 2, 1]
    await journal.close()
    store.close()


async def test_who_shares_a_turn_is_asked_once_however_much_it_did(tmp_path: Path) -> None:
    asked: list[int] = []

    class SharingCounted(SqliteStore):
        def sharing(self, session_id: str, turn: int) -> dict[str, Timeline]:
            asked.append(turn)
            return super().sharing(session_id, turn)

    bells, store = Bells(), SharingCounted(tmp_path / "sessions.db")
    registry = bells.registry("a", "b", "c", "d")
    journal = new_game(store)
    await play(journal, registry, "ring 1")
    assert (await undo(journal, registry)).compensated == ["bell d", "bell c", "bell b", "bell a"]
    assert asked == [1]
    await journal.close()
    store.close()
