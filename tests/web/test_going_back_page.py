"""Undo, redo, retry and branch on the page: nothing is lost without a question. In a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer, write_long_session

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]


def play(page: Any, *prompts: str) -> None:
    """Take turns, each to its end."""
    box = page.get_by_role("textbox", name="What do you do?")
    for prompt in prompts:
        said = page.locator(".prompt").count()
        box.fill(prompt)
        box.press("Enter")
        expect(page.locator(".prompt")).to_have_count(said + 1)
        expect(page.get_by_role("status")).to_have_text("Your turn")


def act(page: Any, turn: int, action: str) -> None:
    page.get_by_role("button", name=f"Actions for turn {turn}").click()
    page.get_by_role("menuitem", name=action).click()


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def turns_on(server: RunningServer, session: str) -> int:
    with server.client() as client:
        return int(client.get(f"/sessions/{session}").json()["turns"])


def said(page: Any) -> list[str]:
    return list(page.locator(".prompt").all_inner_texts())


@pytest.mark.short
def test_an_older_turn_is_tried_again_in_a_branch_and_nothing_is_lost(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    play(page, "shake", "paint", "forge", "shake")
    act(page, 1, "Retry from here")
    dialog = page.get_by_role("dialog", name="This takes back 3 later turns")
    expect(dialog).to_be_visible()
    expect(button(page, "Branch and retry")).to_be_focused()
    shoot(page, "story-retry-older")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: session not in url)
    expect(page.get_by_role("article", name="Turn 1")).to_contain_text("Dust falls.")
    assert said(page) == ["shake"]
    assert turns_on(server, session) == 4


def test_a_retry_that_is_told_in_the_same_words_says_so_and_offers_other_words(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "shake")
    act(page, 1, "Retry from here")
    expect(page.locator("#snackbar")).to_contain_text("The story tells this in the same words each time.")
    shoot(page, "story-retry-same-words")
    button(page, "Say it differently").click()
    expect(page.get_by_label("Your words")).to_have_value("shake")


def test_an_older_turn_is_edited_here_only_when_that_is_said(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    play(page, "shake", "paint")
    act(page, 1, "Edit and retry…")
    page.get_by_label("Your words").fill("forge")
    button(page, "Retry with this").click()
    page.get_by_role("dialog", name="This takes back 1 later turn").wait_for()
    page.keyboard.press("Escape")
    assert turns_on(server, session) == 2
    act(page, 1, "Edit and retry…")
    page.get_by_label("Your words").fill("forge")
    button(page, "Retry with this").click()
    button(page, "Retry here").click()
    expect(page.locator(".prompt")).to_have_text(["forge"])
    expect(page.get_by_role("status")).to_have_text("Your turn")


@pytest.mark.parametrize("action", ["Undo", "Retry"])
def test_what_cannot_be_taken_back_is_shown_before(
    server: RunningServer, open_page: Open, shoot: Shoot, action: str
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    play(page, "siren")
    asked: list[str] = []  # of the session; the rest of the page's code may come meanwhile
    page.on(
        "request",
        lambda request: asked.extend(
            [request.method] if session in request.url and not request.url.endswith("/panel") else []
        ),
    )
    button(page, action).click()
    dialog = page.get_by_role("dialog", name="Not all of this turn can be taken back")
    expect(dialog.get_by_role("listitem")).to_have_text("The siren: what it has sent")
    expect(button(page, "Leave it")).to_be_focused()
    shoot(page, "story-irreversible")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert asked == ["GET"], "nothing was done before the player agreed"
    button(page, action).click()
    button(page, f"{action} all the same").click()
    expect(page.get_by_role("article", name="Turn 1")).to_have_count(0)


def test_what_several_turns_cannot_take_back_is_listed_whole(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "siren", "siren", "shake")
    act(page, 1, "Undo to before this")
    dialog = page.get_by_role("dialog", name="Not all of these 3 turns can be taken back")
    expect(dialog.get_by_role("listitem")).to_have_count(2)


def test_several_turns_are_undone_by_one_request_and_brought_back_by_one(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "shake", "paint", "forge", "shake")
    posted: list[str] = []
    page.on("request", lambda request: request.method == "POST" and posted.append(request.url))
    act(page, 2, "Undo to before this")
    expect(page.locator(".prompt")).to_have_text(["shake"])
    message = page.locator(".snackbar.open")
    expect(message).to_contain_text("3 turns are undone. Redo brings them back one by one.")
    shoot(page, "story-undone")
    assert len(posted) == 1
    button(page, "Bring all back").click()
    expect(page.locator(".prompt")).to_have_text(["shake", "paint", "forge", "shake"])
    assert len(posted) == 2
    expect(message).to_contain_text("3 turns are back.")
    button(page, "Undo").click()
    expect(message).to_contain_text("The turn is undone.")
    button(page, "Bring it back").click()
    expect(page.locator(".prompt")).to_have_count(4)
    expect(message).to_contain_text("The turn is back.")
    button(page, "Take it back").click()
    expect(page.locator(".prompt")).to_have_count(3)
    button(page, "Redo").click()
    expect(page.locator(".prompt")).to_have_count(4)


def test_an_undo_of_every_turn_on_the_page_shows_those_before(
    fresh_server: RunningServer, open_page: Open
) -> None:
    page = open_page(fresh_server.at(f"/play/{write_long_session(fresh_server.home, 60)}"))
    expect(page.locator(".turn")).to_have_count(50)
    act(page, 11, "Undo to before this")
    expect(page.locator(".snackbar.open")).to_contain_text("50 turns are undone.")
    expect(page.locator(".prompt")).to_have_text([f"step {number}" for number in range(1, 11)])
    button(page, "Bring all back").click()
    expect(page.locator(".turn")).to_have_count(60)


def test_a_double_click_undoes_retries_and_branches_once(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "shake", "paint", "shake")
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url) if request.method == "POST" else None)
    button(page, "Undo").dblclick()
    expect(page.locator(".snackbar.open")).to_contain_text("The turn is undone.")
    expect(page.locator(".prompt")).to_have_text(["shake", "paint"])
    button(page, "Retry").dblclick()
    expect(page.get_by_role("article", name="Turn 4")).to_contain_text("It is good enough.")
    expect(page.get_by_role("status")).to_have_text("Your turn")
    first = page.url
    button(page, "Branch").dblclick()
    page.wait_for_url(lambda url: url != first and "play" in url)
    assert [address.rpartition("/")[2] for address in made] == ["undo", "retry", "branch"]


def test_a_message_lies_above_the_field_and_is_gone_with_the_next_action(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"),
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
    )  # fmt: skip
    play(page, "paint", "shake")
    page.get_by_role("textbox", name="What do you do?").fill("one\ntwo\nthree\nfour\nfive")
    button(page, "Undo").tap()
    message = page.locator(".snackbar.open")
    expect(message).to_be_visible()
    message.evaluate("node => Promise.all(node.getAnimations().map(one => one.finished))")
    shoot(page, "phone-undone")
    lower_edge = message.evaluate("node => node.getBoundingClientRect().bottom")
    assert lower_edge <= page.locator(".composer").bounding_box()["y"] + 1
    page.get_by_role("link", name="State", exact=True).tap()
    expect(message).to_have_count(0)
    page.get_by_role("link", name="Narrative", exact=True).tap()
    button(page, "Undo").tap()
    expect(message).to_be_visible()
    page.get_by_role("textbox", name="What do you do?").fill("shake")
    button(page, "Send").tap()
    expect(message).to_have_count(0)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_moment_is_given_a_name_and_returned_to(
    server: RunningServer, open_page: Open, shoot: Shoot, theme: str
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"), theme=theme)
    play(page, "shake")
    act(page, 1, "Name this moment…")
    dialog = page.get_by_role("dialog", name="Name this moment")
    expect(dialog.get_by_label("A name to come back to")).to_be_focused()
    shoot(page, f"story-name-moment-{theme}")
    page.keyboard.type("Before the paint")
    page.keyboard.press("Enter")
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn).to_contain_text("Before the paint")
    back = button(page, "Return to “Before the paint”")
    expect(back).to_have_count(0)  # one is there already
    play(page, "paint", "paint")
    expect(back).to_be_visible()
    page.get_by_role("button", name="Actions for turn 1").click()
    expect(page.get_by_role("menuitem", name="Name this moment…")).to_have_count(0)
    page.keyboard.press("Escape")
    shoot(page, f"story-moment-{theme}")
    assert not Axe().run(page).response["violations"]
    page.reload()
    back.click()
    expect(page.locator(".prompt")).to_have_count(1)
    expect(turn).to_contain_text("Before the paint")
    assert turns_on(server, session) == 1
    button(page, "Bring all back").click()
    expect(page.locator(".prompt")).to_have_count(3)


def test_the_prologue_can_be_branched_from(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    play(page, "shake")
    page.get_by_role("button", name="Actions for the prologue").click()
    assert page.get_by_role("menuitem").all_inner_texts() == [
        "Edit the text…",
        "Branch from here",
        "Read aloud",
    ]
    page.get_by_role("menuitem", name="Branch from here").click()
    page.wait_for_url(lambda url: session not in url)
    expect(button(page, "Paint a picture")).to_be_visible()
    assert said(page) == []


def test_an_ending_offers_the_way_before_it_even_after_another_turn(
    server: RunningServer, open_page: Open
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    play(page, "paint")
    box = page.get_by_role("textbox", name="What do you do?")
    for prompt in ("finish", "shake"):
        box.fill(prompt)
        box.press("Enter")
        expect(page.locator(".prompt").last).to_have_text(prompt)
        expect(page.get_by_role("status")).to_have_text("The end")
    button(page, "Try another way").click()
    page.wait_for_url(lambda url: session not in url)
    expect(page.locator(".prompt")).to_have_text(["paint"])
    expect(page.get_by_role("region", name="Ending")).to_have_count(0)


def test_while_a_turn_runs_its_menu_offers_nothing_that_would_be_refused(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "shake")
    page.get_by_role("textbox", name="What do you do?").fill("wait")
    button(page, "Send").click()
    expect(button(page, "Cancel")).to_be_visible()
    page.get_by_role("button", name="Actions for turn 1").click()
    shoot(page, "story-menu-running")
    for name in ("Edit and retry…", "Retry from here", "Undo to before this"):
        expect(page.get_by_role("menuitem", name=name)).to_be_disabled()
    expect(page.get_by_role("menuitem", name="Branch from here")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    button(page, "Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Stopped")


def test_who_spoke_and_why_is_in_the_menu_and_never_in_the_story(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "shake", "recite the catalogue of ships")
    first, second = (page.get_by_role("article", name=f"Turn {number}") for number in (1, 2))
    expect(second).to_have_attribute("aria-label", "Turn 2")
    for turn in (first, second):
        expect(turn).not_to_contain_text(re.compile("told (by|plainly)"))
    page.get_by_role("button", name="Actions for turn 1").click()
    expect(page.get_by_role("menuitem", name="Told by the story’s rules")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Not by")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Actions for turn 2").press("Enter")
    expect(page.get_by_role("menuitem", name="Told plainly")).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_contain_text("Not by the story’s rules: ")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_question_message_and_card_is_accessible(
    server: RunningServer, open_page: Open, shoot: Shoot, theme: str
) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"), theme=theme, reduced_motion="reduce",
        viewport={"width": 1280, "height": 600},
    )  # fmt: skip
    problems: list[str] = []

    def check(name: str) -> None:
        shoot(page, f"{theme}-{name}")
        for one in Axe().run(page).response["violations"]:
            problems.extend(f"{name}: {one['id']}: {node['html'][:200]}" for node in one["nodes"])

    play(page, "siren", "forge", "recite the catalogue of ships", "paint")
    check("story-card-and-jump")
    act(page, 1, "Retry from here")
    page.get_by_role("dialog").wait_for()
    check("story-retry-older")
    page.keyboard.press("Escape")
    button(page, "Undo").click()
    expect(page.locator(".snackbar.open")).to_be_visible()
    check("story-message")
    page.get_by_role("textbox", name="What do you do?").fill("wait")
    button(page, "Send").click()
    expect(button(page, "Cancel")).to_be_visible()
    page.get_by_role("button", name="Actions for turn 1").click()
    check("story-menu-running")
    page.keyboard.press("Escape")
    button(page, "Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Stopped")
    page.get_by_role("textbox", name="What do you do?").fill("finish")
    button(page, "Send").click()
    expect(button(page, "Try another way")).to_be_attached()
    check("story-ending")
    assert not problems, "\n".join(problems)


def test_what_a_process_says_while_it_takes_back_is_not_shown_as_the_state(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    play(page, "lamp")
    assert (server.home / "lamp").exists()
    button(page, "Undo").click()
    expect(page.get_by_role("article", name="Turn 1")).to_have_count(0)
    assert not (server.home / "lamp").exists(), "the manifest names the process that takes it back"
    page.get_by_role("link", name="State", exact=True).click()
    expect(page.get_by_role("treeitem", name="lamps")).to_have_count(0)
    expect(page.get_by_role("treeitem", name="bench")).to_have_count(1)
    expect(page.get_by_role("treeitem", name="smoke")).to_have_count(0)
