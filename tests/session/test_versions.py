"""Databases of every released schema are still read and played."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from digging import Outside, play

from narratoria.session import Session
from narratoria.session.fold import fold
from narratoria.session.postgres import PostgresStore
from narratoria.session.sqlite import SqliteStore
from narratoria.session.store import SCHEMA_VERSION

RECORDED = Path(__file__).with_name("databases")


def test_there_is_a_database_of_every_version() -> None:
    assert {path.name for path in RECORDED.glob("*.db")} == {
        f"version-{number}.db" for number in range(1, SCHEMA_VERSION + 1)
    }


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
async def test_a_database_of_that_version_is_read_and_played_on(
    tmp_path: Path, version: int, driver: str
) -> None:
    shutil.copyfile(RECORDED / f"version-{version}.db", tmp_path / "sessions.db")
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
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
    await play(journal, Outside(tmp_path).registry(), "dig 6")
    await journal.close()
    assert store.restore("recorded").state["last"] == 6
    store.close()


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
from narratoria.session.sqlite import SqliteStore
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
def test_a_shared_database_of_the_first_version_is_brought_up_to_date(
    tmp_path: Path, postgres_database: str
) -> None:
    store = PostgresStore(postgres_database, assets=tmp_path)
    store.create(Session("old", assets=store.assets), story="digging").release()
    for statement in ("ALTER TABLE sessions DROP COLUMN folder", "UPDATE version SET number = 1"):
        store.writer.run(lambda database, statement=statement: database.execute(statement))
    store.close()
    store = PostgresStore(postgres_database, assets=tmp_path)
    store.relocate("old", "/stories/digging")
    assert store.meta("old").folder == "/stories/digging"
    assert store.query("SELECT number FROM version") == [(SCHEMA_VERSION,)]
    store.close()
