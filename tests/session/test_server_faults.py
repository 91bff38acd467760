"""Servers that are killed, ended, frozen and cut off, a database and a bucket that are away, drawn by lot from a seed,
while players play on.

`NARRATORIA_FAULTS=20 NARRATORIA_FAULT_SEED=7` plays other rounds of another seed.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import psycopg
import pytest
from buckets import SmallStore
from serving import MILL, Node, OwnPostgres, Viewer, viewing, wait_until
from test_kill import no_orphans
from wires import Namespaced, Proxied, namespaces_can_be_made

from narratoria.events import TurnCommitted, TurnStarted
from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres
AWAY_SECONDS = 10.0
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND datname = current_database() AND random() < 0.5"
)
OWNER = (
    "SELECT v.name FROM narratoria.leases l JOIN narratoria.servers v ON v.id = l.server WHERE l.session = %s"
)


class Play:
    """Sessions, the prompts that were accepted for each, and what was done to their servers."""

    def __init__(
        self,
        database: str,
        home: Path,
        seed: int,
        wires: Sequence[Proxied | Namespaced],
        bucket: SmallStore,
        story: Path = MILL,
        *,
        sessions: int = 3,
    ) -> None:
        self.database, self.home, self.wires, self.bucket, self.story = database, home, wires, bucket, story
        self.chance = random.Random(seed)
        self.nodes = [self._start(number) for number in range(len(wires))]
        self.sessions = [self.nodes[number % len(wires)].begin() for number in range(sessions)]
        self.accepted: dict[str, list[str]] = {one: [] for one in self.sessions}
        self.done: list[str] = []
        self.said = self.tried = self.taken = 0

    def _start(self, number: int) -> Node:
        wire = self.wires[number]
        env = {
            "NARRATORIA_ASSETS": "s3://assets/mill",
            "AWS_ENDPOINT_URL_S3": f"http://{wire.here}:{self.bucket.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        home, options = self.home / f"server{number}", ("--drain-seconds", "1", *wire.options)
        return Node(wire.database, home, *options, story=self.story, command=wire.command, env=env)

    def say(self, session: str, node: Node) -> None:
        """Send the next prompt of a session to a server."""
        self.said += 1
        prompt = f"grind sack {self.said}"
        with contextlib.suppress(httpx.TransportError):  # nobody knows if it was heard
            answer = node.ask(session, "prompt", {"prompt": prompt})
            assert answer.status_code in {202, 409, 503}, answer.text
            if answer.status_code == 202:
                self.accepted[session].append(prompt)

    def say_some(self) -> None:
        for _ in range(self.chance.randint(1, len(self.sessions))):
            self.say(self.chance.choice(self.sessions), self.chance.choice(self.nodes))

    def in_mid_turn(self) -> tuple[str, int]:
        """Begin a turn of some session; return it and the number of the server that plays it."""
        session = self.chance.choice(self.sessions)
        self.say(session, self.chance.choice(self.nodes))
        return session, self.owner(session) or 0

    def owner(self, session: str) -> int | None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            row = connection.execute(OWNER, (session,)).fetchone()
        known = [row is not None and f"process {node.process.pid} " in row[0] for node in self.nodes]
        return known.index(True) if any(known) else None

    def goes_elsewhere(self, session: str, number: int) -> None:
        """Wait for another server to take a session, if it was in a turn; players ask for nothing meanwhile."""
        until = time.monotonic() + 6
        while self.owner(session) == number and time.monotonic() < until:
            time.sleep(0.05)
        self.tried += 1
        self.taken += self.owner(session) not in (number, None)

    # --- the faults ----------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill a server in mid-turn."""
        _, number = self.in_mid_turn()
        self.nodes[number].kill()
        self._again(number)

    def end(self) -> None:
        """Ask a server to end, in mid-turn."""
        _, number = self.in_mid_turn()
        self.nodes[number].signal(signal.SIGTERM)
        self.nodes[number].process.wait(60)
        self._again(number)

    def _again(self, number: int) -> None:
        self.nodes[number].close()
        self.nodes[number] = self._start(number)

    def freeze(self) -> None:
        """Let two servers believe that they own a session: the first wakes up when the second plays its turn."""
        session, number = self.in_mid_turn()
        self.nodes[number].signal(signal.SIGSTOP)
        self.goes_elsewhere(session, number)
        self.nodes[number].signal(signal.SIGCONT)
        for node in self.nodes:
            self.say(session, node)

    def cut(self) -> None:
        """Cut a server off from the database in mid-turn, while its players still reach it."""
        session, number = self.in_mid_turn()
        self.wires[number].cut()
        try:
            self.goes_elsewhere(session, number)
            self.say(session, self.nodes[1 - number])
        finally:
            self.wires[number].mend()
        self.say(session, self.nodes[number])

    def disconnect(self) -> None:
        """End half of the connections to the database."""
        self.in_mid_turn()
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(CUT)

    def lose_bucket(self) -> None:
        """Let the store of the assets be away for some seconds."""
        self.bucket.mood = self.chance.choice(["away", "slow"])
        self.in_mid_turn()
        time.sleep(self.chance.uniform(1, 4))
        self.bucket.mood = "well"

    # --- after each of them --------------------------------------------------------------------------------

    def settle(self, viewers: Sequence[Viewer]) -> None:
        """Wait until no turn is open, and every viewer has all records."""
        with contextlib.closing(PostgresStore(self.database, assets=self.home / "read")) as store:
            for session in self.sessions:
                wait_until(lambda name=session: all(span.last for span in store.turns(name)), 60)
            for session, viewer in zip(self.sessions, viewers, strict=True):
                wait_until(lambda one=viewer, name=session: one.seq == store.meta(name).last_seq, 60)
            for session, viewer in zip(self.sessions, viewers, strict=True):
                self._check(store, session, viewer)

    def _check(self, store: PostgresStore, session: str, viewer: Viewer) -> None:
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
        seen = [one["seq"] for one in viewer.records]
        assert seen == [*range(1, len(seen) + 1)], "every viewer has every record once"

    def check_assets(self) -> None:
        with contextlib.closing(
            PostgresStore(self.database, assets=self.home / "whole", bucket=self.bucket.bucket("mill"))
        ) as store:
            lost = [one for one in sorted(store.asset_hashes()) if store.assets.is_whole(one) is not True]
            assert lost == [], "each asset that a record names is in the bucket"


@contextlib.contextmanager
def playing(play: Play) -> Iterator[list[Viewer]]:
    with contextlib.ExitStack() as ending:
        ending.callback(lambda: [node.__exit__() for node in play.nodes])
        yield [ending.enter_context(viewing(play.nodes, one)) for one in play.sessions]
    assert all(no_orphans(node.home) for node in play.nodes)


def play_through(play: Play, faults: Sequence[Callable[[], None]]) -> None:
    with playing(play) as viewers:
        for number, fault in enumerate(faults):
            begun = time.monotonic()
            play.done.append(fault.__name__)
            try:
                play.say_some()
                fault()
                play.say_some()
                play.settle(viewers)
            except BaseException as error:
                error.add_note(f"round {number}: {' '.join(play.done)}")
                raise
            print(f"round {number}: {fault.__name__}, {time.monotonic() - begun:.1f} s", flush=True)
        play.check_assets()
    print(f"{play.taken} of {play.tried} sessions were taken over while their server believed in them")
    assert sum(map(len, play.accepted.values())) >= len(faults)
    assert play.taken >= play.tried // 2, "faults must find turns open"


def test_a_killed_and_a_frozen_server_cost_nothing(postgres_database: str, tmp_path: Path) -> None:
    wires = [Proxied(postgres_database) for _ in range(2)]
    with contextlib.ExitStack() as ending, contextlib.closing(SmallStore()) as bucket:
        for wire in wires:
            ending.callback(wire.close)
        play = Play(postgres_database, tmp_path, 3, wires, bucket, sessions=1)
        play_through(play, [play.kill, play.freeze])


@pytest.fixture
def slow_mill(tmp_path: Path) -> Path:
    """The mill with stones that take their time, so that faults find turns open."""
    story = tmp_path / "slow" / "mill"
    shutil.copytree(MILL, story)
    grind = story / "tools" / "grind"
    grind.write_text(grind.read_text().replace("time.sleep(0.003)", "time.sleep(0.1)"))
    return story


@pytest.mark.slow
def test_a_hundred_faults_cost_nothing(tmp_path: Path, slow_mill: Path) -> None:
    rounds = int(os.environ.get("NARRATORIA_FAULTS", "100"))
    seed = int(os.environ.get("NARRATORIA_FAULT_SEED", "1"))
    in_namespaces = namespaces_can_be_made()
    with contextlib.ExitStack() as ending:
        folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="narratoria-postgres-"))
        database = OwnPostgres(Path(folder), everywhere=in_namespaces)
        ending.callback(database.stop, "immediate")
        bucket = ending.enter_context(contextlib.closing(SmallStore("" if in_namespaces else "127.0.0.1")))
        wires = []
        for number in range(2):
            wires.append(Namespaced(database.url, number) if in_namespaces else Proxied(database.url))
            ending.callback(wires[-1].close)
        play = Play(database.url, tmp_path, seed, wires, bucket, slow_mill)

        def stop_database() -> None:
            play.in_mid_turn()
            database.stop()
            until = time.monotonic() + AWAY_SECONDS
            play.say_some()
            time.sleep(max(0.0, until - time.monotonic()))
            database.start()

        faults = [
            play.kill, play.end, play.freeze, play.cut, play.disconnect, play.lose_bucket, stop_database,
        ]  # fmt: skip
        play_through(play, [play.chance.choice(faults) for _ in range(rounds)])
