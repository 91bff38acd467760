"""The page in other languages: German, one with more plural forms, one from right to left. In a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from conftest import RunningServer
from narratoria.web.catalogues import shipped

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
ENGLISH = shipped()["en"].words
HEBREW = "אבגדהוזחטיכלמנסעפצקרשתאבגד"
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"


def mirrored(text: Any) -> Any:
    """The same in letters that are written from right to left, values and things to type aside."""
    if isinstance(text, dict):
        return {form: mirrored(one) for form, one in text.items()}
    parts = re.split(r"(\{\w+\}|`[^`]*`)", text)
    letter = re.compile("[A-Za-z]")
    return "".join(
        one if place % 2 else letter.sub(lambda found: HEBREW[ord(found[0].lower()) - 97], one)
        for place, one in enumerate(parts)
    )


def test_the_page_is_in_the_language_of_the_browser_until_another_is_chosen(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), locale="de-AT", service_workers="block")
    expect(page.get_by_role("button", name="Paint a picture")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.locator(".story-frame").get_attribute("lang") == "en", "the story's own"
    asked = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert not [name for name in asked if "words" in name], "its words come with the page"
    page.get_by_role("button", name="Paint a picture").click()
    expect(page.get_by_role("article", name="Zug 1")).to_be_visible()
    told = page.evaluate(
        """["only the first 8,000 characters were read", "(a) $1"].map(modules["words.js"].said)"""
    )
    assert told == ["Nur die ersten 8,000 Zeichen wurden gelesen.", "(a) $1"], "the server's own words"
    page.get_by_role("link", name="Medien").click()
    expect(page.get_by_text("Zug 1 · bench · 1,2 kB")).to_be_visible()
    page.get_by_role("button", name="Einstellungen").click()
    expect(page.get_by_label("Sprache")).to_have_value("")
    shoot(page, "german-settings")
    page.get_by_label("Sprache").select_option("English")
    expect(page.get_by_role("link", name="Assets")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "en"
    expect(page.get_by_text("Turn 1 · bench · 1.2 kB")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Language", exact=True).select_option("As the browser")
    expect(page.get_by_role("link", name="Medien")).to_be_visible()


def test_plural_forms_are_those_of_the_language(
    make_server: Callable[..., RunningServer], open_page: Open
) -> None:
    forms = {"one": "{count} tura", "few": "{count} tury", "many": "{count} tur", "other": "{count} turami"}
    polish = {**ENGLISH, "$name": "Polski", "library.turns": forms}
    server = make_server(words={"pl": polish})
    page = open_page(server.address, locale="pl", service_workers="block")
    expect(page.get_by_role("button", name="Begin The Torch and the Door")).to_be_visible()
    said = page.evaluate(
        """[0, 1, 2, 5, 12, 22, 25, 1.5, 12345].map((count) => modules["words.js"].t("library.turns", { count }))"""
    )
    assert [text.replace("\xa0", " ") for text in said] == [
        "0 tur", "1 tura", "2 tury", "5 tur", "12 tur", "22 tury", "25 tur", "1,5 turami", "12 345 tur",
    ]  # fmt: skip
    # a form that a catalogue lacks is said by the one that every language has
    assert page.evaluate("""modules["words.js"].t("story.choices", { count: 3 })""") == "3 choices"


def test_a_page_from_right_to_left_is_the_mirror_of_the_other(
    make_server: Callable[..., RunningServer], open_page: Open, shoot: Shoot
) -> None:
    words = {key: mirrored(text) for key, text in ENGLISH.items()}
    server = make_server(words={"he": {**words, "$name": "עברית", "$direction": "rtl"}})
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"), theme="light", locale="he", service_workers="block")
    page.locator(".choice").first.click()
    expect(page.locator(".choice").first).to_be_visible()
    assert page.evaluate("document.documentElement.dir") == "rtl"
    assert page.locator(".rail").bounding_box()["x"] > 1000
    prose = page.locator(".narration p").first
    assert prose.evaluate("(node) => getComputedStyle(node).direction") == "ltr", "the story goes its own way"
    problems = []
    for view in ("narrative", "tools", "assets", "state"):
        page.goto(f"{server.origin}/play/{session}#{view}")
        page.locator("main h1:visible, .choice:visible").first.wait_for()
        assert page.evaluate(SIDEWAYS) <= 0, view
        found = Axe().run(page).response["violations"]
        problems += [f"{view}: {one['id']}: {node['target']}" for one in found for node in one["nodes"]]
        shoot(page, f"mirrored-{view}")
    page.locator("header.bar .icon-button").last.click()
    page.locator("dialog.settings .options").wait_for()
    box = page.locator("dialog.settings").bounding_box()
    assert page.locator("dialog.settings h2").bounding_box()["x"] > box["x"] + box["width"] / 2
    shoot(page, "mirrored-settings")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 780})
    for path in (f"/play/{session}#narrative", "/"):
        page.goto(server.origin + path)
        page.locator(".choice:visible, .story-card:visible").first.wait_for()
        assert page.evaluate(SIDEWAYS) <= 0, path
    shoot(page, "mirrored-phone")
    assert not problems, problems
