"""Damage to any page of a database: what could be read before it was salvaged can be read after."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from digging import Outside, new_game, play, trusted_world, world

from narratoria.errors import JournalError
from narratoria.events import RecordsLost
from narratoria.play.history import redo, undo
from narratoria.session.record import Record
from narratoria.store.fold import fold
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.retention import prune
from narratoria.store.salvage.salvage import salvage
from narratoria.store.sqlite import SqliteStore

PAGE = 4096
TURNS = 36  # enough for a snapshot on the way
RECORDED = Path(__file__).with_name("lived-in.db")  # by `lived_in`, so that damage hits the same every time
OLDER = RECORDED.with_name("lived-in-version-2.db")  # without checksums


def scribbled(content: bytearray, page: int, dice: random.Random) -> None:
    """A sector's worth and more, across the border of two pages."""
    at = min(page * PAGE + dice.randrange(PAGE), len(content) - PAGE)
    content[at : at + PAGE] = dice.randbytes(PAGE)


def emptied(content: bytearray, page: int, dice: random.Random) -> None:
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)


def flipped(content: bytearray, page: int, dice: random.Random) -> None:
    content[page * PAGE + dice.randrange(PAGE)] ^= dice.randrange(1, 256)


def headless(content: bytearray, page: int, dice: random.Random) -> None:
    """The beginning of a page tells what it is, and where its rows are."""
    content[page * PAGE : page * PAGE + 64] = dice.randbytes(64)


Damage = Callable[[bytearray, int, random.Random], None]
DAMAGES: dict[str, list[Damage]] = {"apsw": [scribbled, flipped], "sqlite3": [emptied, headless]}


async def played(store: SqliteStore, folder: Path, turns: int) -> str:
    journal, registry = new_game(store), Outside(folder).registry()
    for number in range(turns):
        await play(journal, registry, f"dig {number}")
        if number % 9 == 4:
            await undo(journal, registry)
        if number % 18 == 4:
            await redo(journal)
    await journal.close()
    return journal.session.id


async def lived_in(path: Path) -> list[str]:
    """A long game, a short one, a branch, and pages that a deleted one has left."""
    store = SqliteStore(path)
    long = await played(store, path.parent, TURNS)
    gone = await played(store, path.parent, 4)
    short = await played(store, path.parent, 4)
    store.delete(gone)
    branch = store.branch(long, 8).id
    store.close()
    return [long, short, branch]


Reading = dict[str, tuple[Any, dict[str, Any] | None, list[Record] | None]]


def read(path: Path, ids: list[str], driver: str) -> Reading:
    """What there is of each session: its row, its world, its records; None for what cannot be read."""
    store = SqliteStore(path, driver=driver)

    def tried(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except JournalError:
            return None

    try:
        return {
            one: (
                tried(lambda one=one: store.meta(one)),
                tried(lambda one=one: world(store.restore(one))),
                tried(lambda one=one: list(store.read(one))),
            )
            for one in ids
        }
    finally:
        store.close()


@pytest.fixture
def quick_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory where the system has such a place: a hundred files are made durable here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    ("recorded", "driver"),
    [
        (RECORDED, "apsw"),
        pytest.param(RECORDED, "sqlite3", marks=pytest.mark.slow),
        pytest.param(OLDER, "apsw", marks=pytest.mark.slow),
    ],
)
def test_damage_to_any_page_loses_nothing_that_can_still_be_read(
    quick_folder: Path, recorded: Path, driver: str
) -> None:
    path = quick_folder / "home" / "sessions.db"
    path.parent.mkdir()
    path.write_bytes(recorded.read_bytes())
    store = SqliteStore(path)
    ids = [one.id for one in store.list()]
    store.close()
    assert len(ids) == 3
    content, truth = path.read_bytes(), read(path, ids, driver)
    dice = random.Random(f"damage {driver}")  # the same every time
    bridged = 0
    for page, damage in itertools.product(range(len(content) // PAGE), DAMAGES[driver]):
        broken = bytearray(content)
        damage(broken, page, dice)
        path.write_bytes(broken)
        what = f"page {page} {damage.__name__}"
        before = read(path, ids, driver)
        assert path.read_bytes() == broken, f"{what}: reading changes nothing"
        outcome = salvage(path)
        kept = outcome.damaged or path
        assert kept.read_bytes() == broken, f"{what}: the damaged file is kept"
        fates = {one.id: one.fate for one in outcome.sessions}
        after = read(path, ids, driver)
        for one in ids:
            if fates.get(one) == "whole":
                assert after[one][1:] == truth[one][1:], f"{what}: what is called whole is"
            if before[one] == truth[one]:
                assert (fates[one], after[one][1:]) == ("whole", truth[one][1:]), what
            elif before[one][1] == truth[one][1]:
                assert after[one][1] == truth[one][1], f"{what}: the world as it was"
                bridged += fates[one] == "partly"
            elif fates.get(one, "lost") != "lost":
                assert after[one][1] is not None, f"{what}: what is saved can be played"
        if outcome.damaged is not None:
            outcome.damaged.unlink()
    assert bridged, "some of the damage must hit records that a snapshot stands for"


def gap(path: Path, session_id: str, first: int, last: int) -> None:
    """Damage the batches that hold these records, where they lie."""
    store = SqliteStore(path)
    rows = store.query(
        "SELECT b.data FROM batches b JOIN sessions s ON s.key = b.session "
        "WHERE s.id = ? AND b.last_seq >= ? AND b.first_seq <= ?",
        (session_id, first, last),
    )
    store.close()
    content = path.read_bytes()
    for (data,) in rows:
        piece = bytes(data)[:60]  # what follows may lie on another page
        assert content.count(piece) == 1
        content = content.replace(piece, bytes(len(piece)))
    path.write_bytes(content)


async def bridged_game(path: Path) -> tuple[str, dict[str, Any], set[int]]:
    """A game whose fourth turn is lost, salvaged; its world before that, and the turns that were told."""
    store = SqliteStore(path)
    session_id = await played(store, path.parent, TURNS)
    before, told = world(store.restore(session_id)), {one.turn for one in fold(store.read(session_id)).told}
    span = next(one for one in store.turns(session_id) if one.turn == 4)
    store.close()
    gap(path, session_id, span.first, span.last or span.first)
    (saved,) = salvage(path).sessions
    assert saved.fate == "partly"
    assert 0 < saved.expected - saved.records < 60, "a few records, not all that came after"
    return session_id, before, told


async def opened(path: Path, session_id: str) -> tuple[SqliteStore, Journal]:
    store = SqliteStore(path)
    return store, store.open(session_id)


async def test_a_game_goes_on_behind_records_that_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id, before, told = await bridged_game(path)
    store, journal = await opened(path, session_id)
    assert world(journal.session) == before
    view = fold(store.read(session_id))
    assert {one.turn for one in view.told} == told - {4}, "every other turn can be read"
    assert view.lost > 0
    assert store.meta(session_id).turns == len(told)
    registry = Outside(tmp_path).registry()
    await play(journal, registry, "dig 777")
    await undo(journal, registry)
    assert world(journal.session) == before
    await journal.close()
    assert world(store.restore(session_id)) == before
    store.close()


async def test_how_things_stood_in_a_gap_is_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id, _, _ = await bridged_game(path)
    store = SqliteStore(path)
    third, fifth = (next(one for one in store.turns(session_id) if one.turn == turn) for turn in (3, 5))
    assert store.restore(session_id, upto=third.last).state["last"] == 2
    with pytest.raises(JournalError, match="lost to damage; it is known again from record"):
        store.restore(session_id, upto=fifth.last)
    with pytest.raises(JournalError, match="lost to damage"):
        store.branch(session_id, 5)
    store.close()


async def test_a_bridged_game_survives_export_another_salvage_and_prune(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session_id, before, _ = await bridged_game(path)
    store = SqliteStore(path)
    losses = [one.event for one in store.read(session_id) if isinstance(one.event, RecordsLost)]
    later = max(one.stat().st_mtime for one in (tmp_path / "assets").glob("??/*")) + 7200
    prune(store, now=later)
    for _, digest in before["assets"]:
        assert digest in store.assets, "pictures of lost records are still referred to"
    export_session(store, session_id, tmp_path / "game.narratoria")
    store.close()
    other = SqliteStore(tmp_path / "other" / "sessions.db")
    imported = import_session(other, tmp_path / "game.narratoria")
    assert trusted_world(other, imported.id, before) == before
    other.close()

    again = salvage(path)
    assert again.damaged is None
    assert [(one.fate, one.lost_before) for one in again.sessions] == [
        ("partly", sum(one.count for one in losses))
    ]
    gap(path, session_id, 1, 1)
    (twice,) = salvage(path).sessions
    assert twice.fate == "partly"
    store = SqliteStore(path)
    assert world(store.restore(session_id)) == before
    store.close()


async def test_what_only_the_log_holds_is_saved_from_a_damaged_file(tmp_path: Path) -> None:
    """As after a crash: what was played last is not in the file itself yet."""
    path, crashed = tmp_path / "sessions.db", tmp_path / "crashed"
    store = SqliteStore(path)
    older = await played(store, tmp_path, 16)
    store.close()
    store = SqliteStore(path)
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), *[f"dig {number}" for number in range(12)])
    before, newer = world(journal.session), journal.session.id
    rows = store.query("SELECT data FROM batches WHERE last_seq > 20 ORDER BY session, last_seq")
    log = path.with_name("sessions.db-wal").read_bytes()
    piece = next(bytes(data)[:60] for (data,) in rows if bytes(data)[:60] not in log)
    content = path.read_bytes()
    await journal.close()
    store.close()
    crashed.mkdir()
    (crashed / "assets").symlink_to(tmp_path / "assets")
    assert content.count(piece) == 1
    (crashed / path.name).write_bytes(content.replace(piece, bytes(len(piece))))
    (crashed / "sessions.db-wal").write_bytes(log)
    outcome = salvage(crashed / path.name)
    assert outcome.damaged is not None
    assert {one.id: one.fate for one in outcome.sessions} == {older: "partly", newer: "whole"}
    store = SqliteStore(crashed / path.name)
    assert world(store.restore(newer)) == before
    store.close()


async def test_a_deleted_session_does_not_come_back_by_salvage(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    ids = await lived_in(path)
    content = bytearray(path.read_bytes())
    content[100:PAGE] = bytes(PAGE - 100)  # which tables there are
    path.write_bytes(content)
    outcome = salvage(path)
    assert {one.id for one in outcome.sessions} == set(ids)
    assert all(one.whole for one in outcome.sessions)


async def test_a_damaged_snapshot_is_damage_though_every_record_is_there(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = SqliteStore(path)
    session_id = await played(store, tmp_path, TURNS)
    before = world(store.restore(session_id))
    data = bytes(store.query("SELECT data FROM snapshots ORDER BY seq DESC LIMIT 1")[0][0])
    store.close()
    content = path.read_bytes()
    assert content.count(data[:60]) == 1
    path.write_bytes(content.replace(data[:60], bytes(60)))
    outcome = salvage(path)
    assert outcome.damaged is not None
    assert [one.fate for one in outcome.sessions] == ["whole"]
    store = SqliteStore(path)
    assert world(store.restore(session_id)) == before
    store.close()
