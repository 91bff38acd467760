"""`narratoria sessions`, as a person and as a script use it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests import warm_start

from narratoria.events import TurnCommitted, TurnStarted
from narratoria.session import Session
from narratoria.store.sqlite import SqliteStore


def narratoria(home: Path, *arguments: str, say: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NARRATORIA_HOME": str(home), "NO_COLOR": "1"}
    return warm_start.run(*arguments, env=env, input=say or "")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the torch was lit and the door examined."""
    folder = tmp_path_factory.mktemp("played") / "home"
    done = narratoria(
        folder,
        "play",
        "torch",
        "--terminal",
        "--json",
        "--narrator",
        "rules",
        say="light the torch\nexamine the door\n",
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def home(played: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(played, tmp_path / "home", symlinks=True))


def listed(home: Path) -> list[dict]:
    return json.loads(narratoria(home, "sessions", "list", "--json").stdout)


def shown(home: Path, session: str) -> dict:
    return json.loads(narratoria(home, "sessions", "show", session, "--json").stdout)


def test_show_gives_state_turns_and_assets(home: Path) -> None:
    (meta,) = listed(home)
    assert (meta["story"], meta["turns"]) == ("torch", 2)
    document = shown(home, meta["id"][:8])
    assert document["state"]["inventory"]["torch"]["lit"] is True
    assert [turn["prompt"] for turn in document["turns"]] == ["", "light the torch", "examine the door"]
    examined = document["turns"][2]
    assert examined["choices"] == ["Open", "Leave"]
    assert [(call["tool"], call["ok"], len(call["attempts"])) for call in examined["calls"]] == [
        ("door-examiner", True, 1)
    ]
    for digest in document["assets"]:
        assert (home / "assets" / digest[:2] / digest).is_file()
    assert document["assets"]
    people = narratoria(home, "sessions", "show", meta["id"]).stdout
    assert "examine the door" in people and "door-examiner completed" in people


def test_undo_and_branch_move_the_world(home: Path) -> None:
    (meta,) = listed(home)
    branched = json.loads(narratoria(home, "sessions", "branch", meta["id"], "--turn", "1", "--json").stdout)
    assert branched["parent"] == meta["id"]
    for none in ("77", str((1 << 53) - 1), "9" * 20):
        refused = narratoria(home, "sessions", "branch", meta["id"], "--turn", none)
        assert refused.returncode in (1, 2) and "Traceback" not in refused.stderr, refused.stderr
    assert "discovered" not in shown(home, branched["id"])["state"]
    undone = json.loads(narratoria(home, "sessions", "undo", meta["id"], "--json").stdout)
    assert (undone["turn"], undone["prompt"]) == (2, "examine the door")
    after = shown(home, meta["id"])
    assert after["state"] == shown(home, branched["id"])["state"]
    assert [turn["turn"] for turn in after["undone"]] == [2]
    assert narratoria(home, "sessions", "undo", meta["id"]).returncode == 0
    nothing = narratoria(home, "sessions", "undo", meta["id"])
    assert nothing.returncode == 1
    assert nothing.stderr.strip() == "narratoria: there is nothing to undo: the story is at its beginning"


def test_export_and_import_come_full_circle(home: Path, tmp_path: Path) -> None:
    (meta,) = listed(home)
    target = tmp_path / "torch.narratoria"
    assert narratoria(home, "sessions", "export", meta["id"], str(target)).returncode == 0
    with zipfile.ZipFile(target) as archive:
        assert {"session.json", "journal.ndjson"} <= set(archive.namelist())
    refused = narratoria(home, "sessions", "export", meta["id"], str(target))
    assert refused.returncode == 1 and "--force" in refused.stderr
    elsewhere = tmp_path / "elsewhere"
    taken = json.loads(narratoria(elsewhere, "sessions", "import", str(target), "--json").stdout)
    assert shown(elsewhere, taken["id"])["turns"] == shown(home, meta["id"])["turns"]
    for name, expected in (
        ("t.md", "> examine the door"),
        ("t.html", ">examine the door</blockquote>"),
    ):
        assert narratoria(home, "sessions", "export", meta["id"], str(tmp_path / name)).returncode == 0
        assert expected in (tmp_path / name).read_text()
    assert narratoria(home, "sessions", "export", meta["id"], str(tmp_path / "t.epub")).returncode == 0
    with zipfile.ZipFile(tmp_path / "t.epub") as book:
        assert book.read("mimetype") == b"application/epub+zip"
        assert "examine the door" in book.read("chapter-1.xhtml").decode()
    assert "data:image/" in (tmp_path / "t.html").read_text(), "the picture is part of the page"
    target.write_bytes(target.read_bytes()[:-100])
    broken = narratoria(elsewhere, "sessions", "import", str(target))
    assert broken.returncode == 1 and len(broken.stderr.splitlines()) == 1


def test_deleting_asks_first(home: Path) -> None:
    (meta,) = listed(home)
    no = narratoria(home, "sessions", "delete", meta["id"], say="n\n")
    assert (no.returncode, no.stderr.splitlines()[-1].endswith("narratoria: nothing was deleted")) == (
        1,
        True,
    )
    silence = narratoria(home, "sessions", "delete", meta["id"], say="")
    assert silence.returncode == 1
    assert silence.stderr.splitlines()[1:] == [
        "narratoria: nothing was deleted, since nobody answered; --yes does not ask"
    ]
    assert len(listed(home)) == 1
    assert narratoria(home, "sessions", "delete", meta["id"], "--yes").returncode == 0
    assert listed(home) == []
    assert narratoria(home, "sessions", "prune", "--json").returncode == 0


def test_an_interruption_at_a_question_is_one(home: Path) -> None:
    (meta,) = listed(home)
    asking = subprocess.Popen(
        [sys.executable, "-m", "narratoria", "sessions", "delete", meta["id"]],
        env={**os.environ, "NARRATORIA_HOME": str(home)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    with asking:
        assert asking.stderr is not None
        said = b""
        while b"[y/N]" not in said:
            byte = asking.stderr.read(1)
            assert byte, said
            said += byte
        for _ in range(
            60
        ):  # one that comes just before the read begins is not heard until the next, as at a terminal
            asking.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                asking.wait(timeout=1)
                break
        assert asking.returncode == 130
    assert len(listed(home)) == 1


def test_mistakes_are_one_clear_line(home: Path) -> None:
    unknown = narratoria(home, "sessions", "show", "zzz")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("narratoria: there is no session 'zzz'")
    assert len(unknown.stderr.splitlines()) == 1
    assert narratoria(home, "sessions", "branch").returncode == 2
    assert narratoria(home, "sessions", "import", "/nowhere").returncode == 2


def test_a_damaged_database_is_salvaged(home: Path) -> None:
    (meta,) = listed(home)
    database = home / "sessions.db"
    content = database.read_bytes()
    database.write_bytes(content[: len(content) - 4096] + b"\xff" * 4096)
    done = narratoria(home, "sessions", "salvage", "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert Path(outcome["damaged"]).is_file()
    (saved,) = outcome["sessions"]
    assert (saved["id"], saved["fate"] in ("whole", "partly")) == (meta["id"], True)


def test_salvage_counts_what_is_lost_as_lost(home: Path) -> None:
    def play_on() -> None:
        say = "light the torch\nexamine the door\n" * 3
        played = narratoria(home, "play", "torch", "--terminal", "--narrator", "rules", say=say)
        assert played.returncode == 0, played.stderr

    for _ in range(3):
        play_on()
    database = home / "sessions.db"
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size * 2 // 3)
    done = narratoria(home, "sessions", "salvage")
    assert done.returncode == 0, done.stderr
    fates = [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]]
    lost = sum(fate.startswith("lost: no turn") for fate in fates)
    assert (len(fates), lost > 0) == (4, True), done.stdout
    assert len(listed(home)) == 4 - lost
    assert f"{lost} lost; the damaged file is" in " ".join(done.stdout.split())


def test_a_sound_database_is_not_salvaged(home: Path) -> None:
    before = (home / "sessions.db").read_bytes()
    done = narratoria(home, "sessions", "salvage")
    assert (done.returncode, done.stdout.startswith("nothing is damaged: 1 session can")) == (0, True)
    assert json.loads(narratoria(home, "sessions", "salvage", "--json").stdout)["damaged"] is None
    assert (home / "sessions.db").read_bytes() == before


def test_verify_tells_if_everything_is_as_it_was_written(home: Path) -> None:
    done = narratoria(home, "sessions", "verify")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("1 session: everything is as it was written\n")
    with sqlite3.connect(home / "sessions.db") as database:
        database.execute("DELETE FROM batches WHERE last_seq = 1")
    database.close()
    done = narratoria(home, "sessions", "verify", "--json")
    (checked,) = json.loads(done.stdout)["sessions"]
    assert (done.returncode, checked["sound"]) == (1, False)
    assert (
        "does not follow the one before: a batch is missing; nothing of it is known to be whole"
        in checked["faults"][0]
    )
    told = narratoria(home, "sessions", "verify", checked["id"][:8])
    assert (told.returncode, "sessions salvage" in told.stderr, told.stdout[0]) == (1, True, "✗")


def test_replay_wraps_the_narrative_and_loses_no_word(home: Path) -> None:
    (meta,) = listed(home)
    narrow = subprocess.run(
        [sys.executable, "-m", "narratoria", "replay", meta["id"]],
        env={**os.environ, "NARRATORIA_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "40"},
        capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    told = " ".join(narrow.split())
    for turn in shown(home, meta["id"])["turns"]:
        for paragraph in turn["narrative"].split("\n\n"):
            assert " ".join(paragraph.split()) in told


def test_a_full_disk_under_the_output_is_one_line(home: Path) -> None:
    for command in (["sessions", "list"], ["sessions", "list", "--json"], ["sessions", "prune"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "narratoria", *command],
                env={**os.environ, "NARRATORIA_HOME": str(home)},
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
            )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines() == ["narratoria: [Errno 28] No space left on device"]


def test_play_says_whether_a_turn_was_saved(tmp_path: Path) -> None:
    played = narratoria(
        tmp_path, "play", "torch", "--terminal", "--json", "--narrator", "rules", say="light the torch\n"
    )
    assert [json.loads(line)["unsaved"] for line in played.stdout.splitlines()] == [None, None]


async def long_game(home: Path) -> None:
    store = SqliteStore(home / "sessions.db")
    journal = store.create(Session("long", assets=store.assets), title="The long game")
    session = journal.session
    for number in range(1, 41):
        session.turn = session.turn_count = number
        session.record(TurnStarted(turn=number, prompt="on"))
        session.patch({"pages": {str(number): os.urandom(400).hex()}})
        session.record(TurnCommitted(turn=number))
        session.turn = None
        await journal.commit_turn()
    await journal.close()
    store.close()


async def test_a_session_that_was_cut_is_never_called_whole_again(tmp_path: Path) -> None:
    await long_game(tmp_path)
    with (tmp_path / "sessions.db").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 8192)
    (cut,) = json.loads(narratoria(tmp_path, "sessions", "salvage", "--json").stdout)["sessions"]
    lost = cut["expected"] - cut["records"]
    assert (cut["fate"], cut["whole"], cut["lostBefore"]) == ("partly", False, 0)
    again = json.loads(narratoria(tmp_path, "sessions", "salvage", "--json").stdout)
    assert again["damaged"] is None
    assert [(one["whole"], one["lostBefore"]) for one in again["sessions"]] == [(False, lost)]
    told = narratoria(tmp_path, "sessions", "salvage").stdout.splitlines()
    assert told[0] == f"long  The long game: {cut['turns']} turns; {lost} records were lost before"
    assert told[1].startswith("nothing is damaged: 0 sessions can be read whole")
    assert (
        f"{lost} records of it were lost to damage" in narratoria(tmp_path, "sessions", "show", "long").stdout
    )
