"""Several real servers over one real database."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import MILL, Link, Node, OwnPostgres, viewing, wait_until

from narratoria.events import TurnCommitted, TurnStarted
from narratoria.store.fold import fold
from narratoria.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres


@pytest.mark.slow
def test_one_server_plays_and_the_other_shows_it(postgres_database: str, tmp_path: Path) -> None:
    with two_servers(postgres_database, tmp_path) as (a, b):
        session = a.begin()
        with viewing([b], session) as viewer:
            assert a.ask(session, "prompt", {"prompt": "grind sack 1"}).status_code == 202
            wait_until(lambda: viewer.ends() == [0, 1])
            answer = b.ask(session, "prompt", {"prompt": "grind sack 2"})
            assert (answer.status_code, answer.json()) == (202, {"turn": 2})
            wait_until(lambda: viewer.ends() == [0, 1, 2])
            assert [one["seq"] for one in viewer.records] == [*range(1, len(viewer.records) + 1)]
            assert b.ask(session, "undo").json()["turns"] == [2]
        assert b.metric("commands_sent_total") >= 2 and a.metric("commands_done_total") >= 2
        assert (a.metric("sessions_open"), b.metric("sessions_open")) == (1, 0)


@pytest.fixture
def slow_mill(tmp_path: Path) -> Path:
    """The mill, with stones that take their time: a turn lasts for more than two seconds."""
    story = tmp_path / "slow" / "mill"
    shutil.copytree(MILL, story)
    grind = story / "tools" / "grind"
    grind.write_text(grind.read_text().replace("time.sleep(0.003)", "time.sleep(0.5)"))
    return story


@contextlib.contextmanager
def two_servers(database: str, home: Path, story: Path = MILL, *options: str) -> Iterator[tuple[Node, Node]]:
    with (
        Node(database, home / "a", *options, story=story) as a,
        Node(database, home / "b", *options, story=story) as b,
    ):
        yield a, b


def ground(database: str, home: Path, session: str) -> dict[str, Any]:
    """What the journal says of a session: it must be whole, with each turn once."""
    with contextlib.closing(PostgresStore(database, assets=home)) as store:
        records = list(store.read(session))
        assert [one.seq for one in records] == [*range(1, len(records) + 1)]
        begun = [one.event.turn for one in records if isinstance(one.event, TurnStarted)]
        ended = [one.event.turn for one in records if isinstance(one.event, TurnCommitted)]
        assert begun == ended == [*range(len(begun))], (begun, ended)
        told = fold(records).told
        return {
            "turns": [(one.prompt, one.outcome) for one in told],
            "ground": store.restore(session).state["count"]["ground"],
            "seq": records[-1].seq,
        }


def in_the_middle_of(node: Node, session: str, database: str, turn: int) -> None:
    """Begin a turn, and return once it is in the journal."""
    assert node.ask(session, "prompt", {"prompt": f"grind sack {turn}"}).status_code == 202
    with contextlib.closing(PostgresStore(database, assets=node.home)) as store:
        wait_until(lambda: any(span.turn == turn for span in store.turns(session)))


@pytest.mark.slow
def test_the_turn_of_a_killed_server_is_finished_by_another(
    postgres_database: str, tmp_path: Path, slow_mill: Path
) -> None:
    with two_servers(postgres_database, tmp_path, slow_mill) as (a, b):
        session = a.begin()
        with viewing([a, b], session) as viewer:
            in_the_middle_of(a, session, postgres_database, 1)
            a.kill()
            wait_until(lambda: b.metric("takeovers_total") == 1)
            wait_until(lambda: viewer.ends() == [0, 1])
            answer = b.ask(session, "prompt", {"prompt": "grind sack 2"})
            assert (answer.status_code, answer.json()) == (202, {"turn": 2})
            wait_until(lambda: viewer.ends() == [0, 1, 2])
            assert [one["seq"] for one in viewer.records] == [*range(1, len(viewer.records) + 1)]
    kept = ground(postgres_database, tmp_path, session)
    assert kept["turns"][1:] == [("grind sack 1", "completed"), ("grind sack 2", "completed")]
    assert kept["ground"] == 4, "two sacks a turn, each once"


@pytest.mark.slow
def test_a_frozen_owner_that_wakes_up_writes_nothing(
    postgres_database: str, tmp_path: Path, slow_mill: Path
) -> None:
    with two_servers(postgres_database, tmp_path, slow_mill) as (a, b):
        session = a.begin()
        with viewing([b], session) as viewer, viewing([a], session) as late:
            in_the_middle_of(a, session, postgres_database, 1)
            a.signal(signal.SIGSTOP)
            wait_until(lambda: b.metric("takeovers_total") == 1)
            wait_until(lambda: viewer.ends() == [0, 1])
            a.signal(signal.SIGCONT)  # it believes that the session is its own
            wait_until(lambda: a.metric("leases_lost_total") == 1)
            wait_until(lambda: late.ends() == [0, 1])
            answer = a.ask(session, "prompt", {"prompt": "grind sack 2"})
            assert (answer.status_code, answer.json()) == (202, {"turn": 2}), (
                "it sends on what is not its own"
            )
            wait_until(lambda: viewer.ends() == late.ends() == [0, 1, 2])
            assert [one["seq"] for one in late.records] == [*range(1, len(late.records) + 1)]
            assert [one["seq"] for one in viewer.records] == [one["seq"] for one in late.records]
        assert f"session {session} was taken over by another server" in a.said()
    kept = ground(postgres_database, tmp_path, session)
    assert kept["turns"][1:] == [("grind sack 1", "completed"), ("grind sack 2", "completed")]
    assert kept["ground"] == 4


@pytest.mark.slow
def test_a_server_that_is_asked_to_end_gives_its_sessions_to_others(
    postgres_database: str, tmp_path: Path, slow_mill: Path
) -> None:
    with two_servers(postgres_database, tmp_path, slow_mill, "--drain-seconds", "0.2") as (a, b):
        idle, session = a.begin(), a.begin()
        with viewing([b], session) as viewer:
            in_the_middle_of(a, session, postgres_database, 1)
            a.signal(signal.SIGTERM)
            wait_until(lambda: not a.is_ready())
            assert a.process.wait(30) in {0, 143}
            wait_until(lambda: viewer.ends() == [0, 1])
            assert b.metric("takeovers_total") == 1
            assert b.ask(idle, "prompt", {"prompt": "grind sack 1"}).status_code == 202
            assert [one["seq"] for one in viewer.records] == [*range(1, len(viewer.records) + 1)]
    assert ground(postgres_database, tmp_path, session)["ground"] == 2


@pytest.mark.slow
def test_a_server_that_is_cut_off_from_the_database_loses_its_session_and_doubles_nothing(
    postgres_database: str, tmp_path: Path, slow_mill: Path
) -> None:
    link = Link(postgres_database)
    with (
        contextlib.closing(link),
        Node(link.url, tmp_path / "a", story=slow_mill) as a,
        Node(postgres_database, tmp_path / "b", story=slow_mill) as b,
    ):
        session = a.begin()
        with viewing([b], session) as viewer, viewing([a], session) as late:
            in_the_middle_of(a, session, postgres_database, 1)
            link.whole.clear()
            wait_until(lambda: b.metric("takeovers_total") == 1)
            wait_until(lambda: viewer.ends() == [0, 1])
            assert a.client.get("/readyz").status_code == 503
            link.whole.set()  # what it wrote meanwhile arrives now, under a lease that it has no more
            wait_until(lambda: a.metric("leases_lost_total") == 1)
            wait_until(lambda: late.ends() == [0, 1])
            assert [one["seq"] for one in late.records] == [one["seq"] for one in viewer.records]
            wait_until(a.is_ready)
            assert a.ask(session, "prompt", {"prompt": "grind sack 2"}).status_code == 202
            wait_until(lambda: viewer.ends() == late.ends() == [0, 1, 2])
    kept = ground(postgres_database, tmp_path, session)
    assert kept["ground"] == 4 and len(kept["turns"]) == 3


@pytest.fixture
def own_postgres() -> Iterator[OwnPostgres]:
    with tempfile.TemporaryDirectory(prefix="narratoria-postgres-") as folder:
        server = OwnPostgres(Path(folder))
        yield server
        server.stop("immediate")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_database_that_is_away_for_ten_seconds_costs_nothing(
    own_postgres: OwnPostgres, tmp_path: Path, slow_mill: Path, how: str
) -> None:
    with two_servers(own_postgres.url, tmp_path, slow_mill) as (a, b):
        session = a.begin()
        with viewing([b], session) as viewer, viewing([a], session) as near:
            in_the_middle_of(a, session, own_postgres.url, 1)
            own_postgres.stop(how)
            wait_until(lambda: not a.is_ready() and not b.is_ready())
            assert a.client.get("/readyz").json()["problem"] == "the database does not answer"
            assert a.client.get("/healthz").status_code == 200
            answer = b.ask(session, "prompt", {"prompt": "grind sack 2"})
            assert (answer.status_code, answer.json()["error"]) == (503, "database"), answer.text
            assert int(answer.headers["retry-after"]) > 0
            time.sleep(10)
            own_postgres.start()
            wait_until(lambda: a.is_ready() and b.is_ready())
            wait_until(lambda: viewer.ends() == near.ends() == [0, 1])
            if how == "fast":  # a crash may cost the last moments of a turn, which goes on from what there is
                assert a.metric("leases_lost_total") == 0, "nobody took what another still had"
                assert [one["seq"] for one in viewer.records] == [*range(1, len(viewer.records) + 1)]
            assert b.ask(session, "prompt", {"prompt": "grind sack 2"}).status_code == 202
            wait_until(lambda: viewer.ends() == near.ends() == [0, 1, 2])
        kept = ground(own_postgres.url, tmp_path, session)
    assert kept["turns"][1:] == [("grind sack 1", "completed"), ("grind sack 2", "completed")]
    assert kept["ground"] == 4
