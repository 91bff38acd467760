"""Fit the weights of `narratoria.narrator.local.tool_matching` on the development sets, near those in use.

    python evals/fit.py

Each clause whose meaning is known is one example: the right tool, or none, against all the others. A quarter of the
catalogues at a time is left out, to see how the weights do on catalogues they were not fitted on. The held-out sets are
never read here.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from narratoria.evals.scoring import Case, load_set
from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local import tool_matching as matching
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest

PULL = 0.0003  # towards the present weights: the sets are small
STEPS = 5000
SETS = ("development", "development-2", "development-3")


@dataclass(frozen=True)
class Example:
    catalogue: str
    features: np.ndarray  # a row per tool
    right: int  # the row of the tool that is meant, -1 where none is


def main() -> None:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        narrator = LocalNarrator(CachedEmbedder(MiniLM(), Path(folder)))
        cases = [case for name in SETS for case in load_set(here / f"{name}.jsonl")]
        examples = [example for case in cases for example in _examples(narrator, case)]
    start = np.array([*matching.WEIGHTS.values(), matching.NONE])
    print(f"{len(examples)} clauses; the weights in use get {_right(examples, start):.1%} right")
    names = sorted({example.catalogue for example in examples})
    unseen = 0.0
    for part in range(4):
        aside = set(names[part::4])
        weights = _descend([example for example in examples if example.catalogue not in aside], start)
        held = [example for example in examples if example.catalogue in aside]
        unseen += _right(held, weights) * len(held) / len(examples)
    weights = _descend(examples, start)
    print(f"fitted: {_right(examples, weights):.1%}, on catalogues not fitted on {unseen:.1%}")
    for name, value in zip([*matching.FEATURES, "none"], weights, strict=True):
        print(f"{name:12} {value:6.2f}")


def _examples(narrator: LocalNarrator, case: Case) -> list[Example]:
    stage = case.catalogue
    request = NarratorRequest(prompt=case.prompt, state=stage.state, tools=stage.tools)
    heard = narrator.comprehend(request)
    heard.understand()
    clauses = heard.observed
    if (case.calls and len(clauses) != len(case.calls)) or "before" in case.prompt.casefold():
        return []
    found = []
    for number, candidates in enumerate(clauses):
        wanted = case.calls[number].tool if case.calls else None
        first = candidates[0]
        settled = "question" in case.tags or first.opposite or first.filling.missing or first.filling.unfit
        names = [candidate.tool.card.name for candidate in candidates]
        if (wanted is None and settled) or (wanted is not None and wanted not in names):
            continue  # decided whatever the weights
        rows = np.array([list(candidate.features.values()) for candidate in candidates])
        found.append(Example(stage.name, rows, names.index(wanted) if wanted else -1))
    return found


def _scores(example: Example, weights: np.ndarray) -> np.ndarray:
    return np.append(example.features @ weights[:-1], weights[-1])


def _right(examples: list[Example], weights: np.ndarray) -> float:
    hits = [
        np.argmax(_scores(e, weights)) == (e.right if e.right >= 0 else len(e.features)) for e in examples
    ]
    return float(np.mean(hits))


def _descend(examples: list[Example], start: np.ndarray) -> np.ndarray:
    """Softmax regression over tools and none, all examples at once; rows a catalogue lacks score next to nothing."""
    most = max(len(example.features) for example in examples)
    rows = np.zeros((len(examples), most, len(start) - 1))
    lacking = np.full((len(examples), most + 1), -1e9)
    labels = np.full(len(examples), most)
    for at, example in enumerate(examples):
        count = len(example.features)
        rows[at, :count] = example.features
        lacking[at, :count] = lacking[at, most] = 0.0
        labels[at] = example.right if example.right >= 0 else most
    weights = start.copy()
    for step in range(STEPS):
        none = np.full((len(examples), 1), weights[-1])
        scores = np.concatenate([rows @ weights[:-1], none], axis=1) + lacking
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(examples)), labels] -= 1.0
        chances /= len(examples)
        gradient = PULL * (weights - start)
        gradient[:-1] += np.einsum("et,etf->f", chances[:, :most], rows)
        gradient[-1] += chances[:, most].sum()
        weights -= (3.0 if step < 0.7 * STEPS else 1.0) * gradient
    return weights


if __name__ == "__main__":
    main()
