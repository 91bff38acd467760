"""The story on a phone: with its keyboard open, on its side, and both. In a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
TOUCH = {"has_touch": True, "is_mobile": True}
SIZES = {
    "upright": (390, 844),
    "keyboard": (390, 430),
    "small-keyboard": (320, 290),
    "on-its-side": (740, 360),
    "on-its-side-keyboard": (740, 170),
}


def settled(page: Any) -> None:
    """Two frames on, everything has its place."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def inside(page: Any, box: dict[str, float]) -> bool:
    size = page.viewport_size
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and box["y"] + box["height"] <= size["height"]
    )


@pytest.mark.short
def test_the_text_box_stays_in_the_window_and_nothing_covers_the_story(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"), viewport={"width": 390, "height": 844}, **TOUCH)
    box = page.get_by_role("textbox", name="What do you do?")
    for prompt in ("lengthen", "paint"):
        expect(page.get_by_role("status")).to_have_text("Your turn")
        box.fill(prompt)
        box.press("Enter")
    expect(page.get_by_role("button", name="Hang it up")).to_be_attached()
    expect(page.get_by_role("status")).to_have_text("Your turn")
    story = page.get_by_role("log", name="Story")
    for name, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        if "keyboard" in name:
            box.focus()
        settled(page)
        shoot(page, f"phone-{name}")
        assert inside(page, box.bounding_box()), name
        frame = story.bounding_box()
        assert frame["height"] >= 0.5 * height, name
        bottom = frame["y"] + frame["height"]
        for over in page.locator(".jump:visible, .composer, .rail, .bar:visible").all():
            other = over.bounding_box()
            beside = other["x"] + other["width"] <= frame["x"]
            assert beside or other["y"] >= bottom - 1 or other["y"] + other["height"] <= frame["y"] + 1, name
        for view in ("Tools", "Assets", "State", "Narrative"):
            assert inside(page, page.get_by_role("link", name=view, exact=True).bounding_box()), (name, view)
        assert page.evaluate("document.documentElement.scrollWidth") == width, name


def test_settings_are_a_full_screen_on_a_phone(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"), viewport={"width": 390, "height": 844}, **TOUCH
    )
    for name in ("upright", "on-its-side"):
        width, height = SIZES[name]
        page.set_viewport_size({"width": width, "height": height})
        page.get_by_role("button", name="Settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        expect(dialog.get_by_role("switch", name="bench")).to_be_attached()
        assert dialog.bounding_box() == {"x": 0, "y": 0, "width": width, "height": height}
        shoot(page, f"phone-settings-{name}")
        page.get_by_role("button", name="Close settings").click()


def test_what_was_taken_back_can_be_brought_back_from_the_menu_where_there_is_no_room_for_a_button(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"), viewport={"width": 320, "height": 280}, **TOUCH
    )
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill("shake")
    box.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    page.get_by_role("button", name="Actions for turn 1").tap()
    page.get_by_role("menuitem", name="Undo to before this").tap()
    expect(page.locator(".prompt")).to_have_count(0)
    page.get_by_role("button", name="Actions for the prologue").tap()
    page.get_by_role("menuitem", name="Redo").tap()
    expect(page.locator(".prompt")).to_have_text("shake")
    found = Axe().run(page).response["violations"]
    assert not found, found
