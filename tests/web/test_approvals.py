"""Approvals over HTTP: open questions are listed and answered once, and outlive the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from conftest import RunningServer


def asked(client: httpx.Client, session: str) -> dict[str, Any]:
    """The open question, once there is one."""
    for _ in range(200):
        found = client.get(f"/sessions/{session}/approvals").raise_for_status().json()
        if found:
            (one,) = found
            return dict(one)
        time.sleep(0.05)
    raise AssertionError("nothing was asked")


def until(done: Callable[[], bool]) -> None:
    for _ in range(200):
        if done():
            return
        time.sleep(0.05)
    raise AssertionError("it was not done")


def test_a_question_is_listed_answered_once_and_then_gone(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": "sign"}).raise_for_status()
        one = asked(client, session)
        assert (one["tool"], one["title"], one["input"]) == ("pen", "Sign the deed", {"what": "sign"})
        assert one["reason"] == "it always asks first" and one["parameters"]["type"] == "object"
        at = f"/sessions/{session}/approvals/{one['id']}"
        wrong = client.post(at, json={"decision": "edit", "input": {"what": 5}})
        assert wrong.status_code == 400 and "what" in wrong.json()["message"]
        assert client.post(at, json={"decision": "edit"}).status_code == 400
        assert client.post(at, json={"decision": "perhaps"}).status_code == 400
        assert client.post(at, json={"decision": "approve"}).status_code == 204
        assert client.post(at, json={"decision": "refuse"}).status_code == 409
        until(lambda: "signed" in client.get(f"/sessions/{session}/state").json()["state"])
        assert client.get(f"/sessions/{session}/approvals").json() == []
        assert client.post(at, json={"decision": "approve"}).status_code == 409
        nowhere = f"/sessions/{session}/approvals/approval-0"
        # 409 until the turn has ended: it could still come to ask this
        until(lambda: client.post(nowhere, json={"decision": "approve"}).status_code == 404)


def test_a_question_outlives_a_killed_server(fresh_server: RunningServer) -> None:
    server = fresh_server
    session = server.new_session()
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": "sign"}).raise_for_status()
        first = asked(client, session)
    for end in (server.kill, server.stop):
        end()
        server.start()
        with server.client() as client:
            assert asked(client, session) == first
    with server.client() as client:
        answer = {"decision": "edit", "input": {"what": "lamp"}}
        client.post(f"/sessions/{session}/approvals/{first['id']}", json=answer).raise_for_status()
        until(lambda: (server.home / "lamp").exists())
        assert "signed" not in client.get(f"/sessions/{session}/state").json()["state"]


def test_cancelling_the_turn_closes_the_question(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": "sign"}).raise_for_status()
        one = asked(client, session)
        client.post(f"/sessions/{session}/cancel").raise_for_status()
        until(lambda: client.get(f"/sessions/{session}/approvals").json() == [])
        late = client.post(f"/sessions/{session}/approvals/{one['id']}", json={"decision": "approve"})
        assert late.status_code == 409
