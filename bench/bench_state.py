"""The state tree: merging against json-merge-patch, and taking a change back against copying the state.

Run in a virtual environment: `python bench/bench_state.py`. Needs json-merge-patch (in the `test` extra).
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import json_merge_patch
from _measure import Row, Samples, middle, plain_turns, ratio, report

from narratoria.state import apply, merge, merge_into, revert

ROUNDS, RUNS = 60, 500
SMALL, LARGE = 1_000, 100_000
PATCH: dict[str, Any] = {
    "inventory": {"torch": {"lit": True, "fuel": 7}, "rope": None},
    "scene": {"place": "cellar", "light": "dim"},
    "turn": 12,
}
TARGET: dict[str, Any] = {
    "inventory": {
        "torch": {"lit": False, "fuel": 8, "kind": "pitch"},
        "rope": {"length": 12},
        "coin": {"count": 3},
    },
    "scene": {"place": "hall", "light": "bright", "exits": ["north", "down"]},
    "people": {"ada": {"mood": "wary"}, "bo": {"mood": "merry"}},
    "turn": 11,
}


def nested(nodes: int, width: int = 10) -> dict[str, Any]:
    """A tree of about `nodes` values, ten to each object."""
    if nodes <= width:
        return {f"k{n}": n for n in range(nodes)}
    return {f"k{n}": nested((nodes - width) // width, width) for n in range(width)}


def flat(nodes: int) -> dict[str, Any]:
    """One object of `nodes` members: the shape on which copying the path is no help."""
    return {f"k{n}": n for n in range(nodes)}


def change_and_take_back(state: dict[str, Any], patch: dict[str, Any]) -> None:
    """A snapshot is only a place in the undo log, so the mark itself costs nothing."""
    revert(state, apply(state, patch))


def told(samples: Samples) -> str:
    return ", ".join(f"{name} {middle(taken)[0]:.2f} µs" for name, taken in samples.items())


def row(name: str, samples: Samples, ours: str, reference: str, target: float | None, note: str = "") -> Row:
    times, spread = ratio(samples, ours, reference)
    return Row(name, times, target, note=note, spread=spread)


def merging() -> list[Row]:
    """json-merge-patch changes its target in place, so the in-place merge is its like; `merge` keeps the target whole,
    which with json-merge-patch takes a deep copy first. Merging the same patch again does the same work again."""
    theirs, in_place, undoable = (copy.deepcopy(TARGET) for _ in range(3))
    assert merge(TARGET, PATCH) == json_merge_patch.merge(copy.deepcopy(TARGET), PATCH)
    cost = plain_turns(
        {
            "json-merge-patch": partial(json_merge_patch.merge, theirs, PATCH),
            "json-merge-patch on a copy": lambda: json_merge_patch.merge(copy.deepcopy(TARGET), PATCH),
            "merge_into": partial(merge_into, in_place, PATCH),
            "merge": partial(merge, TARGET, PATCH),
            "apply with its inverse": partial(apply, undoable, PATCH),
        },
        RUNS,
        ROUNDS,
    )
    print(told(cost))
    bare, inverse = "json-merge-patch", "apply with its inverse"
    return [
        row("merge_into, in place as theirs", cost, "merge_into", bare, 0.6),
        row("merge, target kept: theirs on a copy", cost, "merge", "json-merge-patch on a copy", 0.6),
        row("merge, target kept: theirs in place", cost, "merge", bare, 0.6, "four objects are copied"),
        row("apply, with the inverse: theirs in place", cost, inverse, bare, None),
    ]


def taking_back() -> list[Row]:
    rows = []
    for shape, make, patch in (
        ("nested", nested, {"k3": {"k1": {"k2": {"k0": -1, "new": {"a": 1}}}}}),
        ("one flat object", flat, {"k7": -1, "k8": None, "new": {"a": 1}}),
    ):
        small, large = make(SMALL), make(LARGE)
        before = copy.deepcopy(large)
        cost = plain_turns(
            {
                "small": partial(change_and_take_back, small, patch),
                "large": partial(change_and_take_back, large, patch),
            },
            RUNS,
            ROUNDS,
        )
        assert large == before
        copying = middle(plain_turns({"deepcopy": partial(copy.deepcopy, large)}, 1, 5)["deepcopy"])[0]
        print(f"{shape}: {told(cost)}, deepcopy {copying:,.0f} µs")
        against = copying / middle(cost["large"])[0]
        rows += [
            Row(f"{shape}: deepcopy of {LARGE:,} nodes against it", against, 10_000, at_least=True),
            row(f"{shape}: {LARGE:,} nodes against {SMALL:,}", cost, "large", "small", 1.5),
        ]
    return rows


def main() -> None:
    rows = merging()
    rows += taking_back()
    report("state: merge; snapshot + patch + rollback", rows)


if __name__ == "__main__":
    main()
