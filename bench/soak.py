"""A soak: thousands of turns in one process, a thousand sessions opened and closed; memory and descriptors stay flat.

    python bench/soak.py                              # 10,000 turns and 1,000 sessions
    python bench/soak.py --turns 300 --sessions 30    # in small
    python bench/soak.py --picture docs/soak.svg      # draw it, too

Turns are those of the torch, told by its rules; every tenth runs a tool in a process. It ends with status 1 if
memory or descriptors grow, by more than the text of the story itself takes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from narratoria import Session
from narratoria.cli import spare_the_collector
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.play.story_library import open_story
from narratoria.store.sqlite import SqliteStore

PROMPTS = (
    "light the torch",
    *("look around", "wait", "listen") * 3,
    "examine the door",
    *("wait", "listen", "look") * 3,
)
WARM = 0.2  # the part at the beginning that does not count: caches fill
GROWTH_PER_TURN = 1024  # bytes; what was told, which the memory of the story keeps as text, takes some 400
GROWTH_PER_SESSION = 4096


@dataclass
class Samples:
    """What the process held, sample by sample."""

    unit: str
    allowed: float  # bytes for each unit
    done: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, done: int) -> None:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.done.append(done)
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        self.descriptors.append(len(list(Path("/proc/self/fd").iterdir())))

    @property
    def growth(self) -> float:
        """Bytes for each unit once it is warm: the slope between any two samples, in the median."""
        start = int(len(self.done) * WARM)
        points = list(zip(self.done[start:], self.memory[start:], strict=True))
        half = len(points) // 2
        slopes = [
            (later[1] - earlier[1]) / (later[0] - earlier[0])
            for earlier, later in zip(points[:half], points[half:], strict=False)
        ]
        return statistics.median(slopes) if slopes else 0.0

    @property
    def flat(self) -> bool:
        start = int(len(self.done) * WARM)
        return self.growth <= self.allowed and max(self.descriptors[start:]) <= self.descriptors[start] + 2

    def summary(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "count": self.done[-1],
            "seconds": round(self.seconds, 1),
            "memoryMiB": [round(self.memory[at] / 2**20, 1) for at in (int(len(self.done) * WARM), -1)],
            "bytesEach": round(self.growth),
            "descriptors": [min(self.descriptors), max(self.descriptors)],
            "flat": self.flat,
        }


def new_game(store: SqliteStore, story: Story, session_id: str) -> Game:
    session = Session(session_id, state=story.state, permissions=story.permissions, assets=store.assets)
    journal = store.create(session, story=story.id)
    game = Game(story, journal.session, narrators=["rules"])
    game.begin()
    return game


async def turns(store: SqliteStore, story: Story, count: int) -> Samples:
    samples = Samples("turns", GROWTH_PER_TURN)
    began = time.perf_counter()
    game = new_game(store, story, "long")
    for number in range(1, count + 1):
        await game.prompt(PROMPTS[number % len(PROMPTS)])
        if number % max(1, count // 100) == 0:
            samples.take(number)
    await game.session.journal.close()  # type: ignore[union-attr]
    await game.close()
    samples.seconds = time.perf_counter() - began
    return samples


async def openings(store: SqliteStore, story: Story, count: int) -> Samples:
    """Each session is begun, closed, opened again, played a turn and closed."""
    samples = Samples("sessions", GROWTH_PER_SESSION)
    began = time.perf_counter()
    for number in range(1, count + 1):
        game = new_game(store, story, f"session{number}")
        await game.session.journal.close()  # type: ignore[union-attr]
        await game.close()
        journal = store.open(f"session{number}")
        game = Game(story, journal.session, narrators=["rules"])
        await game.prompt("look around")
        await journal.close()
        await game.close()
        if number % max(1, count // 100) == 0:
            samples.take(number)
    samples.seconds = time.perf_counter() - began
    return samples


# --- the picture ---------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, TOP = 340, 150, 56, 34


def draw(found: Sequence[Samples]) -> str:
    """Return an SVG: for each soak the memory and the descriptors over what was done."""
    parts = []
    for row, samples in enumerate(found):
        mebibytes = [one / 2**20 for one in samples.memory]
        for column, (what, values) in enumerate(
            (("memory, MiB", mebibytes), ("open descriptors", [float(one) for one in samples.descriptors]))
        ):
            parts.append(_chart(f"{what} over {samples.unit}", samples.done, values, column, row))
    width, height = 2 * (WIDTH + LEFT) + 24, len(found) * (HEIGHT + 76) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" fill="#444"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _chart(title: str, done: Sequence[int], values: Sequence[float], column: int, row: int) -> str:
    top = max(values) * 1.15
    x0, y0 = LEFT + column * (WIDTH + LEFT + 12), TOP + row * (HEIGHT + 76)
    points = " ".join(
        f"{x0 + WIDTH * at / done[-1]:.1f},{y0 + HEIGHT * (1 - value / top):.1f}"
        for at, value in zip(done, values, strict=True)
    )
    lines = [
        f'<text x="{x0}" y="{y0 - 12}" font-weight="bold">{title}</text>',
        f'<path d="M{x0} {y0}v{HEIGHT}h{WIDTH}" fill="none" stroke="#888"/>',
        f'<polyline points="{points}" fill="none" stroke="#2457a6" stroke-width="2"/>',
    ]
    for part in (0.0, 0.5, 1.0):
        y, x = y0 + HEIGHT * (1 - part), x0 + WIDTH * part
        lines.append(f'<text x="{x0 - 8}" y="{y + 4:.0f}" text-anchor="end">{top * part:.0f}</text>')
        lines.append(
            f'<text x="{x:.0f}" y="{y0 + HEIGHT + 18}" text-anchor="middle">{done[-1] * part:,.0f}</text>'
        )
    return "".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--turns", type=int, default=10_000)
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--picture", type=Path)
    chosen = options.parse_args()
    spare_the_collector()  # as every command does
    story = open_story("torch")
    with tempfile.TemporaryDirectory(prefix="narratoria-soak-") as folder:
        os.environ["NARRATORIA_HOME"] = folder
        store = SqliteStore(Path(folder) / "sessions.db")
        found = [
            asyncio.run(turns(store, story, chosen.turns)),
            asyncio.run(openings(store, story, chosen.sessions)),
        ]
        store.close()
    for samples in found:
        print(json.dumps(samples.summary()))
    if chosen.picture is not None:
        chosen.picture.write_text(draw(found))
    return 0 if all(one.flat for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
