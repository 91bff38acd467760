"""Storage that fails: what was saved is said, nothing is overwritten, and play goes on where it can."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from digging import Outside, new_game, play

from narratoria.errors import JournalError, SessionBusy
from narratoria.store.fold import fold
from narratoria.store.retention import prune
from narratoria.store.salvage.salvage import Fate, salvage
from narratoria.store.sqlite import SqliteStore

pytestmark = pytest.mark.parametrize("driver", ["apsw", pytest.param("sqlite3", marks=pytest.mark.slow)])


async def filled(path: Path, driver: str, turns: int = 12, sessions: int = 3) -> list[str]:
    """A closed database with a few games in it."""
    store = SqliteStore(path, driver=driver)
    ids = []
    for _ in range(sessions):
        journal = new_game(store)
        await play(journal, Outside(path.parent).registry(), *[f"dig {n}" for n in range(turns)])
        await journal.close()
        ids.append(journal.session.id)
    store.close()
    return ids


async def test_a_full_disk_costs_no_turn_once_there_is_room_again(tmp_path: Path, driver: str) -> None:
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1")
    pages = store.query("PRAGMA page_count")[0][0]
    store.writer.run(lambda db: db.execute(f"PRAGMA max_page_count = {pages}"))
    results = []
    for n in range(2, 40):
        results += await play(journal, registry, f"dig {n}")
        if results[-1].unsaved:
            break
    assert results[-1].unsaved is not None
    assert "the disk is full" in results[-1].unsaved and "saved up to record" in results[-1].unsaved
    assert results[-1].narrative, "the player still gets an answer"
    saved = len(fold(store.read(journal.session.id)).told)
    assert saved == len(results), "all turns but the last one are saved"

    store.writer.run(lambda db: db.execute("PRAGMA max_page_count = 1000000"))
    (after,) = await play(journal, registry, "dig 99")
    assert after.unsaved is None
    await journal.close()
    assert len(fold(store.read(journal.session.id)).told) == len(results) + 2
    assert store.restore(journal.session.id).snapshot() == journal.session.snapshot()
    store.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, driver: str) -> None:
    (tmp_path / "file").write_text("in the way")
    store = SqliteStore(tmp_path / "file" / "sessions.db", driver=driver)
    with pytest.raises(JournalError, match="NARRATORIA_HOME"):
        store.list()
    store.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder another user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="narratoria-readonly-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def test_a_read_only_folder_can_be_read_but_not_played(open_folder: Path, driver: str) -> None:
    home = open_folder / "home"
    (session_id, *_) = await filled(home / "sessions.db", driver, sessions=1)
    for path in home.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o555)
    script = (
        "import os, sqlite3\n"
        "from narratoria.store.sqlite import SqliteStore\n"
        "from narratoria.errors import JournalError\n"
        f"os.setuid(65534) if os.getuid() == 0 else None\n"
        f"store = SqliteStore({str(home / 'sessions.db')!r}, driver={driver!r})\n"
        f"print(store.restore({session_id!r}).state['last'])\n"
        "try:\n"
        f"    store.open({session_id!r})\n"
        "except JournalError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    home.chmod(0o755)
    last, _, refusal = done.stdout.partition("\n")
    assert last == "11", done.stderr
    assert "writable" in refusal


async def test_a_damaged_database_is_left_alone_and_salvaged(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    ids = await filled(path, driver)
    whole = path.read_bytes()
    middle = len(whole) // 2
    noise = random.Random(driver).randbytes(4096)  # every page in turn: test_salvage.py
    path.write_bytes(whole[:middle] + noise + whole[middle + 4096 :])
    broken = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    lost = []
    for session_id in ids:
        try:
            store.restore(session_id)
        except JournalError as error:
            assert "damaged" in str(error)
            lost.append(session_id)
    store.close()
    assert path.read_bytes() == broken, "reading changes nothing"

    outcome = salvage(path)
    assert outcome.damaged.read_bytes() == broken, "the damaged file is kept"
    saved = {one.id: one for one in outcome.sessions if one.fate != "lost"}
    fresh = SqliteStore(path, driver=driver)
    for session_id in set(ids) - set(lost):
        assert session_id in saved, "whole, or from a snapshot on"
        assert fresh.restore(session_id).state["last"] == 11
    for session_id in set(lost) & set(saved):
        told = fold(fresh.read(session_id)).told
        assert [turn.prompt for turn in told] == [f"dig {n}" for n in range(len(told))]
    fresh.close()


async def test_nothing_is_written_into_a_damaged_database(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    await filled(path, driver)
    damage(path)
    broken = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    with pytest.raises(JournalError, match=r"is damaged.*sessions salvage"):
        new_game(store)
    store.close()
    assert path.read_bytes() == broken
    assert not any(log.stat().st_size for log in tmp_path.glob("sessions.db-wal"))


async def test_damage_that_is_found_while_playing_ends_the_writing(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    await filled(path, driver)
    store = SqliteStore(path, driver=driver)
    journal = new_game(store)
    damage(path)
    with pytest.raises(JournalError, match=r"is damaged.*nothing more is written to it"):
        store.writer.run(lambda db: db.execute("SELECT sum(length(hex(data))) FROM batches"))
    log = path.with_name("sessions.db-wal")
    before = path.read_bytes(), log.read_bytes()
    (result,) = await play(journal, Outside(tmp_path).registry(), "dig 1")
    assert result.unsaved is not None and "nothing more is written to it" in result.unsaved
    assert (path.read_bytes(), log.read_bytes()) == before
    journal.release()
    store.close()


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xaa" * 6000)


async def test_a_truncated_database_is_left_alone_and_says_what_to_do(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    ids = await filled(path, driver)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])
    cut = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    with pytest.raises(JournalError, match="sessions salvage"):
        for session_id in ids:
            store.restore(session_id)
    store.close()
    assert path.read_bytes() == cut
    outcome = salvage(path)
    assert outcome.damaged.read_bytes() == cut
    assert {one.id for one in outcome.sessions} <= set(ids)
    assert any(one.records > 10 for one in outcome.sessions), "something of it is saved"


async def test_half_a_database_gives_back_the_sessions_that_lie_in_it(tmp_path: Path, driver: str) -> None:
    """The pages that lead to them lie in the other half."""
    path = tmp_path / "sessions.db"
    ids = await filled(path, driver, sessions=24)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    outcome = salvage(path)
    whole = [one.id for one in outcome.sessions if one.whole]
    assert len(whole) >= 6
    store = SqliteStore(path, driver=driver)
    for session_id in whole:
        assert session_id in ids
        assert store.restore(session_id).state["last"] == 11
    store.close()


async def test_salvage_tells_what_is_whole_what_is_cut_and_what_is_lost(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    ids = await filled(path, driver, sessions=24)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    outcome = salvage(path)
    by_fate = {fate: [one.id for one in outcome.sessions if one.fate == fate] for fate in get_args(Fate)}
    assert sorted(one for some in by_fate.values() for one in some) == sorted(ids)
    assert by_fate["whole"] and by_fate["lost"]
    store = SqliteStore(path, driver=driver)
    listed = {meta.id: meta for meta in store.list() if meta.begun}
    assert sorted(listed) == sorted(by_fate["whole"] + by_fate["partly"]), (
        "what is saved is there to be played"
    )
    assert len(store.list()) == len(listed), "and nothing stands for what is lost"
    assert all(listed[one].turns == 12 for one in by_fate["whole"])
    for one in outcome.sessions:
        assert one.turns == (listed[one.id].turns if one.id in listed else 0)
    store.close()


async def test_a_session_that_was_cut_stays_so_however_often_its_file_is_salvaged(
    tmp_path: Path, driver: str
) -> None:
    path = tmp_path / "sessions.db"
    (session_id,) = await filled(path, driver, turns=40, sessions=1)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 8192)
    (first,) = salvage(path).sessions
    assert (first.fate, first.lost_before) == ("partly", 0)
    lost = first.expected - first.records

    store = SqliteStore(path, driver=driver)
    assert fold(store.read(session_id)).lost == lost
    journal = store.open(session_id)
    await play(journal, Outside(tmp_path).registry(), *[f"dig {n}" for n in range(100, 140)])
    await journal.close()
    turns = store.meta(session_id).turns
    assert turns > first.turns, "it is played on all the same"
    store.close()
    again = salvage(path)
    assert again.damaged is None
    assert [(one.fate, one.lost_before, one.turns) for one in again.sessions] == [("partly", lost, turns)]


async def test_a_file_of_which_nothing_but_names_is_left_stays_where_it_is(
    tmp_path: Path, driver: str
) -> None:
    path = tmp_path / "sessions.db"
    await filled(path, driver, turns=40, sessions=3)
    with path.open("r+b") as file:
        file.truncate(12_288)
    cut = path.read_bytes()
    with pytest.raises(JournalError, match=r"no turn of any session.*it was left as it is"):
        salvage(path)
    assert path.read_bytes() == cut
    assert not list(tmp_path.glob("*salvaged*")) and not list(tmp_path.glob("*damaged*"))


async def test_sessions_whose_own_rows_are_lost_are_known_by_their_first_record(
    tmp_path: Path, driver: str
) -> None:
    path = tmp_path / "sessions.db"
    ids = await filled(path, driver)
    store = SqliteStore(path, driver=driver)
    branch = store.branch(ids[0], 3).id
    branched = store.restore(branch).state["last"]
    root = store.query("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'")[0][0]
    size = store.query("PRAGMA page_size")[0][0]
    store.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))
    outcome = salvage(path)
    assert {one.id for one in outcome.sessions} == {*ids, branch}
    store = SqliteStore(path, driver=driver)
    assert store.restore(ids[1]).state["last"] == 11
    assert store.restore(branch).state["last"] == branched
    store.close()


async def test_a_torn_end_of_the_log_loses_no_more_than_what_was_torn(tmp_path: Path, driver: str) -> None:
    """As after a power cut: the write-ahead log ends in the middle of a page."""
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), *[f"dig {n}" for n in range(6)])
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("sessions.db", "sessions.db-wal"):
        (crashed / name).write_bytes((tmp_path / name).read_bytes())
    log = crashed / "sessions.db-wal"
    log.write_bytes(log.read_bytes()[:-2000])
    other = SqliteStore(crashed / "sessions.db", assets=tmp_path / "assets", driver=driver)
    told = fold(other.read(journal.session.id)).told
    assert 3 <= len(told) <= 6
    again = other.open(journal.session.id)
    assert again.session.state["last"] >= len(told) - 1
    await play(again, Outside(tmp_path).registry(), "dig 50")
    await again.close()
    await journal.close()
    other.close()
    store.close()


async def test_a_database_of_a_newer_version_is_refused_untouched(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    await filled(path, driver, turns=1, sessions=1)
    store = SqliteStore(path, driver=driver)
    store.writer.run(lambda db: db.execute("PRAGMA user_version = 99"))
    store.close()
    before = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    with pytest.raises(JournalError, match="newer Narratoria"):
        store.list()
    with pytest.raises(JournalError, match="newer Narratoria"):
        new_game(store)
    store.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("damaged", [False, True], ids=["sound", "damaged"])
async def test_salvage_leaves_a_database_of_a_newer_version_alone(
    tmp_path: Path, driver: str, damaged: bool
) -> None:
    """Its pages may mean something this version does not know of."""
    path = tmp_path / "sessions.db"
    await filled(path, driver)
    store = SqliteStore(path, driver=driver)
    store.writer.run(lambda db: db.execute("PRAGMA user_version = 99"))
    store.close()
    if damaged:  # the first page's table of contents, and more
        with path.open("r+b") as file:
            file.seek(100)
            file.write(random.Random(driver).randbytes(path.stat().st_size - 4096))
    before = path.read_bytes()
    names = sorted(one.name for one in tmp_path.iterdir())
    with pytest.raises(JournalError, match=r"newer Narratoria.*nothing was changed"):
        salvage(path)
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == names


def test_another_programs_database_is_refused_untouched(tmp_path: Path, driver: str) -> None:
    import sqlite3

    path = tmp_path / "sessions.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = path.read_bytes()
    store = SqliteStore(path, driver=driver)
    with pytest.raises(JournalError, match="another program"):
        new_game(store)
    store.close()
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    path.write_text("Dear diary, " * 500)
    store = SqliteStore(path, driver=driver)
    with pytest.raises(JournalError, match="damaged"):
        store.list()
    store.close()
    assert path.read_text().startswith("Dear diary")


async def test_two_processes_on_one_session_do_not_mix(tmp_path: Path, driver: str) -> None:
    store = SqliteStore(tmp_path / "sessions.db", driver=driver)
    journal = new_game(store)
    script = (
        "from narratoria.store.sqlite import SqliteStore\n"
        f"SqliteStore({str(tmp_path / 'sessions.db')!r}, driver={driver!r}).open({journal.session.id!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"SessionBusy: session {journal.session.id} is open in process {os.getpid()}" in done.stderr
    await journal.close()
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60).returncode == 0
    store.close()


async def test_salvage_waits_until_nobody_plays_and_spares_a_sound_file(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    store = SqliteStore(path, driver=driver)
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1")
    with pytest.raises(SessionBusy, match="is open in process"):
        salvage(path)
    await play(journal, Outside(tmp_path).registry(), "dig 2")
    await journal.close()
    outcome = salvage(path)
    assert outcome.damaged is None
    assert [(one.id, one.whole) for one in outcome.sessions] == [(journal.session.id, True)]
    assert not list(tmp_path.glob("*damaged*")) and not list(tmp_path.glob("*salvaged*"))
    assert [turn.prompt for turn in fold(store.read(journal.session.id)).told] == ["dig 1", "dig 2"]
    store.close()


@pytest.mark.parametrize("size", [0, 4096], ids=["cut to nothing", "without its log"])
async def test_a_database_that_lost_its_tables_is_not_taken_for_a_new_one(
    tmp_path: Path, driver: str, size: int
) -> None:
    import sqlite3

    path = tmp_path / "sessions.db"
    await filled(path, driver, turns=2, sessions=1)
    path.unlink()
    if size:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    else:
        path.touch()
    emptied = path.read_bytes()
    assert len(emptied) == size
    assets = sorted((tmp_path / "assets").glob("??/*"))
    assert assets
    later = assets[0].stat().st_mtime + 7200
    for action in (lambda one: one.list(), lambda one: new_game(one), lambda one: prune(one, now=later)):
        store = SqliteStore(path, driver=driver)
        with pytest.raises(JournalError, match=r"damaged.*left as it is"):
            action(store)
        store.close()
    with pytest.raises(JournalError, match="left as it is"):
        salvage(path)
    assert path.read_bytes() == emptied
    assert sorted((tmp_path / "assets").glob("??/*")) == assets


async def test_an_empty_file_where_nothing_was_played_becomes_a_database(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "sessions.db"
    path.touch()
    store = SqliteStore(path, driver=driver)
    assert store.list() == []
    await new_game(store).close()
    assert len(store.list()) == 1
    store.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["locks", "sessions.db"]


def test_a_lock_that_cannot_be_written_is_one_clear_error(tmp_path: Path, driver: str) -> None:
    """No file of that process may grow: what a full disk does to it."""
    script = (
        "import resource\n"
        "from narratoria.errors import JournalError\n"
        "from narratoria.store.sqlite import SqliteStore\n"
        f"store = SqliteStore({str(tmp_path / 'sessions.db')!r}, driver={driver!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    store.lease('game')\n"
        "except JournalError as error:\n"
        "    print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "print(store.lease('game').held)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    refusal, _, held = done.stdout.partition("\n")
    assert "game.lock" in refusal and "then open the session again" in refusal, done.stderr
    assert held.strip() == "True", "the refused attempt holds nothing"


def test_a_place_that_no_database_can_be_at_is_named(tmp_path: Path, driver: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("in the way")
    os.mkfifo(tmp_path / "pipe")
    for place, told in {
        "folder": "is a folder, and sessions are kept in a file; name one, such as .*folder/sessions.db",
        "file/sessions.db": "file is a file, so .* cannot be in it; set NARRATORIA_STORE",
        "file/deep/sessions.db": "file is a file, so .* cannot be in it; set NARRATORIA_STORE",
        "pipe": "is a device, a pipe or a socket; name a file",
    }.items():
        for action in (lambda one: one.list(), lambda one: new_game(one)):
            store = SqliteStore(tmp_path / place, assets=tmp_path / "assets", driver=driver)
            with pytest.raises(JournalError, match=told):
                action(store)
            store.close()


async def test_looking_makes_nothing(tmp_path: Path, driver: str) -> None:
    await filled(tmp_path / "home" / "sessions.db", driver, turns=2, sessions=1)
    assets = tmp_path / "home" / "assets"  # of another database: nothing was played at the new place
    empty = tmp_path / "empty.db"
    empty.touch()
    before = sorted(tmp_path.rglob("*"))
    for path in (tmp_path / "new" / "deep" / "sessions.db", tmp_path / "new.db", empty):
        store = SqliteStore(path, assets=tmp_path / "none" if path == empty else assets, driver=driver)
        assert store.list() == []
        with pytest.raises(JournalError, match="no session"):
            store.find("abc")
        store.close()
    assert sorted(tmp_path.rglob("*")) == before and not empty.stat().st_size


async def test_sessions_can_be_read_where_nothing_can_be_written(tmp_path: Path, driver: str) -> None:
    (session_id, *_) = await filled(tmp_path / "sessions.db", driver, sessions=1)
    script = (
        "import resource, signal\n"
        "from pathlib import Path\n"
        "from narratoria.store.sqlite import SqliteStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"store = SqliteStore(Path({str(tmp_path / 'sessions.db')!r}), driver={driver!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # every write fails, as on a full disk\n"
        "print([one.id for one in store.list()], store.restore(store.list()[0].id).state['last'])\n"
        "store.close()\n"
    )
    read, write = os.pipe()  # a file would be subject to the limit
    done = subprocess.run([sys.executable, "-c", script], stdout=write, stderr=write, timeout=60)
    os.close(write)
    with os.fdopen(read) as said:
        assert (said.read().strip(), done.returncode) == (f"['{session_id}'] 11", 0)
