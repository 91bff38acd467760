"""Fair shares of real servers: the file of limits, refusals at any server, and the figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import Node, wait_until

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def test_a_quota_of_a_file_is_told_at_every_server(postgres_database: str, tmp_path: Path) -> None:
    file = tmp_path / "shares.toml"
    file.write_text("[session]\ncpu_seconds_per_hour = 0.001\n")
    with (
        Node(postgres_database, tmp_path / "a", "--shares", str(file)) as a,
        Node(postgres_database, tmp_path / "b", "--shares", str(file)) as b,
    ):
        session = a.begin()
        assert a.ask(session, "prompt", {"prompt": "grind sack 1"}).status_code == 202
        wait_until(lambda: a.metric("turns_total") == 1)
        for node in (a, b):
            refused = node.ask(session, "prompt", {"prompt": "grind sack 2"})
            assert (refused.status_code, refused.json()["error"]) == (429, "quota"), refused.text
            assert int(refused.headers["Retry-After"]) > 0
        assert a.metric("turns_refused_total") == 2
        assert a.metric("tool_cpu_seconds_total") > 0
        assert (a.metric("calls_running"), a.metric("calls_waiting")) == (0, 0)
