"""`narratoria narrate` and `narratoria eval`, as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests import warm_start

from narratoria.narrator.roster import BY_RULES, BY_TOOLS, LAST_RESORT, NARRATORS
from narratoria.run.plan import PlanDocument
from narratoria.testing import Fails, Says, ScriptedModel

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "examples" / "tools"
STORY = ROOT / "stories" / "torch"


async def narratoria(*arguments: str, stdin: str | bytes = "", **environment: str) -> tuple[int, str, str]:
    names = ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    env = {name: value for name, value in os.environ.items() if name not in names}
    if isinstance(stdin, str):
        words = {**env, "NO_COLOR": "1", **environment}
        ended = await asyncio.to_thread(warm_start.run, *arguments, input=stdin, env=words, timeout=60)
        return ended.returncode, ended.stdout, ended.stderr
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "narratoria",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**env, "NO_COLOR": "1", **environment},
    )
    out, err = await asyncio.wait_for(process.communicate(stdin), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_storys_rules_make_a_plan_and_nothing_runs(tmp_path: Path) -> None:
    code, out, err = await narratoria(
        "narrate", "light the torch", "--story", str(STORY), "--json", NARRATORIA_HOME=str(tmp_path)
    )
    assert code == 0, err
    plan = PlanDocument.from_json(out)
    assert plan.tools
    assert "rules speaks" in err
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}  # embeddings; no session, no asset


async def test_a_plan_for_people_names_calls_and_their_order() -> None:
    code, out, _ = await narratoria(
        "narrate", "light the torch", "--story", str(STORY), "--narrator", "rules"
    )
    assert code == 0
    assert "torch" in out
    assert "  1 " in out


async def test_a_dash_reads_a_prompt_a_line_and_prints_a_plan_a_line() -> None:
    prompts = "light the torch\n\n}{ \x00 nonsense\nlook\n"
    code, out, _ = await narratoria("narrate", "-", "--story", str(STORY), stdin=prompts)
    assert code == 0
    plans = [PlanDocument.from_json(line) for line in out.splitlines()]
    assert len(plans) == 4


async def test_a_language_model_plans_for_a_folder_of_tools() -> None:
    answer = {
        "narrative": "Fire.",
        "calls": [{"tool": "torch-lighter", "input": {"action": "light_torch"}}],
        "order": "together",
    }
    async with ScriptedModel(Says(json.dumps(answer))) as server:
        code, out, err = await narratoria(
            "narrate", "light it", "--tools", str(TOOLS), "--narrator", "llm", "--json",
            "--timeout", "30", NARRATORIA_LLM_URL=server.url, NARRATORIA_LLM_TIMEOUT="30",
        )  # fmt: skip
        told = server.requests[0]["messages"][0]["content"]
    assert code == 0, err
    plan = PlanDocument.from_json(out)
    assert [(call.tool_path, call.input) for call in plan.tools] == [
        ("torch-lighter", {"action": "light_torch"})
    ]
    assert "llm speaks" in err
    assert "torch-lighter" in told
    assert "door-examiner" in told


async def test_a_model_that_fails_leaves_the_word_to_the_template() -> None:
    async with ScriptedModel(Fails(503, "loading")) as server:
        code, out, err = await narratoria(
            "narrate", "x", "--tools", str(TOOLS), "--narrator", "llm", "--json",
            "--timeout", "30", NARRATORIA_LLM_URL=server.url,
        )  # fmt: skip
    assert code == 0
    assert PlanDocument.from_json(out).tools == []
    assert "503: loading" in err
    assert "template speaks" in err


GOOD = json.dumps(
    {
        "narrative": "Fire.",
        "calls": [{"tool": "torch-lighter", "input": {"action": "light_torch"}}],
        "order": "together",
    }
)


async def test_a_model_mends_its_answer_as_it_would_in_a_turn(tmp_path: Path) -> None:
    async with ScriptedModel(Says('{"narr'), Says(GOOD)) as server:
        code, out, err = await narratoria(
            "narrate", "light it", "--tools", str(TOOLS), "--narrator", "llm", "--json",
            "--timeout", "30", NARRATORIA_LLM_URL=server.url, NARRATORIA_LLM_TIMEOUT="30",
        )  # fmt: skip
        assert len(server.requests) == 2
    assert code == 0, err
    assert json.loads(out)["narrator"] == "llm"
    assert "llm, attempt 1: $: not JSON" in err


async def test_the_storys_lore_is_recalled_as_it_would_be_in_a_turn(tmp_path: Path) -> None:
    shutil.copytree(STORY, tmp_path / "torch")
    (tmp_path / "torch" / "lore").mkdir(exist_ok=True)
    (tmp_path / "torch" / "lore" / "osk.md").write_text('+++\nkeywords = ["door"]\n+++\nOsk carved it.\n')
    async with ScriptedModel(Says(GOOD)) as server:
        code, _, err = await narratoria(
            "narrate", "look at the door", "--story", str(tmp_path / "torch"), "--narrator", "llm",
            "--timeout", "30", NARRATORIA_LLM_URL=server.url, NARRATORIA_LLM_TIMEOUT="30",
        )  # fmt: skip
        told = server.requests[0]["messages"][-1]["content"]
    assert code == 0, err
    assert "Osk carved it." in told


async def test_a_lore_file_that_is_no_text_is_named_and_left_out(tmp_path: Path) -> None:
    shutil.copytree(STORY, tmp_path / "torch")
    (tmp_path / "torch" / "lore").mkdir(exist_ok=True)
    (tmp_path / "torch" / "lore" / "cafe.md").write_bytes("The café is shut.".encode("latin-1"))
    code, out, err = await narratoria(
        "narrate", "light the torch", "--story", str(tmp_path / "torch"), "--narrator", "rules"
    )
    assert (code, "torch-lighter" in out) == (0, True), err
    assert "cafe.md:1: it is not UTF-8" in err


async def test_a_refusal_brings_its_choices_and_names_its_narrator_once() -> None:
    code, out, err = await narratoria(
        "narrate", "book me a flight to Lisbon", "--tools", str(TOOLS), "--narrator", "local", "--json"
    )
    assert code == 0, err
    plan = json.loads(out)
    assert (plan["tools"], plan["narrator"]) == ([], "local")
    assert len(plan["choices"]) >= 2
    assert "local passed" not in err
    assert "local speaks" in err


async def test_a_state_can_be_given_to_tools_without_a_story(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"here": {"iron_door": {"open": false}}}')
    async with ScriptedModel(Says(GOOD), Says(GOOD)) as server:
        for given in (f"@{tmp_path / 'state.json'}", '{"here": {"iron_door": {"open": false}}}'):
            code, _, err = await narratoria(
                "narrate", "light it", "--tools", str(TOOLS), "--narrator", "llm", "--state", given,
                "--timeout", "30", NARRATORIA_LLM_URL=server.url, NARRATORIA_LLM_TIMEOUT="30",
            )  # fmt: skip
            assert code == 0, err
            assert '"iron_door":{"open":false}' in server.requests[-1]["messages"][-1]["content"]
    code, _, err = await narratoria("narrate", "x", "--tools", str(TOOLS), "--state", "[1]")
    assert code == 2
    assert "--state" in err


async def test_bytes_that_are_no_text_are_read_as_question_marks() -> None:
    code, out, err = await narratoria(
        "narrate", "-", "--story", str(STORY), "--narrator", "rules", stdin=b"light \xff the torch\nlook\n"
    )
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "Error" not in err


async def test_on_a_new_machine_the_first_prompt_waits_until_its_meaning_can_be_read(tmp_path: Path) -> None:
    code, _, err = await narratoria(
        "narrate", "lihgt teh torhc", "--story", str(STORY), "--narrator", "paraphrase",
        "--timeout", "30", NARRATORIA_HOME=str(tmp_path),
    )  # fmt: skip
    assert code == 0
    assert "paraphrase speaks" in err
    assert "no plan within" not in err


@pytest.mark.parametrize("folder", [TOOLS.parent, TOOLS])
async def test_tools_means_the_same_folder_as_for_lint(tmp_path: Path, folder: Path) -> None:
    code, out, err = await narratoria(
        "narrate",
        "light the torch",
        "--tools",
        str(folder),
        "--narrator",
        "local",
        "--timeout",
        "30",
        "--json",
    )
    assert code == 0, err
    plan = PlanDocument.from_json(out)
    torch = (TOOLS / "torch-lighter").relative_to(folder)
    assert [call.tool_path for call in plan.tools] == [str(torch)]
    (tmp_path / "plan.json").write_bytes(plan.to_json())
    code, out, err = await narratoria("lint", str(tmp_path / "plan.json"), "--tools", str(folder))
    assert code == 0, out + err


@pytest.mark.parametrize("damage", ["garbage", "a file as the folder", "a home that cannot be made"])
async def test_a_cache_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path, damage: str) -> None:
    home, folder = tmp_path, tmp_path / "cache" / "embeddings"
    arguments = (
        "narrate", "lihgt teh torhc", "--story", str(STORY), "--narrator", "paraphrase", "--timeout", "30",
    )  # fmt: skip
    if damage == "garbage":
        await narratoria(*arguments, NARRATORIA_HOME=str(home))
        for file in folder.glob("*.sqlite"):
            file.write_text("garbage")
    elif damage == "a file as the folder":
        folder.parent.mkdir()
        folder.write_text("no folder")
    else:
        home = Path("/proc/nowhere")
    code, _, err = await narratoria(*arguments, NARRATORIA_HOME=str(home))
    assert (code, "paraphrase speaks" in err) == (0, True), err


async def test_settings_that_bound_nothing_are_refused() -> None:
    for variable, value, word in (
        ("NARRATORIA_LLM_TIMEOUT", "-1", "above zero"),
        ("NARRATORIA_LLM_URL", "garbage", "expected an address"),
        ("NARRATORIA_LLM_MAX_TOKENS", "nan", "above zero"),
        ("NARRATORIA_LLM_MAX_COST", "5", "NARRATORIA_LLM_PRICE"),
    ):
        settings = {"NARRATORIA_LLM_URL": "http://127.0.0.1:1/v1", variable: value}
        code, _, err = await narratoria(
            "narrate", "x", "--tools", str(TOOLS), "--narrator", "llm", **settings
        )
        assert code == 1
        assert variable in err
        assert word in err


async def test_narrators_are_asked_in_the_order_given_also_the_template() -> None:
    code, _, err = await narratoria(
        "narrate", "light the torch", "--story", str(STORY), "--narrator", "template", "--narrator", "rules"
    )
    assert code == 0
    assert "template speaks" in err


async def test_wrong_use_is_said_so() -> None:
    for arguments in (
        ("narrate",),
        ("narrate", "x", "--story", "torch", "--tools", str(TOOLS)),
        ("narrate", "x", "--tools", "/nowhere"),
        ("eval", "/nowhere.jsonl"),
        ("eval", str(ROOT / "evals" / "development.jsonl"), "--narrator", "rules"),
    ):
        code, out, err = await narratoria(*arguments)
        assert (code, out) == (2, ""), arguments
        assert err
    code, _, err = await narratoria("narrate", "x", "--story", str(STORY), "--narrator", "oracle")
    assert code == 1
    assert "oracle" in err
    code, _, err = await narratoria("narrate", "x", "--story", str(STORY), "--narrator", "llm")
    assert code == 1
    assert "NARRATORIA_LLM_URL" in err


async def test_eval_scores_a_set_and_counts_what_got_no_plan(tmp_path: Path) -> None:
    catalogue = {
        "name": "hut",
        "tools": [
            {
                "name": "light",
                "description": "Light something.",
                "parameters": {
                    "type": "object",
                    "properties": {"item": {"type": "string"}},
                    "required": ["item"],
                },
            }
        ],
    }
    (tmp_path / "catalogues").mkdir()
    (tmp_path / "catalogues" / "hut.json").write_text(json.dumps(catalogue))
    lamp = {"tool": "light", "input": {"item": "lamp"}}
    cases = [
        {"catalogue": "hut", "prompt": "light the lamp", "calls": [lamp]},
        {
            "catalogue": "hut",
            "prompt": "light the stove",
            "calls": [{"tool": "light", "input": {"item": "stove"}}],
        },
        {"catalogue": "hut", "prompt": "fly", "calls": [], "tags": ["nothing"]},
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, cases)))
    good = Says(json.dumps({"narrative": "It burns.", "calls": [lamp], "order": "together"}))
    script = [good, good, Says("not JSON"), good, Fails(500), Fails(500)]  # the first answer only warms up
    async with ScriptedModel(*script) as server:
        code, out, err = await narratoria(
            "eval", str(tmp_path / "set.jsonl"), "--narrator", "llm", "--attempts", "2", "--json",
            "--timeout", "30", NARRATORIA_LLM_URL=server.url, NARRATORIA_LLM_TIMEOUT="30",
        )  # fmt: skip
        assert len(server.requests) == 6
    assert code == 0, err
    report = json.loads(out)
    assert report["prompts"] == 3
    assert (report["exactTools"], report["valid"]) == (0.6667, 0.6667)
    assert report["slots"] == 0.5
    assert (report["failures"], report["refusals"]) == (1, 0.0)
    assert report["wallMs95"] >= report["wallMsMedian"] > 0


@pytest.mark.parametrize("attempts", ["1", "2"])
async def test_eval_does_not_praise_a_narrator_that_never_answers(tmp_path: Path, attempts: str) -> None:
    (tmp_path / "catalogues").mkdir()
    tool = {"name": "light", "description": "Light something.", "parameters": {"type": "object"}}
    (tmp_path / "catalogues" / "hut.json").write_text(json.dumps({"name": "hut", "tools": [tool]}))
    line = {"catalogue": "hut", "prompt": "fly", "calls": [], "tags": ["nothing"]}
    (tmp_path / "one.jsonl").write_text(json.dumps(line))
    code, out, err = await narratoria(
        "eval", str(tmp_path / "one.jsonl"), "--narrator", "llm", "--attempts", attempts,
        NARRATORIA_LLM_URL="http://127.0.0.1:9/v1", NARRATORIA_LLM_MODEL="x",
    )  # fmt: skip
    assert code == 1, err
    assert "no answer to 1 of 1 prompts" in out
    titles, shares = (line.split() for line in out.replace("honest refusals", "refusals").splitlines()[1:3])
    named = dict(zip(titles[:8], shares[1:], strict=False))
    assert named == {
        "prompts": "1", "tools": "0%", "done": "0%", "offered": "0%", "wrong": "0%", "missed": "100%", "valid": "0%",
        "slots": "–",
    }  # fmt: skip
    assert shares[-3] == "0%"  # no honest refusal either


async def test_eval_tells_an_unknown_narrator_from_one_of_a_story_and_what_a_set_is_made_of() -> None:
    file = str(ROOT / "evals" / "development.jsonl")
    code, _, err = await narratoria("eval", file, "--narrator", "wat")
    assert (code, "'wat' is no narrator" in " ".join(err.split())) == (2, True), err
    code, _, err = await narratoria("eval", file, "--narrator", "rules")
    assert (code, "'rules' belongs to a story" in " ".join(err.split())) == (2, True), err
    code, out, _ = await narratoria("eval", "--help")
    assert code == 0 and "catalogues/NAME.json" in out


async def test_eval_scores_a_set_about_a_storys_rules(tmp_path: Path) -> None:
    lines = [
        {"story": str(STORY), "prompt": "light the torch", "expect": ["light-torch"]},
        {"story": str(STORY), "prompt": "order a taxi", "expect": ["still"]},
    ]
    file = tmp_path / "set.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    code, out, err = await narratoria("eval", str(file), "--narrator", "rules", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert (report["prompts"], report["right"], report["unaskedActions"]) == (2, 1.0, 0)
    assert report["parts"] == {"all": 1.0, "torch": 1.0, "#rules": 1.0, "#still": 1.0}
    code, out, _ = await narratoria("eval", str(file))
    assert code == 0 and "rules → paraphrase" in out and "unasked acts" in out
    code, _, err = await narratoria("eval", str(file), "--narrator", "llm")
    assert (code, "'llm' knows no rules" in " ".join(err.split())) == (2, True), err


async def test_the_help_and_the_checks_take_their_narrators_from_the_roster():
    _, narrate, _ = await narratoria("narrate", "--help")
    _, evaluate, _ = await narratoria("eval", "--help")
    assert ", ".join(NARRATORS) in " ".join(narrate.split())
    assert " or ".join(BY_TOOLS) in " ".join(evaluate.split())
    assert {*BY_TOOLS, *BY_RULES, LAST_RESORT} == NARRATORS.keys()
