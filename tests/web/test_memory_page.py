"""The memory view: a note, lore of one's own, imports, and what was recalled for a turn. In a real Chromium."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from bench_tool import HOSTILE

from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
PATIENCE = 20_000

CARD = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        "name": "Tobias Reik",
        "description": "{{char}} was the second keeper. He was drowned in April, off the Gut.",
        "personality": "Quiet, and good with ropes.",
        "first_mes": "You again.",
        "mes_example": "<START>",
        "character_book": {
            "entries": [
                {"keys": ["gull", "/bird(s)?/i"], "name": "Pim", "content": "The gull at the rail is called Pim.",
                 "enabled": True, "insertion_order": 5, "extensions": {"probability": 40}},
                {"keys": ["/(?=x)/"], "name": "Fog", "content": "Fog.", "enabled": True, "insertion_order": 6},
            ]
        },
    },
}  # fmt: skip


def png(card: Any) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    text = base64.b64encode(json.dumps(card).encode())
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
            chunk(b"tEXt", b"ccv3\x00" + text),
            chunk(b"IDAT", zlib.compress(b"\x00\x7f")),
            chunk(b"IEND", b""),
        ]
    )


def say(page: Any, text: str) -> None:
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Your turn", timeout=PATIENCE)


def choose(page: Any, name: str, content: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import…").click()
    chooser.value.set_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})


def go(page: Any, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()


# Colours in the midst of a change of theme have no contrast to be judged by.
STILL = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getComputedTiming().iterations === Infinity
)"""


def clean(page: Any) -> None:
    page.wait_for_function(STILL)
    found = Axe().run(page).response["violations"]
    assert not found, found


def test_a_card_is_imported_recalled_pinned_edited_and_forgotten(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(fresh_server.at(f"/play/{fresh_server.new_session('lighthouse')}"))
    go(page, "Memory")
    expect(page.get_by_role("heading", name="Your lore")).to_be_visible()
    clean(page)
    shoot(page, "memory-empty")
    choose(page, "tobias.png", png(CARD))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("One piece of lore is part of this game now.")
    for dropped in (
        "its greeting",
        "its example dialogue",
        "it has no look-around",
        "of 1 entry: chance",
        "the picture itself",
    ):
        expect(dialog).to_contain_text(dropped)
    shoot(page, "memory-imported")
    clean(page)
    dialog.get_by_role("button", name="Done").click()
    pim = page.get_by_role("article").filter(has_text="The gull at the rail")
    expect(pim).to_contain_text("from Tobias Reik")
    page.get_by_role("textbox", name="Author’s note").fill("Short sentences.")
    page.get_by_role("button", name="Keep the note").click()
    expect(page.locator("#snackbar")).to_contain_text("The note is kept.")

    go(page, "Narrative")
    say(page, "what about the birds?")
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn).to_contain_text("The gull at the rail is called Pim.")  # no rule knows of it
    turn.get_by_role("button", name="Actions for turn 1").click()
    expect(page.get_by_role("menuitem", name="Told from your lore")).to_be_visible()
    shoot(page, "memory-menu")
    page.get_by_role("menuitem", name="Recalled Pim: you said “birds”").click()

    pim = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Pim"))
    expect(pim).to_be_focused()  # the menu leads to it
    expect(pim).to_contain_text("recalled for turn 1")
    pim.get_by_role("button", name="Pin “Pim”").click()
    expect(pim.get_by_role("button", name="Unpin “Pim”")).to_have_attribute("aria-pressed", "true")
    pim.get_by_role("button", name="Edit “Pim”").click()
    dialog.get_by_role("textbox", name="Keywords").fill("/(/")
    dialog.get_by_role("button", name="Keep").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not a regular expression")
    clean(page)
    dialog.get_by_role("textbox", name="Keywords").fill("gull\nPim")
    dialog.get_by_role("textbox", name="Text").fill("Pim takes ham, and nothing else.")
    dialog.get_by_role("button", name="Keep").click()
    changed = page.get_by_role("article").filter(has_text="Pim takes ham, and nothing else.")
    expect(changed).to_be_visible()
    page.emulate_media(color_scheme="light")
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    clean(page)
    shoot(page, "memory-light")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    clean(page)
    shoot(page, "memory")
    changed.get_by_role("button", name="Forget “Pim”").click()
    expect(changed).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(changed).to_be_visible()
    first = page.get_by_role("article").filter(has=page.get_by_role("heading", name="Turn 1"))
    first.get_by_role("button", name="Forget “Turn 1”").click()
    expect(page.get_by_role("button", name="Remember “Turn 1” again")).to_be_visible()
    page.reload()
    expect(changed).to_be_visible()
    expect(page.get_by_role("textbox", name="Author’s note")).to_have_value("Short sentences.")
    page.get_by_role("button", name="Undo the last change").click()  # one after the other, after a reload too
    expect(page.get_by_role("button", name="Forget “Turn 1”")).to_be_visible()
    page.get_by_role("button", name="Undo the last change").click()
    expect(pim).to_contain_text("The gull at the rail is called Pim.")


def test_a_file_that_is_no_card_is_refused_in_words(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session('lighthouse')}", "#memory"))
    choose(page, "package.json", b'{"name": "left-pad", "description": "Pads."}')
    expect(page.locator("#snackbar")).to_contain_text("Package.json: no world info (no 'entries')")
    choose(page, "book.json", b'{"entries": [],\n "entries": []}')
    expect(page.locator("#snackbar")).to_contain_text("line 2, column 2")
    expect(page.get_by_role("article")).to_have_count(0)


def test_on_a_phone_nothing_is_cut_and_nothing_hostile_runs(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session("lighthouse")
    with server.client() as client:
        at = f"/sessions/{session}/memory"
        entry = {"keys": [HOSTILE], "name": HOSTILE, "content": HOSTILE}
        book = {"entries": [entry, {**entry, "keys": [5]}]}
        data = {"name": HOSTILE, "description": HOSTILE, "mes_example": HOSTILE, "character_book": book}
        card = {**CARD, "data": data}
        client.post(f"{at}/import?name=x", content=json.dumps(card).encode()).raise_for_status()
        client.post(at, json={"note": HOSTILE}).raise_for_status()
        for number in range(40):
            asked = {
                "name": f"Lore {number}",
                "text": f"Text {number}. " * 40,
                "keywords": ["gull", "word" * 40],
            }
            client.post(at, json=asked).raise_for_status()
    page = open_page(
        server.at(f"/play/{session}", "#memory"),
        viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True,
    )  # fmt: skip
    expect(page.get_by_role("article").filter(has_text="Lore 3")).not_to_have_count(0)
    shoot(page, "memory-phone")
    clean(page)
    view = page.locator(".scroll-view:not([hidden])")
    assert view.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for link in page.get_by_role("navigation").get_by_role("link").all():
        expect(link).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Add lore").tap()
    shoot(page, "memory-phone-form")
    clean(page)
    page.keyboard.press("Escape")
    page.get_by_role("searchbox", name="Filter: Your lore").fill("lore 17")
    expect(page.get_by_role("article")).to_have_count(1)
    page.set_viewport_size({"width": 320, "height": 300})
    for link in page.get_by_role("navigation").get_by_role("link").all():
        expect(link).to_be_in_viewport(ratio=1)
    assert page.evaluate("window.hacked") is None


def test_a_second_window_follows_and_a_running_turn_waits(
    fresh_server: RunningServer, open_page: Open
) -> None:
    session = fresh_server.new_session("workshop")
    page = open_page(fresh_server.at(f"/play/{session}", "#memory"))
    expect(page.get_by_role("heading", name="Your lore")).to_be_visible()
    with fresh_server.client() as client:
        client.post(f"/sessions/{session}/memory", json={"name": "Pim", "text": "A gull."}).raise_for_status()
    expect(page.get_by_role("article").filter(has_text="A gull.")).to_be_visible()
