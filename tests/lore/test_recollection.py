"""What a story remembers, for whoever reads it; and what in its lore cannot be used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from narratoria.errors import StoryInvalid
from narratoria.events import Notice
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Declaration, NarratorRequest, NoMatch
from narratoria.play.game import Game
from narratoria.play.history import redo, undo_to
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.session import Record, Session
from narratoria.store.default_store import default_store
from narratoria.store.journal import Journal
from narratoria.store.store import Store
from narratoria.testing import Says, ScriptedModel

STORY = Path(__file__).parents[2] / "stories" / "torch"
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x00IEND\xaeB`\x82"


class Reads:
    """Somebody's own narrator, which says that it reads memories."""

    name = "mine"

    def __init__(self, *plans: PlanDocument, reads: bool = True) -> None:
        self.plans = list(plans) or [PlanDocument(narrative="So.")]
        self.reads = reads
        self.told: list[str] = []

    def declare(self, speaker: str = "") -> Declaration:
        return Declaration(reads_memories=self.reads)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.told = list(request.memories)
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]


class Passes:
    name = "silent"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        raise NoMatch("nothing to say")


class Notices:
    full = False

    def __init__(self, session: Session) -> None:
        self.messages: list[str] = []
        session.attach(self)

    def push(self, record: Record) -> None:
        if isinstance(record.event, Notice):
            self.messages.append(record.event.message)

    async def wait(self) -> None:
        return None


@pytest.fixture
def lore(tmp_path: Path) -> Path:
    shutil.copytree(STORY, tmp_path / "torch")
    folder = tmp_path / "torch" / "lore"
    folder.mkdir(exist_ok=True)
    (folder / "osk.md").write_text('+++\nkeywords = ["door"]\n+++\nOsk the Blind carved the door.\n')
    return folder


@pytest.mark.parametrize("chained", [False, True], ids=["alone", "in a chain"])
async def test_any_narrator_that_reads_memories_is_given_them(lore: Path, chained: bool) -> None:
    mine = Reads()
    narrator = ChainNarrator([Passes(), mine], time_limit=20) if chained else mine
    game = Game.new(Story.load(lore.parent), narrator=narrator, generation_timeout=20)
    game.begin()
    await game.prompt("examine the door")
    assert "Osk the Blind carved the door." in mine.told


async def test_for_a_narrator_that_does_not_read_them_nothing_is_recalled(lore: Path) -> None:
    mine = Reads(reads=False)
    game = Game.new(Story.load(lore.parent), narrator=mine, generation_timeout=20)
    game.begin()
    await game.prompt("examine the door")
    assert mine.told == []


async def test_what_cannot_be_used_of_the_lore_is_said_at_the_opening_and_the_rest_is_used(
    lore: Path,
) -> None:
    (lore / "picture.png").write_bytes(PICTURE)
    (lore / "broken.json").write_text('{"spec": "chara_card_v2", "data"')
    entries = [
        {"keys": ["door"], "content": "It has been shut since the flood.", "enabled": True},
        {"keys": ["/d(?=o)r/"], "content": "Never."},
    ]
    (lore / "book.json").write_text(json.dumps({"name": "Book", "entries": entries}))
    mine = Reads()
    game = Game.new(Story.load(lore.parent), narrator=mine, generation_timeout=20)
    notices = Notices(game.session)
    game.begin()
    assert len(notices.messages) == 3
    for name in ("picture.png", "broken.json", "book.json"):
        assert any(name in message for message in notices.messages)
    await game.prompt("examine the door")
    assert "It has been shut since the flood." in mine.told


async def test_a_lore_file_that_is_no_text_is_named_and_hides_nothing_else(lore: Path) -> None:
    (lore / "cafe.md").write_bytes("The café is shut.".encode("latin-1"))
    mine = Reads()
    game = Game.new(Story.load(lore.parent), narrator=mine, generation_timeout=20)
    notices = Notices(game.session)
    game.begin()
    assert notices.messages == ["lore: left out: cafe.md:1: it is not UTF-8 (byte 7); save it as UTF-8"]
    await game.prompt("examine the door")
    assert "Osk the Blind carved the door." in mine.told


def test_a_mistake_in_a_lore_file_is_said_before_anything_is_played(lore: Path) -> None:
    (lore / "typo.md").write_text('+++\nkeyword = ["door"]\n+++\nText.\n')
    with pytest.raises(StoryInvalid, match=r"typo\.md.*'keyword': unknown key; did you mean 'keywords'"):
        Game.new(Story.load(lore.parent), narrator=Reads())


async def test_receipts_of_a_session_opened_again_know_the_turns_before(tmp_path: Path) -> None:
    story = Story.load(STORY)
    lit = PlannedCall(tool_id="light", tool_path="torch-lighter", input={"action": "light_torch"})
    store = default_store(tmp_path / "home")
    session = Session(state=story.state, permissions=story.permissions, assets=store.assets)
    journal = store.create(session, story=story.id, title=story.title)
    try:
        game = Game(story, session, narrator=Reads(PlanDocument(narrative="You light it.", tools=[lit])))
        game.begin()
        await game.prompt("light the torch")
        assert session.snapshot()["inventory"]["torch"]["lit"] is True
        await journal.close()
        journal = store.open(session.id)
        again = Game(story, journal.session, narrator=Reads(PlanDocument(narrative="The torch is lit.")))
        await again.resume()
        result = await again.prompt("look")
    finally:
        await journal.close()
        store.close()
    [receipt] = result.receipts
    assert receipt.source is not None
    assert (receipt.verdict, receipt.source.turn) == ("held", 1)


async def test_a_storys_guidance_for_a_skill_reaches_its_model(
    lore: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills = lore.parent / "skills"
    skills.mkdir()
    (skills / "torch-lighter.md").write_text("Light it only when asked to.\n")
    answer = Says(json.dumps({"narrative": "You wait.", "calls": [], "order": "together"}))
    async with ScriptedModel(answer) as server:
        monkeypatch.setenv("NARRATORIA_LLM_URL", server.url)
        game = Game.new(Story.load(lore.parent), narrators=["llm"], generation_timeout=20)
        game.begin()
        await game.prompt("wait")
        [request] = server.requests
    assert "torch-lighter: Light it only when asked to." in request["messages"][0]["content"]


def test_guidance_that_is_no_text_is_a_mistake_that_names_its_file(lore: Path) -> None:
    (lore.parent / "skills").mkdir(exist_ok=True)
    (lore.parent / "skills" / "torch-lighter.md").write_bytes(b"\xff")
    with pytest.raises(StoryInvalid, match=r"skills.*torch-lighter\.md:1: it is not UTF-8"):
        Story.load(lore.parent)


def test_guidance_for_a_skill_no_tool_has_is_a_mistake_that_is_said(lore: Path) -> None:
    skills = lore.parent / "skills"
    skills.mkdir()
    (skills / "torch-lihgter.md").write_text("Light it only when asked to.\n")
    with pytest.raises(StoryInvalid, match=r"torch-lihgter\.md: no tool belongs to the skill.*torch-lighter"):
        Story.load(lore.parent)


def played(tmp_path: Path) -> tuple[Story, Store, Journal]:
    story, store = Story.load(STORY), default_store(tmp_path / "home")
    session = Session(state=story.state, permissions=story.permissions, assets=store.assets)
    return story, store, store.create(session, story=story.id, title=story.title)


async def test_a_turn_that_was_undone_is_not_remembered_until_it_is_redone(tmp_path: Path) -> None:
    story, store, journal = played(tmp_path)
    mine = Reads(PlanDocument(narrative="A crow answers from the ivory gate."))
    try:
        game = Game(story, journal.session, narrator=mine, generation_timeout=60)
        game.begin()
        await game.prompt("whistle a tune to the crow")
        remembered = "whistle a tune to the crow → A crow answers from the ivory gate."
        await game.prompt("whistle to the crow")
        assert remembered in mine.told
        await undo_to(journal, 1)
        await redo(journal)
        await game.prompt("whistle to the crow")
        assert remembered in mine.told
        await undo_to(journal, 1)
        await game.prompt("whistle to the crow")
        assert mine.told == []
    finally:
        await journal.close()
        store.close()


async def test_a_session_opened_again_remembers_its_first_turns(tmp_path: Path) -> None:
    story, store, journal = played(tmp_path)
    first = PlanDocument(narrative="The crow takes the silver thimble.")
    mine = Reads(first, PlanDocument(narrative="Nothing moves."), reads=False)
    try:
        game = Game(story, journal.session, narrator=mine, generation_timeout=60)
        game.begin()
        await game.prompt("offer the crow my silver thimble")
        for number in range(40):  # more than a session keeps at hand
            await game.prompt(f"count to {number}")
        await journal.close()
        journal = store.open(journal.session.id)
        mine.reads = True
        again = Game(story, journal.session, narrator=mine, generation_timeout=60)
        await again.resume()
        remembered: list[str] = []
        for _ in range(20):  # the older turns come a portion at a time
            await again.prompt("where is the silver thimble that I offered to the crow?")
            remembered += mine.told
    finally:
        await journal.close()
        store.close()
    assert "offer the crow my silver thimble → The crow takes the silver thimble." in remembered
