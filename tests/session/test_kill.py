"""Nothing is lost to `kill -9`: a game killed at random moments ends as one that was left alone."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresStore
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store

PLAYER = Path(__file__).with_name("mill_player.py")


def start(place: str, home: Path, turns: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, PLAYER, place, "game", str(turns)],
        env={**os.environ, "NARRATORIA_HOME": str(home), "TMPDIR": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_and_go_on(place: str, home: Path, turns: int, kills: int, seed: int) -> int:
    """Play to the end, killing the player at `kills` random moments; returns how many found it playing."""
    chance = random.Random(seed)
    playing = 0
    for _ in range(kills):
        with start(place, home, turns) as player:
            assert player.stdout is not None
            at_work = chance.random() < 0.9  # the others die while starting or restoring
            if at_work:
                assert player.stdout.readline() == "ready\n"
            try:
                player.wait(timeout=chance.uniform(0, 0.15 if at_work else 0.5))
            except subprocess.TimeoutExpired:
                playing += at_work
            player.kill()
    with start(place, home, turns) as player:
        assert player.wait(timeout=600) == 0
    return playing


def remains(store: Store, name: str = "game") -> dict[str, Any]:
    """What is left of a game: its world, what was told, and the bytes of its assets."""
    session = store.restore(name)
    view = fold(store.read(name))
    return {
        "state": session.snapshot(),
        "memory": sorted(entry["value"] for entry in session.memory.read("episodic", "ground")),
        "turns": [(one.turn, one.prompt, one.narrative, one.choices, one.outcome) for one in view.told],
        "undone": [one.turn for one in view.turns if one.undone],
        "assets": sorted(one.hash for one in view.assets),
        "kept": [
            (one, store.assets.path_of(one).read_text()) for one in sorted({a.hash for a in view.assets})
        ],
        "tools": session.completed_tools,
    }


def orphans(home: Path) -> list[str]:
    """Processes that were started for this game and still run: their temporary folder is in its home."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if re.search(rb"TMPDIR=" + re.escape(os.fsencode(home)) + rb"[/\0]", environment.read_bytes()):
                found.append((environment.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def no_orphans(home: Path) -> bool:
    """The guardian ends them within moments of its runtime's death; a last one may just be ending."""
    watch = [sys.executable, "-c", "import time; time.sleep(0.1)"]
    for _ in range(50):
        if not orphans(home):
            return True
        subprocess.run(watch, check=True)
    raise AssertionError(orphans(home))


def endings(place: str, tmp_path: Path, kills: int, turns: int) -> None:
    quiet, disturbed = tmp_path / "quiet", tmp_path / "disturbed"
    with start("sqlite", quiet, turns) as player:
        assert player.wait(timeout=600) == 0
    undisturbed = SqliteStore(quiet / "sessions.db")
    playing = kill_and_go_on(place, disturbed, turns, kills, seed=kills)
    shared = place.startswith("postgres")
    store: Store = (
        PostgresStore(place, assets=disturbed / "assets")
        if shared
        else SqliteStore(disturbed / "sessions.db")
    )
    try:
        assert remains(store) == remains(undisturbed)
        assert playing > kills // 2, "most kills must find the player at work"
        assert no_orphans(disturbed)
    finally:
        store.close()
        undisturbed.close()


def test_a_game_killed_at_random_moments_ends_as_one_left_alone(tmp_path: Path) -> None:
    endings("sqlite", tmp_path, kills=3, turns=8)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_same_holds_on_postgresql(tmp_path: Path, postgres_database: str) -> None:
    endings(postgres_database, tmp_path, kills=3, turns=8)


@pytest.mark.slow
def test_a_game_killed_at_a_hundred_moments_ends_as_one_left_alone(tmp_path: Path) -> None:
    endings("sqlite", tmp_path, kills=100, turns=220)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_hundred_kills_on_postgresql(tmp_path: Path, postgres_database: str) -> None:
    endings(postgres_database, tmp_path, kills=100, turns=220)
