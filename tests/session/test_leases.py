"""Leases of a shared store, and commits whose answer never came."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from digging import Outside, new_game, play

from narratoria.errors import JournalError, LeaseLost, SessionBusy, SessionElsewhere
from narratoria.events import Notice
from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresDatabase, PostgresStore
from narratoria.store.writer import Database

pytestmark = pytest.mark.postgres


class _Unanswered(PostgresDatabase):
    """A connection that is lost after a commit and before its answer, once."""

    def __init__(self, url: str, store: _Lossy) -> None:
        super().__init__(url)
        self._store = store

    def commit(self) -> None:
        super().commit()
        if self._store.armed:
            self._store.armed = False
            self.close()
            raise JournalError("the answer was lost")


class _Lossy(PostgresStore):
    armed = False

    def _connect(self) -> Database:
        super()._connect().close()
        return _Unanswered(self.url, self)


async def test_a_commit_without_an_answer_is_not_done_twice(postgres_database: str, tmp_path: Path) -> None:
    with contextlib.closing(_Lossy(postgres_database, assets=tmp_path / "assets")) as store:
        journal, registry = new_game(store), Outside(tmp_path).registry()
        await play(journal, registry, "dig 1")
        store.armed = True
        results = await play(journal, registry, "dig 2", "dig 3")
        assert [one.unsaved for one in results] == [None, None] and not store.armed
        await journal.close()
        records = list(store.read(journal.session.id))
    assert [one.seq for one in records] == [*range(1, len(records) + 1)]
    assert [turn.prompt for turn in fold(records).told] == ["dig 1", "dig 2", "dig 3"]


async def test_whoever_lost_its_lease_is_refused_although_nobody_has_written_since(
    postgres_database: str, tmp_path: Path
) -> None:
    with (
        contextlib.closing(PostgresStore(postgres_database, assets=tmp_path / "a")) as first,
        contextlib.closing(PostgresStore(postgres_database, assets=tmp_path / "b")) as second,
    ):
        first.keeper.serving = True
        lost: list[str] = []
        first.keeper.on_lost = lost.append
        journal = new_game(first)
        await journal.flush()
        name = journal.session.id
        with pytest.raises(SessionElsewhere) as refused:
            second.open(name)
        assert isinstance(refused.value, SessionBusy) and refused.value.server == first.keeper.id
        first.writer.run(lambda database: database.execute("UPDATE servers SET expires = '-infinity'"))
        first.writer.run(  # as if it had been frozen: no heartbeat until the other has taken the session
            lambda database: database.execute("UPDATE leases SET server = 'gone' WHERE session = ?", (name,))
        )
        other = second.open(name)
        journal.session.record(Notice(level="info", message="late"))
        with pytest.raises(LeaseLost, match=r"taken over by another process .* nothing is written here"):
            await journal.commit_turn()
        assert lost == [name]
        journal.abandon()
        await other.close()
        assert second.meta(name).last_seq == 1
