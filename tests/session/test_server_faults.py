"""Servers that are killed, frozen, cut off from the database and asked to end, at random, while players play on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import httpx
import psycopg
import pytest
from serving import MILL, Node, Viewer, viewing, wait_until
from test_kill import no_orphans

from narratoria.events import TurnCommitted, TurnStarted
from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresStore

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND datname = current_database() AND random() < 0.5"
)


class Play:
    """Sessions, and the prompts that were accepted for each."""

    def __init__(self, database: str, home: Path, seed: int) -> None:
        self.database, self.home = database, home
        self.chance = random.Random(seed)
        self.nodes = [Node(database, home / name, "--drain-seconds", "1", story=MILL) for name in ("a", "b")]
        self.sessions = [self.nodes[number % 2].begin() for number in range(3)]
        self.accepted: dict[str, list[str]] = {one: [] for one in self.sessions}
        self.said = 0

    def say(self) -> None:
        """Send the next prompt of some session to some server."""
        session, node = self.chance.choice(self.sessions), self.chance.choice(self.nodes)
        self.said += 1
        prompt = f"grind sack {self.said}"
        with contextlib.suppress(httpx.TransportError):  # nobody knows if it was heard
            answer = node.ask(session, "prompt", {"prompt": prompt})
            assert answer.status_code in {202, 409, 503}, answer.text
            if answer.status_code == 202:
                self.accepted[session].append(prompt)

    def fault(self) -> str:
        number = self.chance.randrange(2)
        node, what = self.nodes[number], self.chance.choice(["kill", "freeze", "end", "cut"])
        if what == "cut":
            with psycopg.connect(self.database, autocommit=True) as connection:
                connection.execute(CUT)
        elif what == "freeze":
            node.signal(signal.SIGSTOP)
            time.sleep(self.chance.uniform(1, 5))
            node.signal(signal.SIGCONT)
        else:
            if what == "kill":
                node.kill()
            else:
                node.signal(signal.SIGTERM)
                node.process.wait(60)
            node.close()
            again = Node(self.database, node.home, "--drain-seconds", "1", story=MILL)
            self.nodes[number] = again
        return what

    def settle(self, viewers: list[Viewer]) -> None:
        """Wait until no turn is open, and every viewer has all records."""
        with contextlib.closing(PostgresStore(self.database, assets=self.home / "read")) as store:
            for session in self.sessions:
                wait_until(lambda name=session: all(span.last for span in store.turns(name)), 60)
            for session, viewer in zip(self.sessions, viewers, strict=True):
                wait_until(lambda one=viewer, name=session: one.seq == store.meta(name).last_seq, 60)

    def check(self) -> None:
        with contextlib.closing(PostgresStore(self.database, assets=self.home / "read")) as store:
            for session in self.sessions:
                records = list(store.read(session))
                assert [one.seq for one in records] == [*range(1, len(records) + 1)]
                begun = [one.event.turn for one in records if isinstance(one.event, TurnStarted)]
                ended = [one.event.turn for one in records if isinstance(one.event, TurnCommitted)]
                assert begun == ended == [*range(len(begun))], "each turn once"
                prompts = [turn.prompt for turn in fold(records).told][1:]
                assert len(prompts) == len({*prompts}), "no prompt was played twice"
                lost = [one for one in self.accepted[session] if one not in prompts]
                assert lost == [], "what was accepted was played"
                assert store.restore(session).state["count"]["ground"] == 2 * len(prompts)


def play_through_faults(database: str, home: Path, rounds: int, seed: int) -> None:
    play = Play(database, home, seed)
    with contextlib.ExitStack() as ending:
        ending.callback(lambda: [node.__exit__() for node in play.nodes])
        viewers = [ending.enter_context(viewing(play.nodes, one)) for one in play.sessions]
        for _ in range(rounds):
            for _ in range(play.chance.randrange(1, 5)):
                play.say()
            play.fault()
        play.settle(viewers)
        for viewer in viewers:
            seen = [one["seq"] for one in viewer.records]
            assert seen == [*range(1, len(seen) + 1)], "every viewer has every record once"
        play.check()
    assert play.said and sum(map(len, play.accepted.values())) > rounds // 3
    assert all(no_orphans(home / name) for name in ("a", "b"))


def test_a_few_faults_cost_nothing(postgres_database: str, tmp_path: Path) -> None:
    play_through_faults(postgres_database, tmp_path, rounds=8, seed=3)


def test_a_hundred_faults_cost_nothing(postgres_database: str, tmp_path: Path) -> None:
    rounds = int(os.environ.get("NARRATORIA_FAULTS", "100"))
    play_through_faults(postgres_database, tmp_path, rounds=rounds, seed=1)
