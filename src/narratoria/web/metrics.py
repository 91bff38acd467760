"""Figures of a server in the text format of Prometheus."""

from __future__ import annotations

import bisect
import resource
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from narratoria.kinds.shares.shares import Shares

BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
COUNTERS: Final = {
    "turns": "Turns that ended here.",
    "takeovers": "Sessions taken over from servers that were gone.",
    "leases_lost": "Sessions that another server took over from this one.",
    "commands_sent": "Requests handed to the server that plays their session.",
    "commands_done": "Requests of other servers that were answered here.",
    "database_errors": "Looks at the database that failed.",
}
GAUGES: Final = {
    "sessions_open": "Sessions that are played here.",
    "sessions_followed": "Sessions of other servers that are watched here.",
    "turns_running": "Turns that run now.",
    "peers": "Other servers that are alive.",
    "ready": "1 if this server takes requests.",
    "memory_bytes": "Resident memory of the process.",
    "open_files": "Open file descriptors.",
    "calls_running": "Processes of tools that have a place now.",
    "calls_waiting": "Calls that wait for a place.",
}
OF_SHARES: Final = {
    "turns_refused": "Turns refused because a quota was used up.",
    "turns_shed": "Turns refused because there was too much to do.",
    "calls_refused": "Calls that failed because a quota was used up, or because no place came free.",
    "tool_cpu_seconds": "CPU time of the processes of tools.",
}


class Metrics:
    """Counters, and how long turns take."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def add(self, name: str) -> None:
        self._counts[name] += 1

    def turn(self, seconds: float) -> None:
        self._counts["turns"] += 1
        self._buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def render(self, gauges: Mapping[str, float]) -> str:
        lines: list[str] = []
        for name, text in COUNTERS.items():
            lines += _described(f"narratoria_{name}_total", "counter", text)
            lines.append(f"narratoria_{name}_total {self._counts[name]}")
        for name, text in OF_SHARES.items():
            lines += _described(f"narratoria_{name}_total", "counter", text)
            lines.append(f"narratoria_{name}_total {gauges[name]:g}")
        for name, text in GAUGES.items():
            lines += _described(f"narratoria_{name}", "gauge", text)
            lines.append(f"narratoria_{name} {gauges[name]:g}")
        lines += _described("narratoria_turn_seconds", "histogram", "How long turns take.")
        reached = 0
        for bound, count in zip((*BUCKETS, float("inf")), self._buckets, strict=True):
            reached += count
            label = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'narratoria_turn_seconds_bucket{{le="{label}"}} {reached}')
        lines += [
            f"narratoria_turn_seconds_sum {self._seconds:g}",
            f"narratoria_turn_seconds_count {reached}",
        ]
        return "\n".join(lines) + "\n"


def of_the_process() -> dict[str, float]:
    """Return the memory and the open files of this process."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory = float(pages * resource.getpagesize())
        files = float(sum(1 for _ in Path("/proc/self/fd").iterdir()))
    except OSError:  # no Linux: the most it ever had
        memory, files = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024), 0.0
    return {"memory_bytes": memory, "open_files": files}


def of_shares(shares: Shares) -> dict[str, float]:
    """Return the figures of the shares of a server."""
    return {
        "calls_running": shares.places.holding + shares.elsewhere.holding,
        "calls_waiting": shares.waiting,
        "turns_refused": shares.refused_turns,
        "turns_shed": shares.shed_turns,
        "calls_refused": shares.refused_calls,
        "tool_cpu_seconds": shares.cpu_seconds,
    }


def _described(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
