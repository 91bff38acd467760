"""The journal: what is recorded is kept, in order, and makes the same session again."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from digging import Digger, Outside, Stone, new_game, play, world

from narratoria.errors import JournalError, SessionBusy
from narratoria.events import CallEmitted, CallFinished, Log, Notice, TurnCommitted, TurnStarted
from narratoria.kinds.process.process_tool import process_tool
from narratoria.play.history import undo
from narratoria.play.resume import open_turn
from narratoria.play.turn import take_turn
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.store.fold import fold
from narratoria.store.store import SessionUnknown, Store


async def test_a_session_opened_again_is_the_one_that_was_closed(make_store, tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    journal = new_game(make_store())
    await play(journal, outside.registry(), "dig 1", "break 2", "dig 3", "talk")
    before = world(journal.session)
    await journal.close()

    again = make_store().open(journal.session.id)
    assert world(again.session) == before
    assert before["state"]["last"] == 3
    assert "2" not in before["state"]["holes"], "a failed call's patches are recorded but never folded"
    assert again.session.turn_count == 4
    assert again.session.seq == journal.session.seq
    again.session.register_reducer(Stone, lambda values, event: (*values, event))
    assert again.session[Stone].all() == (Stone(1), Stone(3))
    await again.close()


async def test_the_clock_going_back_changes_nothing_but_the_times(make_store, tmp_path: Path) -> None:
    store = make_store()
    times = iter(range(10**6, 0, -7))
    session = Session(assets=store.assets, clock=lambda: float(next(times)))
    journal = store.create(session, story="digging")
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
    await journal.close()
    stamps = [record.ts for record in store.read(session.id, 1)]
    assert stamps == sorted(stamps, reverse=True)
    assert store.restore(session.id).snapshot() == session.snapshot()
    assert [record.seq for record in store.read(session.id)] == list(range(1, session.seq + 1))


async def test_snapshots_spare_the_fold_of_everything_before(store: Store, tmp_path: Path) -> None:
    journal = new_game(store)
    for number in range(60):
        journal.session.turn = journal.session.turn_count = number
        journal.session.record(TurnStarted(turn=number, prompt="p"))
        journal.session.patch({"n": number, "text": "x".join(str(number * i) for i in range(900))})
        journal.session.record(TurnCommitted(turn=number))
        journal.session.turn = None
        await journal.commit_turn()
    rows = store.query("SELECT seq FROM snapshots ORDER BY seq")
    assert len(rows) > 2, "a long game has snapshots after the first"
    assert rows[-1][0] < journal.session.seq
    assert store.restore(journal.session.id).snapshot() == journal.session.snapshot()
    at = store.restore(journal.session.id, upto=store.turns(journal.session.id)[10].last)
    assert at.state["n"] == 10
    await journal.close()


async def test_a_committed_turn_is_on_the_disk_before_the_turn_returns(make_store, tmp_path: Path) -> None:
    journal = new_game(make_store())
    (result,) = await play(journal, Outside(tmp_path).registry(), "dig 1")
    other = make_store()
    told = fold(other.read(journal.session.id)).told
    assert [turn.narrative for turn in told] == [result.narrative]
    assert journal.written == journal.session.seq
    await journal.close()


async def test_viewers_learn_of_a_record_once_it_is_written(make_store, tmp_path: Path) -> None:
    store, seen = make_store(), []

    class Viewer:
        full = False

        async def wait(self) -> None:
            return None

        def push(self, record: Record) -> None:
            stored = {one.seq for one in other.read(journal.session.id, record.seq - 1, 1)}
            seen.append((record.seq, record.seq in stored))

    other = make_store()
    journal = new_game(store)
    journal.attach(Viewer())
    await play(journal, Outside(tmp_path).registry(), "dig 1")
    await journal.close()
    assert [seq for seq, _ in seen] == list(range(2, journal.session.seq + 1)), "1 is the beginning itself"
    assert all(stored for _, stored in seen)


async def test_what_a_tool_emitted_at_once_is_read_as_single_records_again(
    make_store, tmp_path: Path
) -> None:
    source = tmp_path / "many"
    said = [
        '{"version":"0","type":"log","level":"info","message":"\\"emitted\\":[ is only text"}',
        *(
            f'{{"version":"0","type":"state_patch","patch":{{"n":{n},"at":{{"{n % 3}":{n}}}}}}}'
            for n in range(40)
        ),
        '{"version":"0","type":"state_patch","patch":{"at":7}}',
        '{"version":"0","type":"state_patch","patch":{"at":{"new":1}}}',
        '{"version":"0","type":"done","ok":true}',
    ]
    source.write_text("#!/bin/sh\ncat > /dev/null\ncat <<'E'\n" + "\n".join(said) + "\nE\n")
    source.chmod(0o755)
    store = make_store()
    journal = new_game(store)
    seen = _Seen()
    journal.attach(seen)
    before = journal.session.snapshot()
    journal.session.turn = 1
    journal.session.record(TurnStarted(turn=1, prompt="go"))
    result = await ToolRegistry().executor.execute(process_tool(source), {}, session=journal.session)
    assert result.success
    assert result.value == {"n": 39, "at": {"new": 1}}
    journal.session.record(TurnCommitted(turn=1))
    journal.session.turn = None
    await journal.close()

    records = list(store.read(journal.session.id))
    assert [record.seq for record in records] == list(range(1, journal.session.seq + 1))
    assert [record.seq for record in seen.records] == [record.seq for record in records[1:]]
    emitted = [record.event.event for record in records if isinstance(record.event, CallEmitted)]
    assert len(emitted) == len(said)
    restored = store.restore(journal.session.id)
    assert restored.snapshot() == journal.session.snapshot() == {**before, "n": 39, "at": {"new": 1}}
    again = make_store().open(journal.session.id)
    await undo(again, ToolRegistry())
    assert again.session.snapshot() == before
    await again.close()


class _Seen:
    """A viewer that keeps everything."""

    full = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    def push(self, record: Record) -> None:
        self.records.append(record)

    async def wait(self) -> None:
        return None


async def test_reading_goes_on_after_any_record(store: Store, tmp_path: Path) -> None:
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
    everything = list(store.read(journal.session.id))
    middle = len(everything) // 2
    assert list(store.read(journal.session.id, everything[middle].seq)) == everything[middle + 1 :]
    assert (
        list(store.read(journal.session.id, everything[middle].seq, 3)) == everything[middle + 1 : middle + 4]
    )
    assert list(store.read(journal.session.id, everything[-1].seq)) == []
    await journal.close()


async def test_two_writers_never_have_one_session(make_store) -> None:
    journal = new_game(make_store())
    other = make_store()
    with pytest.raises(SessionBusy, match="is open"):
        other.open(journal.session.id)
    with pytest.raises(SessionBusy):
        other.delete(journal.session.id)
    await journal.close()
    taken = other.open(journal.session.id)
    await taken.close()


@pytest.mark.postgres
async def test_a_second_server_is_told_which_process_has_the_session(
    postgres_database: str, tmp_path: Path
) -> None:
    from narratoria.store.postgres import PostgresStore

    store = PostgresStore(postgres_database, assets=tmp_path)
    journal = new_game(store)
    script = (
        "import sys\n"
        "from narratoria.store.postgres import PostgresStore\n"
        "PostgresStore(sys.argv[1]).open(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", script, postgres_database, journal.session.id]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    holder = f"process {os.getpid()} on {socket.gethostname()}"[:40]
    assert f"SessionBusy: session {journal.session.id} is open in {holder}" in done.stderr
    await journal.close()
    assert (await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60)).returncode == 0
    store.close()


async def test_servers_take_turns_with_one_session(make_store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    first = new_game(make_store())
    await play(first, registry, "dig 1")
    first.release()
    second = make_store().open(first.session.id)
    await play(second, registry, "dig 2")
    with pytest.raises(SessionBusy):
        await first.acquire()
    await second.close()
    await first.acquire()
    assert world(first.session) == world(second.session)
    await play(first, registry, "dig 3")
    await first.close()
    prompts = [turn.prompt for turn in fold(make_store().read(first.session.id)).told]
    assert prompts == ["dig 1", "dig 2", "dig 3"]


async def test_a_writer_that_was_overtaken_is_told_and_writes_nothing(make_store, tmp_path: Path) -> None:
    """As when a lock was lost: the store itself refuses a batch that does not follow the last one."""
    registry = Outside(tmp_path).registry()
    first = new_game(make_store())
    await play(first, registry, "dig 1")
    lease, first._lease = first._lease, None
    lease.release()
    second = make_store().open(first.session.id)
    await play(second, registry, "dig 2")
    await second.close()
    first._lease = lease
    result = await take_turn(first.session, "dig 9", narrator=Digger(), registry=registry)
    assert result.unsaved is not None and "another process" in result.unsaved
    assert [t.prompt for t in fold(make_store().read(first.session.id)).told] == ["dig 1", "dig 2"]


async def test_a_turn_cut_short_keeps_what_completed(make_store, tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    journal = new_game(make_store())
    await play(journal, outside.registry(), "dig 1")
    records: list[Record] = []

    class Tap:
        full = False

        async def wait(self) -> None:
            return None

        def push(self, record: Record) -> None:
            records.append(record)

    journal.session.attach(Tap())
    await play(journal, outside.registry(), "dig 2")
    final = world(journal.session)
    await journal.close()
    end = next(index for index, record in enumerate(records) if isinstance(record.event, CallFinished))
    for cut in range(1, len(records)):
        store = make_store()
        crashed = store.adopt(
            store.meta(journal.session.id),
            [*store.read(journal.session.id, 0, records[0].seq - 1), *records[:cut]],
        )
        again = store.open(crashed.id)
        left = open_turn(again)
        assert left is not None and left.turn == 2 and left.prompt == "dig 2"
        outside.ran.clear()
        await take_turn(
            again.session, left.prompt, narrator=Digger(), registry=outside.registry(), resume=left
        )
        committed = any(type(record.event).__name__ == "Committed" for record in records[:cut])
        assert outside.ran == ([] if committed or cut > end else ["dig 2"])
        assert world(again.session)["state"] == final["state"]
        assert [one["value"] for one in again.session.memory.read("episodic", "dug")] == [1, 2]
        assert again.session.past == journal.session.past
        await again.close()


async def test_sessions_are_listed_renamed_found_and_deleted(store: Store, tmp_path: Path) -> None:
    one, two = new_game(store), new_game(store)
    await play(one, Outside(tmp_path).registry(), "dig 1")
    assert [meta.id for meta in store.list()] == [one.session.id, two.session.id]
    store.rename(one.session.id, "The pit")
    assert store.find(one.session.id[:9]).title == "The pit"
    assert store.meta(one.session.id).turns == 1
    await one.close()
    await two.close()
    store.delete(one.session.id)
    with pytest.raises(SessionUnknown, match="there is no session"):
        store.meta(one.session.id)
    assert [meta.id for meta in store.list()] == [two.session.id]
    assert store.asset_hashes() == set()


async def test_records_made_outside_a_loop_are_written_on_closing(make_store) -> None:
    store = make_store()
    session = Session(assets=store.assets)
    journal = store.create(session)
    asyncio.get_running_loop()
    await asyncio.to_thread(session.record, Notice(level="info", message="from elsewhere"))
    await journal.close()
    assert [record.event.message for record in make_store().read(session.id, 1)] == ["from elsewhere"]


async def test_a_closed_journal_refuses_and_says_so(store: Store) -> None:
    journal = new_game(store)
    await journal.close()
    journal.push(Record(journal.session.seq + 1, 0.0, None, Notice(level="info", message="late")))
    journal.session.seq += 1
    with pytest.raises(JournalError, match="is closed"):
        await journal.commit_turn()


@pytest.mark.postgres
async def test_a_lost_connection_is_made_again_between_turns(postgres_database: str, tmp_path: Path) -> None:
    import psycopg

    from narratoria.store.postgres import PostgresStore

    store = PostgresStore(postgres_database, assets=tmp_path / "assets")
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(end)
    results = await play(journal, registry, "dig 2", "dig 3")
    assert [result.unsaved for result in results] == [None, None]
    other = PostgresStore(postgres_database, assets=tmp_path / "elsewhere")
    with pytest.raises(SessionBusy):
        other.open(journal.session.id)
    await journal.close()
    assert [turn.prompt for turn in fold(other.read(journal.session.id)).told] == ["dig 1", "dig 2", "dig 3"]
    for digest in other.asset_hashes():
        assert other.assets.path_of(digest).read_text().startswith("hole "), "assets come with the database"
    store.close()
    other.close()


class _Faulty:
    """A sink that raises at every record."""

    full = False

    def push(self, record: Record) -> None:
        raise RuntimeError("a fault of a viewer")

    async def wait(self) -> None:
        return None


async def test_a_sink_that_raises_costs_the_journal_no_record(make_store) -> None:
    store = make_store()
    session = Session(assets=store.assets)
    session.attach(_Faulty())  # before the journal, which hears each record after it
    journal = store.create(session, story="digging")
    with pytest.raises(RuntimeError, match="of a viewer"):
        session.record(Notice(level="info", message="heard"))
    with pytest.raises(RuntimeError, match="of a viewer"):
        session.record_emitted("call", [Log(version="0", level="info", message="heard too")])
    async with asyncio.timeout(20):
        await journal.close()
    assert [record.seq for record in store.read(session.id)] == [1, 2, 3]


async def test_a_record_that_never_came_is_said_and_not_waited_for(make_store) -> None:
    journal = new_game(make_store())
    await journal.flush()
    journal.session.seq += 1
    async with asyncio.timeout(20):
        with pytest.raises(JournalError, match="record 2 never came to the journal, which has 1"):
            await journal.flush()
