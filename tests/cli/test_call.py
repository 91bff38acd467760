"""`narratoria call` through the real command line: exit codes, streams, and the one entry it prints."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from narratoria.wire_schemas import execution_result

DONE = '{"version":"0","type":"done","ok":true,"summary":"All done."}'
LOG = '{"version":"0","type":"log","level":"info","message":"working"}'
PATCH = '{"version":"0","type":"state_patch","patch":{"torch":{"lit":true}}}'
# 000 §13.5, and the code that the issue puts beside `error`.
ENTRY = {
    "toolId",
    "ok",
    "state",
    "output",
    "executionTime",
    "retryCount",
    "error",
    "errorCode",
    "events",
    "errorSource",
}


def entry_validator() -> jsonschema_rs.Draft202012Validator:
    schema = execution_result()
    return jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/CallResult", "$defs": schema["$defs"]})


def say(*lines: str) -> str:
    return "cat >/dev/null\n" + "\n".join(f"echo '{line}'" for line in lines) + "\n"


# --- what is printed -------------------------------------------------------------------------------------


def test_the_end_of_a_failed_tools_stderr_is_shown(narratoria: Any) -> None:
    tool = narratoria.script('for n in $(seq 30); do echo "trouble $n" >&2; done\nexit 3\n')
    ended = narratoria("call", tool)
    shown = [line.strip() for line in ended.err.splitlines() if line.strip().startswith("trouble")]
    assert shown == [f"trouble {number}" for number in range(11, 31)]
    assert "10 lines more" in ended.err
    entry = narratoria("call", tool, "--json").json
    assert set(entry) == ENTRY | {"stderr"}
    entry_validator().validate(entry)
    assert entry["stderr"] == "".join(f"trouble {number}\n" for number in range(1, 31))


def test_one_line_of_stderr_is_said_once_and_control_characters_are_shown(narratoria: Any) -> None:
    ended = narratoria("call", narratoria.script("echo broken >&2; exit 3\n"))
    assert ended.err.count("broken") == 1
    ended = narratoria("call", narratoria.script("printf 'a\\033[2Jb\\nc\\n' >&2; exit 3\n"))
    assert "\033" not in ended.err and "a\\x1b[2Jb" in ended.err


def test_a_tool_that_succeeds_shows_no_stderr(narratoria: Any) -> None:
    tool = narratoria.script("echo noise >&2\n" + say(DONE))
    assert "noise" not in narratoria("call", tool).err
    assert set(narratoria("call", tool, "--json").json) == ENTRY


def test_json_prints_exactly_one_entry_of_the_trace(narratoria: Any) -> None:
    ended = narratoria("call", narratoria.script(say(LOG, PATCH, DONE)), "--json")
    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 1)
    entry = ended.json
    assert set(entry) == ENTRY
    entry_validator().validate(entry)
    assert (entry["ok"], entry["state"], entry["retryCount"]) == (True, "completed", 0)
    assert entry["output"] == {"torch": {"lit": True}}
    assert (entry["error"], entry["errorCode"]) == (None, None)
    assert [event["type"] for event in entry["events"]] == ["log", "state_patch", "done"]
    assert entry["executionTime"] > 0


def test_a_suggestion_the_error_spells_out_already_is_not_said_twice(narratoria: Any) -> None:
    tool = Path(__file__).parents[2] / "examples" / "tools" / "door-examiner"
    ended = narratoria("call", tool, "--input", '{"target": "mysterious_door", "mood": 1}')
    assert ended.code == 1
    assert ended.err == "✗ INVALID_ARGUMENTS: door-examiner: mood: unknown key; known: target\n"


def test_a_failure_is_the_same_entry(narratoria: Any) -> None:
    error = '{"version":"0","type":"error","errorCode":"NO_OIL","errorMessage":"The lamp is empty."}'
    tool = narratoria.script(say(PATCH, error, '{"version":"0","type":"done","ok":false}'))
    ended = narratoria("call", tool, "--json")
    assert ended.code == 1
    assert set(ended.json) == ENTRY
    entry_validator().validate(ended.json)
    assert (ended.json["state"], ended.json["errorCode"], ended.json["output"]) == ("failed", "NO_OIL", {})
    assert "The lamp is empty." in ended.json["error"]


def test_events_are_printed_as_ndjson_the_moment_they_arrive(narratoria: Any) -> None:
    gate = narratoria.folder / "gate"
    os.mkfifo(gate)
    tool = narratoria.script(f"echo '{LOG}'\nread -r word <'{gate}'\necho '{DONE}'\n")
    running = narratoria.start("call", tool, "--events")
    try:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())  # arrives while the tool still waits at the gate
        assert first["message"] == "working"
        assert running.poll() is None
        gate.write_text("go\n")
        rest, _ = running.communicate(timeout=20)
    finally:
        running.kill()
    assert [json.loads(line)["type"] for line in rest.splitlines()] == ["done"]
    assert running.returncode == 0


def test_people_see_logs_the_summary_and_the_state(narratoria: Any) -> None:
    ended = narratoria("call", narratoria.script(say(LOG, PATCH, DONE)))
    assert ended.code == 0
    assert "working" in ended.out and "✓ All done." in ended.out and '{"torch":{"lit":true}}' in ended.out
    assert "\x1b" not in ended.out


def test_a_terminal_gets_colours_unless_no_color_is_set(narratoria: Any) -> None:
    tool = narratoria.script(say(LOG, DONE))
    assert b"\x1b[32m" in on_a_terminal(narratoria, "call", tool)
    assert b"\x1b[32m" not in on_a_terminal(narratoria, "call", tool, NO_COLOR="1")


def on_a_terminal(narratoria: Any, *arguments: object, **env: str) -> bytes:
    ours, theirs = pty.openpty()
    environment = {**narratoria.env, "TERM": "xterm-256color", **env}
    command = narratoria.command(*arguments)
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # what Linux says when the other side is closed
        pass
    finally:
        os.close(ours)
        running.wait(20)
    return shown


def test_control_characters_of_a_tool_do_not_reach_the_terminal(narratoria: Any) -> None:
    log = '{"version":"0","type":"log","level":"info","message":"\\u001b[2Jgone [bold]x[/bold]"}'
    ended = narratoria("call", narratoria.script(say(log, DONE)))
    assert "\x1b" not in ended.out
    assert "[bold]x[/bold]" in ended.out


def test_a_refused_asset_is_said_and_does_not_fail_the_call(narratoria: Any) -> None:
    asset = (
        '{"version":"0","type":"asset","assetId":"a","kind":"image",'
        '"mediaType":"image/png","path":"/no/such.png"}'
    )
    ended = narratoria("call", narratoria.script(say(asset, DONE)))
    assert ended.code == 0
    assert ended.err.count("tool: asset refused: ") == ended.err.count("does not exist") == 1
    quiet = narratoria("call", narratoria.script(say(asset, DONE)), "--json")
    assert quiet.err.count("tool: asset refused: ") == 1 and quiet.json["ok"]


# --- input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["{", "[1]", "5", '{"a":NaN}', "@nowhere.json", ""])
def test_input_that_is_no_json_object_is_a_usage_error_and_nothing_runs(narratoria: Any, text: str) -> None:
    tool = narratoria.script(f"touch ran; echo '{DONE}'")
    ended = narratoria("call", tool, "--input", text)
    assert ended.code == 2
    assert "--input" in ended.err
    assert not (narratoria.folder / "ran").exists()


def test_input_comes_literally_from_a_file_or_from_stdin(narratoria: Any) -> None:
    tool = narratoria.script(f"cat >seen; echo '{DONE}'")
    (narratoria.folder / "in.json").write_text('{"n": "é"}')
    for option in ('{"n": "é"}', "@in.json", "-"):
        assert narratoria("call", tool, "--input", option, stdin='{"n": "é"}').code == 0
        request = json.loads((narratoria.folder / "seen").read_text())
        assert request["input"] == {"n": "é"}
        assert {"requestId", "tool", "operation"} <= set(request)


def test_arguments_that_do_not_fit_the_manifest_never_reach_the_tool(narratoria: Any) -> None:
    tool = narratoria.script(f"touch ran; echo '{DONE}'", "tool.sh")
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    manifest = {"name": "tool", "description": "T.", "parameters": parameters}
    (narratoria.folder / "tool.tool.json").write_text(json.dumps(manifest))
    ended = narratoria("call", tool, "--json", "--input", '{"n": "5", "m": 1}')
    assert (ended.code, ended.json["errorCode"]) == (1, "INVALID_ARGUMENTS")
    assert not (narratoria.folder / "ran").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("tool", "--json", "--events"),
        ("tool", "--timeout", "0"),
        ("tool", "--retries", "-1"),
        ("a", "b"),
    ],
)
def test_wrong_usage_is_exit_code_2(narratoria: Any, arguments: tuple[str, ...]) -> None:
    assert narratoria("call", *arguments).code == 2


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_a_timeout_is_a_number_of_seconds(narratoria: Any, seconds: str) -> None:
    for command in ("call", "check"):
        ended = narratoria(command, "tool", "--timeout", seconds)
        assert ended.code == 2 and "--timeout" in ended.err


# --- how it ends -----------------------------------------------------------------------------------------


def test_a_tool_that_does_not_exist(narratoria: Any) -> None:
    ended = narratoria("call", "nowhere", "--json")
    assert (ended.code, ended.json["errorCode"], set(ended.json)) == (1, "TOOL_NOT_FOUND", ENTRY)
    entry_validator().validate(ended.json)
    plain = narratoria("call", "nowhere")
    assert (plain.code, plain.out) == (1, "")
    assert "there is no tool at" in plain.err


def test_a_file_that_cannot_be_run(narratoria: Any) -> None:
    (narratoria.folder / "notes").write_text("just text")
    ended = narratoria("call", "notes", "--json")
    assert (ended.code, ended.json["errorCode"]) == (1, "NOT_EXECUTABLE")


def test_a_manifest_that_cannot_be_read_is_a_failed_entry_too(narratoria: Any) -> None:
    tool = narratoria.script(f"touch ran; echo '{DONE}'", "tool.sh")
    (narratoria.folder / "tool.tool.json").write_text('{"name": "tool"')
    ended = narratoria("call", tool, "--json")
    assert (ended.code, ended.json["ok"], set(ended.json)) == (1, False, ENTRY)
    assert "tool.tool.json" in ended.json["error"]
    assert not (narratoria.folder / "ran").exists()


def test_a_timeout_is_exit_code_124(narratoria: Any) -> None:
    tool = narratoria.script("sleep 60 & wait")
    started = time.monotonic()
    ended = narratoria("call", tool, "--json", "--timeout", "0.3")
    assert (ended.code, ended.json["state"], ended.json["errorCode"]) == (124, "timeout", "TIMEOUT")
    assert time.monotonic() - started < 15
    assert narratoria.leaves_nothing()


def test_an_interrupt_is_exit_code_130_and_ends_the_tool(narratoria: Any) -> None:
    running = narratoria.start("call", narratoria.script(f"echo '{LOG}'; sleep 60 & wait"), "--events")
    try:
        assert running.stdout is not None
        assert running.stdout.readline()  # the tool runs
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=20)
    finally:
        running.kill()
    assert running.returncode == 130
    assert b"Traceback" not in err
    assert narratoria.leaves_nothing()


def test_killing_the_runtime_ends_the_tool(narratoria: Any) -> None:
    running = narratoria.start(
        "call", narratoria.script(f"echo '{LOG}'; setsid sleep 60 & sleep 60"), "--events"
    )
    assert running.stdout is not None
    assert running.stdout.readline()
    running.kill()
    running.communicate(timeout=20)
    assert narratoria.leaves_nothing()


def count_attempts(folder: Path) -> int:
    return len((folder / "attempts").read_text())


def test_there_are_no_retries_unless_asked_for(narratoria: Any) -> None:
    tool = narratoria.script("printf x >>attempts; exit 3", "tool.sh")
    manifest = {"name": "tool", "description": "T.", "retry": {"maxRetries": 3}}
    (narratoria.folder / "tool.tool.json").write_text(json.dumps(manifest))
    ended = narratoria("call", tool, "--json")
    assert (ended.json["retryCount"], count_attempts(narratoria.folder)) == (0, 1)


def test_retries_are_counted_and_stop_at_the_first_success(narratoria: Any) -> None:
    tool = narratoria.script(f"printf x >>attempts; [ $(wc -c <attempts) -ge 3 ] || exit 3; echo '{DONE}'")
    ended = narratoria("call", tool, "--json", "--retries", "5")
    assert (ended.code, ended.json["ok"], ended.json["retryCount"]) == (0, True, 2)
    assert count_attempts(narratoria.folder) == 3


def test_retries_end(narratoria: Any) -> None:
    ended = narratoria("call", narratoria.script("printf x >>attempts; exit 3"), "--json", "--retries", "2")
    assert (ended.code, ended.json["retryCount"], count_attempts(narratoria.folder)) == (1, 2, 3)
    assert ended.json["errorCode"] == "NON_ZERO_EXIT"


def test_a_reader_that_goes_away_does_not_leave_a_traceback(narratoria: Any) -> None:
    tool = narratoria.script(f"for n in $(seq 20000); do echo '{LOG}'; done; echo '{DONE}'")
    running = narratoria.start("call", tool, "--events")
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert running.wait(30) == 141
    assert err == b""
    assert narratoria.leaves_nothing()


def test_a_reader_that_goes_away_ends_a_tool_that_would_not_end(narratoria: Any) -> None:
    tool = narratoria.script(f"while :; do echo '{LOG}'; sleep 0.05; done")
    for mode in (["--events"], []):
        running = narratoria.start("call", tool, *mode)
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        err = running.stderr.read()
        running.stderr.close()
        assert (running.wait(20), err) == (141, b"")
        assert narratoria.leaves_nothing()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_request_to_end_gives_the_tool_its_grace(narratoria: Any, number: int, code: int) -> None:
    source = f"trap 'echo cleaned >{narratoria.folder}/cleaned; exit 0' TERM; echo '{LOG}'; sleep 60 & wait"
    running = narratoria.start("call", narratoria.script(source), "--events")
    try:
        assert running.stdout is not None
        assert running.stdout.readline()
        running.send_signal(number)
        _, err = running.communicate(timeout=20)
    finally:
        running.kill()
    assert running.returncode == code
    assert b"Traceback" not in err
    assert (narratoria.folder / "cleaned").exists()
    assert narratoria.leaves_nothing()


@pytest.mark.parametrize(
    ("redirect", "says"), [(">/dev/full", "No space left"), (">&-", "standard output is closed")]
)
@pytest.mark.parametrize("mode", ["--json", "--events", ""])
def test_output_that_cannot_be_written_is_one_clear_line(
    narratoria: Any, redirect: str, says: str, mode: str
) -> None:
    tool = narratoria.script(say(LOG, DONE))
    words = " ".join(map(shlex.quote, narratoria.command("call", tool)))
    ended = subprocess.run(
        ["bash", "-c", f"{words} {mode} {redirect}"], env=narratoria.env, stderr=subprocess.PIPE, timeout=60
    )
    assert ended.returncode == 1
    assert says in ended.stderr.decode() and len(ended.stderr.splitlines()) == 1
    assert narratoria.leaves_nothing()


def test_an_asset_is_kept_where_the_output_says(narratoria: Any) -> None:
    drawn = "printf '<svg/>' >$TMPDIR/a.svg; "
    asset = (
        '\'{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"image/svg+xml",'
        '"path":"\'$TMPDIR\'/a.svg"}\''
    )
    tool = narratoria.script(f"{drawn} echo {asset}; echo '{DONE}'")
    for mode, stream in ((["--json"], "err"), (["--events"], "err"), ([], "out")):
        ended = narratoria("call", tool, *mode)
        (where,) = re.findall(r"stored at (.*)", getattr(ended, stream))
        assert Path(where).read_text() == "<svg/>"
        assert Path(where).is_relative_to(narratoria.folder / "assets")
    kept = narratoria("call", tool, "--keep", narratoria.folder / "here", "--json")
    assert Path(re.findall(r"stored at (.*)", kept.err)[0]).is_relative_to(narratoria.folder / "here")


def test_garbage_with_its_run_bit_set_is_not_executable(narratoria: Any) -> None:
    tool = narratoria.folder / "garbage"
    tool.write_bytes(b"\x00\x01garbage")
    tool.chmod(0o755)
    entry = narratoria("call", tool, "--json").json
    assert (entry["errorCode"], entry["toolId"]) == ("NOT_EXECUTABLE", "garbage")
    assert "NotExecutable" not in entry["error"] and "not a program" in entry["error"]


@pytest.mark.parametrize("text", [b'{"a":1,"a":2}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}'])
def test_input_with_a_key_twice_or_bad_text_is_a_usage_error(narratoria: Any, text: bytes) -> None:
    command = narratoria.command("call", narratoria.script(say(DONE)), "--input")
    (narratoria.folder / "in.json").write_bytes(text)
    for given in (text, b"@in.json"):
        ended = subprocess.run(
            [*command, given],
            env={**narratoria.env, "LC_ALL": "C"},
            cwd=narratoria.folder,
            capture_output=True,
            timeout=60,
        )
        assert ended.returncode == 2
        assert b"Traceback" not in ended.stderr and b"--input" in ended.stderr


def test_text_the_terminal_cannot_show_is_escaped(narratoria: Any) -> None:
    log = '{"version":"0","type":"log","level":"info","message":"Kyōto"}'
    tool = narratoria.script(say(log, DONE))
    ended = narratoria.cold("call", tool, PYTHONIOENCODING="ascii")
    assert ended.code == 0 and "Ky\\u014dto" in ended.out
    checked = narratoria("check", tool, PYTHONIOENCODING="ascii")
    assert "Traceback" not in checked.err and "conform" in checked.out


@pytest.mark.parametrize("kind", ["directory", "dangling link"])
def test_a_manifest_that_is_no_file_is_an_error_and_the_tool_is_not_run(narratoria: Any, kind: str) -> None:
    tool = narratoria.script(f"touch ran; echo '{DONE}'", "tool.sh")
    manifest = narratoria.folder / "tool.tool.json"
    manifest.mkdir() if kind == "directory" else manifest.symlink_to("nowhere")
    ended = narratoria("call", tool, "--json")
    assert (ended.code, ended.json["toolId"]) == (1, "tool")
    assert "tool.tool.json: the manifest cannot be read" in ended.json["error"]
    assert not (narratoria.folder / "ran").exists()
    report = narratoria("check", tool, "--json").json
    assert [one["verdict"] for one in report["rules"] if one["rule"] == "manifest"] == ["fail"]


def test_a_missing_done_says_how_to_write_one(narratoria: Any) -> None:
    entry = narratoria("call", narratoria.script("exit 0"), "--json").json
    assert entry["errorCode"] == "MISSING_DONE"
    assert '(fix: write {"version":"0","type":"done","ok":true}' in entry["error"]


def test_a_closed_stdout_is_told_when_time_is_up(narratoria: Any) -> None:
    entry = narratoria("call", narratoria.script("exec >&-; sleep 60"), "--json", "--timeout", "0.5").json
    assert entry["errorCode"] == "TIMEOUT" and "closed its standard output" in entry["error"]


def test_what_follows_done_is_ignored_and_shown(narratoria: Any) -> None:
    ended = narratoria("call", narratoria.script(say(LOG, DONE, "oops")))
    assert ended.code == 0
    assert "line 3: 5 bytes written after `done` were ignored: `oops`" in ended.err


def test_escapes_of_a_tool_do_not_reach_the_error(narratoria: Any) -> None:
    error = '{"version":"0","type":"error","errorCode":"E","errorMessage":"\\u001b[31mred"}'
    done = '{"version":"0","type":"done","ok":false}'
    entry = narratoria("call", narratoria.script(say(error, done)), "--json").json
    assert "\x1b" not in entry["error"] and "\\x1b[31mred" in entry["error"]
    entry = narratoria("call", narratoria.script("printf '\\033[31mbad\\n' >&2; exit 3"), "--json").json
    assert "\x1b" not in entry["error"] and "bad" in entry["error"]


def test_a_variable_is_passed_only_by_name(narratoria: Any) -> None:
    patch = """printf '{"version":"0","type":"state_patch","patch":{"a":"%s","b":"%s"}}\\n' "$MY_TOKEN" "$MODE" """
    tool = narratoria.script(f"{patch}; echo '{DONE}'")
    without = narratoria("call", tool, "--json", MY_TOKEN="t")
    assert without.json["output"] == {"a": "", "b": ""}
    passed = narratoria("call", tool, "--json", "--env", "MY_TOKEN", "--env", "MODE=fast", MY_TOKEN="t")
    assert passed.json["output"] == {"a": "t", "b": "fast"}
    unset = narratoria("call", tool, "--env", "MY_TOKEN")
    assert (unset.code, unset.out) == (2, "") and "MY_TOKEN is not set here" in unset.err
