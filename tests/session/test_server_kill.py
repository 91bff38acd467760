"""A real server, killed at random moments while a client plays on it, loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import select
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from test_kill import no_orphans, remains
from tests import warm_start

from narratoria.events import TurnStarted
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.session import Session
from narratoria.store.default_store import default_store
from narratoria.store.fold import fold

MILL = Path(__file__).with_name("mill")
START_SECONDS = 60


class MillServer:
    """`narratoria play` on the mill: the first time a new game, afterwards the same one."""

    def __init__(self, home: Path, place: str) -> None:
        self.home = home
        self.session = ""
        self.process: warm_start.Started | None = None
        self.environment = os.environ | {"NARRATORIA_HOME": str(home), "TMPDIR": str(home)}
        if place.startswith("postgres"):
            self.environment["NARRATORIA_STORE"] = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if (
            self.process is not None and self.process.poll() is None
        ):  # a test that failed leaves nobody running
            self.kill()

    def start(self) -> None:
        what = ["--session", self.session] if self.session else [str(MILL)]
        self.process = warm_start.Started(
            *("play", *what, "--no-browser", "--port", "0"),
            env=self.environment,
            kind="web",
            stdin=subprocess.DEVNULL,
            stderr=2,
        )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], START_SECONDS)[0], "no address in time"
        address = self.process.stdout.readline().decode().strip()
        parts = urlsplit(address)
        self.client = httpx.Client(
            base_url=f"{parts.scheme}://{parts.netloc}",
            headers={"Authorization": f"Bearer {parse_qs(parts.query)['token'][0]}"},
            timeout=30,
        )
        self.session = parts.path.rpartition("/")[2]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(30)
        self.close()

    def close(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()


class Player:
    """Plays by what the server tells, as a page does: a turn after the other, and takes every seventh back."""

    def __init__(self, server: MillServer, turns: int) -> None:
        self.server = server
        self.turns = turns
        self.seen = 0
        self.started = -1
        self.last = -1  # the opening is turn 0
        self.undone: set[int] = set()
        self.moves = 0

    def play(self) -> bool:
        """Play on until the game is done (True) or the server dies (False)."""
        with contextlib.suppress(httpx.TransportError):
            for idle in self.idle_moments():
                if not idle:
                    continue
                if self.last > 0 and self.last % 7 == 0 and self.last not in self.undone:
                    self.ask("undo", {})
                elif self.last >= self.turns:
                    return True
                else:
                    self.ask("prompt", {"prompt": f"grind sack {self.last + 1}"})
        return False

    def ask(self, verb: str, body: Any) -> None:
        answer = self.server.client.post(f"/sessions/{self.server.session}/{verb}", json=body)
        assert answer.status_code in {200, 202}, answer.text
        self.moves += 1

    def idle_moments(self) -> Iterator[bool]:
        """After each message of the stream, whether no turn runs and nothing is awaited."""
        path = f"/sessions/{self.server.session}/events"
        written = self.server.client.get(f"/sessions/{self.server.session}/state").json()["seq"]
        moves = self.moves  # what was asked of a server that died is known by its records, or not at all
        if self.seen >= written:
            yield self.started == self.last >= 0
        with self.server.client.stream("GET", path, params={"after": self.seen}) as answer:
            for line in answer.iter_lines():
                if not line.startswith("data: "):
                    continue
                told = json.loads(line.removeprefix("data: "))
                for record in told["records"] if isinstance(told, dict) else told:
                    self.seen = record["seq"]
                    event = record["event"]
                    if event["type"] == "turn_started":
                        self.started = event["turn"]
                    elif event["type"] == "turn_committed":
                        self.last = event["turn"]
                        moves = self.moves
                    elif event["type"] == "turn_undone":
                        self.undone.add(event["turn"])
                        moves = self.moves
                yield self.started == self.last >= 0 and moves == self.moves and self.seen >= written


def play_and_kill(server: MillServer, turns: int, kills: int) -> int:
    """Play to the end through `kills` deaths of the server; returns how many found the player at work."""
    chance = random.Random(kills)
    player = Player(server, turns)
    at_work = 0
    with ThreadPoolExecutor(1) as thread:
        for _ in range(kills):
            server.start()
            playing = thread.submit(player.play)
            wait([playing], timeout=chance.uniform(0.02, 0.4))
            at_work += not playing.done()
            server.kill()
            playing.result(30)
            server.close()
    server.start()
    assert player.play()
    server.stop()
    return at_work


def endings(place: str, tmp_path: Path, turns: int, kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with MillServer(tmp_path / "quiet", "sqlite") as quiet:
        quiet.start()
        assert Player(quiet, turns).play()
        quiet.stop()
    with MillServer(tmp_path / "disturbed", place) as disturbed:
        at_work = play_and_kill(disturbed, turns, kills)
    with contextlib.closing(default_store(quiet.home)) as store:
        undisturbed = remains(store, quiet.session)
    assert len(undisturbed["turns"]) == turns + 1 - turns // 7, "every seventh was taken back"
    if place.startswith("postgres"):
        monkeypatch.setenv("NARRATORIA_STORE", place)
    with contextlib.closing(default_store(disturbed.home)) as kept:
        assert remains(kept, disturbed.session) == undisturbed
    assert at_work > kills // 2, "most kills must find the player at work"
    assert no_orphans(disturbed.home)


def test_a_server_killed_at_random_moments_ends_its_game_as_one_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings("sqlite", tmp_path, 8, 2, monkeypatch)


def test_a_server_finishes_the_open_turn_before_anybody_asks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = MillServer(home, "sqlite")

    async def cut_short() -> None:
        story = Story.load(MILL)
        with contextlib.closing(default_store(home)) as store:
            session = Session("game", state=story.state, permissions=story.permissions, assets=store.assets)
            journal = store.create(session, story=story.id, folder=str(MILL))
            Game(story, session, narrators=["rules"]).begin()
            session.turn = session.turn_count = 1
            session.record(TurnStarted(turn=1, prompt="grind a sack"))
            await journal.close()

    asyncio.run(cut_short())
    server.session = "game"
    server.start()
    with contextlib.closing(default_store(home)) as store:
        until = time.monotonic() + START_SECONDS
        while (turn := fold(store.read("game")).turns[-1]).outcome == "open" and time.monotonic() < until:
            pass  # nothing is asked of the server
    server.stop()
    assert turn.outcome == "completed"
    assert (turn.turn, turn.prompt, len(turn.calls)) == (1, "grind a sack", 3)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_same_holds_on_postgresql(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings(postgres_database, tmp_path, 10, 3, monkeypatch)


@pytest.mark.slow
def test_a_server_killed_at_a_hundred_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endings("sqlite", tmp_path, 250, 100, monkeypatch)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_killed_at_a_hundred_moments_on_postgresql(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings(postgres_database, tmp_path, 250, 100, monkeypatch)
