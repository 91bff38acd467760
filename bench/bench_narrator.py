"""The local narrator against its targets: what it understands, what a prompt costs, how fast it recalls.

Run in a virtual environment: `python bench/bench_narrator.py`. It reads evals/ and needs the extra `local`.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _measure import Row, report

from narratoria.evals.scoring import evaluate, load_set
from narratoria.lore.lore import Recall
from narratoria.lore.lore_files import Memory
from narratoria.narrator.embedding.minilm import DIMENSIONS, CachedEmbedder, MiniLM
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.narrator.local.local_narrator import LocalNarrator

EVALS = Path(__file__).parents[1] / "evals"
STORIES = Path(__file__).parents[1] / "stories"
START = "from narratoria.narrator.embedding.minilm import MiniLM; MiniLM().embed(['ready'])"
# In no rule's words. The verb of the second is in no family, so every rule that can speak is compared with it.
FIRST_PROMPTS = ("walk around to the northern end of the island", "gimme a peep at the lighthouse")
FIRST_PARAPHRASE = """
import sys, time
from pathlib import Path
from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.story import Story
story = Story.load(sys.argv[1])
narrator = ParaphraseNarrator(story.scripted_narrator(), CachedEmbedder(MiniLM(), Path(sys.argv[2])))
understood = narrator.understand(NarratorRequest(prompt=sys.argv[3], state=story.state))
assert understood.actions or understood.doubts
print(time.process_time())
"""


def understanding(narrator: LocalNarrator, name: str) -> list[Row]:
    result = asyncio.run(evaluate(narrator, load_set(EVALS / f"{name}.jsonl")))
    print(f"{name}\n{result.render()}\n")
    return [
        Row(f"{name}: valid plans", 100 * result.share("valid"), 100, at_least=True, unit=" %"),
        Row(f"{name}: exact tool sets", 100 * result.share("exactTools"), 85, at_least=True, unit=" %"),
        Row(f"{name}: slots", 100 * result.share("slots"), 90, at_least=True, unit=" %"),
        Row(f"{name}: honest refusals", 100 * result.share("refusals"), 90, at_least=True, unit=" %"),
        Row(f"{name}: CPU per prompt, median", result.cpu_ms[0], 100, unit=" ms"),
        Row(f"{name}: CPU per prompt, 95th percentile", result.cpu_ms[1], 100, unit=" ms"),
    ]


def start_up() -> Row:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", START], check=True)
        times.append(time.perf_counter() - start)
    return Row("start-up to the first vector", statistics.median(times), 1.5, unit=" s")


def cold_story() -> list[Row]:
    """CPU of a new process with nothing embedded yet: loading the story and the model is part of it."""
    rows = []
    for prompt in FIRST_PROMPTS:
        times = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    sys.executable,
                    "-c",
                    FIRST_PARAPHRASE,
                    str(STORIES / "lighthouse"),
                    folder,
                    prompt,
                ]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
            times.append(float(done.stdout))
        what = f"cold story: until the first paraphrase, CPU ({prompt!r})"
        rows.append(Row(what, statistics.median(times), 1.5, unit=" s"))
    return rows


class Scattered(MiniLM):
    """Unit vectors by chance for many texts: searching them costs what searching real ones costs. One text is a query,
    and is embedded.
    """

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) == 1:
            return super().embed(texts)
        vectors = np.random.default_rng(7).standard_normal((len(texts), DIMENSIONS)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def recall() -> Row:
    index = Recall(Scattered())
    index.add(Memory(f"memory {number}") for number in range(10_000))
    times = []
    for number in range(30):
        start = time.process_time()  # one thread: CPU is the clock of an idle machine
        index.search(f"what do I know of the lighthouse in winter {number}?", 6, least=-1)
        times.append(1000 * (time.process_time() - start))
    return Row(
        "recall over 10,000 memories, CPU, with embedding the query", statistics.median(times), 20, unit=" ms"
    )


def main() -> None:
    model = MiniLM()
    with tempfile.TemporaryDirectory() as folder:
        narrator = LocalNarrator(CachedEmbedder(model, Path(folder)))
        rows = [
            row
            for name in (
                "development",
                "development-2",
                "development-3",
                "held-out",
                "held-out-2",
                "held-out-3",
                "held-out-4",
                "held-out-5",
            )
            for row in understanding(narrator, name)
        ]
    report("local narrator", [*rows, start_up(), *cold_story(), recall()])


if __name__ == "__main__":
    main()
