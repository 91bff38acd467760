"""The terminal while a model writes: its words as they come, and who spoke when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
from pathlib import Path

import pytest
from tests import warm_start

from narratoria.cli.narration_view import silence
from narratoria.errors import PlanRejected
from narratoria.narrator.chain import ChainNarrator
from narratoria.play.turn import TurnResult
from narratoria.testing import Behaviour, Fails, Hangs, Says, ScriptedModel

STORY = Path(__file__).resolve().parents[2] / "stories" / "torch"


def environment(url: str, home: Path, *script: Behaviour) -> dict[str, str]:
    seconds = "3" if any(isinstance(one, Hangs) for one in script) else "60"
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    model = {"NARRATORIA_LLM_URL": url, "NARRATORIA_LLM_MODEL": "m", "NARRATORIA_LLM_TIMEOUT": seconds}
    return {**kept, **model, "NARRATORIA_HOME": str(home), "TERM": "xterm-256color"}


async def play(
    *script: Behaviour,
    home: Path,
    arguments: tuple[str, ...] = (),
    typed: str = "book a flight to Lisbon\n",
) -> str:
    """One prompt through a pipe."""
    async with ScriptedModel(*script) as server:
        process = await asyncio.create_subprocess_exec(
            *warm_start.command("play", STORY, "--terminal", *(arguments or ("--narrator", "llm")), kind="model"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment(server.url, home, *script),
        )  # fmt: skip
        async with asyncio.timeout(60):
            out, _ = await process.communicate(typed.encode())
    assert process.returncode == 0
    return out.decode()


async def play_on_a_terminal(*script: Behaviour, home: Path) -> str:
    """One prompt typed, all that the terminal was sent."""
    ours, theirs = pty.openpty()
    async with ScriptedModel(*script) as server:
        process = await asyncio.create_subprocess_exec(
            *warm_start.command("play", STORY, "--terminal", "--narrator", "llm", kind="model"),
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment(server.url, home, *script),
        )  # fmt: skip
        os.close(theirs)

        def read() -> str:
            seen = b""
            with contextlib.suppress(OSError):  # how a terminal ends
                while piece := os.read(ours, 65536):
                    seen += piece
            return seen.decode()

        os.write(ours, b"book a flight to Lisbon\n/quit\n")
        async with asyncio.timeout(60):
            seen = await asyncio.to_thread(read)
            await process.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)


def answer(narrative: str) -> str:
    return json.dumps({"narrative": narrative, "calls": [], "order": "together"})


async def test_words_are_shown_while_they_are_written_and_taken_back_when_the_model_falls_silent(
    tmp_path: Path,
) -> None:
    half = Hangs('{"narrative": "The tide hums back at')
    seen = await play_on_a_terminal(half, home=tmp_path)
    assert "The tide hums back at" in seen  # no turn ever ended with these words
    assert "the language model did not answer: " in seen.rpartition("The tide hums")[2]


async def test_a_player_who_has_to_wait_sees_that_the_narrator_is_thinking(tmp_path: Path) -> None:
    seen = await play_on_a_terminal(Hangs(), home=tmp_path)
    before, told, after = seen.partition("the language model did not answer: ")
    assert told
    assert "The narrator is thinking…" in before
    assert "The narrator is thinking…" not in after


async def test_where_nothing_can_be_taken_back_nobody_is_told_of_thinking(tmp_path: Path) -> None:
    assert "thinking" not in await play(Hangs(), home=tmp_path)


async def test_a_narration_written_to_its_end_stands_once_when_the_turn_is_over(tmp_path: Path) -> None:
    out = await play(Says(answer("The tide hums back.")), home=tmp_path)
    assert out.count("The tide hums back.") == 1
    assert "— llm" not in out  # the first of the chain spoke


async def test_why_the_model_is_silent_is_one_quiet_line_without_the_key(tmp_path: Path) -> None:
    out = await play(Fails(401, "no such key: sk-SECRET123"), home=tmp_path)
    [line] = [line for line in out.splitlines() if "401" in line]
    assert line.startswith("  — the language model did not answer: ") and "no such key" in line
    assert "SECRET" not in out


def test_a_model_without_a_usable_plan_is_told_of_in_plain_words() -> None:
    chain = ChainNarrator([])
    problems = ["$.narrative: “The gate is open”: but in the state gate.open is False", "$.calls[0].tool: no"]
    chain.failures = {"llm": str(PlanRejected(problems))}
    result = TurnResult(1, "sing", narrator="template", problems=problems)
    said = "“The gate is open”: but in the state gate.open is False; no"
    assert silence(chain, result) == f"the language model did not answer: no usable plan: {said}"


async def test_who_spoke_is_told_on_request(tmp_path: Path) -> None:
    chain = ("--narrator", "rules", "--narrator", "llm")
    out = await play(
        Says(answer("The tide hums back.")),
        home=tmp_path,
        arguments=chain,
        typed="book a flight to Lisbon\n/why\n",
    )
    told, asked, why = out.partition("> /why")
    assert asked and "llm" not in told
    assert "  told by llm" in why.splitlines()
    assert "  rules passed: " in why


@pytest.mark.parametrize("bad", [Fails(401, "no such key"), Hangs()], ids=["401", "hangs"])
async def test_the_json_of_a_turn_has_the_problems(bad: Behaviour, tmp_path: Path) -> None:
    out = await play(bad, home=tmp_path, arguments=("--narrator", "llm", "--json"))
    turn = json.loads(out.splitlines()[-1])
    assert turn["narrator"] == "template"
    assert [problem.partition(":")[0] for problem in turn["problems"]] == ["llm"]


async def test_the_json_of_a_turn_traces_what_is_claimed_to_the_call_that_made_it_so(tmp_path: Path) -> None:
    light = {"tool": "torch-lighter", "input": {"action": "light_torch"}}
    said = {"narrative": "The torch is lit.", "calls": [light], "order": "together"}
    out = await play(Says(json.dumps(said)), home=tmp_path, arguments=("--narrator", "llm", "--json"))
    receipt, told_by_the_tool = json.loads(out.splitlines()[-1])["receipts"]
    assert (receipt["claim"], told_by_the_tool["claim"]) == ("The torch is lit", "Torch lit")
    assert told_by_the_tool["by"] == receipt["by"]
    assert (receipt["verdict"], receipt["path"], receipt["value"]) == ("held", "inventory.torch.lit", True)
    assert receipt["by"]["turn"] == 1
    assert receipt["by"]["call"]
