"""Who gets in, and who does not."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from conftest import RunningServer
from narratoria.web.browser_launch import signpost
from narratoria.web.sign_ins import GRACE, THIRTY_DAYS, TOKEN_SECONDS, SignIns


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
    answer = httpx.get(server.at("//evil.example/"))
    assert answer.headers["location"].startswith("/evil.example")


def test_a_token_lets_one_browser_in_once(server: RunningServer) -> None:
    address = server.at("/play/x")
    with httpx.Client() as first, httpx.Client() as second:
        assert first.get(address).status_code == 303
        answer = second.get(address)
        assert (answer.status_code, answer.json()["error"]) == (401, "wrong_token")
        assert second.get(server.origin + "/stories").status_code == 401
        again = first.get(f"{address}&view=wide")  # somebody known is let in by a used address too
        assert (again.status_code, again.headers["location"]) == (303, "/play/x?view=wide")


def test_the_printed_token_is_a_browsers_or_a_programs_and_another_is_printed(
    fresh_server: RunningServer,
) -> None:
    printed = fresh_server.printed
    with fresh_server.client() as program:
        assert program.get("/stories").status_code == 200
        assert httpx.get(printed).status_code == 401  # the program has it
    line = fresh_server.log.read_text().strip()
    assert "For another browser: " in line
    following = line.rpartition(" ")[2]
    with httpx.Client() as browser:
        assert browser.get(following).status_code == 303
        token = following.partition("token=")[2]
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(fresh_server.origin + "/stories", headers=bearer).status_code == 401


def test_each_browser_has_a_secret_of_its_own_that_is_kept_as_a_hash(server: RunningServer) -> None:
    cookies = []
    for _ in range(2):
        with httpx.Client() as browser:
            browser.get(server.address)
            cookies.append(browser.cookies[f"narratoria-{server.port}"])
    assert cookies[0] != cookies[1]
    kept = server.home / "sign-ins" / f"{server.port}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not any(cookie in kept.read_text() for cookie in cookies)


def test_a_cookie_works_at_its_own_port_only(make_server: Callable[..., RunningServer]) -> None:
    first = make_server()
    with httpx.Client() as browser:
        browser.get(first.address)
        secret = browser.cookies[f"narratoria-{first.port}"]
    first.stop()
    first.port = 0  # the same home, and another port
    first.start()
    stolen = {"Cookie": f"narratoria-{first.port}={secret}"}
    assert httpx.get(first.origin + "/stories", headers=stolen).status_code == 401


def test_a_cookie_outlives_a_restart_as_another(fresh_server: RunningServer) -> None:
    name = f"narratoria-{fresh_server.port}"
    with httpx.Client(timeout=30) as browser:
        browser.get(fresh_server.address)
        old = browser.cookies[name]
        fresh_server.kill()
        fresh_server.start()
        with httpx.Client(
            headers={"Cookie": f"{name}={old}"}, timeout=30
        ) as window:  # two of one browser come at once
            answers = [window.get(fresh_server.origin + "/stories") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        renewed = {answer.headers["set-cookie"].partition(";")[0] for answer in answers}
        assert len(renewed) == 1 and f"{name}={old}" not in renewed
        assert browser.get(fresh_server.origin + "/stories").status_code == 200
        assert browser.cookies[name] != old
        assert "set-cookie" not in browser.get(fresh_server.origin + "/stories").headers
        fresh_server.kill()
        fresh_server.start()
        assert httpx.get(fresh_server.origin, headers={"Cookie": f"{name}={old}"}).status_code == 401
        assert browser.get(fresh_server.origin + "/stories").status_code == 200


def test_signing_out_ends_the_cookie_and_its_streams(fresh_server: RunningServer) -> None:
    session = fresh_server.new_session()
    name = f"narratoria-{fresh_server.port}"
    with httpx.Client(base_url=fresh_server.origin, timeout=30) as browser:
        browser.get(fresh_server.address)
        secret = browser.cookies[name]
        with browser.stream("GET", f"/sessions/{session}/events") as stream:
            chunks = stream.iter_raw()
            while b"turn_committed" not in next(chunks):  # the opening may come in several pieces
                pass
            answer = browser.post("/sign-out")
            assert answer.status_code == 204
            assert "max-age=0" in answer.headers["set-cookie"].lower()
            with fresh_server.client() as program:
                program.post(f"/sessions/{session}/prompt", json={"prompt": "paint"}).raise_for_status()
            assert b"turn_started" not in b"".join(chunks)  # it has ended, and told nothing more
        assert name not in browser.cookies
        assert httpx.get(fresh_server.origin, headers={"Cookie": f"{name}={secret}"}).status_code == 401
        fresh_server.kill()
        fresh_server.start()
        assert httpx.get(fresh_server.origin, headers={"Cookie": f"{name}={secret}"}).status_code == 401


def test_a_token_for_another_browser_is_not_given_to_strangers(server: RunningServer) -> None:
    assert httpx.post(server.origin + "/tokens").status_code == 401
    assert httpx.post(server.origin + "/sign-out").status_code == 401


def test_signing_out_ends_the_tokens_that_were_asked_for(fresh_server: RunningServer) -> None:
    with httpx.Client(base_url=fresh_server.origin, timeout=30) as browser:
        browser.get(fresh_server.address)
        token = browser.post("/tokens").json()["token"]
        assert browser.post("/sign-out").status_code == 204
    assert httpx.get(fresh_server.origin, params={"token": token}).status_code == 401
    assert httpx.get(fresh_server.origin, headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_only_the_tokens_of_the_sign_in_that_ends_end_with_it(tmp_path: Path) -> None:
    now = [0.0]
    file = tmp_path / "kept.json"
    first = SignIns(file, clock=lambda: now[0])
    secret = first.exchange(first.print_token())
    other = first.exchange(first.print_token())
    sign_ins = SignIns(file, clock=lambda: now[0])  # after a restart both are renewed
    mine, others = sign_ins.of_browser(secret), sign_ins.of_browser(other)
    early, theirs = sign_ins.new_token(of=mine), sign_ins.new_token(of=others)
    renewed = sign_ins.renewed(mine)
    now[0] = GRACE + 1
    assert sign_ins.of_browser(secret) is None  # the earlier secret has ended, its sign-in has not
    assert sign_ins.waits(early)
    late = sign_ins.new_token(of=sign_ins.of_browser(renewed))
    sign_ins.end(sign_ins.of_browser(renewed))
    assert not sign_ins.waits(early) and not sign_ins.waits(late)
    assert sign_ins.exchange(theirs) is not None


def test_a_token_that_was_asked_for_does_not_wait_for_ever() -> None:
    now = [0.0]
    sign_ins = SignIns(clock=lambda: now[0])
    late, printed = sign_ins.new_token(), sign_ins.print_token()
    now[0] = TOKEN_SECONDS + 1
    assert sign_ins.exchange(late) is None
    secret = sign_ins.exchange(printed)
    assert secret is not None
    assert sign_ins.of_browser(secret) is not None
    now[0] += THIRTY_DAYS + 1
    assert sign_ins.of_browser(secret) is None


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


ODD_HOSTS = ["[::1", "127.0.0.1:abc", "127.0.0.1:80@x", "[::1]x", "127.0.0.1:", "x@127.0.0.1"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8417", "127.0.0.1.evil.example", "", *ODD_HOSTS]
)
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


def test_a_browser_is_opened_by_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    address = "http://127.0.0.1:8321/play/x?token=secret"
    with signpost(tmp_path / "home", address) as place:
        assert place.startswith("file:///")
        assert "secret" not in place
        file = Path(urlsplit(place).path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert f"url={address}" in file.read_text()
    assert not file.exists()


def test_signing_out_ends_an_idle_stream_at_once(fresh_server: RunningServer) -> None:
    session = fresh_server.new_session()
    with httpx.Client(base_url=fresh_server.origin, timeout=30) as browser:
        browser.get(fresh_server.address)
        with browser.stream("GET", f"/sessions/{session}/events") as stream:
            chunks = stream.iter_raw()
            while b"data:" not in next(chunks):
                pass
            assert browser.post("/sign-out").status_code == 204
            signed_out = time.monotonic()
            b"".join(chunks)
            assert time.monotonic() - signed_out < 5


def test_a_body_that_is_empty_halved_or_said_to_be_huge_is_refused_at_once(server: RunningServer) -> None:
    with server.client() as client:
        empty = client.post("/sessions", content=b"", headers={"Content-Type": "application/json"})
        halved = client.post(
            "/sessions", content=rb'{"story": "\ud800"}', headers={"Content-Type": "application/json"}
        )
        request = client.build_request(
            "POST", "/sessions", content=b"{", headers={"Content-Type": "application/json"}
        )
        request.headers["Content-Length"] = "99999999999"
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            lines = [f"{name}: {value}" for name, value in request.headers.items()]
            connection.sendall("\r\n".join(["POST /sessions HTTP/1.1", *lines, "", "{"]).encode())
            answer = connection.recv(65_536)
    assert empty.status_code in {200, 201, 400} and "truncated" not in empty.text
    assert halved.status_code == 400 and "half a character" in halved.text, halved.text
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
