"""Every example tool, run as a real process, speaks the protocol whatever it is sent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from narratoria.events import (
    Asset,
    Done,
    Log,
    StatePatch,
    ToolErrorEvent,
    ToolEvent,
    UiEvent,
    decode_tool_event,
)
from narratoria.kinds.manifest import load_manifest

EXAMPLES = Path(__file__).parent.parent / "examples" / "tools"
TEMPLATES = Path(str(files("narratoria.cli") / "templates"))
GOOD: dict[str, dict[str, Any]] = {
    "torch-lighter": {"action": "light_torch"},
    "door-examiner": {"target": "mysterious_door"},
    "weather-vane": {"place": "Kyōto 京都 🐉", "seed": 7},
    "dice-roller": {"dice": "3d6+2", "seed": 7},
    "map-sketcher": {"title": "地下室", "rooms": ["Gate", "竜の間 🐉", 'The "old" <hall> & stairs']},
}
NEEDS = {"weather-vane": ("bash", "awk"), "dice-roller": ("cc", "make"), "map-sketcher": ("node",)}
TOOLS = sorted(GOOD)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, with what must be compiled compiled: the source tree stays clean."""
    folder = tmp_path_factory.mktemp("examples") / "tools"
    shutil.copytree(
        EXAMPLES, folder, ignore=lambda at, names: ["dice-roller"] if Path(at).name == "dice-roller" else []
    )
    if shutil.which("make") and shutil.which("cc"):
        subprocess.run(["make", "-s", "-C", folder / "dice-roller", "CC=cc -Werror"], check=True, timeout=60)
    return folder


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Any:
    def run_tool(tool: str, stdin: bytes | dict[str, Any]) -> list[ToolEvent]:
        missing = [need for need in NEEDS.get(tool, ()) if shutil.which(need) is None]
        if missing:
            pytest.skip(f"{tool} needs {', '.join(missing)}, which this machine does not have")
        payload = stdin if isinstance(stdin, bytes) else json.dumps(stdin, ensure_ascii=False).encode()
        environment = {**os.environ, "TMPDIR": str(tmp_path), "LC_ALL": "C"}
        ended = subprocess.run(
            [path_of(built, tool)], input=payload, capture_output=True, timeout=20, env=environment
        )
        assert ended.returncode == 0, ended.stderr.decode()
        assert ended.stdout.endswith(b"\n") and b"\r" not in ended.stdout
        events = [decode_tool_event(line) for line in ended.stdout.splitlines()]
        assert [type(event) for event in events].count(Done) == 1 and isinstance(events[-1], Done)
        return events

    return run_tool


def path_of(folder: Path, tool: str) -> Path:
    return folder / tool / tool if (folder / tool).is_dir() else folder / tool


def assert_polite_refusal(events: list[ToolEvent]) -> None:
    error, done = events
    assert isinstance(error, ToolErrorEvent) and isinstance(done, Done)
    assert re.fullmatch(r"[A-Z_]+", error.error_code) and error.error_message and done.ok is False


# --- 000 §14.2, literally ------------------------------------------------------------------------------


def test_the_torch_lighter_does_exactly_what_the_specification_says(run: Any) -> None:
    log, patch, asset, done = run("torch-lighter", {"input": {"action": "light_torch"}})
    assert isinstance(log, Log) and log.message == "Lighting torch..."
    assert isinstance(patch, StatePatch) and patch.patch == {"inventory": {"torch": {"lit": True}}}
    assert isinstance(asset, Asset) and (asset.kind, asset.media_type) == ("image", "image/png")
    assert done == Done(version="0", ok=True, summary="Torch lit.")


def test_the_door_examiner_does_exactly_what_the_specification_says(run: Any) -> None:
    log, patch, choice, done = run("door-examiner", {"input": {"target": "mysterious_door"}})
    assert isinstance(log, Log) and log.message == "Examining door..."
    assert isinstance(patch, StatePatch) and patch.patch == {
        "discovered": {"door_inscription": "Ancient runes"}
    }
    assert choice == UiEvent(version="0", event="narrative_choice", payload={"choices": ["Open", "Leave"]})
    assert done == Done(version="0", ok=True, summary="Door examined.")


def test_the_picture_of_the_torch_is_a_whole_png_with_a_bright_flame_on_a_dark_wall(run: Any) -> None:
    asset = run("torch-lighter", {"input": {"action": "light_torch"}})[2]
    path = Path(asset.path)
    assert path.is_absolute()
    width, height, palette, rows = read_palette_png(path.read_bytes())
    assert (width, height) == (asset.metadata["width"], asset.metadata["height"])
    assert asset.metadata["alt"]
    brightness = [sum(palette[rows[y][x]]) for x, y in ((384, 420), (4, 4))]
    assert brightness[0] > 650 and brightness[1] < 120


def read_palette_png(data: bytes) -> tuple[int, int, list[bytes], list[bytes]]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert zlib.crc32(name + body) == int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
        chunks[name], at = body, at + 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == height * (width + 1)
    rows = [pixels[y * (width + 1) + 1 : (y + 1) * (width + 1)] for y in range(height)]
    return width, height, [chunks[b"PLTE"][i : i + 3] for i in range(0, 768, 3)], rows


def test_two_torches_are_two_files(run: Any) -> None:
    request = {"input": {"action": "light_torch"}}
    assert run("torch-lighter", request)[2].path != run("torch-lighter", request)[2].path


# --- what each of the others is for ----------------------------------------------------------------------


def test_dice_fall_within_their_sides_and_a_seed_repeats_them(run: Any) -> None:
    events = run("dice-roller", {"input": {"dice": "100d6-3", "seed": 7}})
    roll = next(event.patch["lastRoll"] for event in events if isinstance(event, StatePatch))
    assert len(roll["shown"]) == 100 and set(roll["shown"]) == {1, 2, 3, 4, 5, 6}
    assert roll["total"] == sum(roll["shown"]) - 3
    assert run("dice-roller", {"input": {"dice": "100d6-3", "seed": 7}}) == events
    assert run("dice-roller", {"input": {"dice": "100d6-3"}}) != events


@pytest.mark.parametrize(
    "dice", ["", "6", "0d6", "101d6", "d1", "d1001", "2d6+", "2d6 ", "2d6+12345", "d" * 9999]
)
def test_dice_that_cannot_be_rolled_are_refused(run: Any, dice: str) -> None:
    assert_polite_refusal(run("dice-roller", {"input": {"dice": dice}}))


def test_the_weather_is_told_of_the_place_and_a_seed_repeats_it(run: Any) -> None:
    asked = {"input": {"place": 'Kyōto "京都" 🐉\n', "seed": 7}}
    events = run("weather-vane", asked)
    weather = next(event.patch["weather"] for event in events if isinstance(event, StatePatch))
    assert weather["place"] == 'Kyōto "京都" 🐉\n'
    assert run("weather-vane", asked) == events


def test_a_key_of_the_same_name_elsewhere_in_the_request_is_not_taken_for_the_input(run: Any) -> None:
    events = run(
        "weather-vane", {"state": {"input": {"place": "wrong"}}, "input": {"later": {"place": "wrong"}}}
    )
    assert (
        next(event.patch["weather"]["place"] for event in events if isinstance(event, StatePatch))
        == "this place"
    )


def test_the_map_is_well_formed_svg_that_names_every_room(run: Any) -> None:
    events = run("map-sketcher", {"input": GOOD["map-sketcher"]})
    asset = next(event for event in events if isinstance(event, Asset))
    drawing = ElementTree.parse(asset.path)
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["地下室", *GOOD["map-sketcher"]["rooms"]]
    assert asset.media_type == "image/svg+xml" and Path(asset.path).is_absolute()


@pytest.mark.parametrize("tool", ["dice-roller", "weather-vane", "map-sketcher"])
def test_progress_grows_to_one(run: Any, tool: str) -> None:
    progress = [
        event.fields["progress"] for event in run(tool, {"input": GOOD[tool]}) if isinstance(event, Log)
    ]
    assert len(progress) > 2 and progress == sorted(progress) and (progress[0], progress[-1]) == (0, 1)


# --- whatever they are sent ----------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_empty_stdin_is_answered(run: Any, tool: str) -> None:
    events = run(tool, b"")
    if tool == "weather-vane":
        assert events[-1].ok
    else:
        assert_polite_refusal(events)


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_fields_change_nothing(run: Any, tool: str) -> None:
    strange = {
        "futureField": [{"x": None}],
        "requestId": "r",
        "tool": tool,
        "operation": "run",
        "dependencies": {},
    }
    plain, extended = (
        [type(event) for event in run(tool, request)]
        for request in (
            {"input": GOOD[tool]},
            {**strange, "input": {**GOOD[tool], "läter 🐉": {"a": [1, 2]}}},
        )
    )
    assert plain == extended


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "utf-8"])
def test_non_ascii_input_is_answered_in_utf_8(run: Any, tool: str, ascii_only: bool) -> None:
    key = next(iter(GOOD[tool]))
    text = '竜 🐉 é "quoted" \\ back\u0001'
    value: Any = [text] if key == "rooms" else text
    run(tool, json.dumps({"input": {key: value}, "名": text}, ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_mebibyte_beside_the_input_changes_nothing(run: Any, tool: str) -> None:
    padding = {"text": 'a"\\' * 150_000, "list": list(range(60_000)), "words": ["竜"] * 30_000}
    assert run(tool, {"padding": padding, "input": GOOD[tool]})[-1].ok


@pytest.mark.parametrize("tool", TOOLS)
def test_a_mebibyte_where_a_name_should_be_is_refused_within_bounds(run: Any, tool: str) -> None:
    key = "title" if tool == "map-sketcher" else next(iter(GOOD[tool]))
    events = run(tool, {"input": {**GOOD[tool], key: "🐉" * 262_144}})
    assert_polite_refusal(events)
    assert len(events[0].error_message) < 1000


WRONG = [5, None, True, [], {}, [5], {"a": 1}]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_a_value_of_the_wrong_type_is_refused_politely(run: Any, tool: str, wrong: Any) -> None:
    assert_polite_refusal(run(tool, {"input": {**GOOD[tool], next(iter(GOOD[tool])): wrong}}))
    assert_polite_refusal(run(tool, {"input": [wrong]}))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "bad",
    [
        b"not JSON",
        b"[]",
        b'"text"',
        b"5",
        b'{"input":',
        b'{"input":"x"}',
        b'{"input":{}',
        b"[" * 100_000,
        b'"\\',
    ],
    ids=lambda bad: repr(bad[:20]),
)
def test_what_is_no_request_is_refused_politely(run: Any, tool: str, bad: bytes) -> None:
    assert_polite_refusal(run(tool, bad))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "bad", [b"\xff\xfe", b"\\ud800", b"\\udc00\\ud83d", b"\xed\xa0\x80", b"\xc0\x80"], ids=repr
)
def test_broken_characters_never_reach_the_events(run: Any, tool: str, bad: bytes) -> None:
    key = next(iter(GOOD[tool]))
    value = b'["%s"]' % bad if key == "rooms" else b'"%s"' % bad
    run(tool, b'{"input":{"%s":%s}}' % (key.encode(), value))


def test_a_disk_that_takes_no_more_fails_the_torch_politely(built: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$0"', path_of(built, "torch-lighter")],
        input=b'{"input": {"action": "light_torch"}}',
        capture_output=True,
        timeout=20,
    )
    *_, error, done = [decode_tool_event(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 0
    assert isinstance(error, ToolErrorEvent) and error.error_code == "PICTURE_NOT_WRITTEN"
    assert isinstance(done, Done) and done.ok is False


def test_events_arrive_one_by_one_not_at_the_end(built: Path, tmp_path: Path) -> None:
    tool = subprocess.Popen(
        [path_of(built, "torch-lighter")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert tool.stdin is not None and tool.stdout is not None
    with tool:
        tool.stdin.write(b'{"input": {"action": "light_torch"}}')
        tool.stdin.close()
        arrivals = []
        for line in iter(tool.stdout.readline, b""):
            arrivals.append((time.monotonic(), decode_tool_event(line)))
    moments = [moment for moment, _ in arrivals]
    # The painting lies between the patch and the asset, so an unflushed tool would show no gap there.
    assert moments[2] - moments[1] > 0.5 * (moments[-1] - moments[0])


# --- the files beside them -------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_the_manifest_describes_the_tool_and_its_examples_fit(run: Any, tool: str) -> None:
    manifest = json.loads(path_of(EXAMPLES, tool).with_name(f"{tool}.tool.json").read_text(encoding="utf-8"))
    assert load_manifest(path_of(EXAMPLES, tool)).name == manifest["name"] == tool
    parameters = jsonschema_rs.validator_for(manifest["parameters"])
    assert parameters.is_valid(GOOD[tool])
    assert not parameters.is_valid({"unknown": 1})
    for example in manifest["examples"]:
        assert parameters.is_valid(example["input"])
        assert run(tool, {"input": example["input"]})[-1].ok


def test_examples_and_skeletons_have_the_same_kits() -> None:
    for example, kit in (("dice-roller/narratoria.h", "c"), ("weather-vane/narratoria.sh", "bash")):
        written = TEMPLATES / kit / f"{Path(example).name}.in"
        assert (EXAMPLES / example).read_bytes() == written.read_bytes()
