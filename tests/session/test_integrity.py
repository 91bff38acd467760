"""Damage to a store is noticed: what is read is what was written, or an error names the place."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from digging import Outside, new_game, play, world

from narratoria.errors import JournalError
from narratoria.session import Session
from narratoria.store.portable import export_session, import_session
from narratoria.store.postgres import PostgresStore
from narratoria.store.salvage.salvage import salvage
from narratoria.store.salvage.verification import verify
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import JournalDamaged, Store
from narratoria.web.library import Shelf

HERE = Path(__file__).parent
RECORDED = HERE / "lived-in.db"
REFUSED = "refused"


def changed(path: Path, sql: str, *values: Any) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(sql, values).rowcount, sql
    connection.commit()
    connection.close()


def tried(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except JournalError:
        return REFUSED


def everything(store: Store, ids: list[str]) -> dict[str, Any]:
    """All that can be read of a store, piece by piece; damage is `REFUSED`."""
    found: dict[str, Any] = {"list": tried(store.list)}
    for one in ids:
        found[f"{one} meta"] = tried(lambda one=one: store.meta(one))
        found[f"{one} world"] = tried(lambda one=one: world(store.restore(one)))
        found[f"{one} records"] = tried(lambda one=one: list(store.read(one)))
        found[f"{one} turn"] = tried(lambda one=one: store.read_turn(one, 3))
    return found


def is_sound(store: Store) -> bool:
    return bool(
        tried(lambda: not store.table_faults() and all(not one.faults for one in verify(store, store.list())))
        is True
    )


def copied(source: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return Path(shutil.copyfile(source, folder / "sessions.db"))


@pytest.mark.parametrize("flips", [30, pytest.param(6000, marks=pytest.mark.slow)])
def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path, flips: int) -> None:
    path = copied(RECORDED, tmp_path / "home")
    store = SqliteStore(path)
    ids = [one.id for one in store.list()]
    truth, tables = everything(store, ids), (store.asset_hashes(), [store.turns(one) for one in ids])
    assert REFUSED not in truth.values()
    assert is_sound(store)
    store.close()
    content, dice = path.read_bytes(), random.Random(f"flips {flips}")
    noticed = 0
    for _ in range(flips):
        broken, place, mask = bytearray(content), dice.randrange(len(content)), dice.randrange(1, 256)
        broken[place] ^= mask
        path.write_bytes(broken)
        store = SqliteStore(path)
        found = everything(store, ids)
        for what, value in found.items():
            if what == "list" and value != REFUSED:
                assert len(value) == len(truth["list"])  # one that is damaged may stand in another place
                value = truth["list"] if all(one.damaged or one in truth["list"] for one in value) else value
            assert value in (REFUSED, truth[what]), f"byte {place} ^ {mask}: {what} is silently different"
        if is_sound(store):
            assert found == truth, f"byte {place} ^ {mask}: verify finds nothing"
            assert (store.asset_hashes(), [store.turns(one) for one in ids]) == tables, (place, mask)
        else:
            noticed += 1
        store.close()
    assert noticed > flips // 4


def test_a_damaged_number_that_leads_the_database_astray_is_noticed(tmp_path: Path) -> None:
    path = copied(RECORDED, tmp_path / "home")
    content = bytearray(path.read_bytes())
    content[59676] ^= 190  # the last record of a batch in mid-game, which becomes a negative number
    path.write_bytes(content)
    store = SqliteStore(path)
    for one in store.list():
        if one.parent is not None:
            with pytest.raises(JournalDamaged, match="differs from its checksum"):
                store.restore(one.id)
    store.close()


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_lost_batch_is_named_with_what_is_whole_before_it(tmp_path: Path, every: int) -> None:
    path = copied(RECORDED, tmp_path / "home")
    store = SqliteStore(path)
    long = max(store.list(), key=lambda one: one.last_seq)
    (branch,) = (one for one in store.list() if one.parent == long.id)
    key, snapshot = store.query("SELECT session, max(seq) FROM snapshots GROUP BY session ORDER BY 2 DESC")[0]
    before, last = world(store.restore(long.id)), long.last_seq
    batches = store.query("SELECT first_seq, last_seq FROM batches WHERE session = ? ORDER BY 2", (key,))
    store.close()
    whole = path.read_bytes()
    for (_, reached), (first, end) in list(itertools.pairwise(batches))[::every]:
        changed(path, "DELETE FROM batches WHERE session = ? AND last_seq = ?", key, end)
        store = SqliteStore(path)
        with pytest.raises(JournalDamaged) as raised:
            list(store.read(long.id))
        message = str(raised.value)
        assert f"session {long.id} is damaged" in message
        assert "is missing" in message
        assert f"whole up to record {reached}" in message
        assert "narratoria sessions salvage" in message
        if end < snapshot:  # an opening does not read that far back
            assert world(store.restore(long.id)) == before
        else:
            with pytest.raises(JournalDamaged):
                store.open(long.id)
        shared = next(one.last for one in store.turns(long.id) if one.turn == 8) or 0
        assert (tried(lambda: list(store.read(branch.id))) == REFUSED) == (first <= shared)  # noqa: B023
        assert not is_sound(store)
        (card,) = (Shelf(store).card(one, [], None) for one in store.list() if one.id == long.id)
        assert ("is damaged" in card.excerpt) == (end >= snapshot)
        store.close()
        path.write_bytes(whole)
    assert last > snapshot > batches[2][1]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET title = 'Another'",
        "UPDATE sessions SET parent_seq = parent_seq - 1 WHERE parent IS NOT NULL",
        "UPDATE sessions SET last_seq = (SELECT min(last_seq) FROM batches WHERE session = key) WHERE parent IS NULL",
        "UPDATE batches SET checksum = NULL WHERE last_seq > 20",
        "UPDATE turns SET last_seq = first_seq WHERE turn = 3",
        "DELETE FROM snapshots WHERE seq > 1 AND seq = (SELECT min(seq) FROM snapshots WHERE seq > 1)",
        "UPDATE snapshots SET data = (SELECT data FROM snapshots WHERE seq = 1 LIMIT 1) WHERE seq > 1",
        "DELETE FROM assets WHERE hash = (SELECT min(hash) FROM assets)",
        "UPDATE sessions SET hidden = 1 WHERE parent IS NOT NULL",
    ],
)
async def test_whatever_is_changed_verify_finds_it_and_salvage_calls_nothing_whole_that_differs(
    tmp_path: Path, change: str
) -> None:
    path = copied(RECORDED, tmp_path / "home")
    store = SqliteStore(path)
    truth = {
        one.id: (one.title, list(store.read(one.id)), world(store.restore(one.id))) for one in store.list()
    }
    if "DELETE FROM snapshots" in change:  # so that one follows it
        journal = store.open(max(truth, key=lambda one: len(truth[one][1])))
        journal._since_snapshot = 1 << 20  # one is due
        await play(journal, Outside(tmp_path).registry(), "dig 50")
        await journal.close()
        truth = {
            one.id: (one.title, list(store.read(one.id)), world(store.restore(one.id)))
            for one in store.list()
        }
    store.close()
    changed(path, change)
    store = SqliteStore(path)
    assert not is_sound(store)
    store.close()
    outcome = salvage(path)
    assert outcome.damaged is not None
    store = SqliteStore(path)
    for one in outcome.sessions:
        if one.whole:
            assert (one.title, list(store.read(one.id)), world(store.restore(one.id))) == truth[one.id]
    assert is_sound(store)
    store.close()


async def test_the_chain_of_an_old_session_begins_with_its_first_new_batch(tmp_path: Path) -> None:
    path = copied(HERE / "databases" / "version-2.db", tmp_path / "home")
    store = SqliteStore(path)
    before = list(store.read("recorded"))
    assert store.unchecked("recorded") == len(before)
    journal = store.open("recorded")
    await play(journal, Outside(tmp_path).registry(), "dig 6")
    await journal.close()
    assert store.unchecked("recorded") == len(before), "what was written then is not vouched for"
    assert list(store.read("recorded"))[: len(before)] == before
    child = store.branch("recorded", 1)
    assert list(store.read(child.id))
    assert is_sound(store)
    file = tmp_path / "game.narratoria"
    export_session(store, "recorded", file)
    other = SqliteStore(tmp_path / "other" / "sessions.db")
    assert other.unchecked(import_session(other, file).id) == 0, "an import makes the chain anew"
    assert is_sound(other)
    other.close()
    store.close()
    changed(path, "UPDATE batches SET checksum = NULL WHERE first_seq = ? AND session = 1", len(before) + 1)
    store = SqliteStore(path)
    with pytest.raises(JournalDamaged, match=rf"has no checksum; it is whole up to record {len(before)}"):
        list(store.read("recorded"))
    store.close()


@pytest.mark.postgres
async def test_damage_to_a_shared_database_is_noticed(tmp_path: Path, postgres_database: str) -> None:
    store = PostgresStore(postgres_database, assets=tmp_path)
    journal = new_game(store, Session("shared", assets=store.assets))
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
    await journal.close()
    store.rename("shared", "A title – ☂")
    child = store.branch("shared", 1)
    assert is_sound(store)
    for change, what in (
        (
            "UPDATE batches SET data = data || '\\x00' WHERE last_seq = 1",
            "records 1 to 1 differs from its checksum",
        ),
        ("DELETE FROM batches WHERE last_seq = 1", "does not follow the one before"),
    ):
        store.writer.run(lambda database, change=change: database.execute(change))
        for one in ("shared", child.id):
            with pytest.raises(JournalDamaged, match=what) as raised:
                list(store.read(one))
            assert "Restore a backup of the database" in str(raised.value)
    store.close()
