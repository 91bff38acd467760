"""The keyboard is never lost, and a finger always finds its target. In a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer, write_long_session

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
FIELD = "What do you do?"


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def field(page: Any) -> Any:
    return page.get_by_role("textbox", name=FIELD)


def press(page: Any, name: str) -> None:
    """Press a button by the keyboard, once it can be pressed: a key on a disabled button is lost."""
    expect(button(page, name)).to_be_enabled()
    button(page, name).focus()
    page.keyboard.press("Enter")


@pytest.mark.short
def test_letters_typed_at_an_open_story_go_to_the_field_and_digits_to_the_choices(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(button(page, "Paint a picture")).to_be_visible()
    page.keyboard.type("shake")
    expect(field(page)).to_have_value("shake")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log")).to_contain_text("Dust falls.")
    page.reload()
    expect(button(page, "Paint a picture")).to_be_visible()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.locator(".prompt").last).to_have_text("Paint a picture")


def test_letters_are_left_alone_in_dialogs_menus_and_other_views(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(button(page, "Paint a picture")).to_be_visible()
    button(page, "Actions for the prologue").click()
    page.keyboard.type("a")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="State", exact=True).click()
    page.keyboard.type("b")
    page.get_by_role("link", name="Narrative", exact=True).click()
    expect(field(page)).to_have_value("")


def test_the_focus_stays_with_the_story_whatever_is_pressed(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    prologue = page.get_by_role("article", name="Prologue")
    expect(field(page)).to_be_focused()
    press(page, "Paint a picture")
    expect(button(page, "Hang it up")).to_be_visible()
    expect(prologue).to_be_focused()
    page.keyboard.press("Tab")
    expect(button(page, "Actions for the prologue")).to_be_focused()
    page.keyboard.press("Tab")
    expect(button(page, "Actions for turn 1")).to_be_focused()
    field(page).fill("shake")
    press(page, "Send")
    expect(field(page)).to_be_focused()
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("Dust falls.")
    press(page, "Retry")
    expect(page.get_by_role("article", name="Turn 3")).to_contain_text("Dust falls.")
    expect(field(page)).to_be_focused()
    press(page, "Undo")
    expect(page.locator(".turn")).to_have_count(2)
    expect(button(page, "Undo")).to_be_focused()
    press(page, "Redo")
    expect(page.locator(".turn")).to_have_count(3)
    expect(field(page)).to_be_focused()
    field(page).fill("wait")
    page.keyboard.press("Enter")
    press(page, "Cancel")
    expect(page.get_by_role("status")).to_have_text("Stopped")
    expect(field(page)).to_be_focused()


def test_the_focus_stays_with_the_turn_of_a_choice_though_the_next_one_is_there_before_a_frame_is_drawn(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    page.add_init_script("window.requestAnimationFrame = (draw) => setTimeout(draw, 600, performance.now())")
    page.reload()
    prologue = page.get_by_role("article", name="Prologue")
    expect(field(page)).to_be_focused()
    press(page, "Paint a picture")
    expect(page.locator(".turn:focus")).to_have_attribute("aria-label", "Prologue")
    expect(button(page, "Hang it up")).to_be_visible()
    expect(prologue).to_be_focused()


@pytest.mark.parametrize("how", ["click", "press"])
def test_a_redo_that_brings_back_all_there_is_hands_the_focus_on(
    server: RunningServer, open_page: Open, how: str
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    field(page).fill("shake")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    for name, turns in (("Undo", 1), ("Redo", 2)):
        button(page, name).click() if how == "click" else press(page, name)
        expect(page.locator(".turn")).to_have_count(turns)
    expect(button(page, "Redo")).to_be_disabled()
    expect(field(page)).to_be_focused()


def test_the_focus_survives_a_menu_a_dialog_and_a_dismissal(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    field(page).fill("break")
    page.keyboard.press("Enter")
    press(page, "Dismiss")
    expect(page.get_by_role("article", name="Turn 1")).to_be_focused()
    more = button(page, "Actions for turn 1")
    press(page, "Actions for turn 1")
    page.get_by_role("menuitem", name="Edit and retry…").press("Enter")
    expect(page.get_by_label("Your words")).to_be_focused()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Edit and retry…").press("Enter")
    page.get_by_label("Your words").fill("shake")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("Dust falls.")
    expect(page.locator("article:focus")).to_have_count(1)
    press(page, "Actions for turn 2")
    page.get_by_role("menuitem", name="Undo to before this").press("Enter")
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_role("article", name="Prologue")).to_be_focused()
    press(page, "Close message")
    expect(page.locator(".snackbar.open")).to_have_count(0)
    expect(page.get_by_role("article", name="Prologue")).to_be_focused()


def test_the_last_of_the_earlier_turns_hands_the_focus_on(
    fresh_server: RunningServer, open_page: Open
) -> None:
    page = open_page(fresh_server.at(f"/play/{write_long_session(fresh_server.home, 60)}"))
    page.get_by_role("button", name="Show earlier turns (10)").press("Enter")
    expect(page.locator(".turn")).to_have_count(60)
    expect(page.get_by_role("article", name="Turn 11")).to_be_focused()


def test_on_a_touch_screen_no_keyboard_comes_up_by_itself(server: RunningServer, open_page: Open) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"),
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
    )  # fmt: skip
    button(page, "Paint a picture").tap()
    expect(button(page, "Hang it up")).to_be_visible()
    button(page, "Retry").tap()
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("It is good enough.")
    expect(page.locator("article:focus")).to_have_count(1)


def test_touch_targets_are_large_enough_and_named(server: RunningServer, open_page: Open) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"),
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
    )  # fmt: skip
    field(page).fill("break")
    button(page, "Send").tap()
    expect(button(page, "Dismiss")).to_be_visible()
    small = (
        "nodes => nodes.filter(n => n.checkVisibility()).map(n => [n.innerText, n.getBoundingClientRect()])"
    )
    targets = page.locator("button, summary, .nav-link, .icon-button").evaluate_all(
        f"nodes => ({small})(nodes).filter(([, box]) => box.height < 44).map(([text]) => text)"
    )
    assert targets == []
    for name in ("Undo", "Redo", "Retry", "Branch"):
        expect(button(page, name).get_by_text(name)).to_be_visible()
        assert button(page, name).bounding_box()["height"] >= 48


def test_what_was_typed_and_what_was_put_away_outlive_a_reload(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    field(page).fill("break")
    page.keyboard.press("Enter")
    button(page, "Dismiss").first.click()
    field(page).fill("not sent yet")
    page.reload()
    expect(page.get_by_role("article", name="Turn 1")).to_be_visible()
    expect(field(page)).to_have_value("not sent yet")
    expect(page.locator(".notice")).to_have_count(0)
    field(page).fill("shake")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("Dust falls.")
    page.reload()
    expect(page.get_by_role("article", name="Turn 2")).to_be_visible()
    expect(field(page)).to_have_value("")


def test_whatever_the_field_can_send_can_be_edited(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    field(page).fill("shake " * 1200)
    page.keyboard.press("Enter")
    expect(page.locator(".prompt")).to_have_count(1)
    expect(page.get_by_role("status")).to_have_text("Your turn")
    button(page, "Actions for turn 1").click()
    page.get_by_role("menuitem", name="Edit and retry…").click()
    button(page, "Retry with this").click()
    expect(page.get_by_role("article", name="Turn 2")).to_be_attached()


def test_what_is_written_never_runs_through_the_label(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    field(page).fill("\n".join(f"line {number}" for number in range(40)))
    shoot(page, "story-many-lines")
    label = page.locator("label[for=prompt]").bounding_box()
    assert field(page).bounding_box()["y"] >= label["y"] + label["height"]
