"""The card of a call that waits for approval, in a real Chromium: by mouse, by keyboard, after a reload, for axe."""

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


def begun(server: RunningServer, open_page: Open, **options: Any) -> Any:
    """A page whose story waits for an answer."""
    page = open_page(server.at(f"/play/{server.new_session()}"), **options)
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill("sign")
    box.press("Enter")
    expect(button(page, "Approve")).to_be_visible()
    return page


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def card(page: Any) -> Any:
    return page.locator(".approval")


def violations(page: Any) -> list[str]:
    return [one["id"] for one in Axe().run(page).response["violations"]]


@pytest.mark.short
def test_a_call_is_approved(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = begun(server, open_page)
    expect(card(page)).to_contain_text("May this be done? Sign the deed")
    expect(card(page)).to_contain_text("It always asks first.")
    expect(card(page)).to_contain_text('"what": "sign"')
    expect(page.get_by_role("status")).to_have_text("Waiting for your answer")
    assert violations(page) == []
    shoot(page, "approval")
    button(page, "Approve").click()
    expect(card(page)).to_contain_text("Sign the deed: approved.")
    expect(page.get_by_role("log")).to_contain_text("The ink is wet.")
    expect(button(page, "Approve")).to_have_count(0)
    assert violations(page) == []
    shoot(page, "approval-given")


def test_an_input_is_edited_and_a_mistake_is_said(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = begun(server, open_page)
    button(page, "Edit…").click()
    field = page.get_by_role("textbox", name="Input, as JSON")
    expect(field).to_be_focused()
    field.fill("{")
    button(page, "Run with this input").click()
    expect(page.get_by_role("alert").filter(has_text="not JSON")).to_be_visible()
    field.fill('{"what": 5}')
    button(page, "Run with this input").click()
    expect(page.get_by_role("alert").filter(has_text="The tool would refuse")).to_be_visible()
    assert violations(page) == []
    shoot(page, "approval-edit")
    field.fill('{"what": "finish"}')
    button(page, "Run with this input").click()
    expect(card(page)).to_contain_text("approved, with another input.")
    card(page).get_by_text("What was asked").click()
    expect(card(page).locator("pre")).to_contain_text('"what": "finish"')
    expect(card(page).locator("pre")).to_be_visible()


def test_a_refusal_is_written_with_the_keyboard_alone(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = begun(server, open_page)
    button(page, "Refuse…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Why? The narrator reads it.")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button(page, "Refuse…")).to_be_focused()
    page.keyboard.press("Enter")
    assert violations(page) == []
    page.keyboard.type("not that deed")
    shoot(page, "approval-refuse")
    page.keyboard.press("Enter")
    expect(card(page)).to_contain_text("refused (not that deed)")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    expect(page.locator(".notice.error")).to_have_count(0)  # nothing has failed
    shoot(page, "approval-refused")


def test_after_a_reload_the_question_is_still_there(server: RunningServer, open_page: Open) -> None:
    page = begun(server, open_page)
    page.reload()
    button(page, "Approve").click()
    expect(card(page)).to_contain_text("Sign the deed: approved.")
    page.reload()
    expect(card(page)).to_contain_text("Sign the deed: approved.")


def test_cancelling_the_turn_closes_the_card(server: RunningServer, open_page: Open) -> None:
    page = begun(server, open_page)
    button(page, "Cancel").click()
    expect(card(page)).to_contain_text("not answered before the turn ended.")
    expect(button(page, "Approve")).to_have_count(0)


def test_it_fits_a_phone(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = begun(server, open_page, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert violations(page) == []
    shoot(page, "approval-phone")
    for one in card(page).get_by_role("button").all():
        box = one.bounding_box()
        assert box is not None and box["height"] >= 44 and box["x"] + box["width"] <= 390
