"""Coming in and going out, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import SCREENS, RunningServer
from narratoria.web.browser_launch import signpost

pytestmark = pytest.mark.browser


@pytest.mark.short
def test_a_browser_comes_in_by_the_file_and_leaves_by_the_settings(
    fresh_server: RunningServer, chromium: Any
) -> None:
    session = fresh_server.new_session()
    context = chromium.new_context()
    page = context.new_page()
    with signpost(fresh_server.home, fresh_server.at(f"/play/{session}")) as place:
        page.goto(place)
        page.wait_for_url(f"**/play/{session}")
    assert "token" not in page.url
    page.get_by_role("button", name="Settings").first.click()
    out = page.get_by_role("button", name="Sign out")
    out.scroll_into_view_if_needed()
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / "sign-out.png")
    out.click()
    page.get_by_text("Not signed in.").wait_for()
    page.goto(f"{fresh_server.origin}/play/{session}")
    page.get_by_text("Not signed in.").wait_for()
    assert context.cookies() == []
    page.goto(fresh_server.at(f"/play/{session}"))
    page.get_by_role("button", name="Settings").first.wait_for()
    context.close()


def test_an_open_page_goes_on_after_a_restart(
    fresh_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    session = fresh_server.new_session()
    page = open_page(fresh_server.at(f"/play/{session}"))
    page.get_by_role("button", name="Paint a picture").wait_for()
    (before,) = page.context.cookies()
    fresh_server.stop()
    fresh_server.start()
    page.reload()
    page.get_by_role("button", name="Paint a picture").wait_for()
    (after,) = page.context.cookies()
    assert before["value"] != after["value"]
