"""Moving a store from SQLite to PostgreSQL, and back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from digging import Outside, new_game, play

from narratoria.errors import JournalError, SessionBusy
from narratoria.session.record import Record
from narratoria.store.fold import fold
from narratoria.store.moving import move_store
from narratoria.store.postgres import PostgresStore
from narratoria.store.salvage.verification import verify
from narratoria.store.sqlite import SqliteStore

pytestmark = pytest.mark.postgres


def records(store: SqliteStore | PostgresStore, session: str) -> list[Record]:
    return list(store.read(session))


async def test_a_store_is_moved_with_its_branches_and_assets(postgres_database: str, tmp_path: Path) -> None:
    old = SqliteStore(tmp_path / "old.db", assets=tmp_path / "old")
    registry = Outside(tmp_path).registry()
    journal = new_game(old)
    await play(journal, registry, "dig 1", "dig 2")
    with (
        pytest.raises(SessionBusy),
        closing(PostgresStore(postgres_database, assets=tmp_path / "new")) as new,
    ):
        move_store(old, new)
    await journal.close()
    branch = old.branch(journal.session.id, 1).id
    old.delete(journal.session.id)  # its past stays, hidden, for the branch
    other = new_game(old)
    await play(other, registry, "dig 3")
    await other.close()
    with closing(PostgresStore(postgres_database, assets=tmp_path / "new")) as new:
        moved = move_store(old, new)
        assert {one.id for one in moved} == {branch, other.session.id} and all(one.copied for one in moved)
        assert sum(one.assets for one in moved) == 2
        for one in moved:
            assert records(new, one.id) == records(old, one.id)
        assert all(one.sound for one in verify(new, new.list()))
        assert not any(one.copied for one in move_store(old, new)), "what is there is not copied again"
        going_on = new.open(branch)
        await play(going_on, registry, "dig 4")
        await going_on.close()
        assert [turn.prompt for turn in fold(new.read(branch)).told] == ["dig 1", "dig 4"]
        with pytest.raises(JournalError, match="with other records"):
            move_store(old, new)
        with closing(SqliteStore(tmp_path / "back.db", assets=tmp_path / "back")) as back:
            move_store(new, back)
            assert records(back, branch) == records(new, branch)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE narratoria.contents SET data = 'other'")
    with (
        closing(PostgresStore(postgres_database, assets=tmp_path / "new")) as new,
        closing(SqliteStore(tmp_path / "back.db", assets=tmp_path / "back")) as back,
        pytest.raises(JournalError, match="did not arrive whole"),
    ):
        move_store(back, new)
    old.close()
