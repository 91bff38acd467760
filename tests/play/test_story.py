"""Stories: the folder, its mistakes, the shelves, and the two that ship."""

from __future__ import annotations

import base64
import filecmp
import io
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tomllib
import wave
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.shipped_stories import shipped_story

from narratoria.errors import StoryInvalid
from narratoria.events import Asset, Done, StatePatch, ToolEvent, UiEvent, decode_tool_event
from narratoria.narrator.protocol import NarratorRequest, NoMatch, PastTurn
from narratoria.play.game import Game, story_registry
from narratoria.play.offering import ending_of
from narratoria.play.story import Story
from narratoria.play.story_library import find_stories, open_story
from narratoria.run.plan import PlanDocument, PlannedCall, tool_name
from narratoria.session import Session
from narratoria.state import merge

ROOT = Path(__file__).parents[2]
LIGHTHOUSE = ROOT / "stories" / "lighthouse"
MEDIA = ("view", "listen", "beam")

STORY = 'title = "T"\npremise = "P"\n[opening]\nnarrative = "N"\nchoices = ["A"]\n'
RULES = '[[rule]]\nid = "a"\npatterns = ["a b"]\nnarrative = "x"\n'


class Play:
    """Plays a story with its rules, running the tools as plain processes and folding their patches."""

    def __init__(self, story: Story, *, media: bool = True) -> None:
        self.story = story
        self.narrator = story.scripted_narrator()
        self.state: dict[str, Any] = dict(story.state)
        self.history: list[PastTurn] = []
        self.choices: list[str] = list(story.opening.choices)
        self.media = media
        self.assets: list[Asset] = []

    async def understand(self, prompt: str) -> PlanDocument:
        plan = await self.narrator.plan(NarratorRequest(prompt, self.state, history=self.history))
        plan.check()
        return plan

    async def turn(self, prompt: str) -> str:
        plan = await self.understand(prompt)
        self.choices = []
        for call in plan.tools:
            if self.media or tool_name(call.tool_path) not in MEDIA:
                self.fold(call, self.run(call))
        self.history.append(PastTurn(prompt, plan.narrative or ""))
        return plan.narrative or ""

    def run(self, call: PlannedCall) -> list[ToolEvent]:
        if tool_name(call.tool_path) == "stage":  # the runtime's own
            offered = UiEvent(
                version="0", event="narrative_choice", payload={"choices": call.input.get("choices")}
            )
            said: list[ToolEvent] = [offered] if "choices" in call.input else []
            return [
                StatePatch(version="0", patch=call.input.get("patch", {})),
                *said,
                Done(version="0", ok=True),
            ]
        given: dict[str, Any] = {
            "requestId": "r",
            "tool": call.tool_path,
            "operation": "run",
            "input": call.input,
        }
        if self.story.tool(tool_name(call.tool_path)).manifest.get("wantsState"):
            given["state"] = self.state
        done = subprocess.run(
            [self.story.tool(tool_name(call.tool_path)).path],
            input=json.dumps(given).encode(),
            capture_output=True,
            timeout=20,
        )
        assert done.returncode == 0, done.stderr.decode()
        return [decode_tool_event(line) for line in done.stdout.splitlines()]

    def fold(self, call: PlannedCall, events: list[ToolEvent]) -> None:
        for event in events:
            if isinstance(event, StatePatch):
                self.state = merge(self.state, event.patch)
            elif isinstance(event, UiEvent) and event.payload is not None:
                self.choices = event.payload["choices"]
            elif isinstance(event, Asset):
                self.assets.append(event)
        assert isinstance(events[-1], Done)
        assert events[-1].ok, f"{call.tool_id}: {events[-1].summary}"


@pytest.fixture(scope="module")
def lighthouse() -> Story:
    return shipped_story("lighthouse")


def prompts(name: str) -> list[str]:
    return (LIGHTHOUSE / "walkthroughs" / f"{name}.txt").read_text(encoding="utf-8").splitlines()


# --- the lighthouse ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("walkthrough", "ending", "title"),
    [("the-light-kept", "kept", "The Light Kept"), ("two-keepers", "two-keepers", "Two Keepers")],
)
async def test_a_walkthrough_comes_to_its_ending(
    lighthouse: Story, walkthrough: str, ending: str, title: str
) -> None:
    play = Play(lighthouse)
    lines = prompts(walkthrough)
    for line in lines[:-1]:
        narrative = await play.turn(line)
        assert len(narrative) > 40
        assert ending_of(play.state) is None
        assert play.choices, f"nothing is offered after {line!r}"
    await play.turn(lines[-1])
    assert ending_of(play.state) == (ending, title)
    assert play.state["lamp"]["lit"] is True
    assert play.state["lamp"]["turning"] is (ending == "two-keepers")
    assert play.state.get("keeper", {}).get("safe", False) is (ending == "two-keepers")
    kinds = {asset.kind for asset in play.assets}
    assert {"image", "video"} <= kinds
    assert ("audio" in kinds) is (ending == "two-keepers")
    plan = await play.understand("go up")
    assert plan.tools == []
    for asset in play.assets:
        assert Path(asset.path).stat().st_size > 10_000
        shutil.rmtree(Path(asset.path).parent)


async def test_lighting_the_lamp_without_the_handle_binds_you_to_the_lens(lighthouse: Story) -> None:
    play = Play(lighthouse, media=False)
    for line in prompts("the-light-kept")[:-1]:
        await play.turn(line)
    assert play.choices == ["Stay with the lens until morning"]
    await play.turn("go down to the Gut")
    assert play.state["place"]["id"] == "lantern"
    await play.turn("downstairs")
    assert play.state["place"]["id"] == "lantern"
    assert play.choices == ["Stay with the lens until morning"]


async def test_the_gut_is_nothing_but_noise_while_the_lamp_is_dark(lighthouse: Story) -> None:
    play = Play(lighthouse, media=False)
    await play.turn("go inside")
    await play.turn("take the rope")
    assert "wants light" in await play.turn("go round to the gut")
    assert "wants light" in await play.turn("tie the rope to the ring")
    assert "rope" not in play.state


@pytest.mark.parametrize("seed", [1, 2])
async def test_everything_that_is_offered_is_understood(lighthouse: Story, seed: int) -> None:
    play = Play(lighthouse, media=False)
    chance = random.Random(seed)
    for _ in range(22):
        plans = [await play.understand(choice) for choice in play.choices]
        assert all(plan.narrative for plan in plans)
        acting = [choice for choice, plan in zip(play.choices, plans, strict=True) if len(plan.tools) > 1]
        assert acting or play.state["place"]["id"] in ("lantern", "gut")
        await play.turn(chance.choice(play.choices))
        if ending_of(play.state):
            return


@pytest.mark.parametrize(
    ("place", "phrases", "tool"),
    [
        (
            "landing",
            ["go in", "enter the lighthouse", "I'd like to go inside, please", "open the door", "inside"],
            "walk",
        ),
        (
            "store",
            ["grab the coil of rope", "get rope", "Pick up the line!", "fetch the rope from its peg"],
            "take",
        ),
        (
            "store",
            ["draw some oil", "fill the can from the cask", "take a can of oil", "collect lamp oil"],
            "take",
        ),
        ("store", ["up", "go upstairs", "climb the stairs", "head up to the kitchen", "kitchen"], "walk"),
        ("kitchen", ["take the tin", "pocket the matches", "get a match"], "take"),
        (
            "watch",
            ["open the log", "look at the desk", "read the keeper's log", "examine logbook"],
            "read-log",
        ),
        ("watch", ["ring the fog bell", "pull the lanyard", "sound the bell"], "listen"),
        ("watch", ["check the barometer", "tap the glass"], "barometer"),
        ("watch", ["consult the almanac", "look up the tide"], "almanac"),
        ("lantern", ["fill the lamp", "pour the oil into the lamp", "use the oil"], "fill-lamp"),
        ("lantern", ["fit the wick", "put the wick in the lamp", "replace the wick"], "trim-wick"),
        (
            "lantern",
            ["crank the clockwork", "use the handle", "wind up the mechanism with the handle"],
            "wind-clock",
        ),
    ],
)
async def test_many_phrasings_lead_to_one_tool(
    lighthouse: Story, place: str, phrases: list[str], tool: str
) -> None:
    play = Play(lighthouse)
    play.state = merge(play.state, {"place": {"id": place}})
    if place == "lantern":
        play.state = merge(play.state, {"inventory": {"oil": "o", "wick": "w", "handle": "h"}})
    for phrase in phrases:
        plan = await play.understand(phrase)
        assert plan.tools[0].tool_path == tool, phrase


@pytest.mark.parametrize(
    ("state", "prompt", "last"),
    [
        (
            {
                "place": {"id": "gut"},
                "lamp": {"lit": True, "turning": True},
                "rope": {"fast": True, "thrown": True},
            },
            "haul",
            "“one of us had better be.”",
        ),
        ({"place": {"id": "lantern"}, "lamp": {"lit": True}}, "stay", "you look at it for a while."),
    ],
)
async def test_an_ending_has_the_last_word_and_leaves_nothing_to_choose(
    lighthouse: Story, state: dict[str, Any], prompt: str, last: str
) -> None:
    game = Game.new(lighthouse, Session(state=merge(lighthouse.state, state)), narrators=["rules"])
    game.begin()
    ended = await game.prompt(prompt)
    assert game.ending is not None
    assert ended.narrative.endswith(last)
    assert [asset.media_type for asset in game.session.asset_records.values()] == ["image/png"]
    assert ended.choices == []
    assert (await game.prompt("go up")).choices == []


@pytest.mark.parametrize(
    ("place", "taken", "gone"),
    [
        ("store", {"inventory": {"oil": "o"}}, "can under the tap"),
        ("store", {"lamp": {"oil": True}}, "can under the tap"),
        ("store", {"inventory": {"rope": "r"}}, "coil of rope"),
        ("store", {"rope": {"fast": True}}, "coil of rope"),
        ("kitchen", {"inventory": {"matches": "m"}}, "tin of matches"),
        ("kitchen", {"inventory": {"handle": "h"}}, "something long"),
        ("watch", {"inventory": {"wick": "w"}}, "drawer of wicks"),
        ("watch", {"knows": {"log": True}}, "shut on its pencil"),
        ("lantern", {"lamp": {"oil": True}}, "wants oil"),
        ("lantern", {"lamp": {"wick": True}}, "a wick and"),
        ("lantern", {"lamp": {"turning": True}}, "run down"),
        ("gut", {"lamp": {"lit": True}, "rope": {"fast": True}}, "too dark"),
    ],
)
async def test_a_look_does_not_show_what_is_no_longer_there(
    lighthouse: Story, place: str, taken: dict[str, Any], gone: str
) -> None:
    play = Play(lighthouse)
    play.state = merge(play.state, {"place": {"id": place}})
    assert gone in str((await play.understand("look")).narrative)
    play.state = merge(play.state, taken)
    assert gone not in str((await play.understand("look")).narrative)


@pytest.mark.parametrize(
    ("place", "prompt", "part"),
    [
        ("store", "u", "A plate, a knife, half an onion."),
        ("kitchen", "d", "The store is the width of the tower"),
        ("landing", "n", "It wants light."),
        ("gut", "s", "Out on the landing"),
        ("kitchen", "n", "The tower has one stair"),
        ("landing", "w", "There are two ways off the landing"),
        ("lantern", "wind", "The socket goes on to the shaft"),
        ("lantern", "light it", "Nothing in them has been dry"),
        ("store", "x", "The store, at the foot of the tower."),
        ("store", "l", "The store, at the foot of the tower."),
        ("store", "i", "You go through your pockets."),
        ("landing", "look down", "Steps, weed, water."),
        ("lantern", "look down", "That is the rock, all of it."),
        ("watch", "who is Marit?", "Marit Aune keeps the light."),
        ("store", "drop the oil", "You would have to be holding it first."),
        ("store", "drop the handle", "You keep hold."),
        ("landing", "eat the ham", "you signed for it"),
        ("kitchen", "eat the ham", "You get as far as the string."),
        ("watch", "take it", "hand"),
        ("watch", "look at that", "It would help to say at what."),
    ],
)
async def test_short_and_odd_requests_have_an_answer_of_their_own(
    lighthouse: Story, place: str, prompt: str, part: str
) -> None:
    play = Play(lighthouse)
    play.state = merge(play.state, {"place": {"id": place}, "inventory": {"handle": "h"}})
    told = str((await play.understand(prompt)).narrative)
    assert part in told
    assert "the it" not in told and "letters" not in told


@pytest.mark.parametrize("place", ["landing", "store", "kitchen", "watch", "lantern", "gut"])
async def test_looking_asking_and_counting_are_answered_everywhere(lighthouse: Story, place: str) -> None:
    play = Play(lighthouse)
    play.state = merge(play.state, {"place": {"id": place}})
    said = [
        (await play.understand(word)).narrative
        for word in ("look", "where am I?", "help", "inventory", "listen")
    ]
    assert all(said)
    assert said[0] == said[1]
    assert len(set(said)) == 4
    with pytest.raises(NoMatch):
        await play.understand("recite the multiplication table")


async def test_the_story_goes_on_where_node_is_missing(lighthouse: Story) -> None:
    play = Play(lighthouse)
    play.state = merge(play.state, {"place": {"id": "watch"}})
    plan = await play.understand("read the almanac")
    assert (plan.tools[0].tool_path, plan.tools[0].required) == ("almanac", False)
    needing = {
        call.tool
        for rule in play.narrator.rules.rules
        for case in rule.cases
        for call in case.calls
        if call.required and b"node" in (LIGHTHOUSE / "tools" / call.tool).read_bytes()[:40]
    }
    assert needing == set()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_almanac_works_out_the_tide(lighthouse: Story) -> None:
    events = Play(lighthouse).run(PlannedCall(tool_id="a", tool_path="tools/almanac", input={"moon": 13}))
    assert isinstance(events[1], StatePatch)
    assert events[1].patch["knows"]["tide"]["metres"] == pytest.approx(4.3, abs=0.3)


def test_the_tools_speak_three_languages_and_each_has_a_manifest(lighthouse: Story) -> None:
    shebangs = {
        tool.path.read_text(encoding="utf-8").splitlines()[0].split("/")[-1] for tool in lighthouse.tools
    }
    assert {"env -S python3 -S", "env bash", "env node"} == shebangs
    assert 12 <= len(lighthouse.tools) <= 20
    assert all(
        tool.description and tool.manifest["parameters"]["type"] == "object" for tool in lighthouse.tools
    )
    used = lighthouse.rules.tools if lighthouse.rules else set()
    assert used - {"stage"} == {tool.name for tool in lighthouse.tools}


@pytest.mark.parametrize(
    "stdin", [b"", b"{}", b"[]", b"not json", b'{"input": 5, "state": []}', '{"input": {"x": "灯"}}'.encode()]
)
def test_no_tool_of_the_story_breaks_on_strange_input(lighthouse: Story, stdin: bytes) -> None:
    for tool in lighthouse.tools:
        if tool.name in MEDIA or (tool.name == "almanac" and shutil.which("node") is None):
            continue
        done = subprocess.run([tool.path], input=stdin, capture_output=True, timeout=20)
        assert done.returncode == 0, (tool.name, done.stderr)
        events = [decode_tool_event(line) for line in done.stdout.splitlines()]
        assert isinstance(events[-1], Done), tool.name


# --- what the tools make -------------------------------------------------------------------------------


def made(story: Story, tool: str, given: dict[str, Any]) -> tuple[Asset, bytes]:
    events = Play(story).run(PlannedCall(tool_id="a", tool_path=f"tools/{tool}", input=given))
    asset = next(event for event in events if isinstance(event, Asset))
    path = Path(asset.path)
    data = path.read_bytes()
    shutil.rmtree(path.parent)
    assert asset.metadata is not None
    assert len(asset.metadata["alt"]) > 10
    return asset, data


@pytest.mark.parametrize("scene", ["tower", "lens", "gut", "dawn"])
def test_a_picture_is_drawn_and_is_the_same_every_time(lighthouse: Story, scene: str) -> None:
    asset, data = made(lighthouse, "view", {"scene": scene})
    assert (asset.kind, asset.media_type) == ("image", "image/png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (1280, 720)
    start = data.index(b"IDAT")
    size = struct.unpack(">I", data[start - 4 : start])[0]
    tones = zlib.decompress(data[start + 4 : start + 4 + size])
    assert len(tones) == 1281 * 720
    assert len(set(tones)) > 40
    assert made(lighthouse, "view", {"scene": scene})[1] == data
    if scene in ("tower", "lens"):
        assert made(lighthouse, "view", {"scene": scene, "lit": True})[1] != data


@pytest.mark.parametrize("sound", ["storm", "bell"])
def test_a_sound_is_synthesised(lighthouse: Story, sound: str) -> None:
    asset, data = made(lighthouse, "listen", {"sound": sound})
    assert (asset.kind, asset.media_type) == ("audio", "audio/wav")
    with wave.open(io.BytesIO(data)) as file:
        assert file.getnframes() / file.getframerate() > 5
        frames = file.readframes(file.getnframes())
    samples = struct.unpack(f"<{len(frames) // 2}h", frames)
    assert max(samples) > 15_000
    assert abs(sum(samples) / len(samples)) < 1_500


@pytest.mark.browser
@pytest.mark.short
async def test_a_browser_plays_the_film(lighthouse: Story) -> None:
    playwright = pytest.importorskip("playwright.async_api")
    asset, data = made(lighthouse, "beam", {})
    assert (asset.kind, asset.media_type) == ("video", "video/mp4")
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(chromium).exists():
        pytest.skip("no Chromium; name one with CHROMIUM")
    async with playwright.async_playwright() as browsers:
        browser = await browsers.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        page = await browser.new_page()
        seen = await page.evaluate(
            """async data => {
              const film = document.createElement('video');
              film.muted = true;
              film.src = 'data:video/mp4;base64,' + data;
              await new Promise((ok, no) => {
                film.onloadeddata = ok;
                film.onerror = () => no(film.error.message);
              });
              const canvas = document.createElement('canvas').getContext('2d');
              Object.assign(canvas.canvas, { width: film.videoWidth, height: film.videoHeight });
              const lightness = async at => {
                film.currentTime = at;
                await new Promise(ok => { film.onseeked = ok });
                canvas.drawImage(film, 0, 0);
                return canvas.getImageData(340, 120, 1, 1).data[0];
              };
              const size = [film.videoWidth, film.videoHeight, film.duration];
              return [...size, await lightness(0.01), await lightness(1.5)];
            }""",
            base64.b64encode(data).decode(),
        )
        await browser.close()
    assert seen[:3] == [640, 352, 3]
    assert seen[3] > seen[4] + 30, "the beam lies to the right at first and to the left half a turn later"


# --- the torch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torch-lighter", "door-examiner"])
def test_the_torch_story_has_the_example_tools_as_they_are(name: str) -> None:
    for file in (name, f"{name}.tool.json"):
        ours = ROOT / "stories" / "torch" / "tools" / file
        assert filecmp.cmp(ours, ROOT / "examples" / "tools" / file, shallow=False), f"copy {file} again"


@pytest.mark.parametrize(
    ("prompts", "ending"),
    [
        (["light the torch and examine the door", "Open", "Go through the door"], "read"),
        (["examine the door and open it", "go through it"], "dark"),
        (["examine the door", "Leave"], "left"),
    ],
)
async def test_the_torch_comes_to_an_ending(prompts: list[str], ending: str) -> None:
    game = Game.new(shipped_story("torch"), narrators=["rules"])
    game.begin()
    for prompt in prompts:
        assert game.ending is None
        result = await game.prompt(prompt)
    assert game.ending is not None and game.ending[0] == ending
    assert result.choices == []


async def test_the_torch_offers_what_its_state_allows() -> None:
    game = Game.new(shipped_story("torch"), narrators=["rules"])
    game.begin()
    assert "shut" in (await game.prompt("go through the door")).narrative
    lit = await game.prompt("light the torch")
    assert (
        "burns low and steady" in lit.narrative
        and "Torch lit" not in lit.narrative
        and lit.choices == ["Examine the door", "Leave"]
    )
    again = await game.prompt("light the torch")
    assert "burning already" in again.narrative and "Torch lit." not in again.narrative
    assert again.choices == ["Examine the door", "Leave"]
    assert (await game.prompt("examine the door")).choices == ["Open", "Leave"]
    assert (await game.prompt("open")).choices == ["Go through the door", "Leave"]
    assert "It is open." in (await game.prompt("open")).narrative


# --- while the first page is read ----------------------------------------------------------------------


@pytest.mark.parametrize("wait", [True, False])
def test_a_game_makes_its_narrators_ready_and_a_program_that_ends_does_not_wait(
    tmp_path: Path, wait: bool
) -> None:
    pytest.importorskip("tokenizers")
    code = (
        "import sys, threading; from narratoria.play.game import Game; from narratoria.play.story import Story;"
        "Game.new(Story.load(sys.argv[1])).begin();"
        "[work] = [one for one in threading.enumerate() if one.name == 'paraphrase warm-up'];"
        "sys.argv[2] == 'True' and work.join(100)"
    )
    subprocess.run(
        [sys.executable, "-c", code, ROOT / "stories" / "torch", str(wait)],
        env={**os.environ, "NARRATORIA_HOME": str(tmp_path)},
        timeout=120,
        check=True,
    )
    vectors = list(tmp_path.glob("cache/embeddings/*.sqlite"))
    kept = 0
    if vectors:
        with closing(sqlite3.connect(vectors[0])) as database:
            kept = database.execute("SELECT count(*) FROM vectors").fetchone()[0]
    assert (kept > 100) is wait


# --- the folder and its mistakes -----------------------------------------------------------------------


def write(folder: Path, story: str = STORY, rules: str = RULES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "story.toml").write_text(story, encoding="utf-8")
    (folder / "narrator.toml").write_text(rules, encoding="utf-8")
    return folder


def test_a_small_folder_is_a_story(tmp_path: Path) -> None:
    folder = write(tmp_path / "small")
    (folder / "tools" / "_lib").mkdir(parents=True)
    tool = folder / "tools" / "knock"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (folder / "tools" / "notes.txt").write_text("not a tool")
    (folder / "tools" / "knock.tool.json").write_text('{"name": "knock", "description": "Knocks."}')
    (folder / "lore").mkdir()
    (folder / "lore" / "house.md").write_text("# House")
    story = Story.load(folder)
    assert (story.id, story.title, story.narrators, story.language) == (
        "small",
        "T",
        ("rules", "template"),
        "en",
    )
    assert [(tool.name, tool.description) for tool in story.tools] == [("knock", "Knocks.")]
    assert story.lore == {"house": "# House"}
    assert story.opening.choices == ("A",)


@pytest.mark.parametrize(
    ("story", "rules", "parts"),
    [
        ("title = 3\npremise = 'x'", RULES, ["story.toml", "'title'", "a string"]),
        ("premise = 'x'", RULES, ["story.toml", "'title'", "missing", 'title = "…"']),
        ('title = "T"\npremise = "P"', RULES, ["'opening.narrative'", "missing"]),
        ("titel = 'x'\n" + STORY, RULES, ["'titel'", "did you mean 'title'"]),
        ("id = 'A B'\n" + STORY, RULES, ["'id'", "small letters"]),
        ("language = 'klingon!'\n" + STORY, RULES, ["'language'", "en or pt-BR"]),
        (
            "narrator = ['oracle']\n" + STORY,
            RULES,
            ["'narrator'", "'oracle'", "rules, paraphrase, local, llm"],
        ),
        ("permissions = [1]\n" + STORY, RULES, ["'permissions'", "list of strings"]),
        (STORY + "[cover]\npicture = '../x.png'", RULES, ["'cover.picture'", "inside the story's folder"]),
        (STORY + "[cover]\ntool = 'draw'", RULES, ["'cover.tool'", "tools/draw does not exist"]),
        (STORY + "[state]\nborn = 1999-01-01", RULES, ["'state.born'", "write it as a string"]),
        ("state = 4\n" + STORY, RULES, ["'state'", "[state]"]),
        ("x", RULES, ["story.toml", "not TOML"]),
        (
            STORY,
            "stage = 'scene'\n" + RULES + "set = { a = 1 }",
            ["narrator.toml", "'stage'", "no tool 'scene'", "leave the key out"],
        ),
        (STORY, RULES + 'calls = [{ tool = "tools/nope" }]', ["narrator.toml", "tools/nope", "no such file"]),
        (STORY, RULES + "nope = 1", ["narrator.toml", "rule 'a'", "'nope'"]),
    ],
)
def test_a_mistake_names_the_file_the_key_and_the_fix(
    tmp_path: Path, story: str, rules: str, parts: list[str]
) -> None:
    with pytest.raises(StoryInvalid) as caught:
        Story.load(write(tmp_path / "s", story, rules))
    for part in parts:
        assert part in str(caught.value)


async def test_rules_set_state_and_offer_choices_without_a_tool_in_the_story(tmp_path: Path) -> None:
    story = Story.load(
        write(tmp_path / "s", rules=RULES + "set = { lamp = { lit = true } }\nchoices = ['B']")
    )
    assert story.tools == ()
    assert story.reserved_tools == {"stage"}
    game = Game.new(story, narrators=["rules"])
    game.begin()
    result = await game.prompt("a b")
    assert (game.session.state["lamp"], result.choices) == ({"lit": True}, ["B"])
    assert game.executor.resolver.resolve("tools/stage").name == "stage", "as an older session calls it"


async def test_a_stage_of_the_storys_own_is_used(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", rules=RULES + "set = { lamp = { lit = true } }")
    (folder / "tools").mkdir()
    own = folder / "tools" / "stage"
    own.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        'echo \'{"version":"0","type":"state_patch","patch":{"own":true}}\'\n'
        'echo \'{"version":"0","type":"done","ok":true}\'\n'
    )
    own.chmod(0o755)
    game = Game.new(Story.load(folder), narrators=["rules"])
    game.begin()
    await game.prompt("a b")
    assert dict(game.session.state) == {"own": True}


def test_a_story_that_sets_nothing_gets_no_stage(tmp_path: Path) -> None:
    story = Story.load(write(tmp_path / "s"))
    assert not story_registry(story).has("stage")


def test_mistakes_in_the_tools_folder_are_named_too(tmp_path: Path) -> None:
    folder = write(tmp_path / "s")
    (folder / "tools").mkdir()
    tool, manifest = folder / "tools" / "knock", folder / "tools" / "knock.tool.json"
    manifest.write_text("{}")
    with pytest.raises(StoryInvalid, match="not beside it"):
        Story.load(folder)
    tool.write_text("no program")
    with pytest.raises(StoryInvalid, match=r"cannot be run: .* no shebang"):
        Story.load(folder)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    manifest.write_text('{"name": "ring", "description": "Rings."}')
    assert [tool.name for tool in Story.load(folder).tools] == ["ring"], "as every command calls it"
    manifest.write_text("[")
    with pytest.raises(StoryInvalid, match="not JSON"):
        Story.load(folder)
    with pytest.raises(StoryInvalid, match="no such folder"):
        Story.load(tmp_path / "nowhere")


def test_shipped_stories_are_found_and_a_home_copy_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    assert {story.id for story in find_stories()} >= {"lighthouse", "torch"}
    write(tmp_path / "stories" / "mine", "id = 'torch'\n" + STORY)
    write(tmp_path / "stories" / "broken", "title = 1")
    broken: list[str] = []
    found = find_stories(on_invalid=lambda path, error: broken.append(path.name))
    assert broken == ["broken"]
    assert [story.title for story in found if story.id == "torch"] == ["T"]
    assert open_story("torch").root == (tmp_path / "stories" / "mine").resolve()
    assert open_story(LIGHTHOUSE).id == "lighthouse"
    with pytest.raises(StoryInvalid, match="'title'"):
        open_story("broken")
    with pytest.raises(StoryInvalid, match="lighthouse"):
        open_story("atlantis")


def test_a_story_that_is_named_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    write(tmp_path / "stories" / "mine", STORY)
    write(tmp_path / "stories" / "another", STORY)
    read: list[str] = []
    load = Story.load
    monkeypatch.setattr(Story, "load", lambda root: read.append(root.name) or load(root))
    assert open_story("mine").id == "mine"
    assert read == ["mine"]


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ({}, None),
        ({"ending": "x"}, None),
        ({"ending": {"id": "a"}}, ("a", "a")),
        ({"ending": {"id": "a", "title": "A"}}, ("a", "A")),
    ],
)
def test_an_ending_is_read_from_state(state: dict[str, Any], ending: tuple[str, str] | None) -> None:
    assert ending_of(state) == ending


def _texts(value: Any, key: str = "") -> Iterator[str]:
    """What is told, of a table read from TOML: not what is compared with a player's words."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from () if name in ("patterns", "words") else _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    "path", sorted((ROOT / "stories").glob("*/*.toml")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_the_prose_of_shipped_stories_has_typographic_quotes(path: Path) -> None:
    told = list(_texts(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert told
    assert [text for text in told if re.search(r"['\"]", text)] == []


class Silent:
    name = "silent"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        raise NoMatch("nothing to say")


@pytest.mark.parametrize("language", ["de", "en"])
async def test_a_story_falls_back_to_its_own_language(tmp_path: Path, language: str) -> None:
    own = f"language = '{language}'\nrefusal = ['Das geht hier nicht.', 'So nicht.']\n"
    story = Story.load(write(tmp_path, own + STORY))
    for game in (Game.new(story, narrator=Silent()), Game.new(story, narrators=["rules", "template"])):
        game.begin()
        told = [(await game.prompt("fliege zum Mond")).narrative for _ in range(2)]
        assert (set(told) == {"Das geht hier nicht.", "So nicht."}) == (language == "de"), told


async def test_a_story_in_another_language_without_lines_of_its_own_falls_back_to_no_words(
    tmp_path: Path,
) -> None:
    story = Story.load(write(tmp_path, "language = 'de'\n" + STORY))
    for game in (Game.new(story, narrator=Silent()), Game.new(story, narrators=["rules", "template"])):
        game.begin()
        assert (await game.prompt("fliege zum Mond")).narrative == "…"
    rules = story.scripted_narrator().rules
    assert rules.unavailable == rules.confirm == rules.unanswered == rules.undone == ("…",)


def test_a_choice_is_taken_in_the_words_of_the_storys_language(tmp_path: Path) -> None:
    german = '[language]\narticles = ["das", "die"]\nlead = ["bitte"]\n'
    game = Game.new(Story.load(write(tmp_path, "language = 'de'\n" + STORY, german + RULES)))
    assert game.settings.takes_choice("bitte öffne das Tor", "Öffne Tor")
    assert not game.settings.takes_choice("please open the gate", "Open gate")


def test_the_opening_has_the_state_in_it(tmp_path: Path) -> None:
    (tmp_path / "story.toml").write_text(
        'title = "T"\npremise = "P"\nnarrator = ["template"]\n[opening]\n'
        'narrative = "You are {state.name}; {this} stays."\nchoices = ["Be {state.name}"]\n[state]\nname = "Ada"\n'
    )
    story = Story.load(tmp_path)
    assert not story.warnings
    begun = Game.new(story).begin()
    assert (begun.narrative, begun.choices) == ("You are Ada; {this} stays.", ["Be Ada"])
    assert Game.new(story, Session(state={"name": "Bob"})).begin().choices == ["Be Bob"]
