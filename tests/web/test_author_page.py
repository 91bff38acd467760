"""What the page tells the author of a story: its mistakes, and what was saved. In a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
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
