"""The kit of each language writes every event as the protocol has it, from one file that needs nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from narratoria.cli.skeletons import write_tool
from narratoria.events import decode_tool_event

TEXT = 'say "hi" \\ tab\tline\n bell\x07 竜'  # what each tool below logs

SOURCES = {
    "python": (
        "tool.py",
        """
import os
from narratoria_sdk import Refused, serve

def run(call):
    print("a stray print")
    os.system("echo a stray child")
    if call.input.get("refuse"):
        raise Refused("No.", "NO_OIL")
    call.log(call.input["text"], "warn")
    call.progress(0.25, "on")
    call.patch({"a": {"b": None}})
    call.asset("map.png", asset_id="map")
    call.choices("Open", "Leave \\"it\\"")
    return "Done."

serve(run)
""",
    ),
    "node": (
        "tool.cjs",
        """
const { Refused, serve } = require("./narratoria.cjs");
serve((call) => {
  console.log("a stray print");
  if (call.input.refuse) throw new Refused("No.", "NO_OIL");
  call.log(call.input.text, "warn");
  call.progress(0.25, "on");
  call.patch({ a: { b: null } });
  call.asset("map.png", { assetId: "map" });
  call.choices("Open", 'Leave "it"');
  return "Done.";
});
""",
    ),
    "bash": (
        "tool.sh",
        """
. "$(dirname "${BASH_SOURCE[0]}")/narratoria.sh"
read_request
[[ ${input[refuse]-} != true ]] || refuse "No." NO_OIL
printf -v text '%b' 'say "hi" \\\\ tab\\tline\\n bell\\a 竜'
emit_log warn "$text"
emit_progress 0.25 on
emit_patch '{"a":{"b":null}}'
emit_asset map image image/png "$PWD/map.png"
emit_choices Open 'Leave "it"'
emit_done "Done."
""",
    ),
    "c": (
        "tool.c",
        r"""
#include "narratoria.h"
#include <unistd.h>
static int run(json input) {
    char text[200], path[1000], file[1020];
    if (json_kind(json_member(input, "refuse")) == 't') return nt_refuse("NO_OIL", "No.");
    if (!json_string(json_member(input, "text"), text, sizeof text)) return 1;
    nt_log("warn", text);
    nt_progress(25, "on");
    nt_patch("{\"a\":{\"b\":null}}");
    if (!getcwd(path, sizeof path)) return 1;
    snprintf(file, sizeof file, "%s/map.png", path);
    nt_asset("map", "image", "image/png", file);
    nt_choices((const char *[]){"Open", "Leave \"it\""}, 2);
    return nt_done("Done.");
}
int main(void) { return nt_main(run); }
""",
    ),
    "rust": (
        "tool.rs",
        r"""
#[allow(dead_code)]
mod narratoria;
use narratoria::{Answer, Json, Problem};
fn run(input: &Json) -> Answer {
    if let Some(Json::Bool(true)) = input.get("refuse") {
        return Err(Problem::Refused("NO_OIL".into(), "No.".into()));
    }
    if let Some(Json::String(text)) = input.get("text") {
        narratoria::log("warn", text)?;
    }
    narratoria::progress(0.25, "on")?;
    narratoria::patch(r#"{"a":{"b":null}}"#)?;
    let here = std::env::current_dir()?.join("map.png");
    narratoria::asset("map", "image", "image/png", &here.to_string_lossy())?;
    narratoria::choices(&["Open", "Leave \"it\""])?;
    Ok("Done.".into())
}
fn main() -> std::io::Result<()> {
    narratoria::serve(run)
}
""",
    ),
    "go": (
        "main.go",
        r"""
package main

import "encoding/json"

func main() {
	Serve(func(call Call) (string, error) {
		given := struct {
			Text   string
			Refuse bool
		}{}
		if err := json.Unmarshal(call.Input, &given); err != nil {
			return "", err
		}
		if given.Refuse {
			return "", Refused{Message: "No.", Code: "NO_OIL"}
		}
		call.Log("warn", given.Text)
		call.Progress(0.25, "on")
		call.Patch(Fields{"a": Fields{"b": nil}})
		call.Asset("map", "image", "image/png", "map.png")
		call.Choices("Open", `Leave "it"`)
		return "Done.", nil
	})
}
""",
    ),
}
NEEDS = {"python": "python3", "node": "node", "bash": "awk", "c": "cc", "rust": "rustc", "go": "go"}
COMMANDS = {
    "python": [sys.executable, "tool.py"],
    "node": ["node", "tool.cjs"],
    "bash": ["bash", "tool.sh"],
    "c": ["./tool"],
    "rust": ["./tool"],
    "go": ["./tool"],
}
BUILDS = {
    "c": [
        "cc",
        "-std=c11",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        "tool",
        "tool.c",
    ],
    "rust": ["rustc", "--edition", "2021", "-o", "tool", "tool.rs"],
    "go": ["go", "build", "-o", "tool", "."],
}


@pytest.fixture(scope="session", params=SOURCES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A tool made of nothing but its source and the kit."""
    lang: str = request.param
    if shutil.which(NEEDS[lang]) is None:
        pytest.skip(f"the {lang} kit is NOT tested here: this machine has no {NEEDS[lang]}")
    folder = tmp_path_factory.mktemp(f"kit-{lang}")
    for path in write_tool("new-tool", lang, folder / "skeleton"):
        if "narratoria" in path.name or path.name == "go.mod":
            shutil.copy(path, folder)
    name, source = SOURCES[lang]
    (folder / name).write_text(source, encoding="utf-8")
    (folder / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    if lang in BUILDS:
        subprocess.run(BUILDS[lang], cwd=folder, check=True, capture_output=True, timeout=120)
    return lang, folder


def answered(built: tuple[str, Path], request: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    lang, folder = built
    ended = subprocess.run(
        COMMANDS[lang],
        cwd=folder,
        input=json.dumps(request).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    for line in ended.stdout.splitlines():
        decode_tool_event(line)
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr.decode()


def test_every_event_is_written_as_the_protocol_has_it(built: tuple[str, Path]) -> None:
    events, _ = answered(built, {"input": {"text": TEXT}})
    assert events == [
        {"version": "0", "type": "log", "level": "warn", "message": TEXT},
        {"version": "0", "type": "log", "level": "info", "message": "on", "fields": {"progress": 0.25}},
        {"version": "0", "type": "state_patch", "patch": {"a": {"b": None}}},
        {
            "version": "0",
            "type": "asset",
            "assetId": "map",
            "kind": "image",
            "mediaType": "image/png",
            "path": str(built[1].resolve() / "map.png"),
        },
        {
            "version": "0",
            "type": "ui_event",
            "event": "narrative_choice",
            "payload": {"choices": ["Open", 'Leave "it"']},
        },
        {"version": "0", "type": "done", "ok": True, "summary": "Done."},
    ]


def test_a_refusal_has_its_own_code_and_exit_code_0(built: tuple[str, Path]) -> None:
    assert answered(built, {"input": {"text": "x", "refuse": True}})[0] == [
        {"version": "0", "type": "error", "errorCode": "NO_OIL", "errorMessage": "No."},
        {"version": "0", "type": "done", "ok": False, "summary": "No."},
    ]


def test_what_else_is_printed_goes_to_standard_error(built: tuple[str, Path]) -> None:
    said = answered(built, {"input": {"text": "x"}})[1]
    printed = {"python": ["a stray print", "a stray child"], "node": ["a stray print"]}
    assert sorted(said.splitlines()) == sorted(printed.get(built[0], []))


def test_a_broken_tool_in_python_shows_its_line_and_ends_without_done(tmp_path: Path) -> None:
    write_tool("broken", "python", tmp_path)
    tool = tmp_path / "broken" / "broken"
    tool.write_text(tool.read_text().replace("    call.progress", "    1 / 0\n    call.progress"))
    ended = subprocess.run([sys.executable, tool], input=b"{}", capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"ZeroDivisionError" in ended.stderr and b"1 / 0" in ended.stderr


def test_the_kit_of_python_is_a_module_that_loads_nothing_of_the_runtime() -> None:
    code = "import sys; import narratoria.sdk; print(*sys.modules)"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    ).stdout.split()
    assert {name for name in loaded if name.startswith("narratoria")} == {"narratoria", "narratoria.sdk"}
    assert not {"msgspec", "asyncio", "click"} & {*loaded}
