"""What of a story is in sight when it opens, when a turn comes and when one is taken again. In a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer, write_long_session
from narratoria.web.first_data import MOST_BYTES_AT_FIRST

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
SCROLLED = """(node, far) => new Promise((done) => {
  const look = () => node.scrollTop > far && done();
  node.addEventListener("scroll", look);
  look();
})"""


def story(page: Any) -> Any:
    return page.get_by_role("log", name="Story")


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def say(page: Any, text: str) -> None:
    """Take a turn, to its end."""
    turns = page.locator(".prompt").count()
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")
    expect(page.locator(".prompt")).to_have_count(turns + 1)
    expect(page.get_by_role("status")).to_have_text("Your turn")


def settled(page: Any) -> None:
    """Two frames on, whatever the browser does by itself about a place is done."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def top_of_newest_turn(page: Any) -> float:
    settled(page)
    tops = [
        page.locator(selector).last.evaluate("node => node.getBoundingClientRect().top")
        for selector in (".turn", ".story")
    ]
    return float(tops[0] - tops[1])


@pytest.mark.parametrize("size", [(320, 568), (375, 667), (1280, 500)])
def test_a_new_story_opens_on_its_first_line(
    server: RunningServer, open_page: Open, shoot: Shoot, size: tuple[int, int]
) -> None:
    width, height = size
    page = open_page(
        server.at(f"/play/{server.new_session('lighthouse')}"), viewport={"width": width, "height": height}
    )
    for _ in range(2):
        expect(button(page, "Look up at the tower")).to_be_attached()
        settled(page)
        assert story(page).evaluate("node => node.scrollTop") == 0
        page.reload()
    expect(button(page, "Look up at the tower")).to_be_attached()
    shoot(page, f"story-opening-{width}")


def test_a_story_that_has_not_come_yet_does_not_look_unwritten(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at("/"))
    held: list[Any] = []
    page.route("**/events?**", lambda route: held.append(route))
    session = write_long_session(server.home, 1, {"book": "x" * MOST_BYTES_AT_FIRST})
    page.goto(f"{server.origin}/play/{session}")
    expect(page.get_by_role("status")).to_have_text("Opening the story…")
    shoot(page, "story-on-its-way")
    assert story(page).inner_text() == ""
    for route in held:
        route.continue_()
    expect(story(page).get_by_text("You take step 1.")).to_be_visible()


@pytest.mark.parametrize("height", [860, 500])
def test_a_turn_taken_again_is_shown_from_its_beginning(
    server: RunningServer, open_page: Open, shoot: Shoot, height: int
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), viewport={"width": 1280, "height": height})
    for text in ("lengthen", "paint", "lengthen"):
        say(page, text)
    for number in (4, 5):
        story(page).hover()
        page.mouse.wheel(0, 100_000)
        expect(button(page, "Finish")).to_be_in_viewport()
        button(page, "Retry").click()
        expect(page.get_by_role("article", name=f"Turn {number}")).to_contain_text("Paragraph 11")
        expect(page.get_by_role("status")).to_have_text("Your turn")
        assert top_of_newest_turn(page) == pytest.approx(24, abs=1)
    shoot(page, f"story-retried-{height}")


def test_an_older_turn_said_differently_is_shown_from_its_beginning(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    for text in ("lengthen", "lengthen", "paint"):
        say(page, text)
    page.get_by_role("button", name="Actions for turn 1").click()
    page.get_by_role("menuitem", name="Edit and retry…").click()
    page.get_by_label("Your words").fill("lengthen")
    button(page, "Retry with this").click()
    button(page, "Retry here").click()
    expect(page.get_by_role("article", name="Turn 4")).to_contain_text("Paragraph 11")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    assert top_of_newest_turn(page) == pytest.approx(24, abs=1)


def test_who_reads_on_in_a_turn_is_not_taken_back_to_its_beginning(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "lengthen")
    story(page).hover()
    page.mouse.wheel(0, 500)
    story(page).evaluate(SCROLLED, 499)
    before = story(page).evaluate("node => node.scrollTop")
    page.set_viewport_size({"width": 1280, "height": 700})
    settled(page)
    assert story(page).evaluate("node => node.scrollTop") == before


def test_the_actions_of_every_turn_stand_in_one_line(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "shake")
    places = {more.bounding_box()["x"] for more in page.locator(".more").all()}
    assert len(places) == 1


def test_words_of_two_screens_take_half_of_one_and_can_be_scrolled(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "shake")
    say(page, "and go on and " * 300)
    prompt = page.locator(".prompt").last
    assert prompt.bounding_box()["height"] <= 430
    prompt.press("End")
    prompt.evaluate(SCROLLED, 0)
    assert page.locator(".prompt").first.get_attribute("tabindex") is None


def test_the_way_down_covers_nothing_of_the_story(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "lengthen")
    jump = page.get_by_role("button", name="Go down to")
    expect(jump).to_be_visible()
    shoot(page, "story-way-down")
    frame = page.locator(".story").bounding_box()
    assert jump.bounding_box()["y"] >= frame["y"] + frame["height"]
