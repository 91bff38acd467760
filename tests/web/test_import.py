"""A file from a stranger, sent to a server: one look at it runs nothing, and no answer is a 500."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
import time
from pathlib import Path
from typing import Any

import httpx

_PLACE = Path(__file__).parents[1] / "session" / "vault.py"  # shared, without making its folder importable
_SPEC = importlib.util.spec_from_file_location("vault", _PLACE)
assert _SPEC is not None and _SPEC.loader is not None
vault = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(vault)
HEADERS = {"Content-Type": "application/octet-stream"}


def test_a_look_at_an_imported_session_runs_nothing(fresh_server: Any) -> None:
    ran = vault.write_vault(fresh_server.home)
    with fresh_server.client() as client:
        for make in (vault.open_turn, vault.pending_undo, vault.journalled_rollback):
            made = client.post("/import", content=make(), headers=HEADERS)
            assert made.status_code == 201, made.text
            session = made.json()["id"]
            stream = client.get(f"/sessions/{session}/events", params={"once": ""})
            assert stream.status_code == 200 and "Look" in stream.text
            for path in ("", "/state", "/plans", "/tools", "/checkpoints"):
                assert client.get(f"/sessions/{session}{path}").status_code == 200, path
            settings = client.get(f"/sessions/{session}/settings").json()
            granted = {one["name"] for one in settings["permissions"] if one["granted"]}
            assert granted == {"look"}
            if make is not vault.open_turn:
                preview = client.get(f"/sessions/{session}/undo").json()
                assert "imported file" in preview["irreversible"][0] and not preview.get("compensated")
                undone = client.post(f"/sessions/{session}/undo", json={}).json()
                assert "imported file" in undone["irreversible"][0]
    assert not ran.exists()


def test_rollbacks_of_a_file_are_run_over_http_when_asked_for(fresh_server: Any) -> None:
    ran = vault.write_vault(fresh_server.home)
    with fresh_server.client() as client:
        made = [client.post("/import", content=vault.marked_rollback(), headers=HEADERS) for _ in range(2)]
        for move, session in zip(("undo", "restore"), (one.json()["id"] for one in made), strict=True):
            here = f"/sessions/{session}/{move}"
            asked = {"checkpoint": "start"} if move == "restore" else {}
            plain = client.get(here, params=asked).json()
            assert "imported file" in plain["irreversible"][0]
            assert not plain.get("compensated") and not plain.get("imported")
            preview = client.get(here, params={**asked, "imported": "true"}).json()
            assert preview["compensated"] and not preview.get("irreversible")
            assert "the file" in preview["imported"][0], preview
            assert not ran.exists()
            assert client.get(here, params={**asked, "imported": "maybe"}).status_code == 400
            answer = client.post(here, json={**asked, "imported": True})
            assert answer.status_code == 200, answer.text
            assert answer.json()["compensated"] == preview["compensated"]
            assert ran.exists()
            ran.unlink()


def test_a_session_whose_turns_were_lost_is_shown_and_the_server_ends_at_once(fresh_server: Any) -> None:
    vault.write_vault(fresh_server.home)
    early = vault.Script().lose(300, turns=[[0, 80]], turn_count=80)
    for turn in range(81, 101):
        early.begin(turn, "look").add("narration", text=f"The look number {turn}.").end(turn)
    late = vault.Script().lose(300, turns=[[0, 80]], turn_count=80)
    with fresh_server.client() as client:
        for script, text in ((early, "The look number 81."), (late, "records_lost")):
            made = client.post("/import", content=script.file(), headers=HEADERS)
            assert made.status_code == 201, made.text
            here = f"/sessions/{made.json()['id']}"
            assert client.get(here.replace("sessions", "play"), timeout=10).status_code == 200
            shown = client.get(f"{here}/events", params={"turns": "50", "once": ""}, timeout=10)
            assert shown.status_code == 200 and text in shown.text
    began = time.monotonic()
    fresh_server.stop()
    assert time.monotonic() - began < 10


def test_an_import_that_runs_does_not_hold_up_the_end(fresh_server: Any) -> None:
    script = vault.Script().begin(1, "look")
    for _ in range(400_000):
        script.add("narration", text="")
    content = script.file()

    def send() -> None:
        with fresh_server.client() as client, contextlib.suppress(httpx.HTTPError):
            client.post("/import", content=content, headers=HEADERS, timeout=60)

    sending = threading.Thread(target=send)
    sending.start()
    time.sleep(2)
    began = time.monotonic()
    fresh_server.stop()
    assert time.monotonic() - began < 5
    sending.join()
    assert "Traceback" not in fresh_server.log.read_text()


def deep(levels: int) -> bytes:
    script = vault.Script()
    script.lines[0] = script.lines[0].replace(b'{"door": "shut"}', b'{"a":' * levels + b"1" + b"}" * levels)
    return script.file()


def broken(old: bytes, new: bytes) -> bytes:
    script = vault.Script()
    assert old in script.lines[1]
    script.lines[1] = script.lines[1].replace(old, new)
    return script.file()


def settings_of_the_wrong_kind() -> bytes:
    change = {"change": "memory", "scope": "long-term", "op": "write", "key": "player settings"}
    script = vault.Script()
    script.add("committed", call="", changes=[{**change, "value": {"disabled": 5, "narrator": ["x"]}}])
    return script.file()


def test_what_is_unfit_is_refused_politely(server: Any) -> None:
    with server.client() as client:
        before = client.get("/sessions").json()
        for content in (
            deep(900),
            broken(b'"prompt": ""', b'"prompt": "\xff"'),
            broken(b'"turn": 0', b'"turn": 1e300'),
            vault.Script().end(7).file(),
            b"PK\x03\x04",
        ):
            answer = client.post("/import", content=content, headers=HEADERS)
            assert answer.status_code == 409, answer.text
            assert "nothing was imported" in answer.json()["message"]
        assert client.get("/sessions").json() == before


def test_a_deep_state_and_odd_settings_can_be_looked_at(fresh_server: Any) -> None:
    vault.write_vault(fresh_server.home)
    with fresh_server.client() as client:
        for content in (deep(190), settings_of_the_wrong_kind()):
            session = client.post("/import", content=content, headers=HEADERS).json()["id"]
            for path in ("", "/state", "/settings", "/undo"):
                assert client.get(f"/sessions/{session}{path}").status_code in (200, 409), path
            assert client.get(f"/sessions/{session}/events", params={"once": ""}).status_code == 200
