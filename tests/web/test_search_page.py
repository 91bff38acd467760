"""Search in the whole story, by the API and in a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import RunningServer
from narratoria.events import Narration, TurnCommitted, TurnStarted
from narratoria.session import Session
from narratoria.store.default_store import default_store

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
SEARCH = "Search the story"
ODD = "An old **bra**ss lamp: <img src=x onerror=window.hacked=1> & “quite” *Égal*.\n\nThe `lamp` again."


def write_session(home: Path, turns: int, odd: dict[int, str]) -> str:
    """A session of so many turns; those in `odd` tell something else than the others."""

    async def write() -> str:
        store = default_store(home)
        session = Session(assets=store.assets)
        journal = store.create(session, story="workshop", title="A long story")
        road = "You take step {}.\n\nThe road goes on between the hills, and a crow follows you from post to post."
        for number in range(1, turns + 1):
            session.turn = session.turn_count = number
            session.record(TurnStarted(turn=number, prompt=f"walk {number} times"))
            session.record(Narration(text=odd.get(number, road.format(number))))
            session.record(TurnCommitted(turn=number))
            session.turn = None
        await journal.close()
        store.close()
        return session.id

    with ThreadPoolExecutor(1) as thread:  # this one may run Playwright's loop
        return thread.submit(asyncio.run, write()).result()


@pytest.mark.short
def test_the_api_finds_turns_that_count_in_parts(server: RunningServer) -> None:
    session = write_session(server.home, 60, {3: ODD})
    with server.client() as client:

        def find(words: str, **more: int) -> Any:
            return client.get(f"/sessions/{session}/find", params={"words": words, **more})

        assert find("BRASS egal").json() == {
            "total": 1,
            "turns": [
                {
                    "turn": 3, "newer": 57, "said": False,
                    "excerpt": [
                        {"text": "An old ", "found": False},
                        {"text": "brass", "found": True},
                        {"text": " lamp: <img src=x onerror=window.hacked=1> & “quite” ", "found": False},
                        {"text": "Égal", "found": True},
                        {"text": ".", "found": False},
                    ],
                }
            ],
        }  # fmt: skip
        whole = find("crow").json()
        assert (whole["total"], len(whole["turns"]), whole["turns"][0]["turn"]) == (59, 50, 60)
        rest = find("crow", before=whole["turns"][-1]["turn"], most=4).json()
        assert (rest["total"], [one["turn"] for one in rest["turns"]]) == (9, [10, 9, 8, 7])
        assert len(find("walk", most=10**9).json()["turns"]) == 60
        client.post(f"/sessions/{session}/undo", json={"to": 59}).raise_for_status()
        assert find("crow").json()["total"] == 57
        client.post(f"/sessions/{session}/redo", json={"to": 59}).raise_for_status()
        assert find("crow").json()["total"] == 58
        for wrong in ("", "  ** ", "x" * 201, " ".join(chr(97 + n) for n in range(13))):
            answer = find(wrong)
            assert answer.status_code == 400
            assert answer.json()["message"].startswith("words: ")
        assert client.get("/sessions/nowhere/find?words=x").status_code == 404


def test_a_word_of_long_ago_is_found_gone_to_and_marked(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = write_session(server.home, 230, {7: ODD, 228: "A lamp on the hill."})
    page = open_page(server.at(f"/play/{session}"))
    expect(page.locator(".turn")).to_have_count(50)
    page.get_by_label("What do you do?").fill("half a line")
    page.keyboard.press("Control+Shift+F")
    field = page.get_by_role("searchbox", name=SEARCH)
    expect(field).to_be_focused()
    page.keyboard.type("LAMP")
    hits = page.locator(".search-hit")
    expect(hits).to_have_count(2)
    expect(page.locator(".search-count")).to_have_text("2 turns, the newest first")
    expect(hits.nth(1)).to_have_text(
        "Turn 7: An old brass lamp: <img src=x onerror=window.hacked=1> & “quite” Égal."
    )
    expect(hits.nth(1).locator("mark")).to_have_text(["lamp"])
    shoot(page, "search-dark")
    assert Axe().run(page).response["violations"] == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    turn = page.get_by_role("article", name="Turn 7", exact=True)
    expect(turn).to_be_focused()
    expect(turn).to_be_in_viewport(ratio=0.9)
    expect(page.locator(".page.many .turn")).to_have_count(230)  # those out of sight are not laid out
    turn.hover()
    shoot(page, "search-found")
    expect(page.get_by_role("dialog")).to_have_count(0)
    marked = "[...(CSS.highlights.get('found-words') ?? [])].map(String)"
    assert page.evaluate(marked) == ["lamp", "lamp"]
    assert page.evaluate("window.hacked") is None
    page.keyboard.press("Escape")
    assert page.evaluate(marked) == []

    page.get_by_role("link", name="State", exact=True).click()
    page.keyboard.press("/")
    expect(field).to_have_value("LAMP")
    page.keyboard.type("crow walk")
    expect(page.locator(".search-count")).to_have_text("228 turns, the newest first")
    for left in (178, 128, 78, 28):
        page.get_by_role("button", name=f"Show {min(left, 50)} more of {left}").click()
    expect(hits).to_have_count(228)
    expect(hits.last).to_be_focused()
    field.fill("nowhere at all")
    expect(page.locator(".search-count")).to_contain_text("Nothing found")
    field.fill('"bra" egal')
    expect(page.locator(".search-count")).to_have_text("1 turn")
    page.keyboard.press("Enter")
    expect(turn).to_be_focused()
    assert page.evaluate(marked) == ["bra", "Égal"]
    expect(page.get_by_label("What do you do?")).to_have_value("half a line")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Search the story")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_search_fits_a_narrow_phone(server: RunningServer, open_page: Open, shoot: Shoot, theme: str) -> None:
    session = write_session(server.home, 30, {7: ODD, 9: "lamp" * 90})
    page = open_page(
        server.at(f"/play/{session}"), theme=theme, viewport={"width": 320, "height": 640}, has_touch=True,
        is_mobile=True,
    )  # fmt: skip
    page.get_by_role("button", name=SEARCH).tap()
    page.get_by_role("searchbox", name=SEARCH).fill("lamp")
    expect(page.locator(".search-hit")).to_have_count(2)
    assert page.evaluate("document.querySelector('.search-body').scrollWidth") <= 320
    shoot(page, f"search-phone-{theme}")
    assert Axe().run(page).response["violations"] == []
    page.locator(".search-hit").last.tap()
    expect(page.get_by_role("article", name="Turn 7", exact=True)).to_be_in_viewport(ratio=0.9)
    shoot(page, f"search-phone-found-{theme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert Axe().run(page).response["violations"] == []
