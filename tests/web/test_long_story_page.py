"""The views of a long story: what happened before the turns that the page opens with. In a real Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conftest import RunningServer
from narratoria.events import (
    AssetStored,
    CallFinished,
    CallStarted,
    Narration,
    TurnCommitted,
    TurnStarted,
)
from narratoria.session import Session
from narratoria.session.draft_operations import AssetMade, PatchMade
from narratoria.store.default_store import default_store

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
SQUARE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="64" height="36"><rect width="64" height="36"/></svg>'
)


def write_session(home: Any, turns: int, assets_until: int | None = None) -> str:
    """A session of so many turns, each with a call, an asset and a change, written without playing them.

    After the turn `assets_until` there are no assets any more.
    """

    async def write() -> str:
        store = default_store(home)
        session = Session(state={"count": 0}, assets=store.assets)
        journal = store.create(session, story="workshop", title="A long story")
        hashed = store.assets.add_bytes(SQUARE)
        for number in range(1, turns + 1):
            session.turn = session.turn_count = number
            call = f"call-{number}"
            session.record(TurnStarted(turn=number, prompt=f"step {number}"))
            session.record(CallStarted(call=call, tool="bench", input={"what": number}))
            with_asset = assets_until is None or number <= assets_until
            stored = AssetStored(
                call=call, asset_id="view", kind="image", media_type="image/svg+xml", hash=hashed, size=len(SQUARE),
                metadata={"title": f"Square {number}"},
            )  # fmt: skip
            made = AssetMade(stored)
            made.seq = session.record(stored) if with_asset else 0
            session.commit("", [PatchMade({"count": number}), *([made] if with_asset else [])])
            session.record(CallFinished(call=call, tool="bench", ok=True, state="completed"))
            session.record(Narration(text=f"You take step {number}."))
            session.record(TurnCommitted(turn=number))
            session.turn = None
            if number % 500 == 0:
                await journal.flush()
        await journal.close()
        store.close()
        return session.id

    with ThreadPoolExecutor(1) as thread:  # this one may run Playwright's loop
        return thread.submit(asyncio.run, write()).result()


def test_every_view_says_how_much_there_is_and_loads_the_rest(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = write_session(fresh_server.home, 260)
    page = open_page(fresh_server.at(f"/play/{session}", "#assets"))
    expect(page.get_by_role("button", name="Everything 260")).to_be_visible()
    expect(page.locator(".asset")).to_have_count(50)
    note = page.locator(".earlier-turns:visible")
    expect(note).to_contain_text("50 of 260 are here")
    page.get_by_role("button", name="Show 100 more").click()
    expect(page.locator(".asset")).to_have_count(150)
    expect(page.locator(".asset:focus")).to_contain_text("Square 210")
    page.get_by_role("button", name="Show 100 more").click()
    page.get_by_role("button", name="Show 10 more").click()
    expect(page.locator(".asset").last).to_contain_text("Square 1")
    expect(page.locator(".asset").last).to_contain_text("Turn 1")
    expect(note).to_have_count(0)

    page.get_by_role("link", name="Tools", exact=True).click()
    expect(note).to_contain_text("The newest 50 of 260 turns are here.")
    shoot(page, "tools-of-a-long-story")
    page.get_by_role("button", name="Show earlier turns (210)").click()
    expect(note).to_contain_text("The newest 100 of 260 turns are here.")
    page.get_by_label("Turn shown").select_option(label="Turn 161 · step 161")
    expect(page.locator(".call")).to_contain_text("bench")

    page.get_by_role("link", name="State", exact=True).click()
    expect(note).to_contain_text("The newest 100 of 260 turns are here.")
    page.get_by_role("button", name="Show earlier turns (160)").click()
    page.get_by_role("button", name="Show earlier turns (60)").click()
    expect(note).to_have_count(0)
    page.get_by_label("Turn compared").select_option(label="Turn 2 · step 2")
    expect(page.locator(".change.changed")).to_contain_text("12")
    expect(page.get_by_role("link", name="Assets", exact=True).locator(".badge")).to_be_hidden()
    shoot(page, "state-of-a-long-story")


@pytest.mark.short
def test_assets_come_in_parts_and_those_taken_back_do_not_count(fresh_server: RunningServer) -> None:
    session = write_session(fresh_server.home, 12)
    with fresh_server.client() as client:
        whole = client.get(f"/sessions/{session}/assets").raise_for_status().json()
        assert whole["total"] == 12
        assert whole["kinds"] == {"image/svg+xml": 12}
        assert [one["turn"] for one in whole["assets"]] == list(range(12, 0, -1))
        older = client.get(
            f"/sessions/{session}/assets", params={"before": whole["assets"][3]["seq"], "most": 2}
        ).json()
        assert (older["total"], [one["turn"] for one in older["assets"]]) == (8, [8, 7])
        client.post(f"/sessions/{session}/undo", json={"to": 11}).raise_for_status()
        assert client.get(f"/sessions/{session}/assets?most=0").json() == {
            "total": 10,
            "kinds": {"image/svg+xml": 10},
            "assets": [],
        }
        assert client.get(f"/sessions/{session}/assets?before=x").status_code == 400


@pytest.mark.slow
def test_a_story_of_ten_thousand_turns_and_five_thousand_pictures_is_played_like_any_other(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = write_session(fresh_server.home, 10_000, assets_until=5_000)
    page = open_page(fresh_server.at(f"/play/{session}"))
    expect(page.get_by_text("You take step 10000.")).to_be_visible()
    expect(page.locator("article.turn")).to_have_count(50)
    expect(page.get_by_role("button", name="9,950")).to_be_visible()
    page.locator("#prompt").fill("look")
    page.keyboard.press("Enter")
    expect(page.locator("article.turn")).to_have_count(51)
    page.keyboard.press("Control+z")
    expect(page.locator("article.turn")).to_have_count(50)
    shoot(page, "a-story-of-ten-thousand-turns")

    page.get_by_role("link", name="Assets", exact=True).click()
    expect(page.get_by_role("button", name="Everything 5,000")).to_be_visible()
    page.get_by_role("button", name="Show 100 more").click()
    expect(page.locator(".asset").first).to_contain_text("Square 5000")
    expect(page.locator(".asset")).to_have_count(100)
    shoot(page, "five-thousand-pictures")

    page.get_by_role("link", name="Tools", exact=True).click()
    expect(page.locator(".earlier-turns:visible")).to_contain_text("of 10,000 turns are here")
    page.get_by_role("link", name="State", exact=True).click()
    expect(page.locator(".change.changed")).to_contain_text("10000")
    with fresh_server.client() as client:
        found = (
            client.get(f"/sessions/{session}/find", params={"words": "step 4711"}).raise_for_status().json()
        )
        assert "4711" in str(found)
