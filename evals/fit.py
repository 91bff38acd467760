"""Fit the weights of `narratoria.narrator.matching` on the development sets, near those in use.

    python evals/fit.py

Each clause whose meaning is known is one example: the right tool, or none, against all the others.
The held-out set is never read here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from narratoria.narrator import matching
from narratoria.narrator.embedding import CachedEmbedder, MiniLM
from narratoria.narrator.evaluation import load_set
from narratoria.narrator.local import LocalNarrator, observe
from narratoria.narrator.protocol import NarratorRequest

PULL = 0.002  # towards the present weights: the set is small


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        narrator = LocalNarrator(CachedEmbedder(MiniLM(), Path(folder)))
        examples = []
        here = Path(__file__).parent
        for case in (*load_set(here / "development.jsonl"), *load_set(here / "development-2.jsonl")):
            stage = case.catalogue
            request = NarratorRequest(prompt=case.prompt, state=stage.state, tools=stage.tools)
            clauses = observe(narrator, request)
            if (case.calls and len(clauses) != len(case.calls)) or "before" in case.prompt:
                continue
            for number, (candidates, strangeness) in enumerate(clauses):
                wanted = case.calls[number].tool if case.calls else None
                first = candidates[0]
                asks = "question" in case.tags
                if wanted is None and (
                    asks or first.opposite or first.filling.missing or first.filling.unfit
                ):
                    continue  # refused whatever the weights
                names = [candidate.tool.card.name for candidate in candidates]
                rows = np.array([candidate.features for candidate in candidates])
                examples.append((rows, strangeness, names.index(wanted) if wanted else len(names)))
    start = np.array([*matching.WEIGHTS.values(), matching.NONE_BIAS, matching.NONE_BACKGROUND])
    weights = _descend(examples, start)
    right = sum(int(np.argmax(_scores(e, weights)) == e[2]) for e in examples)
    print(f"{len(examples)} clauses, {right} right")
    for name, value in zip([*matching.FEATURES, "none_bias", "none_background"], weights, strict=True):
        print(f"{name:16} {value:6.2f}")


def _scores(example: tuple, weights: np.ndarray) -> np.ndarray:
    rows, strangeness, _ = example
    return np.append(rows @ weights[:-2], weights[-2] + weights[-1] * strangeness)


def _descend(examples: list[tuple], start: np.ndarray) -> np.ndarray:
    weights = start.copy()
    for step in range(3000):
        gradient = PULL * (weights - start)
        for example in examples:
            rows, strangeness, label = example
            scores = _scores(example, weights)
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            chances[label] -= 1.0
            gradient[:-2] += rows.T @ chances[:-1] / len(examples)
            gradient[-2] += chances[-1] / len(examples)
            gradient[-1] += chances[-1] * strangeness / len(examples)
        weights -= (1.0 if step < 2000 else 0.3) * gradient
    return weights


if __name__ == "__main__":
    main()
