"""The story we ship, played through in the page: what a visitor sees, and the pictures of it we look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
WALK = Path(__file__).parents[2] / "stories" / "lighthouse" / "walkthroughs" / "the-light-kept.txt"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def play(server: RunningServer, session: str, page: Any, prompts: list[str], first: int) -> None:
    for number, prompt in enumerate(prompts, first):
        with server.client() as client:
            client.post(f"/sessions/{session}/prompt", json={"prompt": prompt}).raise_for_status()
        turn = page.get_by_role("article", name=f"Turn {number}", exact=True)
        expect(turn).to_be_attached(timeout=20_000)
        expect(turn).not_to_have_attribute("aria-busy", "true", timeout=20_000)
        expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_hidden()


def test_the_lighthouse_is_played_to_an_ending(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    session = server.new_session("lighthouse")
    page = open_page(server.at(f"/play/{session}"))
    expect(page.get_by_role("button", name="Look up at the tower", exact=True)).to_be_visible()
    shoot(page, "lighthouse-opening")
    prompts = WALK.read_text().split("\n")
    prompts = [prompt for prompt in prompts if prompt.strip()]
    play(server, session, page, prompts[:2], 1)
    shoot(page, "lighthouse-early")
    play(server, session, page, prompts[2:-1], 3)
    shoot(page, "lighthouse-middle")
    film = page.locator("video").first
    film.evaluate("node => { node.muted = true; node.loop = true; return node.play() }")
    film.evaluate(
        "node => new Promise(done => node.addEventListener('timeupdate', () => node.currentTime && done()))"
    )
    film.evaluate("node => node.pause()")  # it has been seen to run; without a graphics card it takes a core
    phone = open_page(server.at(f"/play/{session}"), **PHONE)
    expect(phone.locator(".turn").last).to_be_visible()
    shoot(phone, "lighthouse-phone")
    phone.close()
    light = open_page(server.at(f"/play/{session}"), theme="light")
    expect(light.locator(".turn").last).to_be_visible()
    shoot(light, "lighthouse-light")
    light.close()
    play(server, session, page, prompts[-1:], len(prompts))
    ending = page.get_by_role("region", name="Ending")
    expect(ending).to_be_visible()
    expect(page.get_by_role("group", name="Choices")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("The end")
    page.get_by_role("log", name="Story").evaluate("node => { node.scrollTop = node.scrollHeight }")
    expect(ending).to_be_in_viewport()
    shoot(page, "lighthouse-ending")
    for view in ("Tools", "Assets", "State"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("heading", name=view, exact=True)).to_be_visible()
        shoot(page, f"lighthouse-{view.lower()}")
    page.get_by_role("link", name="Narrative", exact=True).click()
    page.get_by_role("link", name="To the library").click()
    expect(page.locator(".saved-card").first).to_be_visible()
    shoot(page, "lighthouse-library")
    page.go_back()
    page.get_by_role("button", name="Begin again").click()
    page.wait_for_url(lambda url: session not in url)
    expect(page.get_by_role("button", name="Look up at the tower", exact=True)).to_be_visible()
