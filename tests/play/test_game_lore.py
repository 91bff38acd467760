"""The player's part of a game's memory: a note, lore, marks; told with rules alone, and kept like anything else."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from narratoria.errors import JournalError
from narratoria.events import MemoriesRecalled, MemoryChange, RecalledMemory
from narratoria.lore.entries import LoreEntry
from narratoria.narrator.protocol import Declaration, NarratorRequest
from narratoria.play.game import Game
from narratoria.play.game_lore import (
    GameLore,
    LoreRefused,
    Mark,
    OwnLore,
    drop_own,
    edit,
    set_mark,
    set_note,
    set_own,
    take_back,
)
from narratoria.play.history import redo, undo
from narratoria.play.lore_index import Listed, LoreIndex
from narratoria.play.story import Story
from narratoria.play.story_lore import Situation, StoryLore
from narratoria.run.plan import PlanDocument
from narratoria.session import Session
from narratoria.session.memory import Memory, MemoryAccessError
from narratoria.store.default_store import default_store
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.store import Store

STORIES = Path(__file__).parents[2] / "stories"
GULL = OwnLore(text="The gull at the rail is called Pim.", name="Pim", keywords=("gull", "/bird(s)?/i"))


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """The torch, with a file of lore that fires."""
    folder = shutil.copytree(STORIES / "torch", tmp_path / "torch")
    (folder / "lore").mkdir()
    (folder / "lore" / "osk.md").write_text('+++\nkeywords = ["door"]\n+++\nOsk the Blind carved the door.\n')
    return Story.load(folder)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = default_store(tmp_path / "home")
    yield opened
    opened.close()


def begun(store: Store, story: Story, **options: object) -> tuple[Game, Journal]:
    session = Session(state=story.state, permissions=story.permissions, assets=store.assets)
    journal = store.create(session, story=story.id, title=story.title)
    game = Game(story, session, **options)  # type: ignore[arg-type]
    game.begin()
    return game, journal


class Reads:
    """A narrator that reads memories and shows what it got."""

    name = "mine"

    def declare(self, speaker: str = "") -> Declaration:
        return Declaration(reads_memories=True)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.got = request
        return PlanDocument(narrative="So it is.")


def recalled(store: Store, journal: Journal, turn: int) -> list[RecalledMemory]:
    records = store.read_turn(journal.session.id, turn)
    return [one for r in records if isinstance(r.event, MemoriesRecalled) for one in r.event.memories]


async def test_keyword_lore_is_told_by_rules_alone_where_no_rule_knows(store: Store) -> None:
    game, journal = begun(store, Story.load(STORIES / "lighthouse"), narrators=["rules", "template"])
    await edit(game.session, [set_own(None, GULL)])
    told = await game.prompt("what do I know about the gull?")
    assert told.narrative == GULL.text
    assert told.narrator == "lore"
    known = await game.prompt("go inside, past the birds")  # a rule knows
    assert GULL.text not in known.narrative
    [one] = recalled(store, journal, 2)
    assert (one.why, one.word, one.name, one.earlier) == ("keyword", "birds", "Pim", False)
    await journal.close()


async def test_a_story_keeps_its_own_lore_to_itself_and_says_what_it_recalled(
    store: Store, story: Story
) -> None:
    game, journal = begun(store, story, narrators=["template"])
    told = await game.prompt("the door?")
    assert "Osk" not in told.narrative
    [one] = recalled(store, journal, 1)
    assert (one.why, one.word, one.text) == ("keyword", "door", "Osk the Blind carved the door.")
    await journal.close()


async def test_what_was_told_before_calls_up_lore_too(story: Story) -> None:
    lore = GameLore(own={"a": GULL})
    [one] = StoryLore(story).fired(Situation("ask it", {}, before="A gull looks at you.", lore=lore))
    assert (one.word, one.earlier) == ("gull", True)


async def test_pinned_comes_first_and_what_is_forgotten_does_not_come(store: Store, story: Story) -> None:
    mine = Reads()
    game, journal = begun(store, story, narrator=mine)
    session = game.session
    await game.prompt("open the door")
    [osk] = recalled(store, journal, 1)
    first = Mark(kind="turn", name="1", text="open the door → So it is.", pinned=True)
    await edit(session, [set_note("Tell it as a ghost story."), set_mark("turn:1", first)])
    await edit(session, [set_mark(osk.id, Mark(kind="lore", name="osk", text=osk.text, forgotten=True))])
    session.commit("", [MemoryChange("long-term", "write", "debt", {"to": "Osk"})])
    await edit(session, [set_mark("memory:long-term:debt", Mark(kind="memory", name="debt", pinned=True))])
    await game.prompt("the door again")
    assert mine.got.memories[:2] == [first.text, 'debt: {"to":"Osk"}']
    assert osk.text not in mine.got.memories
    assert mine.got.authors_note == "Tell it as a ghost story."
    assert [one.why for one in recalled(store, journal, 2)][:3] == ["note", "pinned", "pinned"]
    await undo(journal)
    await undo(journal)  # the turn that is pinned does not stand any more; the note does
    await game.prompt("the door once more")
    assert first.text not in mine.got.memories
    assert mine.got.authors_note == "Tell it as a ghost story."
    await journal.close()


async def test_an_edit_is_kept_exported_branched_and_taken_back_like_anything_else(
    store: Store, story: Story, tmp_path: Path
) -> None:
    game, journal = begun(store, story, narrator=Reads())
    session = game.session
    await game.prompt("one")
    made = await edit(session, [set_own("gull", GULL)])
    await game.prompt("two")
    await edit(session, [set_note("Be brief.")])
    await undo(journal)
    await redo(journal)
    now = GameLore.of(session.memory)
    assert (now.note, now.own) == ("Be brief.", {"gull": GULL})
    # a branch has what stood when its turn was followed by the next one, or stands now
    branches = {turn: store.restore(store.branch(session.id, turn).id).memory for turn in (0, 1, 2)}
    assert GameLore.of(branches[0]) == GameLore()
    assert GameLore.of(branches[1]) == GameLore(own={"gull": GULL})
    assert GameLore.of(branches[2]) == now
    # the file of the session has it
    with (tmp_path / "one.narratoria").open("w+b") as file:
        export_session(store, session.id, file)
        other = default_store(tmp_path / "other")
        file.seek(0)
        assert GameLore.of(other.restore(import_session(other, io.BytesIO(file.read())).id).memory) == now
        other.close()
    # an edit is taken back by another; not if what it changed was changed again
    await edit(session, [set_own("gull", OwnLore(text="Pim is gone.", name="Pim"))])
    with pytest.raises(JournalError, match="changed again since"):
        await take_back(journal, made)
    again = await edit(session, [set_own("gull", GULL)])
    await take_back(journal, again)
    gone = await edit(session, drop_own(["gull"]))
    await take_back(journal, gone)
    await journal.close()
    assert GameLore.of(store.restore(session.id).memory).own["gull"].text == "Pim is gone."


def test_tools_read_the_players_lore_and_cannot_change_it() -> None:
    memory = Memory()
    memory.apply(set_note("Be brief."))
    assert memory.read("lore", "note") == "Be brief."
    for change in (
        lambda: memory.write("lore", "note", "x"),
        lambda: memory.delete("lore", "note"),
        lambda: memory.clear("lore"),
        lambda: memory.update("lore", "note", "x"),
    ):
        with pytest.raises(MemoryAccessError, match="it is the player's"):
            change()


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        (OwnLore(text=" ", name="x"), "no text"),
        (OwnLore(text="x" * 20_001, name="x"), "20,000 letters"),
        (OwnLore(text="x"), "a name or a keyword"),
        (OwnLore(text="x", name="x", keywords=("/(?=x)/",)), "look-around"),
        (
            OwnLore(text="x", name="x", keywords=("/(a{1,900}){1,900}/",)),
            "not a regular expression|too large",
        ),
        (OwnLore(text="x", name="x", keywords=("k",) * 101), "100 keywords"),
    ],
)
def test_lore_beyond_its_limits_is_refused(own: OwnLore, complaint: str) -> None:
    with pytest.raises(LoreRefused, match=complaint):
        set_own(None, own)


def test_what_a_made_up_session_holds_in_its_place_is_left_out() -> None:
    memory = Memory()
    for key, value in {"note": 5, "own:a": {"text": 1}, "own:b": [], "mark:c": {}, "x": None}.items():
        memory.apply(MemoryChange("lore", "write", key, value))
    assert GameLore.of(memory) == GameLore()


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("lamp room", "up to the Lamp Room"),
        ("'tis", "so 'Tis said"),
        ("灯台", "古い灯台へ行く"),
        ("snake_case", "a snake_case name"),
        ("ÉTÉ", "en été, dit-il"),
        ("!?", "what!?"),
        ("Straße", "auf der Straße"),
        ("/stor(m|ms)/", "two storms"),
    ],
)
def test_of_a_large_book_only_what_may_fire_is_tried(keyword: str, text: str) -> None:
    entries = [Listed(str(n), "lore", LoreEntry("x", (f"word{n}",))) for n in range(50)]
    entry = LoreEntry("y", (keyword,))
    index = LoreIndex([*entries, Listed("it", "lore", entry)])
    assert entry.keyword_in(text) is not None
    assert [one.ref for one in index.candidates(text)] == ["it"]


async def test_five_thousand_pieces_of_lore_cost_a_turn_next_to_nothing(story: Story) -> None:
    own = {str(n): OwnLore(text="x" * 200, name=f"N{n}", keywords=(f"a{n}", f"b c{n}")) for n in range(5_000)}
    lore, known = GameLore(own=own), StoryLore(story)
    before = "The wind goes round the tower and finds the door. " * 40
    known.fired(Situation("first", {}, before, lore))  # the index is made once
    began = time.process_time()
    for number in range(20):
        [one, *_] = known.fired(Situation(f"to a{number}", {}, before, lore))
        assert one.word == f"a{number}"
    assert time.process_time() - began < 0.5
