"""Scaling: what a call costs in plans of 10 to 10,000 calls, a turn in games of 1 to 10,000 turns, and a change of
state that is taken back in states of 100 to 1,000,000 nodes. The curves should be flat.

Run in a virtual environment: `python bench/bench_scaling.py [TURNS]`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from _measure import Curve, Row, cpu_seconds, middle, plain_turns, report
from bench_plan import ours, plan_of
from bench_state import change_and_take_back, flat, nested
from peers.graphs import make_graph
from soak import PROMPTS, new_game

from narratoria.cli import spare_the_collector
from narratoria.play.story_library import open_story
from narratoria.store.sqlite import SqliteStore

CALLS = (10, 100, 1_000, 10_000)
NODES = (100, 1_000, 10_000, 100_000, 1_000_000)
TURNS = 10_000
FLAT = 1.5  # a curve is flat if its last point is at most this many times its lowest


def per_call() -> Curve:
    """Microseconds of CPU for each call of a plan; the shape is the random one, with records on."""
    points = []
    for calls in CALLS:
        plan, taken = plan_of(make_graph("random", calls)), []
        for number in range(6):
            repeats = max(1, 1_000 // calls)
            begun = time.process_time()
            for _ in range(repeats):
                asyncio.run(ours(plan))
            if number:
                taken.append((time.process_time() - begun) / calls / repeats * 1e6)
        points.append((float(calls), middle(taken)[0]))
    return Curve("CPU per call of a plan", "calls in the plan", " µs", tuple(points))


async def play(turns: int) -> list[float]:
    """Milliseconds of CPU of every turn of one game of the torch, told by its rules, in a store on the disk."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "sessions.db"))
        game = new_game(store, open_story("torch"), "long")
        for number in range(1, turns + 1):
            begun = cpu_seconds()
            await game.prompt(PROMPTS[number % len(PROMPTS)])
            taken.append((cpu_seconds() - begun) * 1e3)
        await game.session.journal.close()  # type: ignore[union-attr]
        await game.close()
        store.close()
    return taken


def per_turn(turns: int) -> Curve:
    """The median of the turns around each size: the first hundred stand for the first turn, which also loads things."""
    taken = asyncio.run(play(turns))
    sizes = [size for size in (1, 10, 100, 1_000, 10_000) if size <= turns]
    points = [
        (float(size), middle(taken[max(0, size - max(20, size // 10)) : max(20, size)])[0]) for size in sizes
    ]
    return Curve("CPU per turn of a game", "turns played", " ms", tuple(points))


def per_change(name: str, make: partial[dict[str, object]], patch: dict[str, object]) -> Curve:
    points = []
    for nodes in NODES:
        state = make(nodes)
        taken = plain_turns({"change": partial(change_and_take_back, state, patch)}, 300, 20)["change"]
        points.append((float(nodes), middle(taken)[0]))
    return Curve(f"a change taken back, {name}", "nodes of the state", " µs", tuple(points))


def flatness(curve: Curve) -> Row:
    costs = [cost for _, cost in curve.points]
    sizes = f"{curve.points[0][0]:,.0f} to {curve.points[-1][0]:,.0f} {curve.size}"
    return Row(f"{curve.name}: largest against lowest", costs[-1] / min(costs), FLAT, note=sizes)


def main() -> None:
    spare_the_collector()  # as every command does
    curves = [
        per_call(),
        per_turn(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS),
        per_change("nested state", partial(nested), {"k3": {"k1": -1, "new": {"a": 1}}}),
        per_change("one flat object", partial(flat), {"k7": -1, "k8": None, "new": {"a": 1}}),
    ]
    report("scaling", [flatness(curve) for curve in curves], curves)


if __name__ == "__main__":
    main()
