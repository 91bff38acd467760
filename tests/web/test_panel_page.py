"""The panel beside the story. In a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from bench_tool import HOSTILE

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]


PATIENCE = 20_000  # a machine that is busy with tests draws a picture for as long as that takes


def say(page: Any, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text("Your turn", timeout=PATIENCE)
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")


def test_the_panel_follows_the_story(fresh_server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    session = fresh_server.new_session("lighthouse")
    page = open_page(fresh_server.at(f"/play/{session}"))
    world = page.get_by_role("complementary", name="World")
    expect(world).to_contain_text("on the landing")
    expect(world).to_contain_text("A mailbag and a ham")
    expect(world).to_contain_text("0 of 2")
    say(page, "Look up at the tower")
    expect(world.get_by_role("img")).to_be_visible(timeout=PATIENCE)
    say(page, "go inside")
    expect(world).to_contain_text("in the store", timeout=PATIENCE)
    expect(world.get_by_role("img")).to_have_count(0)  # which showed another place
    say(page, "take the oil")
    expect(world.get_by_role("listitem").filter(has_text="A can of oil")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("status")).to_have_text("Your turn")
    with fresh_server.client() as client:
        client.post(f"/sessions/{session}/checkpoints", json={"name": "With oil"}).raise_for_status()
        client.post(f"/sessions/{session}/branch", json={"turn": 1}).raise_for_status()
    expect(world).to_contain_text("With oil")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(world).to_contain_text("A mailbag and a ham")
    expect(world).not_to_contain_text("With oil")  # its turn is undone
    shoot(page, "panel")
    found = Axe().run(page).response["violations"]
    assert not found, found
    # the story has kept its place, and the panel covers nothing of it
    text, panel = page.locator(".page").bounding_box(), world.bounding_box()
    assert panel["x"] >= text["x"] + text["width"] - 1
    page.get_by_role("button", name="World").click()
    expect(world).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="World")).to_have_attribute("aria-pressed", "false")


def test_on_a_phone_it_is_a_sheet(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    session = server.new_session("lighthouse")
    with server.client() as client:
        client.post(f"/sessions/{session}/branch", json={}).raise_for_status()
    page = open_page(
        server.at(f"/play/{session}"), viewport={"width": 320, "height": 568}, has_touch=True, is_mobile=True
    )
    page.get_by_role("button", name="World").tap()
    sheet = page.get_by_role("dialog", name="World")
    expect(sheet).to_contain_text("on the landing")
    expect(sheet.get_by_role("link", name="The Light at Sull Skerry")).to_be_visible()
    shoot(page, "panel-phone")
    assert sheet.evaluate("node => node.scrollWidth <= node.clientWidth")
    found = Axe().run(page).response["violations"]
    assert not found, found
    page.get_by_role("button", name="Close the world").tap()
    expect(sheet).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 300})
    expect(page.get_by_role("button", name="World")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("link", name="State", exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.short
def test_nothing_in_a_panel_runs(fresh_server: RunningServer, open_page: Open) -> None:
    folder = fresh_server.home / "stories" / "odd"
    folder.mkdir()
    text = json.dumps(HOSTILE, ensure_ascii=False)
    (folder / "story.toml").write_text(
        f"""title = "Odd"
premise = "Odd"
narrator = ["template"]
[opening]
narrative = "Odd."
[state]
place = {text}
bag = {{ {text} = {text}, nothing = false, many = 3, lamp = {{ lit = true, broken = false }} }}
[[panel]]
kind = "place"
label = {text}
path = "place"
[[panel]]
kind = "things"
label = {text}
path = "bag"
labels = {{ many = {text} }}
[[panel]]
kind = "facts"
label = "Facts"
facts = [
  {{ label = {text}, when = {{ place = {{ exists = true }} }} }},
  {{ label = "never", when = {{ place = "x" }} }},
]
[[panel]]
kind = "endings"
label = "Endings"
endings = {{ one = {text} }}
""",
        encoding="utf-8",
    )
    session = fresh_server.new_session("odd")
    with fresh_server.client() as client:
        client.post(f"/sessions/{session}/checkpoints", json={"name": HOSTILE}).raise_for_status()
    page = open_page(fresh_server.at(f"/play/{session}"))
    world = page.get_by_role("complementary", name="World")
    expect(world.get_by_text(HOSTILE).first).to_be_visible()
    expect(world.get_by_text("lamp · lit")).to_be_visible()
    expect(world.get_by_text("× 3")).to_be_visible()
    expect(world.get_by_text("nothing")).to_have_count(0)
    expect(world.get_by_text("never")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
    assert world.locator("script, img").count() == 0
