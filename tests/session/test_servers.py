"""Several real servers over one real database."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import Node, viewing, wait_until

pytestmark = pytest.mark.postgres


def test_one_server_plays_and_the_other_shows_it(postgres_database: str, tmp_path: Path) -> None:
    with Node(postgres_database, tmp_path / "a") as a, Node(postgres_database, tmp_path / "b") as b:
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
