"""The document a browser gets has the story in it."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from conftest import RunningServer, Visitor, write_long_session
from narratoria.web.first_data import MOST_BYTES_AT_FIRST

expect = pytest.importorskip("playwright.sync_api").expect


def story_in(document: str) -> Any:
    found = re.search(
        r'<script type="application/json" id="story-so-far">(.*?)</script>', document, re.DOTALL
    )
    return json.loads(found[1]) if found else None


def test_the_document_holds_the_story_and_where_the_stream_goes_on(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        story = story_in(client.get(f"/play/{session}").text)
        stream = client.get(f"/sessions/{session}/events?turns=50&once=1").text
    (snapshot,) = (json.loads(line[6:]) for line in stream.splitlines() if line.startswith('data: {"seq"'))
    assert story["past"] == snapshot
    assert story["title"].startswith("The Workshop")
    assert story["language"] == "en"


def test_the_compressed_document_is_the_plain_one(server: RunningServer) -> None:
    session = server.new_session()
    with server.client() as client:
        plain = client.get(f"/play/{session}", headers={"Accept-Encoding": "identity"})
        with client.stream("GET", f"/play/{session}", headers={"Accept-Encoding": "gzip"}) as answer:
            packed = b"".join(answer.iter_raw())
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(packed) == plain.content  # checks the sum and the size as well
    assert len(packed) < 60_000


def test_nothing_a_player_says_ends_the_block_it_stands_in(server: RunningServer) -> None:
    session = server.new_session()
    said = "</script><script>document.title = 'ours'</script><!-- <script>"
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": said}).raise_for_status()
        with client.stream("GET", f"/sessions/{session}/events") as stream:
            next(line for line in stream.iter_lines() if '"type":"turn_committed","turn":1' in line)
        document = client.get(f"/play/{session}").text
    told = [record["event"] for record in story_in(document)["past"]["records"]]
    assert said in [event.get("prompt") for event in told]
    assert "document.title = 'ours'" in document
    assert "<script>document.title" not in document


def test_a_story_kept_by_nobody_gets_a_page_without_one(server: RunningServer) -> None:
    with server.client() as client:
        answer = client.get("/play/no-such-session")
    assert answer.status_code == 200
    assert story_in(answer.text) is None


@pytest.mark.browser
def test_a_story_too_long_for_the_document_comes_by_the_stream(server: RunningServer, chromium: Any) -> None:
    session = write_long_session(server.home, 60, {"book": "x" * MOST_BYTES_AT_FIRST})
    with server.client() as client:
        assert story_in(client.get(f"/play/{session}").text) is None
    page = chromium.new_page()
    page.goto(server.at(f"/play/{session}"))
    expect(page.get_by_text("You take step 60.")).to_be_visible()
    expect(page.get_by_role("heading", name="A long story")).to_be_visible()
    page.close()


@pytest.mark.browser
@pytest.mark.short
def test_a_story_is_shown_before_the_stream_answers(server: RunningServer, chromium: Any) -> None:
    session = server.new_session()
    page = chromium.new_page()
    page.route("**/events?**", lambda route: None)  # asked, and never answered
    page.goto(server.at(f"/play/{session}"))
    expect(page.get_by_role("log", name="Story").get_by_role("article")).to_be_visible()
    expect(page.get_by_role("status").first).to_have_text("Your turn")
    page.close()


@pytest.mark.browser
def test_code_that_could_not_be_fetched_is_fetched_when_it_is_needed(
    server: RunningServer, chromium: Any
) -> None:
    session = server.new_session()
    page = chromium.new_page()
    page.route("**/static/later.js", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: "later.js" in request.url):
        page.goto(server.at(f"/play/{session}"))
    page.get_by_role("link", name="Tools").click()
    expect(page.get_by_text("This part of the page has not come")).to_be_visible()
    page.unroute("**/static/later.js")
    with server.client() as client:
        client.post(f"/sessions/{session}/prompt", json={"prompt": "shake"}).raise_for_status()
    expect(page.get_by_role("heading", name="Tools")).to_be_visible()
    page.get_by_role("link", name="State").click()
    expect(page.get_by_role("heading", name="State")).to_be_visible()
    page.close()


@pytest.mark.browser
@pytest.mark.short
def test_another_site_that_opens_the_page_gets_no_hold_of_it(
    server: RunningServer, fresh_server: RunningServer, chromium: Any
) -> None:
    """The other site is a server on another port: the same site to a browser, but another origin."""
    context = chromium.new_context()
    ours = f"{server.origin}/play/{server.new_session()}"
    page = context.new_page()
    page.goto(server.at("/"))  # signed in
    page.goto(fresh_server.at("/"))
    with context.expect_page() as opened:
        page.evaluate("address => { window.held = open(address); }", ours)
    expect(opened.value.get_by_role("log", name="Story")).to_be_visible()
    assert opened.value.evaluate("window.opener") is None
    assert page.evaluate("window.held.closed")
    context.close()


@pytest.mark.browser
def test_a_visitor_of_these_tests_finds_nothing_of_the_one_before(
    server: RunningServer, chromium: Any
) -> None:
    visitor = Visitor.new(chromium)
    for number in (1, 2):
        page = visitor.context.new_page()
        assert visitor.context.cookies() == [], f"visit {number}"
        page.goto(server.at("/"))
        visitor.origins.add(server.origin)
        kept = "[localStorage.mark ?? 0, sessionStorage.mark ?? 0]"
        assert page.evaluate(f"caches.keys().then((names) => [...{kept}, ...names])") == [0, 0]
        sizes = "performance.getEntriesByType('resource').map((one) => one.transferSize)"
        assert all(page.evaluate(sizes)), f"visit {number} had something from a cache"
        page.evaluate("localStorage.mark = sessionStorage.mark = 1; caches.open('mark').then(() => 1)")
        visitor.leave()
    visitor.context.close()
