"""Tools, assets, state, library and settings in a real Chromium, and whether everybody can use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import RunningServer, write_long_session

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]


def say(page: Any, text: str) -> None:
    box = page.get_by_role("textbox", name="What do you do?")
    box.fill(text)
    box.press("Enter")


def go(page: Any, view: str) -> None:
    page.get_by_role("link", name=view, exact=True).click()


def played(server: RunningServer, open_page: Open, *prompts: str, **options: Any) -> Any:
    """A page on a session in which these prompts were played."""
    page = open_page(server.at(f"/play/{server.new_session()}"), **options)
    status = page.get_by_role("status")
    for number, prompt in enumerate(prompts, 1):
        expect(status).to_have_text("Your turn")
        say(page, prompt)
        turn = page.get_by_label(f"Turn {number}", exact=True)
        expect(turn).not_to_have_attribute("aria-busy", "true", timeout=30_000)
        expect(status).to_have_text("Your turn")
    return page


# --- tools -----------------------------------------------------------------------------------------------


@pytest.mark.short
def test_a_call_shows_its_status_log_and_plan(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(server, open_page, "paint")
    go(page, "Tools")
    expect(page.get_by_role("img", name="Plan of 1 call")).to_have_accessible_name(
        "Plan of 1 call: paint1 completed"
    )
    expect(page.get_by_role("group", name="Timeline").get_by_role("button")).to_have_count(1)
    card = page.locator(".call")
    expect(card).to_contain_text("Completed")
    expect(card).to_contain_text("mixing")
    shoot(page, "tools")


def test_progress_is_shown_while_a_call_runs(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}", "#tools"))
    expect(page.get_by_role("heading", name="No tool has run yet")).to_be_visible()
    shoot(page, "tools-empty")
    go(page, "Narrative")
    say(page, "wait")
    go(page, "Tools")
    expect(page.get_by_role("progressbar", name="Progress of bench")).to_be_visible()
    expect(page.locator(".call")).to_contain_text("Running")
    expect(page.locator(".call")).to_contain_text("the rope hangs still")
    shoot(page, "tools-running")
    server.ring()
    expect(page.locator(".call")).to_contain_text("Completed")
    expect(page.get_by_role("progressbar")).to_have_count(0)


def test_a_failed_call_shows_its_code_and_its_standard_error(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = played(server, open_page, "break")
    go(page, "Tools")
    card = page.locator(".call").first
    expect(card).to_contain_text("Failed")
    expect(card.locator(".call-error")).to_contain_text("VICE_BROKEN")
    card.get_by_text("Standard error, its end").click()
    expect(card).to_contain_text("the jaw is cracked")
    shoot(page, "tools-failed")


def test_fifty_thousand_lines_stay_light_and_can_be_filtered(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    (server.home / "lines").write_text("50000")
    page = played(server, open_page, "chatter")
    (server.home / "lines").write_text("200")
    go(page, "Tools")
    expect(page.locator(".log-count")).to_have_text("50,000 lines")
    expect(page.get_by_text("line 49999", exact=True)).to_be_visible()
    assert page.locator(".log-line").count() < 100
    shoot(page, "tools-long-log")
    most = page.evaluate(
        """async () => {
            const log = document.querySelector(".log");
            let most = 0;
            for (let step = 0; step < 60; step += 1) {
                log.scrollTop = step * 18000;
                await new Promise(requestAnimationFrame);
                most = Math.max(most, document.querySelectorAll(".log-line").length);
            }
            return most;
        }"""
    )
    assert most < 100, "so many lines were in the page at once"
    page.get_by_label("Least level shown for bench").select_option(label="warn and above")
    expect(page.locator(".log-count")).to_have_text("500 lines of 50,000")
    page.get_by_label("Filter the log of bench").fill("line 41900")
    expect(page.locator(".log-count")).to_have_text("1 line of 50,000")


def test_a_running_call_on_a_phone_keeps_its_bar_clear_of_its_status(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), viewport={"width": 390, "height": 844})
    say(page, "wait")
    go(page, "Tools")
    card = page.locator(".call")
    expect(card).to_contain_text("Running")
    chip, bar = (
        card.locator(".call-head .chip").bounding_box(),
        card.get_by_role("progressbar").bounding_box(),
    )
    assert bar["y"] >= chip["y"] + chip["height"]
    track, done = page.locator(".gantt-track").bounding_box(), page.locator(".gantt-track i").bounding_box()
    assert done["width"] < track["width"], "a bar that always fills its track shows nothing"
    shoot(page, "phone-tools-running")
    server.ring()
    expect(card).to_contain_text("Completed")


def test_a_wide_plan_is_a_block_and_one_without_calls_is_no_picture(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(page.get_by_role("button", name="Paint a picture")).to_be_visible()
    width, height = page.evaluate(
        """async () => {
            await import("/static/later.js"); // which brings its words
            const { planPicture } = await import("/static/js/dag.js");
            const tools = Array.from({ length: 12 }, (_, at) => ({ toolId: `w${at}`, toolPath: "bench" }));
            tools.push({ toolId: "last", toolPath: "bench", dependencies: ["w11"] });
            const { node } = planPicture({ tools }, () => {});
            const places = new Set([...node.querySelectorAll(".dag-box")].map((box) => box.getAttribute("transform")));
            if (places.size !== 13) throw new Error("boxes lie on each other");
            return [node.width.baseVal.value, node.height.baseVal.value];
        }"""
    )
    assert height < 420
    assert width < 700
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    say(page, "sing a song that nobody wrote")
    expect(page.locator(".turn")).to_have_count(2)
    go(page, "Tools")
    expect(page.get_by_text("it calls no tool")).to_be_visible()
    assert not [text for text in said if "viewBox" in text]


def test_lines_of_a_plan_pass_between_boxes_and_a_name_is_said_once(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(page.get_by_role("button", name="Paint a picture")).to_be_visible()
    hidden, names = page.evaluate(
        """async () => {
            await import("/static/later.js"); // which brings its words
            const { planPicture } = await import("/static/js/dag.js");
            const dependencies = ["first"];
            const wide = Array.from({ length: 12 }, (_, at) => ({ toolId: `w${at}`, toolPath: "bench", dependencies }));
            const tools = [{ toolId: "first", toolPath: "tools/first" }, ...wide,
                { toolId: "join", toolPath: "bench", dependencies: wide.map((one) => one.toolId) },
                { toolId: "end", toolPath: "bench", dependencies: ["join", "first", "w3"] }];
            const picture = planPicture({ tools }, () => {});
            const { node } = picture;
            picture.update(() => "waiting");
            document.body.append(node);
            const boxes = [...node.querySelectorAll(".dag-box")].map((box) => box.transform.baseVal[0].matrix);
            const inside = ({ x, y }) => boxes.some(({ e, f }) => x > e + 1 && x < e + 147 && y > f + 1 && y < f + 43);
            const points = (line) => Array.from({ length: 200 }, (_, at) =>
                line.getPointAtLength((at / 199) * line.getTotalLength()));
            const hidden = [...node.querySelectorAll(".dag-line")].filter((line) => points(line).some(inside));
            const names = node.querySelectorAll(".dag-box:first-of-type text");
            return [hidden.length, [...names].map((one) => one.textContent)];
        }"""
    )
    assert hidden == 0
    assert names == ["first", "waiting"], "its tool, and how it stands"


def test_what_is_in_the_cards_of_tools_begins_and_ends_at_the_same_places(
    server: RunningServer, open_page: Open
) -> None:
    page = played(server, open_page, "paint")
    go(page, "Tools")
    expect(page.locator(".call-message")).to_be_visible()
    left = [".card-head h2", ".timeline-card h2", ".gantt-name", ".call-message", ".log-bar", ".log"]
    right = [".card-head .chip", ".gantt-track", ".gantt-axis", ".call-head .chip", ".log-bar", ".log"]
    edges = """([selectors, edge]) => selectors.map((one) =>
        Math.round(document.querySelector(`.tools-content ${one}`).getBoundingClientRect()[edge]))"""
    for selectors, edge in ((left, "left"), (right, "right")):
        found = page.evaluate(edges, [selectors, edge])
        assert len(set(found)) == 1, dict(zip(selectors, found, strict=True))


def test_a_long_title_takes_two_lines_of_a_phone(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    with server.client() as client:
        client.patch(
            f"/sessions/{session}", json={"title": "The keeper of the light who came home late at night"}
        )
    page = open_page(server.at(f"/play/{session}"), viewport={"width": 375, "height": 800})
    title = page.get_by_role("heading", level=1, name="The keeper of the light")
    assert title.evaluate(
        "node => node.scrollHeight <= node.clientHeight && node.scrollWidth <= node.clientWidth"
    )


def test_a_filter_that_nothing_passes_says_so_and_is_lifted(server: RunningServer, open_page: Open) -> None:
    page = played(server, open_page, "chatter")
    go(page, "Tools")
    page.get_by_label("Least level shown for bench").select_option(label="error and above")
    expect(page.get_by_text("Nothing passes this filter")).to_be_visible()
    page.get_by_role("button", name="Show every line").click()
    expect(page.locator(".log-count")).to_have_text("200 lines")
    expect(page.get_by_role("group", name="Log of bench")).to_be_focused()


# --- assets ----------------------------------------------------------------------------------------------


def test_assets_are_gathered_filtered_and_enlarged(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}", "#assets"))
    expect(page.get_by_role("heading", name="Nothing to look at yet")).to_be_visible()
    shoot(page, "assets-empty")
    go(page, "Narrative")
    say(page, "paint")
    expect(page.get_by_role("button", name="Hang it up")).to_be_visible()
    go(page, "Assets")
    expect(page.get_by_role("figure")).to_have_count(4)
    expect(page.get_by_role("main")).to_contain_text("text/html")
    shoot(page, "assets")
    page.get_by_role("button", name="Pictures 2").click()
    expect(page.get_by_role("figure")).to_have_count(2)
    page.get_by_role("button", name="Enlarge: Dusk over the yard").click()
    box = page.get_by_role("dialog", name="Dusk over the yard")
    expect(box).to_contain_text("image/png")
    expect(box).to_contain_text("320 × 180")
    expect(box).to_contain_text("2 of 2")
    assert box.inner_text().count("Dusk over the yard") == 1
    shoot(page, "lightbox")
    with page.expect_download() as download:
        box.get_by_role("link", name="Save").click()
    assert download.value.suggested_filename == "dusk.png"
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    expect(page.get_by_role("button", name="Enlarge: Dusk over the yard")).to_be_focused()


def test_the_lightbox_goes_on_to_the_neighbours(server: RunningServer, open_page: Open) -> None:
    page = played(server, open_page, "paint")
    go(page, "Assets")
    page.get_by_role("button", name="Enlarge: A sign").click()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="Dusk over the yard")).to_be_visible()
    page.get_by_role("button", name="Next picture").click()
    expect(page.get_by_role("dialog", name="A sign")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("dialog", name="Dusk over the yard")).to_contain_text("image/png")
    assert not violations(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Enlarge: Dusk over the yard")).to_be_focused()


def test_every_asset_stands_on_a_stage_of_one_size(server: RunningServer, open_page: Open) -> None:
    page = played(server, open_page, "paint")
    go(page, "Assets")
    expect(page.locator(".asset-stage")).to_have_count(4)
    boxes = [stage.bounding_box() for stage in page.locator(".asset-stage").all()]
    assert len({round(box["height"]) for box in boxes}) == 1
    assert boxes[0]["height"] == pytest.approx(boxes[0]["width"] * 9 / 16, abs=2)
    assert page.locator(".asset", has_text="A page").inner_text().count("A page") == 1


# --- state -----------------------------------------------------------------------------------------------


def test_the_tree_is_walked_by_keyboard(server: RunningServer, open_page: Open) -> None:
    page = played(server, open_page, "paint")
    go(page, "State")
    bench = page.get_by_role("treeitem", name="bench")
    bench.focus()
    expect(bench).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowLeft")
    expect(bench).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("treeitem")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("treeitem", name="tidy")).to_be_focused()
    page.keyboard.press("p")
    expect(page.get_by_role("treeitem", name="picture")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(bench).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("treeitem").last).to_be_focused()


def test_changes_are_marked_and_a_running_call_is_provisional(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = played(server, open_page, "paint")
    go(page, "State")
    expect(page.get_by_role("treeitem", name="tidy")).to_contain_text("changed")
    expect(page.locator(".change.added")).to_contain_text("bench › picture")
    shoot(page, "state")
    go(page, "Narrative")
    say(page, "wait")
    go(page, "State")
    rung = page.get_by_role("treeitem", name="rung")
    expect(rung).to_contain_text("provisional")
    shoot(page, "state-provisional")
    server.ring()
    expect(rung).to_contain_text("changed")
    expect(rung).not_to_contain_text("provisional")


def test_the_raw_json_is_searched_and_copied(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = played(server, open_page, "paint", permissions=["clipboard-read", "clipboard-write"])
    go(page, "State")
    page.get_by_role("tab", name="Raw JSON").click()
    page.get_by_label("Search the JSON").fill("wet")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    shoot(page, "state-json")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("on the clipboard")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied["bench"] == {"tidy": False, "picture": "wet"}


def test_a_state_of_twenty_thousand_things_opens_at_once_and_is_walked_by_keyboard(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    world: dict[str, Any] = {"cellar": {f"bottle{number}": number for number in range(1200)}}
    for shelf in range(200):
        world[f"shelf{shelf}"] = {f"book{book}": f"title {shelf}-{book}" for book in range(100)}
    session = write_long_session(fresh_server.home, 2, world)
    page = open_page(fresh_server.at(f"/play/{session}"))
    expect(page.locator(".turn")).to_have_count(2)
    go(page, "State")
    shelf = page.get_by_role("treeitem", name="shelf0", exact=False).first
    expect(shelf).to_have_attribute("aria-expanded", "false")
    shelf.focus()
    page.keyboard.press("*")
    expect(shelf).to_have_attribute("aria-expanded", "true")
    assert page.get_by_role("treeitem").count() < 2000, "only what is near the window is in the page"
    expect(shelf).to_be_focused()
    shoot(page, "state-large")
    page.keyboard.press("End")
    last = page.get_by_role("treeitem", name="book99").last
    expect(last).to_be_focused()
    expect(last).to_contain_text("title 199-99")
    expect(last).to_be_in_viewport()
    assert [last.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == [
        "2",
        "100",
        "100",
    ]
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("treeitem", name="shelf199")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("treeitem", name="book99").last).to_be_focused()
    page.keyboard.press("Home")
    expect(page.get_by_role("treeitem").first).to_be_focused()
    page.keyboard.press("c")
    expect(page.get_by_role("treeitem", name="cellar")).to_be_focused()
    rest = page.get_by_role("treeitem", name="200 more…")
    page.keyboard.press("s")
    page.keyboard.press("ArrowUp")
    expect(rest).to_be_focused()
    expect(rest).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    expect(rest).to_have_count(0)
    assert page.get_by_role("treeitem").count() < 1000
    assert not violations(page)


def test_the_first_match_in_the_raw_json_is_brought_into_sight(
    fresh_server: RunningServer, open_page: Open
) -> None:
    session = write_long_session(fresh_server.home, 1, {f"g{number}": number for number in range(400)})
    page = open_page(fresh_server.at(f"/play/{session}", "#state"))
    page.get_by_role("tab", name="Raw JSON").click()
    page.get_by_label("Search the JSON").fill("g357")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    assert page.locator(".json").evaluate("one => one.scrollTop") > 1000


# --- library and settings --------------------------------------------------------------------------------


def test_a_story_is_begun_continued_renamed_branched_and_deleted(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(fresh_server.address)
    page.get_by_role("button", name="Begin The Workshop").click()
    expect(page.get_by_role("log", name="Story")).to_contain_text("The bench is bare")
    say(page, "paint")
    expect(page.get_by_role("button", name="Hang it up")).to_be_visible()
    page.get_by_role("link", name="Library").click()
    expect(page.locator(".saved-card")).to_contain_text("You mix the colours")
    shoot(page, "library")
    page.get_by_role("button", name="Actions for The Workshop").click()
    page.get_by_role("menuitem", name="Rename…").click()
    name = page.get_by_label("Name of this story")
    expect(name).to_be_focused()
    name.fill("  ")
    expect(page.get_by_role("button", name="Rename")).to_be_disabled()
    name.fill("x" * 300)
    assert len(name.input_value()) == 200
    name.fill("My bench")
    name.press("Shift+Enter")
    expect(page.get_by_role("link", name="Continue My bench")).to_be_visible()
    expect(page.get_by_role("button", name="Actions for My bench")).to_be_focused()
    page.get_by_role("button", name="Actions for My bench").click()
    page.get_by_role("menuitem", name="Branch from here").click()
    expect(page.get_by_role("log", name="Story")).to_contain_text("It is good enough.")
    page.get_by_role("link", name="Library").click()
    expect(page.locator(".saved-card")).to_have_count(2)
    page.get_by_role("button", name="Actions for My bench", exact=True).click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".saved-card")).to_have_count(1)
    expect(page.get_by_role("link", name="Continue My bench", exact=True)).to_have_count(0)
    expect(page.locator(".saved-link")).to_be_focused()


def test_the_library_shows_what_a_story_says_of_itself_and_what_is_finished(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    root = fresh_server.home / "stories" / "conte"
    root.mkdir()
    (root / "story.toml").write_text(
        'id = "conte"\ntitle = "Le Conte"\nlanguage = "fr"\npremise = "Une porte."\nnote = "Essayez la porte."\n'
        'narrator = ["template"]\n[opening]\nnarrative = "La porte est close."\nchoices = ["Frapper"]\n',
        encoding="utf-8",
    )
    page = played(fresh_server, open_page, "paint")
    say(page, "finish")
    expect(page.locator(".composer .status")).to_have_text("The end")
    for _ in range(6):
        fresh_server.new_session()
    page.goto(fresh_server.origin)
    going_on = page.get_by_role("region", name="Go on with")
    expect(going_on.locator(".saved-card:visible")).to_have_count(4)
    going_on.get_by_role("button", name="Show all 6").click()
    expect(going_on.locator(".saved-card:visible")).to_have_count(6)
    finished = page.get_by_role("region", name="Finished").locator(".saved-card")
    expect(finished).to_have_count(1)
    expect(finished).to_contain_text("Ended: A tidy bench")
    conte = page.locator(".story-card", has_text="Le Conte")
    expect(conte).to_contain_text("Essayez la porte.")
    expect(conte).to_have_attribute("lang", "fr")
    shoot(page, "library-many")
    conte.click(position={"x": 40, "y": 40})  # the whole card begins it
    story = page.get_by_role("log", name="Story")
    expect(story).to_contain_text("La porte est close.")
    assert story.evaluate("one => one.closest('[lang]').lang") == "fr"


def test_stories_can_be_begun_without_scrolling(fresh_server: RunningServer, open_page: Open) -> None:
    fresh_server.new_session()
    page = open_page(fresh_server.address, viewport={"width": 1280, "height": 800})
    expect(page.get_by_role("region", name="Go on with")).to_be_visible()
    for button in page.get_by_role("button", name="Begin ").all():
        expect(button).to_be_in_viewport(ratio=1)


def test_a_session_is_saved_to_a_file_and_brought_back_by_the_buttons(
    fresh_server: RunningServer, open_page: Open, tmp_path: Path
) -> None:
    page = played(fresh_server, open_page, "paint")
    page.get_by_role("link", name="Library").click()
    page.get_by_role("button", name="Actions for The Workshop").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    page.get_by_role("button", name="Actions for The Workshop").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".saved-card")).to_have_count(0)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    chooser.value.set_files(file)
    expect(page.get_by_role("log", name="Story")).to_contain_text("It is good enough.")
    expect(page.get_by_role("img", name="Dusk over the yard")).to_be_visible()
    page.goto(fresh_server.origin)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    (tmp_path / "torn.narratoria").write_bytes(file.read_bytes()[:-40])
    chooser.value.set_files(tmp_path / "torn.narratoria")
    expect(page.locator("#snackbar")).not_to_be_empty()


def test_what_a_setting_is_refused_for_is_said_in_the_dialog_and_the_control_goes_back(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(fresh_server.at(f"/play/{fresh_server.new_session()}"))
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    expect(dialog.get_by_role("radio", name="Language model")).to_be_disabled()
    expect(dialog).to_contain_text("NARRATORIA_LLM_URL")
    expect(dialog.get_by_role("radio", name="As the story asks")).to_be_checked()
    expect(page.get_by_role("textbox", name="What do you do?")).to_have_count(1)
    bench = dialog.get_by_role("switch", name="bench")
    fresh_server.kill()
    bench.click()
    expect(dialog.get_by_role("alert")).to_contain_text("does not answer")
    expect(dialog.get_by_role("alert")).to_be_in_viewport()
    expect(bench).to_be_checked()
    dialog.get_by_text("The story’s rules", exact=True).click()
    expect(dialog.get_by_role("radio", name="As the story asks")).to_be_checked()
    shoot(page, "settings-refused")


def test_a_setting_changed_during_a_turn_says_that_it_waits(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    say(page, "wait")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_role("switch", name="fs:write").click()
    expect(dialog.get_by_role("status")).to_contain_text("when this turn is over")
    server.ring()
    expect(dialog.get_by_role("status")).to_have_text("Saved.")
    expect(dialog.get_by_role("switch", name="fs:write")).not_to_be_checked()


@pytest.mark.short
def test_settings_change_the_theme_and_the_session(
    server: RunningServer, open_page: Open, shoot: Shoot
) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_text("Light", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    dialog.get_by_role("switch", name="bench").click()
    dialog.get_by_role("switch", name="fs:write").click()
    shoot(page, "settings-light")
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Settings").click()
    expect(dialog.get_by_role("switch", name="bench")).not_to_be_checked()
    expect(dialog.get_by_role("switch", name="fs:write")).not_to_be_checked()


def test_settings_fit_the_narrowest_phone(server: RunningServer, open_page: Open, shoot: Shoot) -> None:
    page = open_page(
        server.at(f"/play/{server.new_session()}"), viewport={"width": 320, "height": 568}, is_mobile=True
    )
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    expect(dialog.get_by_role("switch", name="bench")).to_be_attached()
    dialog.get_by_label("Text size").scroll_into_view_if_needed()
    shoot(page, "settings-320")
    assert dialog.evaluate("node => node.scrollWidth - node.clientWidth") == 0


@pytest.mark.parametrize("name", ["none", "%E0%A4", "%3Cscript%3E"])
def test_a_story_that_is_not_there_is_a_page_with_a_way_out(
    server: RunningServer, open_page: Open, shoot: Shoot, name: str
) -> None:
    page = open_page(server.at(f"/play/{name}"))
    expect(page.get_by_role("alert")).to_contain_text("not on the server")
    expect(page.get_by_role("textbox")).to_have_count(0)
    expect(page.get_by_text("Nothing here can be lost")).to_have_count(0)
    assert not violations(page)
    shoot(page, "gone")
    page.get_by_role("main").get_by_role("link", name="To the library").click()
    expect(page.get_by_role("heading", name="Narratoria")).to_be_visible()


def test_a_story_deleted_under_the_reader_says_so(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    page = open_page(server.at(f"/play/{session}"))
    expect(page.get_by_role("button", name="Paint a picture")).to_be_visible()
    with server.client() as client:
        client.delete(f"/sessions/{session}").raise_for_status()
    expect(page.get_by_role("alert")).to_contain_text("not on the server")
    expect(page.get_by_role("alert").get_by_role("paragraph")).to_have_count(
        1
    )  # no sentence meant for a program
    expect(page.get_by_role("button", name="Paint a picture")).to_have_count(0)
    expect(page.get_by_role("link", name="To the library")).to_be_focused()


def test_a_malformed_link_opens_the_view_it_names(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}", "#tools/%E0%A4"))
    expect(page.get_by_role("heading", name="No tool has run yet")).to_be_visible()
    expect(page.get_by_role("link", name="Tools", exact=True)).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize(("width", "height"), [(320, 256), (640, 400), (800, 360)])
def test_a_page_zoomed_to_400_percent_can_be_read_and_answered(
    server: RunningServer, open_page: Open, shoot: Shoot, width: int, height: int
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"), viewport={"width": width, "height": height})
    expect(page.get_by_role("button", name="Paint a picture")).to_be_attached()
    story = page.get_by_role("log", name="Story").bounding_box()
    assert story["height"] >= height * 0.55
    expect(page.get_by_role("textbox", name="What do you do?")).to_be_in_viewport(ratio=1)
    shoot(page, f"zoomed-{width}")
    say(page, "lengthen")
    expect(page.get_by_role("textbox", name="What do you do?")).to_be_in_viewport()
    expect(page.locator(".turn")).to_have_count(2)
    for view in ("Tools", "Assets", "State"):
        go(page, view)
        expect(page.get_by_role("heading", name=view, exact=True)).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# --- everybody -------------------------------------------------------------------------------------------


def violations(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_view_is_accessible(
    fresh_server: RunningServer, open_page: Open, shoot: Shoot, theme: str
) -> None:
    page = played(fresh_server, open_page, "paint", "break", "shake", theme=theme, reduced_motion="reduce")
    problems = violations(page)
    shoot(page, f"{theme}-narrative")
    page.get_by_role("button", name="Actions for turn 1").click()
    problems += violations(page)
    page.keyboard.press("Escape")
    for view in ("Tools", "Assets", "State"):
        go(page, view)
        expect(page.get_by_role("heading", name=view, exact=True)).to_be_visible()
        problems += violations(page)
        shoot(page, f"{theme}-{view.lower()}")
    page.get_by_role("tab", name="Raw JSON").click()
    problems += violations(page)
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("switch", name="bench")).to_be_visible()
    problems += violations(page)
    shoot(page, f"{theme}-settings")
    page.goto(fresh_server.origin)
    expect(page.locator(".saved-card").first).to_be_visible()
    problems += violations(page)
    shoot(page, f"{theme}-library")
    page.goto(f"{fresh_server.origin}/api")
    problems += violations(page)
    assert not problems, "\n".join(problems)


@pytest.mark.short
def test_the_whole_page_is_small(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(page.get_by_role("button", name="Paint a picture")).to_be_visible()
    sizes = page.evaluate(
        """performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
            .map(entry => entry.transferSize)"""
    )
    assert sum(sizes) < 100_000


# --- many windows ----------------------------------------------------------------------------------------


def test_eight_windows_of_one_browser_are_all_alive(server: RunningServer, open_page: Open) -> None:
    session = server.new_session()
    first = open_page(server.at(f"/play/{session}"))
    windows = [first] + [first.context.new_page() for _ in range(7)]
    for window in windows[1:]:
        window.goto(f"{server.origin}/play/{session}")
        expect(window.get_by_role("log", name="Story")).to_contain_text("The bench is bare")
    for number, window in enumerate((first, windows[-1]), 1):
        say(window, "lengthen")
        for viewer in windows:
            expect(viewer.locator(".turn")).to_have_count(number + 1)
            expect(viewer.locator(".composer .status")).to_have_text("Your turn")


def test_a_window_in_the_background_holds_no_connection(server: RunningServer, open_page: Open) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    page.add_init_script(
        """Object.defineProperty(document, "hidden", { get: () => window.away ?? true, configurable: true });"""
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.get_by_role("log", name="Story")).to_contain_text("The bench is bare")
    streams = [url for url in asked if "/events?" in url]
    assert streams
    assert all("once=1" in url for url in streams)
    with page.expect_request(lambda request: "/events?" in request.url and "once" not in request.url):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")


def test_a_hidden_window_leaves_its_stream_at_once_to_one_that_waits(
    fresh_server: RunningServer, open_page: Open
) -> None:
    session = fresh_server.new_session()
    first = open_page(fresh_server.at(f"/play/{session}"))
    windows = [first] + [first.context.new_page() for _ in range(4)]
    for window in windows[1:]:
        window.goto(f"{fresh_server.origin}/play/{session}")
        expect(window.get_by_role("log", name="Story")).to_contain_text("The bench is bare")
    with windows[-1].expect_request("**/events?**"):  # no stream is left for it: it asks, and asks again
        pass
    first.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { get: () => true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    with first.expect_event("requestfailed", lambda request: "/events?" in request.url, timeout=3000):
        pass  # long before a hidden window would leave by itself
