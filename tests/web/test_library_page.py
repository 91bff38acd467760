"""The library when things are not as its list says, and what its cards say of a story. In a real Chromium."""

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
GONE = "is not here any more: it has been deleted elsewhere."


def act(page: Any, action: str, story: str = "Actions for The Workshop") -> None:
    page.get_by_role("button", name=story).first.click()
    page.get_by_role("menuitem", name=action).click()


def forget(server: RunningServer, session: str) -> None:
    with server.client() as client:
        client.delete(f"/sessions/{session}").raise_for_status()


@pytest.mark.parametrize("action", ["Export", "Branch from here", "Delete…", "Rename…"])
def test_a_story_deleted_elsewhere_leaves_the_list_when_something_is_done_with_it(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot, action: str
) -> None:
    session = fresh_server.new_session()
    page = open_page(fresh_server.address)
    expect(page.locator(".saved-card")).to_have_count(1)
    forget(fresh_server, session)
    act(page, action)
    if action.endswith("…"):
        page.get_by_role("dialog").get_by_role("button", name=action.rstrip("…")).click()
    expect(page.locator("#snackbar")).to_contain_text(GONE)
    expect(page.locator(".saved-card")).to_have_count(0)
    expect(page.get_by_role("heading", name="Begin a story")).to_be_focused()
    assert page.url.removeprefix(fresh_server.origin) == "/"
    shoot(page, "library-gone")


def test_an_export_from_a_server_that_is_down_stays_in_the_library(
    fresh_server: RunningServer, open_page: Open
) -> None:
    fresh_server.new_session()
    page = open_page(fresh_server.address)
    expect(page.locator(".saved-card")).to_have_count(1)
    fresh_server.kill()
    act(page, "Export")
    expect(page.locator("#snackbar")).to_contain_text("The server does not answer.")
    expect(page.locator(".saved-card")).to_have_count(1)


def test_the_focus_stays_on_a_card_in_sight_when_the_only_finished_story_is_deleted(
    fresh_server: RunningServer, open_page: Open
) -> None:
    page = open_page(fresh_server.at(f"/play/{fresh_server.new_session()}"))
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill("finish")
    box.press("Enter")
    expect(page.get_by_role("status")).to_have_text("The end")
    for _ in range(6):
        fresh_server.new_session()
    page.goto(fresh_server.origin)
    finished = page.get_by_role("region", name="Finished")
    finished.get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(finished).to_have_count(0)
    expect(page.locator(".saved-link:visible").last).to_be_focused()


def test_a_card_shows_the_narration_as_it_is_read_and_where_a_branch_began(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = fresh_server.new_session()
    with fresh_server.client() as client:
        for _ in range(2):
            session = client.post(f"/sessions/{session}/branch", json={"turn": 0}).json()["id"]
    page = open_page(fresh_server.address)
    expect(page.locator(".saved-card .excerpt").first).to_have_text("The bench is bare, and the lamp is lit.")
    titles = page.locator(".saved-card h3").all_inner_texts()
    assert sorted(title.count("(from the beginning)") for title in titles) == [0, 1, 1]
    shoot(page, "library-branches")


def test_a_file_that_is_no_story_is_refused_in_plain_words_and_can_be_chosen_again(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot, tmp_path: Path
) -> None:
    page = open_page(fresh_server.address)
    complaints: list[str] = []
    page.on("console", lambda line: complaints.append(line.text) if "ApiError" in line.text else None)
    file = tmp_path / "letter.narratoria"
    for content in (b"Dear reader", b"Dear reader, once more"):
        file.write_bytes(content)
        with page.expect_file_chooser() as chooser, page.expect_response("**/import"):
            page.get_by_role("button", name="Import").click()
            chooser.value.set_files(file)
        expect(page.locator("#snackbar")).to_contain_text("This is not a story that was exported here")
        expect(page.locator("#snackbar")).not_to_contain_text("zip")
        shoot(page, "library-import-refused")
        page.get_by_role("button", name="Close message").click()
    assert not complaints, "a refusal is an answer, not a fault of the page"


def test_what_to_type_stands_as_code_when_the_server_does_not_answer(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(fresh_server.address)
    begin = page.get_by_role("button", name="Begin The Workshop")
    expect(begin).to_be_enabled()
    fresh_server.kill()
    begin.click()
    expect(page.locator("#snackbar code")).to_have_text("narratoria play")
    expect(page.locator("#snackbar")).not_to_contain_text("`")
    shoot(page, "library-offline")


@pytest.mark.short
def test_a_broken_story_stays_in_the_library_with_its_first_mistake(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    folder = fresh_server.home / "stories" / "bell"
    folder.mkdir(parents=True)
    (folder / "story.toml").write_text(
        'title = "The Bell"\npremise = "P"\nnarator = ["rules"]\n[opening]\nnarrative = "N"\n',
        encoding="utf-8",
    )
    (folder / "narrator.toml").write_text(
        '[[rule]]\nid = "a"\npatterns = ["go"]\nnarrative = "x"\ncalls = [{ tool = "wakl" }]\n',
        encoding="utf-8",
    )
    page = open_page(fresh_server.address)
    card = page.locator(".story-card", has_text="The Bell")
    expect(card).to_contain_text("story.toml:3: key 'narator': unknown key; did you mean 'narrator'?")
    expect(card).to_contain_text("and 1 more")
    expect(card.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("button", name="Begin The Workshop")).to_be_enabled()
    shoot(page, "library-broken-story")
    with fresh_server.client() as client:
        refused = client.post("/sessions", json={"story": "bell"})
    assert refused.status_code == 422
    assert "story.toml:3" in refused.json()["message"]
