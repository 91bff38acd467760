"""Databases of every released schema are still read and played."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from digging import Outside, play

from narratoria.session.fold import fold
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
