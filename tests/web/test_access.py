"""Who gets in, and who does not."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx
import pytest

from conftest import RunningServer
from narratoria.web.access import load_key


def test_nothing_is_told_without_a_token(server: RunningServer) -> None:
    for path in ("/", "/stories", "/sessions", "/openapi.json", "/play/x", "/assets/" + "0" * 64):
        assert httpx.get(server.origin + path).status_code == 401, path


def test_a_wrong_token_is_refused_and_says_what_to_do(server: RunningServer) -> None:
    answer = httpx.get(f"{server.origin}/?token=guess")
    assert answer.status_code == 401
    assert "printed" in answer.json()["message"]


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(server: RunningServer) -> None:
    with httpx.Client() as client:
        answer = client.get(server.at("/play/some-id"))
        assert (answer.status_code, answer.headers["location"]) == (303, "/play/some-id")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert client.get(server.origin + "/stories").status_code == 200


def test_the_exchange_never_leads_to_another_host(server: RunningServer) -> None:
    answer = httpx.get(f"{server.origin}//evil.example/?token={server.token}")
    assert answer.headers["location"].startswith("/evil.example")


def test_a_cookie_outlives_a_restart_and_the_old_token_does_not(server: RunningServer) -> None:
    with httpx.Client() as client:
        client.get(server.address)
        old = server.address
        server.kill()
        server.start()
        assert client.get(server.origin + "/stories").status_code == 200
        assert httpx.get(old).status_code == 401
        answer = client.get(f"{old}&view=wide")  # somebody known is let in by an old address too
        assert (answer.status_code, answer.headers["location"]) == (303, "/?view=wide")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("POST", "/play/x", 405), ("GET", "/static/x.js", 404)],
)
def test_a_dead_end_is_a_page_for_people_and_a_document_for_programs(
    server: RunningServer, method: str, path: str, status: int
) -> None:
    with server.client() as client:
        page = client.request(method, path, headers={"Accept": "text/html"})
        assert page.status_code == status
        assert "/static/css/theme.css" in page.text
        assert 'href="/"' in page.text
        document = client.request(method, path)
        assert document.status_code == status
        assert "/api" in document.json()["message"]


def test_who_is_not_signed_in_reads_a_page_that_says_what_to_do(server: RunningServer) -> None:
    for path in ("/", "/?token=guess"):
        page = httpx.get(server.origin + path, headers={"Accept": "text/html"})
        assert page.status_code == 401
        assert "<code>narratoria play</code> printed" in page.text


def test_the_number_of_this_machine_is_a_name_of_ours(server: RunningServer) -> None:
    with server.client() as client:
        assert client.get("/stories", headers={"Host": f"127.0.0.2:{server.port}"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8417", "127.0.0.1.evil.example", ""])
def test_another_host_name_is_refused(server: RunningServer, host: str) -> None:
    with server.client() as client:
        answer = client.get("/stories", headers={"Host": host})
    assert answer.status_code in {400, 421}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_act_even_with_the_cookie(server: RunningServer, headers: dict[str, str]) -> None:
    with httpx.Client() as client:
        client.get(server.address)
        before = client.get(f"{server.origin}/sessions").json()
        answer = client.post(f"{server.origin}/sessions", json={"story": "workshop"}, headers=headers)
        assert answer.status_code == 403
        assert client.get(f"{server.origin}/sessions").json() == before


def test_a_form_cannot_act(server: RunningServer) -> None:
    with server.client() as client:
        answer = client.post(
            "/sessions", content='{"story":"workshop"}', headers={"Content-Type": "text/plain"}
        )
    assert answer.status_code == 400


def test_a_page_that_another_site_may_have_opened_is_taken_out_of_its_hands(server: RunningServer) -> None:
    policies = {}
    with server.client() as client:
        for site in ("none", "same-origin", "same-site", "cross-site", ""):
            headers = {"Sec-Fetch-Mode": "navigate"} | ({"Sec-Fetch-Site": site} if site else {})
            answer = client.get("/", headers=headers)
            assert answer.status_code == 200
            policies[site] = answer.headers.get("cross-origin-opener-policy")
    isolated = "same-origin"
    assert policies == {
        "none": None, "same-origin": None, "same-site": isolated, "cross-site": isolated, "": isolated,
    }  # fmt: skip


def test_every_answer_carries_the_safety_headers(server: RunningServer) -> None:
    with server.client() as client:
        for path in ("/", "/stories", "/static/js/main.js", "/sessions/none", "/openapi.json"):
            headers = client.get(path).headers
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["referrer-policy"] == "no-referrer", path
            assert "script-src 'self'" in headers["content-security-policy"], path
            assert "unsafe" not in headers["content-security-policy"], path


def test_static_paths_reach_nothing_else(server: RunningServer) -> None:
    for path in (
        "/static/../access.py",
        "/static/%2e%2e/access.py",
        "/static//etc/passwd",
        "/static/js/../../app.py",
    ):
        assert httpx.get(server.origin + path).status_code in {401, 404}, path


def test_the_key_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "new" / "web.key"
    key = load_key(path)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key(path) == key
