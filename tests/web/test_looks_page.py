"""How a story looks: one left edge, sharp pictures, players of our own, a whole cover. In a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.marked_processes import eventually

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
LEFT = """nodes => [...new Set(nodes.filter(node => node.checkVisibility())
    .map(node => Math.round(node.getBoundingClientRect().left)))]"""


def say(page: Any, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text("Your turn")
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")


def test_a_column_has_one_left_edge_and_sound_has_our_own_controls(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    box = page.get_by_role("textbox", name="What do you do?")
    expect(box).to_be_focused()
    assert page.evaluate("getComputedStyle(document.querySelector('main')).outlineStyle") == "none"
    say(page, "paint")
    say(page, "forge")
    say(page, "break")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    column = ".narration, .story-asset > *, .placeholder, .notice, .choices, .composer-bar, .composer-field"
    assert len(page.locator(column).evaluate_all(LEFT)) == 1
    shoot(page, "looks-column")

    assert page.locator("audio[controls], video[controls]").count() == 0
    player = page.get_by_role("group", name="The bell")
    play = player.get_by_role("button", name="Play The bell")
    expect(player.get_by_role("slider", name="Position in The bell")).to_have_attribute(
        "aria-valuetext", "0:00 of 0:01"
    )
    page.evaluate("document.querySelector('audio').loop = true")
    play.click()
    expect(player.get_by_role("button", name="Pause The bell")).to_be_focused()
    assert page.evaluate("document.querySelector('audio').paused") is False
    player.get_by_role("button", name="Sound off").click()
    expect(player.get_by_role("button", name="Sound on")).to_be_visible()
    assert page.evaluate("document.querySelector('audio').muted") is True
    page.reload()
    expect(page.get_by_role("group", name="The bell").get_by_role("button", name="Sound on")).to_be_attached()

    # a warning and an error differ by their sign too
    expect(page.locator(".notice.error .icon-error")).to_have_count(1)
    expect(page.locator(".notice.error")).to_contain_text("Error: ")


def test_pictures_and_films_are_shown_at_half_their_size_or_smaller(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session("lighthouse")
    page = open_page(server.at(f"/play/{session}"), device_scale_factor=2)
    say(page, "Look up at the tower")
    picture = page.locator(".story-asset img")
    expect(picture).to_be_visible()
    picture.evaluate("node => node.decode()")
    assert picture.evaluate("node => node.naturalWidth >= 2 * node.clientWidth")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    offered = page.locator(".choice-text").all_text_contents()
    assert offered == ["Go inside", "Listen"], "in their order, and the one that was taken is gone"
    shoot(page, "looks-picture")


def test_a_cover_is_seen_whole(
    make_server: Callable[..., RunningServer], open_page: Open, shoot: Shoot
) -> None:
    server = make_server(covers=True)
    with server.client() as client:
        assert eventually(lambda: all(one.get("cover") for one in _shipped(client)), within=30)
    page = open_page(server.address)
    cover = page.locator(".story-card", has_text="The Torch and the Door").locator("img").last
    expect(cover).to_be_visible()
    assert cover.evaluate("node => getComputedStyle(node).objectFit") == "contain"
    shoot(page, "looks-library")


def _shipped(client: httpx.Client) -> list[dict[str, Any]]:
    return [one for one in client.get("/stories").json() if one["id"] in {"torch", "lighthouse"}]
