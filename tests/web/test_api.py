"""The API as any client sees it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from conftest import RunningServer


class Stream:
    """A reader of server-sent events."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def messages(self) -> Iterator[tuple[str, str, Any]]:
        """(event name, id, data) of each message."""
        name, last_id = "message", ""
        for line in self._lines:
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "id":
                last_id = value
            elif key == "data":
                yield name, last_id, json.loads(value)
                name = "message"

    def records(self) -> Iterator[dict[str, Any]]:
        for name, _, data in self.messages():
            yield from data["records"] if name == "snapshot" else data

    def until(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """The records up to the first event of this type with these fields."""
        seen = []
        for record in self.records():
            seen.append(record)
            event = record["event"]
            if event["type"] == kind and all(event.get(name) == value for name, value in fields.items()):
                return seen
        raise AssertionError(f"the stream ended before {kind} {fields}")


@contextmanager
def stream(server: RunningServer, session: str, **headers: str) -> Iterator[Stream]:
    with (
        server.client() as client,
        client.stream("GET", f"/sessions/{session}/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200
        yield Stream(answer.iter_lines())


def post(server: RunningServer, path: str, body: Any = None) -> httpx.Response:
    with server.client() as client:
        return client.post(path, json={} if body is None else body)


def get(server: RunningServer, path: str) -> Any:
    with server.client() as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


def play(server: RunningServer, session: str, prompt: str) -> list[dict[str, Any]]:
    """Take a turn and return its records."""
    answer = post(server, f"/sessions/{session}/prompt", {"prompt": prompt})
    assert answer.status_code == 202, answer.text
    with stream(server, session) as events:
        turn = answer.json()["turn"]
        return [record for record in events.until("turn_committed", turn=turn) if record["turn"] == turn]


def test_the_api_describes_itself(server: RunningServer) -> None:
    document = get(server, "/openapi.json")
    validate(document)
    assert {"/sessions/{id}/events", "/sessions/{id}/prompt", "/sessions/{id}/undo"} <= set(document["paths"])
    operations = [one for path in document["paths"].values() for one in path.values()]
    for one in operations:
        assert ("413" in one["responses"]) == ("requestBody" in one), one["operationId"]


def test_the_document_says_who_is_let_in_and_each_operation_holds_to_it(server: RunningServer) -> None:
    document = get(server, "/openapi.json")
    schemes = document["components"]["securitySchemes"]
    with server.client() as client:
        signed_in = client.post("/tokens").json()["token"]
        page = httpx.get(server.origin, params={"token": signed_in})
        assert page.status_code == 303 and list(page.cookies) == [schemes["page"]["name"]]
        stories = client.get("/stories").json()
    as_page = httpx.get(f"{server.origin}/stories", cookies=dict(page.cookies))
    assert as_page.json() == stories
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert described["security"] == [{"token": []}, {"page": []}], path  # nothing without a sign-in
            assert "401" in described["responses"], path
            address = server.origin + path.replace("{", "").replace("}", "")
            answer = httpx.request(method, address, json={})
            assert (answer.status_code, answer.json()["error"]) == (401, "not_signed_in"), path


def test_the_reference_page_names_every_path(server: RunningServer) -> None:
    with server.client() as client:
        page = client.get("/api").text
    for path in get(server, "/openapi.json")["paths"]:
        assert path in page


def test_a_story_is_begun_played_and_listed(server: RunningServer) -> None:
    assert "workshop" in [story["id"] for story in get(server, "/stories")]
    session = server.new_session()
    play(server, session, "paint")
    assert get(server, f"/sessions/{session}/state")["state"]["bench"] == {"tidy": False, "picture": "wet"}
    (card,) = [card for card in get(server, "/sessions") if card["id"] == session]
    assert card["turns"] == 1
    assert "You mix the colours" in card["excerpt"]
    assert card["picture"]


def test_a_plan_can_be_read_with_its_outcome(server: RunningServer) -> None:
    session = server.new_session()
    play(server, session, "break")
    plans = get(server, f"/sessions/{session}/plans")
    assert plans[0]["turn"] == 1
    assert plans[0]["success"] is False
    assert plans[0]["plan"]["tools"][0]["toolPath"].endswith("bench")


def test_a_stream_takes_up_after_the_last_event_seen(server: RunningServer) -> None:
    session = server.new_session()
    play(server, session, "shake")
    with stream(server, session) as events:
        everything = events.until("turn_committed", turn=1)
    middle = everything[len(everything) // 2]["seq"]
    with stream(server, session, **{"Last-Event-ID": str(middle)}) as events:
        rest = events.until("turn_committed", turn=1)
    assert [record["seq"] for record in rest] == [one["seq"] for one in everything if one["seq"] > middle]


def test_a_viewer_from_a_future_that_was_lost_gets_a_snapshot(server: RunningServer) -> None:
    session = server.new_session()
    with stream(server, session, **{"Last-Event-ID": "999999"}) as events:
        name, _, data = next(events.messages())
    assert name == "snapshot"
    assert data["records"][0]["event"]["type"] == "session_started"


def test_two_viewers_see_the_same(server: RunningServer) -> None:
    session = server.new_session()
    with stream(server, session) as one, stream(server, session) as other:
        post(server, f"/sessions/{session}/prompt", {"prompt": "paint"})
        seen = [
            [
                record
                for record in viewer.until("turn_committed", turn=1)
                if record["event"]["type"] != "narration_delta"
            ]
            for viewer in (one, other)
        ]
    assert seen[0] == seen[1]


def test_an_undo_says_first_what_it_takes_back_and_what_it_cannot(server: RunningServer) -> None:
    session = server.new_session()
    for prompt in ("paint", "siren", "shake"):
        play(server, session, prompt)
    nothing = {"irreversible": [], "compensated": [], "imported": []}
    assert get(server, f"/sessions/{session}/undo") == {"turns": [3], **nothing}
    preview = get(server, f"/sessions/{session}/undo?to=2")
    assert preview["turns"] == [3, 2]
    assert preview["irreversible"] == ["The siren: what it has sent"]
    assert len(get(server, f"/sessions/{session}/state")["state"]["bench"]) == 2
    assert post(server, f"/sessions/{session}/undo", {"to": 9}).status_code == 409
    assert post(server, f"/sessions/{session}/undo", {"to": 0}).status_code == 409


def test_several_turns_are_undone_in_one_request_and_brought_back_in_one(server: RunningServer) -> None:
    session = server.new_session()
    for prompt in ("shake", "paint", "siren"):
        play(server, session, prompt)
    answer = post(server, f"/sessions/{session}/undo", {"to": 2}).json()
    assert (answer["turn"], answer["turns"]) == (2, [3, 2])
    assert "The siren" in answer["irreversible"][0]
    assert get(server, f"/sessions/{session}/state")["state"]["bench"] == {"tidy": True}
    assert post(server, f"/sessions/{session}/redo", {"to": 3}).json() == {"turn": 3, "turns": [2, 3]}
    assert get(server, f"/sessions/{session}/state")["state"]["bench"]["picture"] == "wet"
    with server.client() as client:
        assert client.post(f"/sessions/{session}/undo").json()["turns"] == [3]
        assert client.post(f"/sessions/{session}/redo").json()["turns"] == [3]


def test_a_moment_is_named_listed_and_returned_to(server: RunningServer) -> None:
    session = server.new_session()
    at = f"/sessions/{session}"
    assert get(server, f"{at}/checkpoints") == []
    play(server, session, "shake")
    made = post(server, f"{at}/checkpoints", {"name": "  before the\npaint "})
    assert (made.status_code, made.json()) == (201, {"name": "before the paint", "turn": 1})
    for prompt in ("paint", "siren"):
        play(server, session, prompt)
    post(server, f"{at}/checkpoints", {"name": "the siren"})
    marked = {"name": "before the paint", "turn": 1}
    assert get(server, f"{at}/checkpoints") == [marked, {"name": "the siren", "turn": 3}]
    preview = get(server, f"{at}/restore?checkpoint=before%20the%20paint")
    assert preview["turns"] == [3, 2]
    assert preview["irreversible"] == ["The siren: what it has sent"]
    restored = post(server, f"{at}/restore", {"checkpoint": "before the paint"}).json()
    assert (restored["turn"], restored["turns"]) == (1, [3, 2])
    assert restored["irreversible"] == preview["irreversible"]
    assert get(server, f"{at}/state")["state"]["bench"] == {"tidy": True}
    assert get(server, f"{at}/checkpoints") == [marked], "a moment goes with its turn"
    again = post(server, f"{at}/restore", {"checkpoint": "before the paint"})
    assert (again.status_code, again.json()["turns"]) == (200, [])
    with stream(server, session) as events:
        assert events.until("checkpoint", name="the siren")[-1]["event"]["turn"] == 3


def test_a_moment_that_cannot_be_named_or_found_says_why(server: RunningServer) -> None:
    at = f"/sessions/{server.new_session()}"
    post(server, f"{at}/checkpoints", {"name": "here"})
    for name in (" ", "x" * 201):
        refused = post(server, f"{at}/checkpoints", {"name": name})
        assert (refused.status_code, refused.json()["error"]) == (400, "bad_request")
    missing = post(server, f"{at}/restore", {"checkpoint": "there"})
    assert (missing.status_code, missing.json()["error"]) == (404, "no_checkpoint")
    assert "'here'" in missing.json()["message"]
    with server.client() as client:
        assert client.get(f"{at}/restore?checkpoint=there").status_code == 404
        assert client.get(f"{at}/restore").status_code == 400


def test_an_older_turn_is_retried_here_or_in_a_branch(server: RunningServer) -> None:
    session = server.new_session()
    for prompt in ("shake", "paint"):
        play(server, session, prompt)
    before_both = post(server, f"/sessions/{session}/branch", {"before": 1})
    assert before_both.status_code == 201
    play(server, before_both.json()["id"], "finish")
    assert get(server, f"/sessions/{session}")["turns"] == 2
    assert post(server, f"/sessions/{session}/branch", {"before": 1, "turn": 1}).status_code == 400
    again = post(server, f"/sessions/{session}/retry", {"to": 1, "prompt": "siren"})
    assert again.json() == {"turn": 3}
    with stream(server, session) as events:
        events.until("turn_committed", turn=3)
    assert get(server, f"/sessions/{session}")["turns"] == 1


def test_tools_have_a_name_for_players(server: RunningServer) -> None:
    tools = {tool["name"]: tool for tool in get(server, f"/sessions/{server.new_session()}/tools")}
    assert tools["siren"] == {"name": "siren", "title": "The siren", "description": "Calls the guard."}


def test_a_running_turn_is_cancelled_and_leaves_no_state(server: RunningServer) -> None:
    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        events.until("call_emitted")
        assert post(server, f"/sessions/{session}/cancel").status_code == 204
        events.until("turn_committed", turn=1, outcome="cancelled")
    assert "bell" not in get(server, f"/sessions/{session}/state")["state"]


def test_a_second_prompt_is_refused_while_a_turn_runs(server: RunningServer) -> None:
    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        events.until("call_emitted")
        answer = post(server, f"/sessions/{session}/prompt", {"prompt": "paint"})
        assert (answer.status_code, answer.json()["error"]) == (409, "busy")
        server.ring()
        events.until("turn_committed", turn=1)


def test_undo_and_redo_move_the_state_and_retry_takes_the_turn_again(server: RunningServer) -> None:
    session = server.new_session()
    before = get(server, f"/sessions/{session}/state")["state"]
    play(server, session, "paint")
    after = get(server, f"/sessions/{session}/state")["state"]
    assert post(server, f"/sessions/{session}/undo").json()["turn"] == 1
    assert get(server, f"/sessions/{session}/state")["state"] == before
    assert post(server, f"/sessions/{session}/redo").json()["turn"] == 1
    assert get(server, f"/sessions/{session}/state")["state"] == after
    answer = post(server, f"/sessions/{session}/retry", {"prompt": "shake"})
    assert answer.status_code == 202
    with stream(server, session) as events:
        records = events.until("turn_committed", turn=answer.json()["turn"])
    started = [record["event"] for record in records if record["event"]["type"] == "turn_started"][-1]
    assert (started["prompt"], started["origin"]) == ("shake", "retry")
    assert get(server, f"/sessions/{session}/state")["state"] == before


def test_undo_at_the_beginning_says_why_not(server: RunningServer) -> None:
    answer = post(server, f"/sessions/{server.new_session()}/undo")
    assert answer.status_code == 409
    assert "beginning" in answer.json()["message"]


def test_a_branch_shares_the_past_and_goes_its_own_way(server: RunningServer) -> None:
    session = server.new_session()
    play(server, session, "paint")
    branch = post(server, f"/sessions/{session}/branch", {"turn": 0}).json()["id"]
    play(server, branch, "shake")
    assert "picture" not in get(server, f"/sessions/{branch}/state")["state"]["bench"]
    assert "picture" in get(server, f"/sessions/{session}/state")["state"]["bench"]
    assert get(server, f"/sessions/{branch}")["parent"] == session


def test_settings_are_kept_across_a_restart(server: RunningServer) -> None:
    session = server.new_session()
    change = {"narrator": "rules", "skills": {"bench": False}, "permissions": {"fs:write": False}}
    with server.client() as client:
        changed = client.put(f"/sessions/{session}/settings", json=change).json()
    assert changed["skills"][0]["enabled"] is False
    server.stop()
    server.start()
    assert get(server, f"/sessions/{session}/settings") == changed


def test_a_skill_that_is_switched_off_is_not_used(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        client.put(f"/sessions/{session}/settings", json={"skills": {"bench": False}})
    records = play(server, session, "paint")
    assert not [record for record in records if record["event"]["type"] == "call_started"]


def test_a_session_is_renamed_and_deleted(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        assert client.patch(f"/sessions/{session}", json={"title": "Mine"}).json()["title"] == "Mine"
        assert client.delete(f"/sessions/{session}").status_code == 204
        assert client.get(f"/sessions/{session}").status_code == 404
        assert session not in [card["id"] for card in client.get("/sessions").json()]


def test_whoever_asks_for_a_session_while_it_is_deleted_is_told_that_it_is_gone(
    server: RunningServer,
) -> None:
    begun = Event()

    def ask_until_refused(session: str) -> httpx.Response:
        with server.client() as viewer:
            while (answer := viewer.get(f"/sessions/{session}/events?turns=1&once=1")).status_code == 200:
                begun.set()
            return answer

    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        events.until("call_emitted")
    with server.client() as client, ThreadPoolExecutor(1) as viewer:
        asking = viewer.submit(ask_until_refused, session)
        assert begun.wait(20)
        client.delete(f"/sessions/{session}").raise_for_status()  # which first has to stop what runs
        answer = asking.result()
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


def test_assets_are_served_by_hash_and_never_as_something_that_runs(server: RunningServer) -> None:
    session = server.new_session()
    stored = {
        record["event"]["assetId"]: record["event"]["hash"]
        for record in play(server, session, "paint")
        if record["event"]["type"] == "asset_stored"
    }
    with server.client() as client:
        picture = client.get(f"/assets/{stored['dusk.png']}")
        assert picture.headers["content-type"] == "image/png"
        part = client.get(f"/assets/{stored['bell.wav']}", headers={"Range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, b"RIFF")
        drawing = client.get(f"/assets/{stored['sign.svg']}")
        assert drawing.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in drawing.headers["content-security-policy"]
        page = client.get(f"/assets/{stored['page.html']}")
        assert page.headers["content-type"] == "application/octet-stream"
        assert page.headers["content-disposition"] == "attachment"
        assert client.get("/assets/" + "0" * 64).status_code == 404
        assert client.get("/assets/..%2Fsessions.db").status_code == 404


@pytest.mark.parametrize(
    "body",
    ['{"prompt": "wait", "prompt": "look"}', '{"prompt": "look", "\\u0070rompt": "wait"}', "[" * 100_000],
)
def test_a_body_with_a_key_twice_or_nested_beyond_reason_is_refused(server: RunningServer, body: str) -> None:
    session = server.new_session()
    with server.client() as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post(f"/sessions/{session}/prompt", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sessions", {"story": "none"}),
        ("/sessions", {}),
        ("/sessions", []),
        ("/sessions/none/prompt", {"prompt": "x"}),
        ("/sessions/{id}/prompt", {"prompt": "  "}),
        ("/sessions/{id}/prompt", {"prompt": 7}),
        ("/sessions/{id}/prompt", {"prompt": "x", "origin": "opening"}),
        ("/sessions/{id}/prompt", {"prompt": "x", "surplus": 1}),
        ("/sessions/{id}/branch", {"turn": 99}),
        ("/sessions/{id}/redo", {}),
    ],
)
def test_a_bad_request_is_answered_with_what_is_wrong(server: RunningServer, path: str, body: Any) -> None:
    answer = post(server, path.replace("{id}", server.new_session()), body)
    assert 400 <= answer.status_code < 500
    assert len(answer.json()["message"]) > 10


def test_a_killed_server_finishes_the_turn_when_it_is_back(server: RunningServer) -> None:
    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        seen = events.until("call_emitted")[-1]["seq"]
    server.kill()
    server.start()
    with stream(server, session, **{"Last-Event-ID": str(seen)}) as events:
        events.until("call_emitted")
        server.ring()
        events.until("turn_committed", turn=1, outcome=None)
    assert get(server, f"/sessions/{session}/state")["state"]["bell"] == {"rung": True}


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_server_asked_to_end_leaves_its_turn_to_be_finished(server: RunningServer, number: int) -> None:
    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        seen = events.until("call_emitted")[-1]["seq"]
    server.end(number)
    server.start()
    with stream(server, session, **{"Last-Event-ID": str(seen)}) as events:
        server.ring()
        rest = events.until("turn_committed", turn=1, outcome=None)
    assert "cancelled" not in str(rest)
    assert get(server, f"/sessions/{session}/state")["state"]["bell"] == {"rung": True}


def test_a_turn_that_is_nearly_over_ends_before_the_server_does(server: RunningServer) -> None:
    session = server.new_session()
    post(server, f"/sessions/{session}/prompt", {"prompt": "wait"})
    with stream(server, session) as events:
        events.until("call_emitted")
    server.process.terminate()
    server.ring()
    server.end(signal.SIGTERM)
    server.start()
    with stream(server, session) as events:
        records = events.until("turn_committed", turn=1)
    assert [record["event"]["type"] for record in records].count("call_started") == 1


def test_a_stream_may_begin_with_the_newest_turns_only(server: RunningServer) -> None:
    session = server.new_session()
    for prompt in ("paint", "shake", "lengthen"):
        play(server, session, prompt)
    with server.client() as client, client.stream("GET", f"/sessions/{session}/events?turns=2") as answer:
        name, last, data = next(Stream(answer.iter_lines()).messages())
    assert (name, data["earlier"]) == ("snapshot", 2)  # the opening, and the painting
    first, *rest = data["records"]
    assert first["event"]["type"] == "session_started"
    assert first["event"]["state"]["bench"]["picture"] == "wet"
    assert {record["turn"] for record in rest} == {2, 3}
    with stream(server, session, **{"Last-Event-ID": str(rest[0]["seq"])}) as events:
        again = events.until("turn_committed", turn=3)
    assert [one["seq"] for one in again] == [one["seq"] for one in rest[1:]]
    assert int(last) == again[-1]["seq"]


def test_a_session_leaves_as_a_file_and_comes_back(server: RunningServer, make_server: Any) -> None:
    session = server.new_session()
    play(server, session, "paint")
    with server.client() as client:
        for kind, start in (("markdown", b"# "), ("html", b"<!doctype html>"), ("epub", b"PK")):
            transcript = client.get(f"/sessions/{session}/export", params={"format": kind})
            assert transcript.status_code == 200 and transcript.content.startswith(start)
            assert "attachment" in transcript.headers["content-disposition"]
        refused = client.get(f"/sessions/{session}/export", params={"format": "<pdf>"})
        assert refused.status_code == 400 and "epub" in refused.text
        exported = client.get(f"/sessions/{session}/export")
    assert "attachment" in exported.headers["content-disposition"]
    other = make_server()
    with other.client() as client:
        headers = {"Content-Type": "application/octet-stream"}
        made = client.post("/import", content=exported.content, headers=headers)
        assert made.status_code == 201, made.text
        bad = client.post("/import", content=exported.content[:-40], headers=headers)
        assert bad.status_code == 409
    (card,) = get(other, "/sessions")
    assert card["picture"]
    state = f"/sessions/{made.json()['id']}/state"
    assert get(other, state)["state"] == get(server, f"/sessions/{session}/state")["state"]
    with other.client() as client:
        assert client.get(f"/assets/{card['picture']}").status_code == 200


@pytest.mark.parametrize("title", ["", "  \n\t ", "\0", "x" * 201])
def test_a_title_that_cannot_be_shown_is_refused(server: RunningServer, title: str) -> None:
    session = server.new_session()
    with server.client() as client:
        answer = client.patch(f"/sessions/{session}", json={"title": title})
    assert answer.status_code == 400
    assert "200" in answer.json()["message"]
    assert get(server, f"/sessions/{session}")["title"].startswith("The Workshop")


def test_a_title_is_one_line_and_keeps_its_signs(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        card = client.patch(
            f"/sessions/{session}", json={"title": " One\r\n\0two\u2028 \u202e👩‍🚀 שלום\u2069 "}
        ).json()
    assert card["title"] == "One two 👩‍🚀 שלום"
    assert get(server, f"/sessions/{session}")["title"] == card["title"]


def test_settings_say_which_narrators_cannot_speak(server: RunningServer) -> None:
    session = server.new_session()
    settings = get(server, f"/sessions/{session}/settings")
    assert "rules" not in settings["missing"]
    assert {"local", "template"} <= settings["missing"].keys()  # the story's rules keep its tools
    with server.client() as client:
        refused = client.put(f"/sessions/{session}/settings", json={"narrator": "local"})
    assert refused.status_code >= 400 and settings["missing"]["local"] in refused.text
    assert "llm" in settings["missing"] or any(
        name in os.environ for name in ("NARRATORIA_LLM_URL", "OPENAI_API_KEY")
    )


def test_a_browser_holds_four_streams_and_further_ones_end_when_they_have_caught_up(
    server: RunningServer,
) -> None:
    session = server.new_session()
    path = f"/sessions/{session}/events?turns=5&browser=mine"
    with server.client() as client, ExitStack() as held:
        for _ in range(4):
            held.enter_context(client.stream("GET", path))
        fifth = client.get(path).text
        assert fifth.rstrip().endswith("event: later\ndata: {}")
        assert "The bench is **bare**" in fifth
        held.enter_context(client.stream("GET", path.replace("mine", "another")))
        assert "event: later" in client.get(f"/sessions/{session}/events?once=1").text
