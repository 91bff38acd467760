"""`narratoria run`, `lint` and `plan`, through the real command line."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tests import warm_start

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SAMPLE = EXAMPLES / "plans" / "torch-and-door.json"


@pytest.fixture
def narratoria(tmp_path):
    environment = {**os.environ, "NARRATORIA_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "120"}

    def run(*arguments, stdin=""):
        return warm_start.run(*arguments, input=stdin, env=environment)

    run.environment = environment
    return run


def write_plan(folder, *calls, **fields):
    path = folder / "plan.json"
    path.write_text(json.dumps({"requestId": "p", "tools": list(calls), **fields}))
    return path


def write_tool(folder, name, code):
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\ndef say(**e):\n"
                    f"    print(json.dumps({{'version': '0', **e}}), flush=True)\n{code}\n")  # fmt: skip
    path.chmod(0o755)
    return path


DONE = "say(type='done', ok=True, summary='fine')"


def test_run_prints_the_trace_of_13_5(narratoria):
    ran = narratoria("run", SAMPLE, "--tools", EXAMPLES, "--json")
    assert ran.returncode == 0, ran.stderr
    trace = json.loads(ran.stdout)
    assert trace["success"] and [one["state"] for one in trace["toolResults"]] == ["completed", "completed"]
    assert trace["planId"] == "550e8400-e29b-41d4-a716-446655440000"


def test_run_for_people_shows_each_call_and_the_outcome(narratoria):
    ran = narratoria("run", SAMPLE, "--tools", EXAMPLES)
    assert ran.returncode == 0
    for text in ("You reach for the torch", "✓ light1", "Torch lit.", "✓ examine1", "the plan succeeded"):
        assert text in ran.stdout


def test_run_finds_tools_beside_the_plan_and_nowhere_else(narratoria, tmp_path):
    write_tool(tmp_path, "hello", DONE)
    assert narratoria("run", write_plan(tmp_path, {"toolId": "a", "toolPath": "hello"})).returncode == 0
    outside = write_plan(tmp_path, {"toolId": "a", "toolPath": "/bin/true"})
    ran = narratoria("run", outside, "--json")
    assert ran.returncode == 1 and "outside the folders" in json.loads(ran.stdout)["toolResults"][0]["error"]


def test_run_reads_a_plan_from_standard_input(narratoria):
    ran = narratoria("run", "-", "--json", stdin='{"requestId": "p", "tools": [], "narrative": "Quiet."}')
    assert ran.returncode == 0 and json.loads(ran.stdout)["narrative"] == "Quiet."


def test_a_rejected_plan_lists_every_problem_and_exits_1(narratoria, tmp_path):
    path = write_plan(tmp_path, {"toolId": "a", "toolPath": "x", "dependencies": ["a", "z"]})
    ran = narratoria("run", path)
    assert ran.returncode == 1 and "circular dependency: a → a" in ran.stderr and "'z'" in ran.stderr
    assert len(json.loads(narratoria("run", path, "--json").stdout)["problems"]) == 2


def test_a_plan_file_that_cannot_be_read_is_a_usage_error(narratoria, tmp_path):
    assert narratoria("run", tmp_path / "none.json").returncode == 2
    assert narratoria("lint", tmp_path).returncode == 2


def test_a_failing_plan_exits_1_and_a_timeout_124(narratoria, tmp_path):
    write_tool(tmp_path, "bad", "say(type='done', ok=False, summary='no')")
    write_tool(tmp_path, "slow", "time.sleep(60)")
    once = {"maxRetries": 0}
    bad = write_plan(tmp_path, {"toolId": "a", "toolPath": "bad", "retryPolicy": once})
    assert narratoria("run", bad).returncode == 1
    slow = write_plan(tmp_path, {"toolId": "a", "toolPath": "slow", "retryPolicy": once})
    assert narratoria("run", slow, "--timeout", "0.5").returncode == 124


def test_a_call_and_a_plan_have_time_limits_of_their_own(narratoria, tmp_path):
    write_tool(tmp_path, "slow", "time.sleep(1.5)\n" + DONE)
    (tmp_path / "slow.tool.json").write_text('{"name": "slow", "description": "Slow.", "timeout": 1}')
    plan = write_plan(tmp_path, {"toolId": "a", "toolPath": "slow", "retryPolicy": {"maxRetries": 0}})
    assert narratoria("run", plan, "--call-timeout", "20").returncode == 0
    ended = narratoria("run", plan, "--call-timeout", "0.1", "--json")
    (entry,) = json.loads(ended.stdout)["toolResults"]
    assert (ended.returncode, entry["state"], entry["retryCount"]) == (124, "timeout", 0)
    assert "within 0.1 s" in entry["error"]
    ended = narratoria("run", plan, "--plan-timeout", "0.5", "--json")
    assert ended.returncode == 124 and "within 0.5 s" in json.loads(ended.stdout)["toolResults"][0]["error"]


def test_run_tells_which_time_was_up_and_what_gives_more(narratoria, tmp_path):
    write_tool(tmp_path, "slow", "time.sleep(60)")
    calls = [{"toolId": name, "toolPath": "slow", "retryPolicy": {"maxRetries": 0}} for name in "abc"]
    ended = narratoria("run", write_plan(tmp_path, *calls), "--plan-timeout", "1")
    assert ended.returncode == 124
    assert "  a → the plan did not finish within 1 s\n" in ended.stdout
    assert "– b, c  not run: the plan did not finish within 1 s\n" in ended.stdout
    ended = narratoria("run", write_plan(tmp_path, calls[0]), "--call-timeout", "0.2")
    assert ended.returncode == 124 and "`run --call-timeout`" in ended.stdout
    assert "the plan did not" not in ended.stdout


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--call-timeout", "30000"),
        ("--plan-timeout", "60000"),
        ("--timeout", "nan"),
        ("--call-timeout", "inf"),
    ],
)
def test_a_time_that_can_only_be_milliseconds_is_refused(narratoria, tmp_path, option, value):
    write_tool(tmp_path, "fine", DONE)
    ended = narratoria("run", write_plan(tmp_path, {"toolId": "a", "toolPath": "fine"}), option, value)
    assert ended.returncode == 2 and "seconds" in ended.stderr and not ended.stdout
    if option != "--plan-timeout":
        ended = narratoria("call", tmp_path / "fine", "--timeout", value)
        assert ended.returncode == 2 and "seconds" in ended.stderr


def test_run_and_lint_name_keys_that_mean_nothing(narratoria, tmp_path):
    write_tool(tmp_path, "fine", DONE)
    path = write_plan(tmp_path, {"toolId": "a", "toolPath": "fine", "dependsOn": []}, paralel=True)
    ended = narratoria("run", path, "--json")
    assert ended.returncode == 0 and json.loads(ended.stdout)["success"], "a later version may know them"
    assert "warning: $.paralel: unknown key; did you mean 'parallel'?" in ended.stderr
    assert "warning: $.tools[0].dependsOn: unknown key; did you mean 'dependencies'?" in ended.stderr
    code, report = lint(narratoria, path)
    assert code == 0 and [one.split(":")[0] for one in report["unknownKeys"]] == [
        "$.paralel",
        "$.tools[0].dependsOn",
    ]
    assert "unknown keys\n  → $.paralel" in narratoria("lint", path).stdout


def test_a_plan_of_ten_thousand_calls_ends_soon_after_term(narratoria, tmp_path):
    write_tool(tmp_path, "slow", f"open({str(tmp_path / 'started')!r}, 'w').write('x')\ntime.sleep(60)")
    calls = [{"toolId": str(n), "toolPath": "slow", "async": True} for n in range(10_000)]
    plan = write_plan(tmp_path, *calls, parallel=True)
    for options in ([], ["--json"]):
        (tmp_path / "started").unlink(missing_ok=True)
        with (tmp_path / "out").open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "narratoria", "run", str(plan), *options],
                env=narratoria.environment, stdout=out, stderr=out,
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert time.monotonic() - begun < 5
        if not options:
            lines = (tmp_path / "out").read_text().splitlines()
            assert len(lines) < 200, "calls that were not run share a line"
            (told,) = [line for line in lines if "not run" in line]
            assert told.startswith("– ") and told.endswith(" more  not run: the plan was cancelled")


def test_an_interrupted_run_exits_130_and_leaves_no_process(narratoria, tmp_path):
    write_tool(
        tmp_path,
        "slow",
        f"open({str(tmp_path / 'started')!r}, 'w').write(str(__import__('os').getpid()))\ntime.sleep(60)",
    )
    plan = write_plan(tmp_path, {"toolId": "a", "toolPath": "slow"})
    process = subprocess.Popen(
        [sys.executable, "-m", "narratoria", "run", str(plan)],
        env=narratoria.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    started = tmp_path / "started"
    deadline = time.monotonic() + 30
    while not (started.exists() and started.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_saved_session_keeps_what_plans_do(narratoria, tmp_path):
    write_tool(tmp_path, "one", f"say(type='state_patch', patch={{'n': 1}})\n{DONE}")
    plan = write_plan(tmp_path, {"toolId": "a", "toolPath": "one"})
    assert narratoria("run", plan, "--session", "mine").returncode == 0
    empty = write_plan(tmp_path)
    ran = narratoria("run", empty, "--session", "mine")
    assert 'state {"n":1}' in ran.stdout


# --- lint -------------------------------------------------------------------------------------------------


def lint(narratoria, path, *more):
    ran = narratoria("lint", path, "--json", *more)
    return ran.returncode, json.loads(ran.stdout)


def test_lint_finds_levels_and_says_when_all_is_well(narratoria):
    code, report = lint(narratoria, SAMPLE, "--tools", EXAMPLES)
    assert code == 0 and report["ok"] and report["levels"] == [["light1"], ["examine1"]]


def test_lint_names_missing_tools_and_what_can_never_run(narratoria, tmp_path):
    path = write_plan(
        tmp_path,
        {"toolId": "a", "toolPath": "ghost"},
        {"toolId": "b", "toolPath": "ghost", "dependencies": ["a"]},
        {"toolId": "c", "toolPath": "ghost", "dependencies": ["b"]},
    )
    code, report = lint(narratoria, path)
    assert code == 1 and report["problems"][0].startswith("$.tools[0].toolPath: no tool 'ghost'")
    assert [one.split(":")[0] for one in report["neverRun"]] == ["b", "c"]


def test_lint_checks_inputs_permissions_effects_and_conflicts(narratoria, tmp_path):
    write_tool(tmp_path, "paint", DONE)
    (tmp_path / "paint.tool.json").write_text(
        json.dumps(
            {
                "name": "paint",
                "description": "Paints the door.",
                "parameters": {
                    "type": "object",
                    "properties": {"colour": {"type": "string"}},
                    "required": ["colour"],
                },
                "permissions": ["door:paint"],
                "effects": [
                    {
                        "type": "state_change",
                        "description": "the door has a colour",
                        "state": "door.colour",
                        "change": "set",
                        "value": "red",
                        "reversible": True,
                    }
                ],
            }
        )
    )
    good = {"toolPath": "paint", "input": {"colour": "red"}, "async": True}
    path = write_plan(tmp_path, {"toolId": "a", **good}, {"toolId": "b", **good}, parallel=True)
    code, report = lint(narratoria, path)
    assert code == 0
    assert report["missingPermissions"] == ["a: paint needs 'door:paint'", "b: paint needs 'door:paint'"]
    assert report["conflicts"] == ["a, b may run at the same time and all set the state 'door.colour'"]
    assert report["effects"][0] == "a: state_change: the door has a colour"
    assert lint(narratoria, path, "--grant", "door:paint")[1]["missingPermissions"] == []
    ordered = write_plan(
        tmp_path, {"toolId": "a", **good}, {"toolId": "b", **good, "dependencies": ["a"]}, parallel=True
    )
    assert lint(narratoria, ordered)[1]["conflicts"] == []
    wrong = write_plan(tmp_path, {"toolId": "a", "toolPath": "paint", "input": {"colour": 5}})
    code, report = lint(narratoria, wrong)
    assert code == 1 and "colour" in report["problems"][0]


# --- plan --graph -----------------------------------------------------------------------------------------


def test_the_graph_is_mermaid_or_svg(narratoria, tmp_path):
    text = narratoria("plan", SAMPLE, "--graph").stdout
    assert text.startswith("flowchart LR") and "n0 --> n1" in text
    out = tmp_path / "plan.svg"
    assert narratoria("plan", SAMPLE, "--graph", "--format", "svg", "--out", out).returncode == 0
    drawing = ElementTree.parse(out).getroot()
    assert drawing.tag.endswith("svg")
    assert {"light1", "examine1"} <= {node.text for node in drawing.iter("{http://www.w3.org/2000/svg}text")}


def test_names_in_a_graph_are_text_and_never_markup(narratoria, tmp_path):
    path = write_plan(tmp_path, {"toolId": "<script>alert(1)</script>", "toolPath": 'a"]-->b'})
    assert "<script>" not in narratoria("plan", path, "--graph").stdout
    assert "<script>" not in narratoria("plan", path, "--graph", "--format", "svg").stdout


def test_lint_of_a_dense_plan_ends_soon_after_term(narratoria, tmp_path):
    """1,900 calls that each depend on all earlier ones: the check takes many seconds, and never lets a loop turn."""
    names = [f"c{number}" for number in range(1900)]
    calls = [
        {"toolId": name, "toolPath": "nowhere", "input": {}, "dependencies": names[:place]}
        for place, name in enumerate(names)
    ]
    plan = tmp_path / "dense.json"
    plan.write_text(json.dumps({"requestId": "r", "tools": calls}))
    command = [sys.executable, "-m", "narratoria", "lint", str(plan)]
    with subprocess.Popen(command, env=narratoria.environment, stdout=subprocess.DEVNULL) as process:
        time.sleep(1.5)  # not a wait for something: it must be in the middle of the check
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143
