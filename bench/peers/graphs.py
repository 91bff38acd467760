"""The graphs of no-ops that every scheduler here is given: node → the nodes it waits for."""

from __future__ import annotations

import random
from typing import TypeAlias

Graph: TypeAlias = dict[str, list[str]]
KINDS = ("chains", "fan-out", "random")


def make_graph(kind: str, count: int) -> Graph:
    if kind == "chains":  # ten side by side
        return {f"n{n}": [f"n{n - 10}"] if n >= 10 else [] for n in range(count)}
    if kind == "fan-out":  # one, then all the others
        return {f"n{n}": ["n0"] if n else [] for n in range(count)}
    dice = random.Random(7)
    return {
        f"n{n}": sorted({f"n{dice.randrange(n)}" for _ in range(dice.randrange(4))}) if n else []
        for n in range(count)
    }
