"""Calls taken apart in a real Chromium: a planted bug is found from the Tools view alone."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import RunningServer

sys.path.insert(0, str(Path(__file__).parents[1] / "planted"))
from planted_bugs import write_planted

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def planted(shared_server: RunningServer) -> RunningServer:
    if not (shared_server.home / "stories" / "planted").exists():
        write_planted(shared_server.home / "stories" / "planted")
    return shared_server


def played(
    server: RunningServer, open_page: Open, *prompts: str, story: str = "planted", **options: Any
) -> Any:
    """The Tools view of a session in which these prompts were played."""
    session = server.new_session(story)
    page = open_page(server.at(f"/play/{session}"), **options)
    for number, prompt in enumerate(prompts, 1):
        expect(page.get_by_role("status")).to_have_text("Your turn", timeout=30_000)
        box = page.get_by_role("textbox", name="What do you do?")
        box.fill(prompt)
        box.press("Enter")
        turn = page.get_by_label(f"Turn {number}", exact=True)
        expect(turn).not_to_have_attribute("aria-busy", "true", timeout=60_000)
    expect(page.get_by_role("status")).to_have_text("Your turn", timeout=30_000)
    page.get_by_role("link", name="Tools", exact=True).click()
    expect(page.locator(".call-part").first).to_be_visible()
    page.session = session
    return page


def violations(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]
    ]


def records(server: RunningServer, page: Any) -> str:
    with server.client() as client:
        return client.get(f"/sessions/{page.session}/events?once=1").text


# --- three planted bugs ----------------------------------------------------------------------------------


def test_a_wrong_key_in_a_patch_is_found(planted: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(planted, open_page, "light")
    card = page.locator(".call")
    changes = card.get_by_role("link")
    expect(changes).to_have_text(["lantern › lti", "lantern › oil"])
    expect(card.locator(".change").first).to_contain_text("new")
    card.get_by_text("Input as sent").click()
    sent = json.loads(card.locator("details[open] pre").inner_text())
    assert sent["operation"] == "light" and sent["input"] == {"oil": 7}
    assert sent["state"] == {"lantern": {"lit": False, "oil": 3}, "door": {"open": False}}
    shoot(page, "call-wrong-key")
    changes.first.click()
    row = page.get_by_role("treeitem", name="lti")
    expect(row).to_be_focused()
    shoot(page, "call-link-to-state")


def test_a_crash_on_one_input_is_found_and_another_input_tried(
    planted: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = played(planted, open_page, "weigh")
    before = records(planted, page)
    card = page.locator(".call").first
    expect(card.locator(".attempt")).to_contain_text("exit code 1")
    card.get_by_text("Standard error, its end").first.click()
    expect(card).to_contain_text("ZeroDivisionError")
    shoot(page, "call-crash")
    card.get_by_role("button", name="Run it again").click()
    result = card.get_by_label("Run again", exact=True)
    expect(result).to_contain_text("It came out as recorded.")
    card.get_by_role("button", name="Edit the input and run").click()
    field = card.get_by_label("Input, as JSON")
    expect(field).to_be_focused()
    field.fill('{"weight": }')
    field.press("Control+Enter")
    expect(card.get_by_role("alert")).to_contain_text("This is not JSON")
    shoot(page, "call-edit")
    field.fill('{"weight": 8}')
    field.press("Control+Enter")
    expect(result).to_contain_text("Completed")
    expect(result).to_contain_text("12.5")
    expect(result).to_contain_text("It differs from the record: how it ended")
    expect(result.get_by_role("heading", name="Run with the edited input")).to_be_focused()
    shoot(page, "call-run-again")
    assert records(planted, page) == before, "the story was touched"


def test_a_slow_second_attempt_is_found(planted: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(planted, open_page, "send")
    first, second = page.locator(".attempt").all()
    expect(first).to_contain_text("Failed")
    expect(first).to_contain_text("exit code 3")
    expect(first).to_contain_text("Then it waited")
    first.get_by_text("Standard error, its end").click()
    expect(first).to_contain_text("the bridge is closed")
    expect(second).to_contain_text("Completed")
    fact = second.locator(".fact").first.inner_text()
    slow = float(fact.split()[0]) / (1000 if "ms" in fact else 1)
    assert slow >= 0.8, fact
    shoot(page, "call-attempts")


def test_a_link_leads_to_the_asset_it_made(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(server, open_page, "paint", story="workshop")
    page.locator(".call-parts").get_by_role("link", name="Dusk over the yard").click()
    expect(page.locator("figure.asset", has_text="Dusk over the yard")).to_be_focused()
    shoot(page, "call-link-to-asset")


# --- run again -------------------------------------------------------------------------------------------


def test_an_effect_outside_is_asked_about(planted: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(planted, open_page, "ring")
    rung = planted.home / "stories" / "planted" / "rung"
    before = rung.read_text()
    card = page.locator(".call").first
    card.get_by_role("button", name="Run it again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the village wakes, which cannot be taken back")
    shoot(page, "call-outside")
    dialog.get_by_role("button", name="Do not run").click()
    assert rung.read_text() == before
    card.get_by_role("button", name="Run it again").click()
    dialog.get_by_role("button", name="Run it even so").click()
    expect(card.get_by_label("Run again", exact=True)).to_contain_text("Completed")
    assert rung.read_text() == before + "x"


def test_a_repeated_call_can_be_stopped(planted: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(planted, open_page, "rest")
    pid_file = planted.home / "stories" / "planted" / "sleeper.pid"
    pid_file.unlink()
    card = page.locator(".call").first
    card.get_by_role("button", name="Edit the input and run").click()
    card.get_by_label("Input, as JSON").fill('{"long": true}')
    card.get_by_role("button", name="Run with this input").click()
    stop = card.get_by_role("button", name="Stop")
    expect(stop).to_be_focused()
    page.wait_for_function(
        "() => document.querySelector('.running-again .elapsed').textContent.includes('s')"
    )
    for _ in range(200):
        if pid_file.exists() and pid_file.read_text():
            break
        page.wait_for_timeout(50)
    pid = int(pid_file.read_text())
    shoot(page, "call-running-again")
    stop.click()
    expect(page.locator("#snackbar")).to_contain_text("Stopped")
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            break
        page.wait_for_timeout(50)
    assert not Path(f"/proc/{pid}").exists(), "its process lives on"


def test_the_command_is_copied(planted: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(planted, open_page, "light", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator("#snackbar")).to_contain_text("on the clipboard")
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:2] == ["narratoria", "call"] and words[2].endswith("/planted/tools/lantern")
    assert words[words.index("--operation") + 1] == "light"
    shoot(page, "call-command")


# --- events ----------------------------------------------------------------------------------------------


def test_five_thousand_events_stay_light_and_a_keyboard_walks_them(
    planted: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = played(planted, open_page, "talk")
    card = page.locator(".call").first
    card.get_by_text("Every event (5,0").click()
    events = card.get_by_role("listbox", name="Events of chatter")
    expect(card.get_by_text("They come as you scroll")).to_be_visible()
    expect(events.get_by_text("line 3", exact=True)).to_be_visible()
    assert events.get_by_role("option").count() < 40
    events.focus()
    events.press("End")
    expect(events.get_by_role("option", selected=True)).to_contain_text("Ends")
    events.press("ArrowUp")
    expect(events.get_by_role("option", selected=True)).to_be_visible()
    expect(card.get_by_label("The chosen event")).to_contain_text('"type"')
    assert events.get_by_role("option").count() < 40
    for _ in range(5):
        events.press("PageUp")
    expect(events.get_by_role("option", selected=True)).to_contain_text("line")
    shoot(page, "call-events")


# --- everybody -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_everything_can_be_used_by_everybody(
    planted: RunningServer, open_page: Open, shoot: Shoot, theme: str, width: int
) -> None:
    page = played(planted, open_page, "send", "weigh", theme=theme, viewport={"width": width, "height": 844})
    card = page.locator(".call").first
    card.get_by_role("button", name="Run it again").click()
    expect(card.get_by_label("Run again", exact=True)).to_contain_text("It came out as recorded.")
    card.evaluate(
        "card => card.querySelectorAll('.call-details details').forEach((one) => { one.open = true; })"
    )
    expect(card.get_by_role("option").first).to_be_visible()
    assert not violations(page)
    wide = page.evaluate(
        """() => [...document.querySelectorAll(".scroll-view:not([hidden]), .call-body, .call-again, .attempt")]
            .filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.className)"""
    )
    assert not wide, "wider than there is room"
    shoot(page, f"call-all-{theme}-{width}")
    page.locator(".scroll-view:not([hidden])").evaluate("node => node.scrollTo(0, 0)")
    shoot(page, f"call-top-{theme}-{width}")


def test_hostile_text_is_harmless_in_every_part(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(server, open_page, "hostile", story="workshop")
    card = page.locator(".call").first
    card.get_by_role("button", name="Run it again").click()
    expect(card.get_by_label("Run again", exact=True)).to_be_visible()
    card.evaluate(
        "card => card.querySelectorAll('.call-details details').forEach((one) => { one.open = true; })"
    )
    events = card.get_by_role("listbox").first
    events.focus()
    for _ in range(8):
        events.press("ArrowDown")
    expect(card.get_by_label("The chosen event").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    shoot(page, "call-hostile")
    page.locator(".call-parts").first.get_by_role("link").first.click()
    expect(page.get_by_role("treeitem").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert not violations(page)


# --- the picture of a plan -------------------------------------------------------------------------------


def test_a_plan_has_arrows_and_no_line_that_another_way_implies(
    planted: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(planted.at(f"/play/{planted.new_session('planted')}", "#tools"))
    expect(page.get_by_role("heading", name="No tool has run yet")).to_be_visible()
    tools = [
        {"toolId": "a", "toolPath": "tools/a"},
        {"toolId": "b", "toolPath": "tools/b", "dependencies": ["a"]},
        {"toolId": "c", "toolPath": "tools/c", "dependencies": ["a", "b"]},
        {
            "toolId": "d",
            "toolPath": "tools/d",
            "input": {"x": {"$from": "c"}},
            "dependencies": ["a"],
            "required": False,
        },
        {"toolId": "e", "toolPath": "tools/e"},
    ]
    states = {"a": "completed", "b": "failed", "c": "skipped", "d": "timeout", "e": "running"}
    drawn = page.evaluate(
        """async ([tools, states]) => {
            const { planPicture } = await import("/static/js/dag.js");
            const picture = planPicture({ tools }, () => {});
            picture.update((id) => states[id]);
            const frame = document.querySelector(".tools-content");
            frame.hidden = false;
            document.querySelector(".empty").hidden = true;
            frame.prepend(picture.node);
            const boxes = [...picture.node.querySelectorAll(".dag-box")];
            return {
                lines: [...picture.node.querySelectorAll(".dag-line")].map((line) => line.dataset.to).sort(),
                tips: picture.node.querySelectorAll(".dag-tip").length,
                marks: new Set(boxes.map((box) => box.querySelector(".dag-mark").getAttribute("d"))).size,
                words: boxes.map((box) => box.querySelector(".dag-id").textContent),
            };
        }""",
        [tools, states],
    )
    assert drawn["lines"] == ["b", "c", "d"], "a → c and a → d are implied"
    assert drawn["tips"] == 3 and drawn["marks"] == 5
    assert drawn["words"] == ["completed", "failed", "skipped", "too slow", "running"]
    shoot(page, "plan-arrows")
