"""The page as an app: its manifest, and the worker that says when the server does not run. In a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
KEPT = """async () => {
  const found = [];
  for (const name of await caches.keys()) for (const one of await (await caches.open(name)).keys()) found.push(one.url);
  return found;
}"""

TRIED = "async () => {{ try {{ await {}; return ''; }} catch (error) {{ return error.name; }} }}"


@pytest.mark.short
def test_the_worker_and_what_it_keeps_are_our_own_files_for_everybody(server: RunningServer) -> None:
    manifest = httpx.get(f"{server.origin}/static/app.webmanifest")
    assert manifest.headers["content-type"] == "application/manifest+json"
    assert {"name", "short_name", "start_url", "display", "icons"} <= manifest.json().keys()
    for one in manifest.json()["icons"]:
        assert httpx.get(server.origin + one["src"]).headers["content-type"] == one["type"]
    worker = httpx.get(f"{server.origin}/service-worker.js")
    assert worker.headers["content-type"].startswith("text/javascript")
    assert worker.headers["cache-control"] == "no-cache"
    assert re.search(r'"narratoria-offline-[0-9a-f]{16}"', worker.text)
    assert re.findall(r'"(/[^"]*)"', worker.text) == ["/static/offline.html"], "nothing else is kept"
    page = httpx.get(f"{server.origin}/static/offline.html")
    assert "default-src 'none'; script-src 'sha256-" in page.headers["content-security-policy"]
    assert not re.search(r"(?:src|href)=\"[^\"]", page.text), "it needs no other file"


def test_a_stopped_server_is_said_in_plain_words_and_the_page_goes_on_when_it_is_back(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = fresh_server.new_session()
    page = open_page(fresh_server.at(f"/play/{session}"), service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    assert page.evaluate(KEPT) == [f"{fresh_server.origin}/static/offline.html"]
    for trick in (
        "trustedTypes.createPolicy('worker', {})",
        "navigator.serviceWorker.register('/static/x.js')",
    ):
        assert page.evaluate(TRIED.format(trick)) == "TypeError"
    developer = page.context.new_cdp_session(page)
    found = developer.send("Page.getAppManifest")
    assert found["errors"] == []
    assert json.loads(found["data"])["start_url"] == "/"
    errors = developer.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [one["errorId"] for one in errors] == ["in-incognito"], "all else is as it must be"

    page.reload()  # by the worker
    assert page.evaluate("navigator.serviceWorker.controller !== null")
    expect(page.get_by_role("log", name="Story")).to_contain_text("The bench is bare")
    page.get_by_label("What do you do?").fill("shake")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log")).to_contain_text("Dust falls.")
    assert page.evaluate(KEPT) == [f"{fresh_server.origin}/static/offline.html"]

    fresh_server.stop()
    page.reload()
    expect(page.get_by_role("heading")).to_have_text("Narratoria is not running")
    expect(page.locator("code")).to_have_text("narratoria play")
    shoot(page, "offline-dark")
    assert Axe().run(page).response["violations"] == []
    page.set_viewport_size({"width": 320, "height": 640})
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, "offline-phone-light")
    assert Axe().run(page).response["violations"] == []
    fresh_server.start()
    expect(page.get_by_role("log", name="Story")).to_contain_text("Dust falls.")


def test_another_site_gets_no_hold_of_a_page_that_comes_by_the_worker(
    server: RunningServer, fresh_server: RunningServer, chromium: Any
) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(server.at("/"))
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.goto(fresh_server.at("/"))
    with context.expect_page() as opened:
        page.evaluate(
            "address => { window.held = open(address); }", f"{server.origin}/play/{server.new_session()}"
        )
    expect(opened.value.get_by_role("log", name="Story")).to_be_visible()
    assert opened.value.evaluate("navigator.serviceWorker.controller !== null")
    assert opened.value.evaluate("window.opener") is None
    assert page.evaluate("window.held.closed")
    context.close()
