"""The narrator's text as the player changed it: everything reads it, and the journal keeps both."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from digging import Outside, new_game, play

from narratoria.errors import JournalError
from narratoria.lore.past_turns import Chronicle
from narratoria.play.history import redo, undo
from narratoria.play.narration_edits import edit_narration
from narratoria.store.fold import fold
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.story_search import search_story, words_of
from narratoria.store.transcript import to_html, to_markdown

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)>"


def told(journal: Journal) -> list[str]:
    return [narrative for _, narrative in journal.session.past]


async def test_prompts_exports_search_and_memory_read_the_edited_text(make_store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(make_store())
    chronicle = Chronicle()
    journal.session.attach(chronicle)
    await play(journal, registry, "dig 1", "talk")
    state = journal.session.snapshot()
    await edit_narration(journal, 1, f"The spade sings. {HOSTILE}")
    edited = [f"The spade sings. {HOSTILE}", "You talk."]
    assert told(journal) == edited
    assert journal.session.snapshot() == state
    assert chronicle.standing()[1] == f"dig 1 → {edited[0]}"
    await undo(journal, registry)
    await undo(journal, registry)
    await redo(journal)
    await redo(journal)
    assert told(journal) == edited
    await journal.close()
    store = make_store()
    again = store.open(journal.session.id)
    assert (told(again), again.timeline) == (edited, journal.timeline)
    records = list(store.read(journal.session.id))
    view = fold(records)
    assert (view.told[0].narrative, view.told[0].told) == (edited[0], "You dig 1.")
    assert "The spade sings" in to_markdown(view)
    page = to_html(view, store.assets)
    assert "The spade sings" in page and "<script" not in page and "<img src=x" not in page

    def found(query: str) -> list[int]:
        return [one.turn for one in search_story(records, again.timeline.turns, words_of(query)).turns]

    assert (found("sings"), found('"you dig"')) == ([1], [])
    branch = store.open(store.branch(journal.session.id, 1).id)
    assert told(branch) == edited[:1], "although the text was changed after the turn the branch begins with"
    await branch.close()
    await edit_narration(again, 1, None)
    assert told(again)[0] == "You dig 1."
    await again.close()
    file = io.BytesIO()
    export_session(store, journal.session.id, file)
    taken_in = fold(store.read(import_session(store, file).id))
    assert [one.narrative for one in taken_in.told] == ["You dig 1.", "You talk."]


async def test_an_edit_is_refused_with_a_reason(store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1", "talk")
    await undo(journal, registry)
    for turn, text, why in (
        (2, "x", "not a turn of the story"),
        (1, "  ", "empty"),
        (1, "x" * 100_001, "at most"),
    ):
        with pytest.raises(JournalError, match=why):
            await edit_narration(journal, turn, text)
    seq = journal.session.seq
    await edit_narration(journal, 1, None)
    assert journal.session.seq == seq, "what stands already is not written again"
    await journal.close()
