"""Sound, reading aloud, and how the text is set. In a real Chromium, whose voices are made up: it has none here."""

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
PATIENCE = 20_000
VOICES = """
window.spoken = [];
class Utterance extends EventTarget { constructor(text) { super(); this.text = text; } }
window.SpeechSynthesisUtterance = Utterance;
Object.defineProperty(window, "speechSynthesis", { value: {
  getVoices: () => [],
  cancel: () => {},
  speak: (one) => {
    spoken.push(one.text);
    const word = Object.assign(new Event("boundary"), { name: "word", charIndex: 4, charLength: 4 });
    setTimeout(() => one.dispatchEvent(word));
    window.finish = () => one.dispatchEvent(new Event("end"));
  },
} });
"""


def say(page: Any, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text("Your turn", timeout=PATIENCE)
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")


def until(page: Any, condition: str) -> None:
    """Wait for a condition. Playwright's own way evaluates a string, which the page's policy forbids."""
    page.evaluate(
        f"""async () => {{
            for (let step = 0; step < 400; step += 1) {{
                if ({condition}) return;
                await new Promise(done => setTimeout(done, 50));
            }}
            throw new Error("in vain");
        }}"""
    )


def settings(page: Any) -> Any:
    page.get_by_role("button", name="Settings").click()
    return page.get_by_role("dialog", name="Settings")


def test_turns_are_read_aloud_and_the_text_is_marked(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at("/"))
    page.add_init_script(VOICES)
    page.goto(f"{server.origin}/play/{server.new_session('lighthouse')}")
    page.get_by_role("button", name="Actions for the prologue").click()
    page.get_by_role("menuitem", name="Read aloud").click()
    stop = page.get_by_role("button", name="Stop reading")
    expect(stop).to_be_visible()
    expect(page.locator(".spoken")).to_contain_text("The mate puts you ashore")
    until(page, "CSS.highlights.get('spoken-word')?.size === 1")
    shoot(page, "aloud")
    page.evaluate("finish()")
    expect(page.locator(".spoken")).to_contain_text("The tower door is open")
    stop.click()
    expect(page.locator(".spoken")).to_have_count(0)
    expect(stop).to_be_hidden()
    settings(page).get_by_role("switch", name="Read aloud").check()
    page.keyboard.press("Escape")
    say(page, "listen")
    until(page, "spoken.at(-1).startsWith('You stand still')")


def test_the_sound_of_a_place_goes_on_and_can_be_silenced(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session("lighthouse")
    page = open_page(server.at(f"/play/{session}"))
    say(page, "listen")
    place = "document.querySelector('audio.ambience')"
    until(page, f"{place} && !{place}.paused && {place}.loop && {place}.volume > 0.7")
    dialog = settings(page)
    dialog.get_by_label("Volume").fill("40")
    until(page, f"{place}.volume === 0.4")
    dialog.get_by_role("switch", name="Mute").check()
    assert page.evaluate("[...document.querySelectorAll('audio')].every(one => one.muted)")
    for name, label in (("Line height", "Loose"), ("Contrast", "High"), ("Typeface", "The system’s")):
        dialog.get_by_role("radiogroup", name=name).get_by_text(label, exact=True).click()
    shoot(page, "settings-sound")
    found = Axe().run(page).response["violations"]
    assert not found, found
    dialog.get_by_role("switch", name="Ambience").uncheck()
    until(page, f"{place} === null")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-contrast", "more")
    expect(page.locator("html")).to_have_attribute("data-line", "loose")
    shoot(page, "contrast")
    found = Axe().run(page).response["violations"]
    assert not found, found
