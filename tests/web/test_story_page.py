"""The story: reading, answering, going back. In a real Chromium, against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer, write_long_session

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
AT_WORK = "Does as it is told…"  # the tool's own words; its id is for the Tools view
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def story(page: Any) -> Any:
    return page.get_by_role("log", name="Story")


def say(page: Any, text: str) -> None:
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def test_the_opening_is_told_with_its_choices(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}", "#narrative"))
    expect(story(page).locator("strong")).to_have_text("bare")
    expect(story(page).locator("em")).to_have_text("lit")
    expect(button(page, "Paint a picture")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Your turn")
    assert "token" not in page.url
    shoot(page, "story-opening")


@pytest.mark.short
def test_a_choice_is_clicked_and_becomes_the_next_prompt(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    button(page, "Paint a picture").click()
    expect(story(page).locator(".prompt")).to_have_text("Paint a picture")
    expect(button(page, "Hang it up")).to_be_visible()
    expect(button(page, "Wait for the bell")).to_have_count(0)
    expect(page.get_by_role("img", name="Dusk over the yard")).to_be_visible()
    expect(story(page).locator("audio")).to_have_count(1)
    expect(story(page)).to_contain_text("It is good enough.")
    shoot(page, "story-turn")


def test_every_request_of_a_turn_is_read_to_its_end(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    with page.expect_request_finished(lambda request: request.url.endswith("/prompt")):
        say(page, "shake")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    with page.expect_request_finished(lambda request: request.url.endswith("/retry")):
        button(page, "Retry").click()
    assert not failed


def test_a_number_key_takes_a_choice_and_typing_a_number_does_too(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(button(page, "Paint a picture")).to_be_visible()
    story(page).focus()
    page.keyboard.press("1")
    expect(button(page, "Hang it up")).to_be_visible()
    say(page, "2")
    expect(story(page).locator(".prompt").last).to_have_text("Hang it up")


def test_enter_sends_shift_enter_breaks_the_line_and_arrow_up_remembers(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    box = page.get_by_role("textbox", name="What do you do?")
    expect(button(page, "Continue")).to_be_visible()  # there is nothing to send
    box.fill("shake")
    expect(button(page, "Send")).to_be_enabled()
    box.press("Shift+Enter")
    box.press_sequentially("now")
    assert box.input_value() == "shake\nnow"
    box.fill("shake")
    box.press("Enter")
    expect(story(page)).to_contain_text("Dust falls.")
    assert box.input_value() == ""
    box.press("ArrowUp")
    assert box.input_value() == "shake"
    box.press("ArrowDown")
    assert box.input_value() == ""


@pytest.mark.short
def test_a_running_turn_shows_itself_and_can_be_cancelled(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    expect(story(page).locator(".turn").last).to_have_attribute("aria-busy", "true")
    expect(button(page, "Undo")).to_be_disabled()
    shoot(page, "story-running")
    button(page, "Cancel").click()
    expect(story(page)).to_contain_text("You stopped this turn")
    expect(button(page, "Cancel")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("Stopped")
    expect(story(page).locator(".notice")).to_have_count(0)  # what the player stopped has not failed


def test_what_is_sent_while_a_turn_runs_waits_for_its_end(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    box = page.get_by_role("textbox", name="What do you do?")
    say(page, "wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    say(page, "<b>shake")
    waiting = page.get_by_role("button", name="Change what is sent next: Next: <b>shake")
    waiting.click()
    expect(box).to_have_value("<b>shake")
    say(page, "shake")
    shoot(page, "story-next")
    server.ring()
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("Dust falls.")
    expect(box).to_have_value("")
    say(page, "wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    say(page, "shake")
    button(page, "Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Stopped")
    expect(box).to_have_value("shake")
    expect(story(page).locator(".turn")).to_have_count(4)


def test_keys_take_a_turn_back_and_are_listed(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "shake")
    expect(page.get_by_role("article", name="Turn 1")).to_contain_text("Dust falls.")
    expect(button(page, "Undo")).to_be_enabled()
    turns = story(page).locator(".turn")
    page.keyboard.press("Control+z")
    expect(turns).to_have_count(1)
    story(page).focus()
    expect(button(page, "Redo")).to_be_enabled()
    page.keyboard.press("Control+Shift+z")
    expect(turns).to_have_count(2)
    story(page).focus()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_contain_text("Take the newest turn back.")
    shoot(page, "story-shortcuts")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


@pytest.mark.short
def test_undo_redo_retry_and_edit(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "shake")
    expect(story(page)).to_contain_text("Dust falls.")
    turns = story(page).locator(".turn")
    button(page, "Undo").click()
    expect(turns).to_have_count(1)
    expect(button(page, "Paint a picture")).to_be_visible()
    button(page, "Redo").click()
    expect(turns).to_have_count(2)
    button(page, "Retry").click()
    expect(page.get_by_role("article", name="Turn 2")).to_contain_text("Dust falls.")
    expect(turns).to_have_count(2)
    page.get_by_role("button", name="Actions for turn 2").click()
    shoot(page, "story-menu")
    page.get_by_role("menuitem", name="Edit and retry…").click()
    page.get_by_label("Your words").fill("paint")
    page.get_by_role("button", name="Retry with this").click()
    expect(story(page)).to_contain_text("It is good enough.")
    expect(turns).to_have_count(2)


def test_a_branch_opens_a_session_of_its_own(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    say(page, "shake")
    expect(story(page)).to_contain_text("Dust falls.")
    button(page, "Branch").click()
    page.wait_for_url(lambda url: session not in url)
    expect(story(page)).to_contain_text("Dust falls.")
    say(page, "paint")
    expect(story(page)).to_contain_text("It is good enough.")
    page.goto(f"{server.origin}/play/{session}")
    expect(story(page)).to_contain_text("Dust falls.")
    expect(story(page)).not_to_contain_text("It is good enough.")


def test_a_failed_skill_is_told_inline_with_details_retry_and_dismiss(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "break")
    notice = story(page).locator(".notice").first
    expect(notice).to_contain_text("“Does as it is told” did not succeed")
    notice.get_by_text("Details").click()
    expect(notice).to_contain_text("VICE_BROKEN: bench: The vice gives way")
    expect(notice.get_by_role("button", name="Try the turn again")).to_be_visible()
    shoot(page, "story-failure")
    notice.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Tools")).to_be_visible()
    page.go_back()
    story(page).get_by_role("button", name="Dismiss").first.click()
    expect(story(page).locator(".notice")).to_have_count(0)


def test_what_authors_and_tools_tell_against_the_state_is_no_notice_for_the_player(
    server: RunningServer, open_page: Open
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    say(page, "doubt")
    expect(story(page)).to_contain_text("The bench isn't tidy.")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    expect(story(page).locator(".notice")).to_have_count(0)
    page.reload()
    expect(story(page)).to_contain_text("The bench isn't tidy.")
    expect(story(page).locator(".notice")).to_have_count(0)


def test_an_unknown_ui_event_is_a_quiet_card(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "shake")
    card = story(page).locator(".ui-card")
    expect(card).to_contain_text("camera_shake")
    card.locator("summary").click()
    expect(card).to_contain_text('"strength": 0.4')


def test_a_file_that_was_refused_leaves_a_quiet_card_in_its_place(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "forge")
    card = story(page).locator(".placeholder")
    expect(card).to_contain_text("The deed")
    for fact in ("Kind image", "Type image/png"):
        name, _, value = fact.partition(" ")
        expect(card.locator("dl > div").filter(has_text=name)).to_have_text(f"{name}{value}")
    expect(card).to_contain_text("A picture belongs here, but could not be shown.")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    expect(story(page).locator(".notice")).to_have_count(0)
    shoot(page, "story-refused")
    card.locator("summary").click()
    expect(card).to_contain_text("does not begin like image/png")


@pytest.mark.short
def test_tool_text_is_never_markup(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "hostile")
    expect(story(page).locator(".choice", has_text="<script>")).to_be_visible()
    shoot(page, "story-hostile")
    for view in ("Tools", "Assets", "State"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("<script>window.hacked=1</script>")
        shoot(page, f"hostile-{view.lower()}")
    page.get_by_role("tab", name="Raw JSON").click()
    expect(page.get_by_label("State as JSON")).to_contain_text("onerror")
    page.goto(server.origin)
    expect(page.get_by_role("main")).to_contain_text("<script>window.hacked=1</script>")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img[src='x']").count() == 0


def test_nothing_jumps_while_reading_and_what_plays_goes_on(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    say(page, "paint")
    expect(button(page, "Hang it up")).to_be_visible()
    say(page, "lengthen")
    expect(button(page, "Finish")).to_be_attached()
    scroller = story(page)
    scroller.hover()
    page.mouse.wheel(0, -100_000)
    expect(page.get_by_role("article", name="Prologue")).to_be_in_viewport()
    scroller.evaluate("node => { node.scrollTop = 60 }")
    page.evaluate("window.audio = document.querySelector('audio')")
    page.evaluate("audio.loop = true, audio.muted = true, audio.play()")
    with server.client() as another_viewer:
        another_viewer.post(f"/sessions/{session}/prompt", json={"prompt": "wait"})
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    assert scroller.evaluate("node => node.scrollTop") == 60
    server.ring()
    expect(button(page, "Listen")).to_be_attached()
    assert scroller.evaluate("node => node.scrollTop") == 60
    assert page.evaluate("audio.isConnected && !audio.paused")


def test_a_long_turn_is_read_from_its_beginning(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "lengthen")
    expect(button(page, "Finish")).to_be_attached()
    expect(story(page).locator(".prompt")).to_be_in_viewport()
    page.get_by_role("button", name="Go down to: 2 choices").click()
    expect(button(page, "Finish")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Go down to")).to_have_count(0)


def test_a_tall_turn_names_what_lies_below_and_leads_there_in_order(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), viewport={"width": 1280, "height": 380})
    say(page, "lengthen")
    expect(button(page, "Finish")).to_be_attached()
    say(page, "paint")
    expect(button(page, "Hang it up")).to_be_attached()
    shoot(page, "story-below")
    page.get_by_role("button", name="Go down to: Picture · Sound · Picture · 2 choices").click()
    expect(page.get_by_role("img", name="Dusk over the yard")).to_be_in_viewport()
    story(page).evaluate("node => { node.scrollTop = 0 }")
    page.get_by_role("button", name="Go down to: The newest turn").click()
    expect(page.get_by_role("article", name="Turn 2").locator(".prompt")).to_be_in_viewport()


def test_a_turn_of_a_long_story_begins_where_it_should(fresh_server: RunningServer, open_page: Open) -> None:
    page = open_page(fresh_server.at(f"/play/{write_long_session(fresh_server.home, 60)}"))
    expect(page.get_by_role("button", name="Show earlier turns")).to_be_attached()
    say(page, "lengthen")
    expect(button(page, "Finish")).to_be_attached()
    tops = [
        page.locator(selector).last.evaluate("node => node.getBoundingClientRect().top")
        for selector in (".turn", ".story")
    ]
    assert tops[0] - tops[1] == pytest.approx(24, abs=1)


def test_a_reload_in_mid_turn_shows_the_same(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    page.reload()
    expect(story(page).locator(".prompt")).to_have_text("wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    server.ring()
    expect(button(page, "Listen")).to_be_visible()


def test_a_reload_keeps_text_and_pictures_in_their_order(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "paint")
    expect(button(page, "Hang it up")).to_be_visible()
    body = page.get_by_role("article", name="Turn 1").locator(".turn-body")
    order = "node => [...node.children].map(child => child.className)"
    live = body.evaluate(order)
    page.reload()
    expect(button(page, "Hang it up")).to_be_visible()
    assert body.evaluate(order) == live
    assert live[0].startswith("narration")


def test_two_viewers_see_the_same_turn(server: RunningServer, open_page: Open) -> None:
    path = f"/play/{server.new_session()}"
    one, other = open_page(server.at(path)), open_page(server.at(path))
    say(one, "shake")
    expect(story(other)).to_contain_text("Dust falls.")
    expect(story(other).locator(".prompt")).to_have_text("shake")


@pytest.mark.short
def test_a_killed_server_is_announced_and_its_turn_goes_on(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "wait")
    expect(page.get_by_role("status")).to_have_text(AT_WORK)
    server.kill()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    shoot(page, "story-offline")
    server.start()
    expect(page.get_by_role("alert")).to_have_count(0)
    server.ring()
    expect(button(page, "Listen")).to_be_visible()
    expect(story(page).locator(".turn")).to_have_count(2)


def test_a_long_story_opens_on_its_newest_turns_and_shows_the_others_when_asked(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = write_long_session(fresh_server.home, 120)
    page = open_page(fresh_server.at(f"/play/{session}"))
    turns = story(page).locator(".turn")
    expect(turns).to_have_count(50)
    expect(page.get_by_role("article", name="Turn 120")).to_be_in_viewport()
    story(page).evaluate("node => { node.scrollTop = 0 }")
    shoot(page, "story-earlier")
    oldest = page.get_by_role("article", name="Turn 71")
    expect(oldest).to_be_in_viewport()
    page.get_by_role("button", name="Show earlier turns (70)").click()
    expect(turns).to_have_count(100)
    expect(oldest).to_be_in_viewport()
    page.get_by_role("button", name="Show earlier turns (20)").press("Enter")
    expect(turns).to_have_count(120)
    expect(page.get_by_role("button", name="Show earlier turns")).to_have_count(0)
    say(page, "shake")
    expect(page.get_by_role("article", name="Turn 121")).to_contain_text("Dust falls.")
    with fresh_server.client() as client:
        assert client.get(f"/sessions/{session}/state").json()["state"]["count"] == 120


def test_undoing_a_turn_that_was_left_out_is_shown_right(
    fresh_server: RunningServer, open_page: Open
) -> None:
    session = write_long_session(fresh_server.home, 52)
    page = open_page(fresh_server.at(f"/play/{session}"))
    expect(story(page).locator(".turn")).to_have_count(50)
    with fresh_server.client() as client:
        for _ in range(51):
            client.post(f"/sessions/{session}/undo", json={}).raise_for_status()
    expect(story(page).locator(".turn")).to_have_count(1)
    page.get_by_role("link", name="State", exact=True).click()
    expect(page.get_by_role("treeitem", name="count")).to_contain_text("1")


@pytest.mark.short
def test_a_keyboard_alone_reaches_an_ending(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(button(page, "Paint a picture")).to_be_visible()
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    expect(button(page, "Hang it up")).to_be_visible()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "prompt":
            break
    page.keyboard.type("finish")
    page.keyboard.press("Enter")
    expect(story(page)).to_contain_text("The End.")
    expect(story(page)).to_contain_text("A tidy bench")
    page.keyboard.press("Tab")
    shoot(page, "story-ending")


def test_a_phone_has_its_navigation_at_the_bottom(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), **PHONE)
    page.get_by_role("button", name="Paint a picture").tap()
    expect(button(page, "Hang it up")).to_be_visible()
    bar = page.get_by_role("navigation").bounding_box()
    assert bar["y"] + bar["height"] == 844
    assert bar["width"] == 390
    shoot(page, "phone-story")
    for view in ("Tools", "Assets", "State"):
        page.get_by_role("link", name=view, exact=True).tap()
        expect(page.get_by_role("heading", name=view, exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        shoot(page, f"phone-{view.lower()}")
