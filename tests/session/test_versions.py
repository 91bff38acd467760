"""Databases of every released schema are still read and played."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from digging import Outside, new_game, play, world
from mill_player import play as grind

from narratoria.play.history import undo
from narratoria.session import Session
from narratoria.store import record_batches as chunks
from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresStore
from narratoria.store.restoration import Restoration
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SCHEMA_VERSION
from narratoria.store.timeline import Timeline

RECORDED = Path(__file__).with_name("databases")


DIALECTS = sorted(path.stem for path in RECORDED.glob("*.db"))
PRESENT = f"version-{SCHEMA_VERSION}"  # made by record_database.py


def test_there_is_a_database_of_every_version() -> None:
    versions = {f"version-{number}" for number in range(1, SCHEMA_VERSION + 1)}
    assert versions < set(DIALECTS)
    assert {"version-2-early"} == set(DIALECTS) - versions, (
        "written before runs and snapshots of what changed"
    )


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_database_of_that_version_is_read_and_played_on(
    tmp_path: Path, dialect: str, driver: str
) -> None:
    shutil.copyfile(RECORDED / f"{dialect}.db", tmp_path / "sessions.db")
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
    assert store.meta("recorded").turns == 4, "the one taken back does not count"
    session = store.restore("recorded")
    assert session.snapshot() == {
        "start": True,
        "holes": {"1": {"depth": 1}, "3": {"depth": 3}},
        "last": 3,
    }
    assert session.permissions == {"begin", "hole:1", "hole:3"}
    assert [one["value"] for one in session.memory.read("episodic", "dug")] == [1, 3]
    view = fold(store.read("recorded"))
    assert [(turn.prompt, turn.undone) for turn in view.turns] == [
        ("dig 1", False), ("break 2", False), ("dig 3", False), ("ring 4", False), ("dig 5", True)
    ]  # fmt: skip
    journal = store.open("recorded")
    assert store.meta("recorded").turns == 4
    await play(journal, Outside(tmp_path).registry(), "dig 6")
    await journal.close()
    assert store.restore("recorded").state["last"] == 6
    assert store.meta("recorded").turns == 5
    store.close()


async def test_whoever_looks_at_an_old_database_sees_what_another_process_makes_of_it(tmp_path: Path) -> None:
    shutil.copyfile(RECORDED / "version-1.db", tmp_path / "sessions.db")
    looking, playing = (SqliteStore(tmp_path / "sessions.db") for _ in range(2))
    assert looking.meta("recorded").turns == 4
    journal = playing.open("recorded")
    await play(journal, Outside(tmp_path).registry(), "dig 6")
    await journal.close()
    assert looking.meta("recorded").turns == 5
    looking.close()
    playing.close()


# --- what is written now -------------------------------------------------------------------------------------


def dialect_of(store: SqliteStore) -> set[str]:
    """What kinds of lines and snapshots lie in a store."""
    lines = [chunks.unpack(bytes(data), "a batch") for (data,) in store.query("SELECT data FROM batches")]
    later = store.query("SELECT data FROM snapshots WHERE seq > 1")
    assets = [chunks.parted(bytes(data), "a snapshot")[0] for (data,) in later]
    return {
        *({"runs of events"} if any(b'"emitted":[' in line for line in lines) else ()),
        *({"snapshots with what became of the assets"} if any(b'"made"' in one for one in assets) else ()),
        *({"snapshots with all assets"} if any(not one for one in assets) else ()),
    }


async def test_the_database_of_this_version_has_what_is_written_now(tmp_path: Path) -> None:
    written = SqliteStore(tmp_path / "written" / "sessions.db")
    await grind(written, "milled", 6)
    shutil.copyfile(RECORDED / f"{PRESENT}.db", tmp_path / "sessions.db")
    store = SqliteStore(tmp_path / "sessions.db")
    assert dialect_of(store) == dialect_of(written) != set(), "run record_database.py, and keep the old file"
    store.close()
    written.close()


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
async def test_runs_and_snapshots_of_this_version_are_read_and_played_on(tmp_path: Path, driver: str) -> None:
    shutil.copyfile(RECORDED / f"{PRESENT}.db", tmp_path / "sessions.db")
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
    meta, restored = store.meta("milled"), store.restore("milled")
    assert (meta.turns, meta.last_seq) == (12, restored.seq), (
        "14 turns, of which the 7th and the 14th are undone"
    )
    whole = Session("milled")
    Restoration(whole, Timeline(), partial(store.read_turn, "milled")).apply_all(store.read("milled"))
    assert world(restored) == world(whole), "what snapshots say is what all records say"
    assert restored.state["count"] == {"ground": 24}
    assert len(restored.asset_records) == 24
    view = fold(store.read("milled"))
    assert [turn.turn for turn in view.turns if turn.undone] == [7, 14]
    patches = [call.attempts[0].patches for turn in view.told for call in turn.calls if call.tool == "grind"]
    assert [len(one) for one in patches] == [4] * 24
    await grind(store, "milled", 15)
    assert store.restore("milled").state["count"] == {"ground": 26}
    store.close()


# --- older versions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
def test_only_writing_brings_an_old_database_up_to_date(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    shutil.copyfile(RECORDED / "version-1.db", path)
    before = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    assert [meta.folder for meta in store.list()] == [None]
    assert path.read_bytes() == before
    store.relocate("recorded", "/stories/digging")
    assert store.meta("recorded").folder == "/stories/digging"
    assert store.query("PRAGMA user_version") == [(SCHEMA_VERSION,)]
    store.close()


READ = """
import os, sqlite3, sys  # all of them while we still may read them
from pathlib import Path
from narratoria.store.sqlite import SqliteStore
path, driver = sys.argv[1:]
if os.getuid() == 0:
    os.setuid(65534)
store = SqliteStore(Path(path), driver=driver)
(meta,) = store.list()
print(meta.id, meta.folder, store.restore("recorded").state["last"])
store.close()
"""


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
def test_an_old_database_that_cannot_be_written_is_read_as_it_is(driver: str) -> None:
    with tempfile.TemporaryDirectory(prefix="narratoria-readonly-") as folder:  # pytest's own is for one user
        path = Path(folder) / "sessions.db"
        shutil.copyfile(RECORDED / "version-1.db", path)
        before = path.read_bytes()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ, path, driver], capture_output=True, text=True, timeout=60
        )
        Path(folder).chmod(0o755)
        assert done.stdout == "recorded None 3\n", done.stderr
        assert path.read_bytes() == before


@pytest.mark.postgres
async def test_a_shared_database_of_the_first_version_is_brought_up_to_date(
    tmp_path: Path, postgres_database: str
) -> None:
    store = PostgresStore(postgres_database, assets=tmp_path)
    journal = new_game(store, Session("old", assets=store.assets))
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
    await undo(journal)
    await journal.close()
    for statement in (
        "ALTER TABLE sessions DROP COLUMN folder, DROP COLUMN chained, DROP COLUMN head, DROP COLUMN seal",
        "ALTER TABLE batches DROP COLUMN checksum",
        "ALTER TABLE turns DROP COLUMN seal",
        "ALTER TABLE snapshots DROP COLUMN checksum",
        "UPDATE version SET number = 1",
        "UPDATE sessions SET turns = 2",  # as it was counted then
    ):
        store.writer.run(lambda database, statement=statement: database.execute(statement))
    store.close()
    store = PostgresStore(postgres_database, assets=tmp_path)
    assert store.meta("old").turns == 1
    store.relocate("old", "/stories/digging")
    assert store.meta("old").folder == "/stories/digging"
    assert store.query("SELECT number FROM version") == [(SCHEMA_VERSION,)]
    journal = store.open("old")
    await play(journal, Outside(tmp_path).registry(), "dig 3")
    await journal.close()
    assert 0 < store.unchecked("old") < len(list(store.read("old")))
    store.close()
