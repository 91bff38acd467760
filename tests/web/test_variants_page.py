"""Variants of a turn on the page: arrows, keys and a swipe go between them. In a real Chromium."""

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
PHONE = {"viewport": {"width": 320, "height": 720}, "has_touch": True, "is_mobile": True}


def session_of(server: RunningServer, *prompts: str) -> str:
    """A session in which these turns were taken; one that begins with `=` is the turn before it, taken again."""
    session = server.new_session()
    with server.client() as client:
        for prompt in prompts:
            again = prompt.startswith("=")
            path = f"/sessions/{session}/{'retry' if again else 'prompt'}"
            number = (
                client.post(path, json={"prompt": prompt.removeprefix("=")}).raise_for_status().json()["turn"]
            )
            with client.stream("GET", f"/sessions/{session}/events") as events:
                for line in events.iter_lines():
                    if f'"type":"turn_committed","turn":{number}' in line:
                        break
    return session


def state_of(server: RunningServer, session: str) -> dict[str, Any]:
    with server.client() as client:
        return dict(client.get(f"/sessions/{session}/state").json()["state"])


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


@pytest.mark.short
def test_arrows_and_keys_go_between_variants_and_the_world_follows(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = session_of(server, "shake", "paint", "=forge", "=chatter")
    page = open_page(server.at(f"/play/{session}"), theme="light")
    group = page.get_by_role("group", name="Tellings of this turn")
    expect(group).to_have_text("3 of 3")
    expect(page.locator(".prompt")).to_have_text(["shake", "chatter"])
    assert state_of(server, session)["bench"] == {"tidy": True}
    earlier, later = button(page, "Earlier telling"), button(page, "Later telling")
    expect(later).to_have_attribute("aria-disabled", "true")
    earlier.click()
    expect(group).to_have_text("2 of 3")
    expect(earlier).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(group).to_have_text("1 of 3")
    expect(earlier).to_be_focused()
    expect(page.locator(".prompt")).to_have_text(["shake", "paint"])
    expect(page.get_by_role("button", name="Enlarge: Dusk over the yard")).to_be_visible()
    assert state_of(server, session)["bench"] == {"tidy": False, "picture": "wet"}
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("a")  # a letter is for the field, as everywhere
    expect(page.get_by_role("textbox", name="What do you do?")).to_have_value("a")
    page.keyboard.press("ArrowLeft")
    expect(group).to_have_text("1 of 3")
    group.evaluate("node => node.closest('.turn').scrollIntoView()")
    shoot(page, "variants-light")
    assert not Axe().run(page).response["violations"]
    page.reload()
    expect(group).to_have_text("1 of 3")
    button(page, "Undo").click()
    expect(page.locator(".prompt")).to_have_text(["shake"])
    expect(group).to_have_count(0)
    button(page, "Redo").click()
    expect(group).to_have_text("1 of 3")


def test_a_variant_of_an_older_turn_opens_in_a_branch(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = session_of(server, "shake", "=forge", "paint")
    page = open_page(server.at(f"/play/{session}"))
    button(page, "Earlier telling").click()
    dialog = page.get_by_role("dialog", name="The story has gone on from here")
    expect(button(page, "Branch").last).to_be_focused()
    shoot(page, "variants-older")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button(page, "Earlier telling")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Branch").click()
    page.wait_for_url(lambda url: session not in url)
    expect(page.locator(".prompt")).to_have_text(["shake"])


def test_a_swipe_goes_between_variants_and_does_not_fight_scrolling(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = session_of(server, "shake", "=lengthen", "=paint")
    page = open_page(server.at(f"/play/{session}"), **PHONE)
    group = page.get_by_role("group", name="Tellings of this turn")
    expect(group).to_have_text("3 of 3")
    touch = page.context.new_cdp_session(page)

    def swipe(dx: int, dy: int) -> None:
        box = page.locator(".narration").last.bounding_box()
        x, y = box["x"] + box["width"] / 2, max(120, box["y"] + 10)
        for step in range(9):
            kind = "touchStart" if step == 0 else "touchMove"
            at = [{"x": x + dx * step / 8, "y": y + dy * step / 8}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe(110, 6)
    expect(group).to_have_text("2 of 3")
    expect(page.locator(".prompt")).to_have_text(["lengthen"])
    top = page.locator(".story").evaluate("node => node.scrollTop")
    swipe(20, -90)
    page.wait_for_function("top => document.querySelector('.story').scrollTop > top", arg=top)
    expect(group).to_have_text("2 of 3")
    swipe(-110, 6)
    expect(group).to_have_text("3 of 3")
    group.evaluate("node => node.closest('.turn').scrollIntoView()")
    shoot(page, "variants-phone")
    assert not Axe().run(page).response["violations"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_what_a_variant_did_outside_is_asked_about_and_told(server: RunningServer, open_page: Open) -> None:
    session = session_of(server, "lamp", "=siren")
    page = open_page(server.at(f"/play/{session}"))
    button(page, "Earlier telling").click()
    expect(page.get_by_role("dialog", name="Not all of this turn can be taken back")).to_be_visible()
    button(page, "Change all the same").click()
    expect(page.locator(".snackbar.open")).to_contain_text("a redo, which runs no tool, cannot do it again")
    expect(page.locator(".prompt")).to_have_text(["siren"])


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_narrators_text_is_edited_and_put_back(
    server: RunningServer, open_page: Open, shoot: Shoot, theme: str
) -> None:
    session = session_of(server, "shake", "paint")
    page = open_page(server.at(f"/play/{session}"), theme=theme)
    turn = page.get_by_role("article", name="Turn 2")

    def act(action: str) -> None:
        page.get_by_role("button", name="Actions for turn 2").click()
        page.get_by_role("menuitem", name=action).click()

    act("Edit the text…")
    field = page.get_by_label("What is told in this turn")
    expect(field).to_be_focused()
    expect(field).to_have_value("You mix the colours.\n\nIt is good enough.")
    shoot(page, f"edit-text-{theme}")
    assert not Axe().run(page).response["violations"]
    hostile = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
    field.fill(f"You **stir** the colours.\n\n{hostile}")
    page.keyboard.press("Control+Enter")
    expect(turn.locator(".narration strong")).to_have_text("stir")
    expect(turn).not_to_contain_text("It is good enough.")
    expect(turn.locator(".story-asset")).not_to_have_count(0)
    assert page.evaluate("window.hacked") is None
    page.reload()
    expect(turn.locator(".narration strong")).to_have_text("stir")
    with server.client() as client:
        assert "stir" in client.get(f"/sessions/{session}/export", params={"format": "markdown"}).text
        assert client.get(f"/sessions/{session}/find", params={"words": "stir"}).json()["total"] == 1
    act("Back to the narrator’s text")
    expect(turn).to_contain_text("It is good enough.")
    button(page, "Put it back").click()
    expect(turn.locator(".narration strong")).to_have_text("stir")
    assert page.evaluate("window.hacked") is None


def test_the_story_goes_on_without_a_word(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    session = session_of(server, "shake")
    page = open_page(server.at(f"/play/{session}"), theme="light")
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill("x")
    expect(button(page, "Continue")).to_have_count(0)
    expect(button(page, "Send")).to_be_enabled()
    box.fill("")
    expect(button(page, "Send")).to_have_count(0)
    shoot(page, "continue-light")
    assert not Axe().run(page).response["violations"]
    button(page, "Continue").click()
    turn = page.get_by_role("article", name="Turn 2")
    expect(turn).to_contain_text("You sit down under the bell.")  # the story's rule for "wait"
    expect(button(page, "Cancel")).to_be_visible()
    server.ring()
    expect(page.get_by_role("status")).to_have_text("Your turn")
    expect(page.locator(".prompt")).to_have_text(["shake"])
    button(page, "Retry").click()
    expect(button(page, "Cancel")).to_be_visible()
    server.ring()
    expect(page.get_by_role("group", name="Tellings of this turn")).to_have_text("2 of 2")
    shoot(page, "continue-retold")
    expect(page.locator(".prompt")).to_have_text(["shake"])
