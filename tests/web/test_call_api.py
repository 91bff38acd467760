"""Calls taken apart and run again over HTTP."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import RunningServer

sys.path.insert(0, str(Path(__file__).parents[1] / "planted"))
from planted_bugs import write_planted


@pytest.fixture(scope="module")
def planted(shared_server: RunningServer) -> RunningServer:
    if not (shared_server.home / "stories" / "planted").exists():
        write_planted(shared_server.home / "stories" / "planted")
    return shared_server


def until(holds: Any, within: float = 30.0) -> Any:
    end = time.monotonic() + within
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def play(server: RunningServer, word: str) -> tuple[str, str]:
    """Play one turn of the planted story, and return the session and the call."""
    session = server.new_session("planted")
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": word}).raise_for_status()

        def ended() -> Any:
            plans = client.get(f"/sessions/{session}/plans").json()
            return plans and plans[0]["success"] is not None and plans[0]["plan"]

        plan = until(ended)
        return session, f"{plan['requestId']}:{plan['tools'][0]['toolId']}"


def test_a_call_is_taken_apart(planted: RunningServer) -> None:
    session, call = play(planted, "send")
    with planted.client() as client:
        told = (
            client.get(f"/sessions/{session}/call", params={"call": call, "turn": 1})
            .raise_for_status()
            .json()
        )
        assert [one["exitCode"] for one in told["call"]["attempts"]] == [3, 0]
        assert told["command"].startswith("narratoria call ") and told["outside"] == []
        parts = client.get(
            f"/sessions/{session}/call/events", params={"call": call, "first": 1, "most": 2}
        ).json()
        assert parts["total"] == told["call"]["eventCount"]
        assert [one["event"]["type"] for one in parts["events"]] == ["call_retrying", "call_started"]
        assert client.get(f"/sessions/{session}/call").status_code == 400
        unknown = client.get(f"/sessions/{session}/call", params={"call": "nobody"})
        assert (unknown.status_code, unknown.json()["error"]) == (404, "no_call")


def test_a_call_runs_again_and_the_story_stays(planted: RunningServer) -> None:
    session, call = play(planted, "weigh")
    with planted.client() as client:
        before = client.get(f"/sessions/{session}/state").json()
        asked = {"call": call, "input": {"weight": 4}}
        again = client.post(f"/sessions/{session}/call/run", json=asked).raise_for_status().json()
        assert again["call"]["ok"] and again["call"]["changes"][0]["after"] == 25
        assert again["events"][0]["event"]["type"] == "call_started" and "how it ended" in again["differs"]
        assert client.get(f"/sessions/{session}/state").json() == before


def test_an_effect_outside_has_to_be_agreed_to(planted: RunningServer) -> None:
    session, call = play(planted, "ring")
    with planted.client() as client:
        refused = client.post(f"/sessions/{session}/call/run", json={"call": call})
        assert (refused.status_code, refused.json()["error"]) == (409, "not_agreed")
        assert "the village wakes" in refused.json()["message"]
        agreed = client.post(f"/sessions/{session}/call/run", json={"call": call, "agreed": True})
        assert agreed.json()["call"]["ok"]


def test_a_client_that_leaves_ends_the_process(planted: RunningServer) -> None:
    session, call = play(planted, "rest")
    pid_file = planted.home / "stories" / "planted" / "sleeper.pid"
    pid_file.unlink()
    client = planted.client()

    def ask() -> None:
        with pytest.raises(httpx.TimeoutException):
            asked = {"call": call, "input": {"long": True}}
            client.post(f"/sessions/{session}/call/run", json=asked, timeout=2)

    asking = threading.Thread(target=ask)
    asking.start()
    pid = int(until(lambda: pid_file.exists() and pid_file.read_text()))
    asking.join()
    client.close()
    until(lambda: not Path(f"/proc/{pid}").exists())


HUGE = 1 << 63


def test_a_turn_that_does_not_exist_is_the_clients_mistake(planted: RunningServer) -> None:
    session = planted.new_session("planted")
    with planted.client() as client:

        def status(method: str, path: str, **given: Any) -> tuple[int, str]:
            answer = client.request(method, f"/sessions/{session}{path}", **given)
            return answer.status_code, answer.json()["error"]

        assert status("GET", "/call", params={"call": "zz", "turn": 77}) == (404, "no_turn")
        assert status("POST", "/call/run", json={"call": "1", "turn": 77}) == (404, "no_turn")
        assert status("POST", "/branch", json={"turn": 77}) == (409, "refused")
        for path, body in [
            ("/call/run", {"call": "zz", "turn": -1}),
            ("/call/run", {"call": "zz", "turn": HUGE}),
            ("/branch", {"turn": HUGE}),
            ("/branch", {"before": HUGE}),
            ("/undo", {"to": HUGE}),
            ("/redo", {"to": HUGE}),
            ("/retry", {"to": HUGE}),
            ("/memory/undo", {"edit": HUGE}),
        ]:
            assert status("POST", path, json=body) == (400, "bad_request"), (path, body)
