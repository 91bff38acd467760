"""`narratoria eval`: score a narrator's plans over a file of prompts. Nothing is executed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from narratoria.cli import FAILED
from narratoria.cli.narrate import bare_story, timeout_option
from narratoria.cli.narrators_option import narrators_option
from narratoria.cli.output import console, print_json, styled
from narratoria.errors import PlanRejected
from narratoria.evals.report import EvaluationReport, milliseconds
from narratoria.evals.scoring import evaluate, load_set
from narratoria.evals.story_sets import evaluate_story_set, is_story_set, load_story_set
from narratoria.factcheck.fact_checked import FactChecked
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.invocation import NarratorFailed
from narratoria.narrator.protocol import Declaration, Narrator, NarratorRequest, NoMatch
from narratoria.narrator.roster import BY_RULES, BY_TOOLS, NARRATORS
from narratoria.play.casting import make_narrator
from narratoria.run.plan import PlanDocument


@click.command("eval")
@click.argument("file", metavar="SET.jsonl", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@narrators_option(f"{' or '.join(BY_TOOLS)}; for a set about a story {' or '.join(BY_RULES)}")
@timeout_option
@click.option(
    "--attempts",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="Generations per prompt; a turn has 5.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the totals as JSON.")
def evaluate_set(file: Path, narrators: tuple[str, ...], timeout: float, attempts: int, as_json: bool) -> int:
    """Score a narrator on every prompt of SET.jsonl.

    It prints exact tool sets, slots, order, validity, refusals and latency. A prompt without an answer, because the
    narrator failed, counts against all of them; the exit code is 1 if there was no answer at all.

    Each line of SET.jsonl is an object: `catalogue` (the name of catalogues/NAME.json beside it, with tools, state
    and premise), `prompt`, `calls` (the right ones: a list of {"tool", "input"}, empty if nothing should happen), and
    optionally `order` (pairs of indices into calls), `alternatives` (other lists that are as good) and `tags`.

    A set about a story's rules has lines with `story`, `prompt`, optionally `at` and `state`, and either `expect` or
    `rules`, the ids of the intended rules. It prints the right answers and the actions that were not asked for.
    """
    if is_story_set(file):
        return _evaluate_story(file, narrators, as_json)
    _check(narrators, BY_TOOLS, "belongs to a story")
    cases = load_set(file)
    chain = make_narrator(bare_story(file.parent), narrators or ("local",), time_limit=timeout)
    asked = Persistent(chain.narrators, attempts=attempts, time_limit=timeout)
    report = asyncio.run(evaluate(asked, cases))
    if as_json:
        print_json({**report.to_data(), **_latency(report), "attempts": attempts})
    else:
        _show(report, asked, file)
    return FAILED if len(report.failures) == len(report.outcomes) else 0


def _show(report: EvaluationReport, asked: Persistent, file: Path) -> None:
    out, wall = console(), _latency(report)
    late = f"latency {wall['wallMsMedian']:g} ms median, {wall['wallMs95']:g} ms at the 95th percentile"
    out.print(styled((f"{asked.name}: {file}", "bold")))
    out.print(styled((report.render(), "")))
    out.print(styled((late, "")))
    for outcome in report.failures[:5]:
        out.print(styled((f"  {outcome.prompt[:60]}: ", "yellow"), (outcome.failure[:200], "")))


def _check(narrators: Sequence[str], fit: Sequence[str], otherwise: str) -> None:
    for name in narrators:
        if name not in fit:
            why = otherwise if name in NARRATORS else "is no narrator"
            raise click.BadParameter(f"{name!r} {why}; use {' or '.join(fit)}", param_hint="--narrator")


def _evaluate_story(file: Path, narrators: Sequence[str], as_json: bool) -> int:
    _check(narrators, BY_RULES, "knows no rules, and this set is about a story's")
    report = evaluate_story_set(load_story_set(file), narrators or BY_RULES)
    if as_json:
        print_json(report.to_data())
    else:
        console().print(styled((f"{report.narrator}: {file}", "bold")))
        console().print(styled((report.render(), "")))
    return 0


class Persistent:
    """A chain that is asked as often as a turn would ask it. Failures are distinguished from refusals."""

    def __init__(self, narrators: Sequence[Narrator], *, attempts: int, time_limit: float) -> None:
        self.chain = ChainNarrator(narrators, time_limit=time_limit)
        self.attempts = attempts
        self.name = " → ".join(narrator.name for narrator in narrators)

    def declare(self, speaker: str = "") -> Declaration:
        """Return the chain's declaration: the choices of its last answer are in it."""
        return self.chain.declare(speaker)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        why, failed, checked = "", False, FactChecked(self.chain)
        for attempt in range(1, self.attempts + 1):
            again = replace(request, attempt=attempt, generations=self.attempts)
            try:
                return await checked.plan(again)
            except (NoMatch, PlanRejected) as error:
                why = str(error)
                failed = failed or isinstance(error, PlanRejected) or bool(self.chain.failures)
        raise NarratorFailed(why) if failed else NoMatch(why)


def _latency(report: EvaluationReport) -> dict[str, float]:
    median, late = milliseconds([outcome.wall_seconds for outcome in report.outcomes])
    return {"wallMsMedian": round(median, 2), "wallMs95": round(late, 2)}
