"""Chaos: games, faults and files drawn by lot, until something breaks. The same seed draws the same.

    python scripts/chaos.py                              # everything, as `make chaos` does
    python scripts/chaos.py functions --seeds 10000      # games whose tools are functions that misbehave
    python scripts/chaos.py processes --seeds 300        # games whose tools are processes that misbehave
    python scripts/chaos.py faults --seeds 200           # the runtime itself killed, stopped, out of disk ...
    python scripts/chaos.py servers --seeds 40           # a server whose clients go away, killed itself
    python scripts/chaos.py fuzz --cases 1000000         # files and streams from outside, damaged
    python scripts/chaos.py functions --first 17 --seeds 1    # one seed again

After each game: its state is that of a model, nothing is left running or open, the store verifies, and no call that
was completed was made again. A failing seed prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.chaos import faults, fuzzing, servers  # noqa: E402
from tests.chaos.games import Broken, play_functions  # noqa: E402
from tests.chaos.leaks import Watch, memory  # noqa: E402
from tests.chaos.processes import play_processes  # noqa: E402
from tests.chaos.scenarios import PROCESS_ENDINGS, Lot  # noqa: E402

from narratoria.store.sqlite import SqliteStore  # noqa: E402

PATIENCE: Final = (
    20.0  # a game that failed is played again with limits that many times longer: load is no fault
)
GAMES: Final = 50  # on one store
SAMPLES: Final = 20  # of memory, at least, before growth is judged
GROWTH: Final = 16 * 2**20  # bytes from the second quarter of a long run to its last


class SharedStore:
    """A store for the games of many seeds: to make one takes longer than to play a game."""

    def __init__(self) -> None:
        self.used = 0
        self._stack = contextlib.ExitStack()

    def get(self) -> SqliteStore:
        if self.used % GAMES == 0:
            self.close()
            folder = tempfile.TemporaryDirectory(prefix="narratoria-chaos-", dir=memory_folder())
            self.store = SqliteStore(Path(self._stack.enter_context(folder)) / "sessions.db")
            self._stack.callback(self.store.close)
        self.used += 1
        return self.store

    def close(self) -> None:
        if self.used and (faults := self.store.table_faults()):
            raise Broken(f"faults of the tables: {faults}")
        self._stack.close()


SHARED: Final = SharedStore()


def play_function_seed(seed: int, folder: Path, patience: float) -> None:
    store = SHARED.get()
    asyncio.run(play_functions(Lot(seed).scenario(), store, f"seed{seed}-{patience:g}", patience))


def play_process_seed(seed: int, folder: Path, patience: float) -> None:
    scenario = Lot(seed, PROCESS_ENDINGS, "process").scenario(moves=5, calls=4)
    asyncio.run(play_processes(scenario, folder, patience))


KINDS: Final[dict[str, tuple[int, Callable[[int, Path, float], None]]]] = {
    "functions": (10_000, play_function_seed),
    "processes": (300, play_process_seed),
    "faults": (200, faults.play_seed),
    "servers": (40, servers.play_seed),
}


def memory_folder() -> str | None:
    """A folder without a disk behind it, where there is one: chaos writes much, and keeps nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def play_seed(kind: str, seed: int) -> str | None:
    """Play one seed; return what broke, if it also breaks with more patience."""
    broken = None
    for patience in (1.0, PATIENCE):
        with tempfile.TemporaryDirectory(prefix="narratoria-chaos-", dir=memory_folder()) as folder:
            try:
                KINDS[kind][1](seed, Path(folder), patience)
            except Exception:  # whatever it is, it is what this is looking for
                broken = traceback.format_exc()
            else:
                return None
    return broken


def play_all(kind: str, first: int, seeds: int, step: int = 1) -> int:
    """Play seeds one after the other; return how many broke something."""
    broken, watch = 0, None
    held: list[int] = []
    started = time.monotonic()
    for count, seed in enumerate(range(first, first + seeds, step), 1):
        fault = play_seed(kind, seed)
        if fault is None and watch is not None and (left := watch.faults()):
            fault, watch = f"left over: {left}\n", None
        if fault is not None:
            broken += 1
            again = f"python scripts/chaos.py {kind} --first {seed} --seeds 1"
            print(f"{kind} seed {seed} is broken:\n{fault}to repeat it: {again}", flush=True)
        watch = watch or Watch()
        if count % max(50, seeds // step // 100) == 0:
            held.append(memory())
            print(f"{kind}: {count} of {seeds // step} seeds, {broken} broken, "
                  f"{time.monotonic() - started:.0f} s, {held[-1] / 2**20:.0f} MiB", flush=True)  # fmt: skip
    if len(held) >= SAMPLES:
        quarter = len(held) // 4
        growth = statistics.median(held[-quarter:]) - statistics.median(held[quarter : 2 * quarter])
        if growth > GROWTH:
            broken += 1
            print(f"{kind}: memory grew by {growth / 2**20:.1f} MiB in the second half", flush=True)
    return broken


def in_parallel(kind: str, first: int, seeds: int, jobs: int) -> int:
    """Play seeds in several processes; return how many of those found something."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__, kind, "--first", str(first + one), "--seeds", str(seeds - one),
             "--step", str(jobs)]
        )
        for one in range(min(jobs, seeds))
    ]  # fmt: skip
    return sum(one.wait() != 0 for one in running)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("kind", nargs="?", choices=[*KINDS, "fuzz", "all"], default="all")
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--seeds", type=int, help="how many")
    options.add_argument("--step", type=int, default=1, help="play only every so many")
    options.add_argument("--jobs", type=int, default=1, help="processes that play at the same time")
    options.add_argument("--cases", type=int, default=1_000_000, help="of `fuzz`, in all")
    options.add_argument("--only", help="of `fuzz`, one target")
    chosen = options.parse_args()
    logging.getLogger("narratoria").setLevel(
        logging.CRITICAL
    )  # a game that goes wrong on purpose warns a lot
    broken = 0
    for kind, (usual, _) in KINDS.items():
        if chosen.kind not in (kind, "all"):
            continue
        seeds = chosen.seeds or usual
        if chosen.jobs > 1:
            broken += in_parallel(kind, chosen.first, seeds, chosen.jobs)
        else:
            broken += play_all(kind, chosen.first, seeds, chosen.step)
    if chosen.kind in ("fuzz", "all"):
        broken += fuzzing.run(chosen.cases, chosen.first, chosen.only)
    print("chaos found nothing" if not broken else f"chaos found {broken} faults", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
