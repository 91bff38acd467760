"""What the page tells the author of a story: its mistakes, and what was saved. In a real Chromium."""

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


def test_a_saved_session_of_a_story_with_a_mistake_says_which_and_goes_on_once_it_is_mended(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = fresh_server.new_session()
    fresh_server.stop()
    rules = fresh_server.home / "stories" / "workshop" / "narrator.toml"
    good = rules.read_text()
    rules.write_text(good.replace("calls =", "cals =", 1))
    fresh_server.start()
    page = open_page(fresh_server.at(f"/play/{session}"))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("narrator.toml")
    expect(alert).to_contain_text("did you mean 'calls'")
    expect(alert).not_to_contain_text("does not answer")
    expect(page.get_by_role("status")).to_have_text("Not open")
    shoot(page, "story-with-a-mistake")
    rules.write_text("[[rule")
    expect(alert).to_contain_text("not TOML")
    rules.write_text(good)
    expect(alert).to_have_count(0)
    expect(page.get_by_role("button", name="Paint a picture", exact=True)).to_be_visible()


YARD = """
title = "The Yard"
premise = "A yard."
narrator = ["rules", "template"]
[opening]
narrative = "You stand in a yard."
choices = ["Look"]
"""
YARD_RULES = """
[[rule]]
id = "look"
patterns = ["look"]
when = { fog = { missing = true } }
narrative = "A wall."
calls = [{ id = "a", tool = "fail", retries = 0 }, { id = "b", tool = "fail", after = ["a"] }]
"""
FAIL = """#!/bin/sh
echo '{"version":"0","type":"done","ok":false}'
"""


def write_yard(home: Path) -> Path:
    root = home / "stories" / "yard"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(YARD)
    (root / "narrator.toml").write_text(YARD_RULES)
    (root / "tools" / "fail").write_text(FAIL)
    (root / "tools" / "fail").chmod(0o755)
    return root


def test_an_author_sees_warnings_saves_and_mistakes_and_a_skipped_call_is_called_so(
    make_server: Callable[..., RunningServer], open_page: Open, shoot: Shoot
) -> None:
    server = make_server(watched=True)
    rules = write_yard(server.home) / "narrator.toml"
    page = open_page(server.address)
    card = page.locator(".story-card", has_text="The Yard")
    expect(card).to_contain_text("Warning: narrator.toml:5: rule 'look' (no. 1)")
    expect(card).to_contain_text("no tool and no rule ever writes fog")
    shoot(page, "library-warning")
    card.get_by_role("button", name="Begin").click()
    story = page.get_by_role("log", name="Story")
    expect(story).to_contain_text("You stand in a yard.")
    expect(story).not_to_contain_text("Warning")
    page.get_by_role("textbox", name="What do you do?").fill("look")
    page.get_by_role("textbox", name="What do you do?").press("Enter")
    expect(page.get_by_role("article", name="Turn 1")).to_contain_text("did not succeed")

    page.goto(f"{page.url.partition('#')[0]}#tools")
    expect(page.locator(".dag")).to_contain_text("skipped")
    expect(page.locator(".dag")).not_to_contain_text("waiting")
    expect(page.locator(".wide-page")).to_contain_text("no tool and no rule ever writes fog")
    shoot(page, "tools-skipped-and-warning")

    page.goto(f"{page.url.partition('#')[0]}#narrative")
    good = YARD_RULES.replace("when = { fog = { missing = true } }\n", "")
    rules.write_text(good.replace("patterns", "paterns"))
    expect(story).to_contain_text("the story goes on as it was")
    expect(story).to_contain_text("did you mean 'patterns'?")
    rules.write_text(good)
    expect(story).to_contain_text("narrator.toml saved; the story goes on with it")
    expect(story).not_to_contain_text("the story goes on as it was")
    shoot(page, "story-saved")
    page.reload()
    expect(story).to_contain_text("narrator.toml saved; the story goes on with it")
    expect(story).not_to_contain_text("the story goes on as it was")
