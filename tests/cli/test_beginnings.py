"""What a session that never came to its opening leaves behind, and what a look at an empty home does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from narratoria.session import Session
from narratoria.store.retention import prune
from narratoria.store.sqlite import SqliteStore

ASKED = ("play", "torch", "--terminal", "--json", "--narrator", "rules")


@pytest.mark.parametrize(
    "command",
    [("sessions", "list"), ("sessions", "list", "--json"), ("sessions", "show", "abc"),
     ("sessions", "prune", "--dry-run"), ("replay", "abc")],
)  # fmt: skip
def test_looking_at_a_home_that_is_not_there_does_not_make_it(narratoria, command: tuple[str, ...]) -> None:
    home = narratoria.folder / "nowhere" / "home"
    done = narratoria(*command, NARRATORIA_HOME=str(home))
    assert "Traceback" not in done.err
    assert not home.parent.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("play", "torch", "--terminal", "--narrator", "rules"),
        ("play", "--terminal"),  # with whatever narrators there are, and what they want to keep
        ("play", "torch", "--no-browser", "--port", "0"),
        ("sessions", "prune"),
        ("run", "plan.json", "--session", "new"),
    ],
    ids=" ".join,
)
def test_a_home_that_cannot_be_written_is_one_clear_line(command: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="narratoria-readonly-") as folder:  # pytest's own is for one user
        home = Path(folder) / "home"
        home.mkdir()
        (Path(folder) / "plan.json").write_text('{"requestId": "r", "narrative": "", "tools": []}')
        home.chmod(0o555)
        Path(folder).chmod(0o555)
        lesser = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*lesser, sys.executable, "-m", "narratoria", *command],
            env={**os.environ, "NARRATORIA_HOME": str(home)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        Path(folder).chmod(0o755)
        (line,) = done.stderr.splitlines()[-1:]
        assert done.returncode == 1, done.stderr
        assert line.startswith(f"narratoria: {home}") and "set NARRATORIA_HOME to a folder that is" in line
        assert "Errno" not in done.stderr and "Traceback" not in done.stderr


def test_a_store_that_was_looked_at_first_is_written_all_the_same(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "home" / "sessions.db")
    assert store.list() == []
    store.create(Session("first")).release()
    assert [meta.id for meta in store.list()] == ["first"]
    store.close()


def test_a_game_that_cannot_be_set_up_leaves_no_session(narratoria) -> None:
    refused = narratoria("play", "torch", "--terminal", "--narrator", "nobody")
    assert refused.code == 1 and "nobody" in refused.err
    assert narratoria("sessions", "list", "--json").json == []


def never_begun(home: Path) -> str:
    """As a kill right after the session was made leaves it."""
    store = SqliteStore(home / "sessions.db")
    journal = store.create(
        Session(state={}, assets=store.assets, clock=lambda: time.time() - 7200), story="torch", title="Torch"
    )
    journal.release()
    store.close()
    return journal.session.id


def test_a_game_killed_before_its_opening_is_not_listed_and_begins_when_played(narratoria) -> None:
    session = never_begun(narratoria.folder)
    assert narratoria("sessions", "list", "--json").json == []
    played = narratoria(
        "play", "--terminal", "--json", "--narrator", "rules", "--session", session, stdin="light the torch\n"
    )
    opening, turn = map(json.loads, played.out.splitlines())
    assert (opening["turn"], opening["narrator"]) == (0, "opening") and opening["choices"]
    assert turn["turn"] == 1
    assert [meta["id"] for meta in narratoria("sessions", "list", "--json").json] == [session]


def test_pruning_forgets_a_game_that_never_began(tmp_path: Path) -> None:
    session = never_begun(tmp_path)
    store = SqliteStore(tmp_path / "sessions.db")
    prune(store)
    assert store.query("SELECT count(*) FROM sessions WHERE id = ?", (session,)) == [(0,)]
    store.close()


def test_a_session_says_who_told_its_newest_turn(narratoria) -> None:
    played = narratoria(*ASKED, stdin="light the torch\n")
    session = json.loads(played.out.splitlines()[0])["session"]
    (opened,) = narratoria(
        "play", "--terminal", "--json", "--narrator", "rules", "--session", session
    ).out.splitlines()
    assert (json.loads(opened)["narrator"], json.loads(opened)["turn"]) == ("rules", 1)


def test_a_turn_finished_after_a_kill_says_who_planned_it(narratoria, tmp_path: Path) -> None:
    story = tmp_path / "slow"
    tools = story / "tools"
    tools.mkdir(parents=True)
    (story / "story.toml").write_text(
        'id = "slow"\ntitle = "Slow"\npremise = "Waiting."\n[opening]\nnarrative = "You wait."\n'
    )
    (story / "narrator.toml").write_text(
        '[[rule]]\nid = "wait"\npatterns = ["wait"]\nnarrative = "You wait on."\n'
        'calls = [{ id = "wait", tool = "waiter", input = {} }]\n'
    )
    os.mkfifo(tmp_path / "gate")
    waiter = tools / "waiter"
    waiter.write_text(
        f"#!/bin/bash\nif [ ! -e {tmp_path}/again ]; then echo here > {tmp_path}/gate; sleep 60; fi\n"
        'echo \'{"version":"0","type":"done","ok":true}\'\n'
    )
    waiter.chmod(0o755)
    player = subprocess.Popen(
        [sys.executable, "-m", "narratoria", "play", str(story), "--terminal", "--json", "--narrator", "rules"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=narratoria.env, cwd=narratoria.folder,
    )  # fmt: skip
    assert player.stdin is not None and player.stdout is not None
    session = json.loads(player.stdout.readline())["session"]
    player.stdin.write(b"wait\n")
    player.stdin.flush()
    assert (tmp_path / "gate").read_text() == "here\n"  # waits until the tool runs
    player.kill()
    player.communicate()
    (tmp_path / "again").touch()
    resumed = narratoria("play", "--terminal", "--json", "--narrator", "rules", "--session", session)
    (told,) = map(json.loads, resumed.out.splitlines())
    assert (told["prompt"], told["outcome"], told["narrator"]) == ("wait", "completed", "rules")
    shown = narratoria("sessions", "show", session, "--json").json
    assert shown["turns"][-1]["narrator"] == "rules"
