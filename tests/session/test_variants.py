"""Variants: a turn that is taken again keeps its earlier telling, and each has its own world."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from digging import Digger, Outside, new_game, play, world

from narratoria.errors import JournalError
from narratoria.play.history import checkpoint, redo, retry, show_variant, undo, undo_to
from narratoria.play.turn import take_turn
from narratoria.run.registry import ToolRegistry
from narratoria.store.fold import fold
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.store import Store
from narratoria.store.timeline import Timeline


async def take_again(journal: Journal, registry: ToolRegistry, prompt: str) -> None:
    """Retry the newest turn with other words."""
    await retry(journal, registry)
    await take_turn(journal.session, prompt, narrator=Digger(), registry=registry, origin="retry")


def retold(journal: Journal) -> Timeline:
    """The timeline as the records tell it."""
    return journal.store.timeline(journal.session.id)


async def test_each_variant_of_a_turn_has_its_own_world(make_store, tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    registry = outside.registry()
    journal = new_game(make_store())
    await play(journal, registry, "dig 1", "dig 2")
    first = world(journal.session)
    await checkpoint(journal, "the second hole")
    await take_again(journal, registry, "dig 3")
    second = world(journal.session)
    await take_again(journal, registry, "dig 4")
    third, ran = world(journal.session), list(outside.ran)
    assert journal.timeline.variants_of(4) == [2, 3, 4]
    for turn, expected in ((2, first), (4, third), (3, second), (2, first)):
        await show_variant(journal, turn, registry)
        assert world(journal.session) == expected
        assert journal.timeline.turns == [1, turn]
    assert outside.ran == ran, "no tool runs for it"
    assert journal.timeline.checkpoints == {"the second hole": 2}
    with pytest.raises(JournalError, match="turn 1 is not another variant of the newest turn, 2"):
        await show_variant(journal, 1, registry)
    with pytest.raises(JournalError, match="nothing to redo"):
        await redo(journal)
    await play(journal, registry, "dig 5")
    after = world(journal.session)
    await journal.close()
    again = make_store().open(journal.session.id)
    assert world(again.session) == after
    assert again.timeline == journal.timeline == retold(again)
    view = fold(again.store.read(again.session.id))
    assert [(turn.turn, turn.variants) for turn in view.told] == [(1, []), (2, [2, 3, 4]), (5, [])]
    assert view.checkpoints == {"the second hole": 2}
    assert await undo(again, registry) and world(again.session) == first
    await again.close()


async def test_a_variant_brings_what_came_after_it_back_by_redo(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1", "dig 2", "dig 3")
    whole = world(journal.session)
    await undo_to(journal, 2, registry)
    await take_turn(journal.session, "dig 7", narrator=Digger(), registry=registry, origin="retry")
    await play(journal, registry, "dig 8")
    other = world(journal.session)
    await undo(journal, registry)
    await show_variant(journal, 2, registry)
    assert await redo(journal) == 3
    assert world(journal.session) == whole
    await undo(journal, registry)
    await show_variant(journal, 4, registry)
    assert await redo(journal) == 5
    assert world(journal.session) == other
    assert retold(journal) == journal.timeline
    await journal.close()


async def test_a_variant_whose_outside_effects_were_taken_back_stays_away(
    store: Store, tmp_path: Path
) -> None:
    outside = Outside(tmp_path)
    registry = outside.registry()
    journal = new_game(store)
    await play(journal, registry, "ring 1")
    await take_again(journal, registry, "dig 1")
    before = world(journal.session)
    with pytest.raises(JournalError, match="say 'ring 1' again instead"):
        await show_variant(journal, 1, registry)
    assert (world(journal.session), journal.timeline.turns) == (before, [2])
    await take_again(journal, registry, "ring 2")
    assert outside.world["bell"] == 1
    assert (await show_variant(journal, 2, registry)).compensated == ["the bell rings"]
    assert outside.world["bell"] == 0
    await journal.close()


async def test_variants_are_exported_imported_and_branched_from(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    first = world(journal.session)
    await take_again(journal, registry, "dig 2")
    second = world(journal.session)
    await show_variant(journal, 1, registry)
    await play(journal, registry, "dig 3")
    await journal.close()
    file = io.BytesIO()
    export_session(store, journal.session.id, file)
    store.delete(journal.session.id)
    taken_in = store.open(import_session(store, file).id)
    assert taken_in.timeline.variants == [[1, 2]]
    await undo(taken_in, registry)
    assert taken_in.session.snapshot() == first["state"]
    await show_variant(taken_in, 2, registry)
    assert taken_in.session.snapshot() == second["state"]
    branch = store.restore(store.branch(taken_in.session.id, 1).id)
    assert branch.snapshot() == first["state"]
    await taken_in.close()
