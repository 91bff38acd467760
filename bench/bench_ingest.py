"""Ingest: 200-byte events over a pipe, decoded and validated, against a blocking loop over the same pipe.

The first reference is the contract: a blocking read loop with the same decoder. The second shows what being
strict costs: a blocking loop with bare msgspec, which accepts duplicate keys, invalid UTF-8 and any length.
Run in a virtual environment: `python bench/bench_ingest.py [EVENTS]`. Needs a C compiler.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _measure import Row, report

from narratoria.events import ToolEvent, decode_tool_event
from narratoria.kinds.ndjson import Decoder, Limits
from narratoria.kinds.process.supervisor import run_process

WRITER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *line =
    "{\"version\":\"0\",\"type\":\"log\",\"level\":\"info\","
    "\"message\":\"the torch flickers and the door creaks; somewhere below, water drips into a well\","
    "\"fields\":{\"room\":\"cellar\",\"turn\":42,\"lit\":true,\"who\":[\"ada\",\"bo\"]}}\n";
int main(int argc, char **argv) {
    static char buffer[1 << 16];
    long count = atol(argv[1]);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (long n = 0; n < count; n++) fputs(line, stdout);
    puts("{\"version\":\"0\",\"type\":\"done\",\"ok\":true}");
    return 0;
}
"""
LIMITS = Limits(max_events=100_000_000, max_bytes=1 << 40, max_values=1 << 40)
READ = 1 << 16


def compile_writer(folder: Path) -> Path:
    source, writer = folder / "writer.c", folder / "writer"
    source.write_text(WRITER)
    subprocess.run(["cc", "-O2", "-o", writer, source], check=True)
    return writer


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def take(self, events: list[ToolEvent]) -> None:
        self.count += len(events)


def supervised(command: list[str], expected: int) -> None:
    counter = Counter()
    outcome = asyncio.run(
        run_process(command, b"", tool="writer", on_events=counter.take, timeout=300, limits=LIMITS)
    )
    assert outcome.failure is None and counter.count == expected, (outcome, counter.count)


def blocking(command: list[str], expected: int) -> None:
    counter, decoder = Counter(), Decoder("writer", LIMITS)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        fd = process.stdout.fileno()
        while data := os.read(fd, READ):
            counter.take(decoder.feed(data))
        counter.take(decoder.close())
    assert counter.count == expected


def bare(command: list[str], expected: int) -> None:
    counter = Counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        fd, rest = process.stdout.fileno(), b""
        while data := os.read(fd, READ):
            *lines, rest = (rest + data).split(b"\n")
            counter.take([decode_tool_event(line) for line in lines])
    assert counter.count == expected


def own_cpu(run: Callable[[], None]) -> float:
    """CPU of this process alone: the writer is the same for all."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peak_growth(writer: Path, events: int) -> float:
    """MiB by which the peak memory of taking `events` exceeds that of taking a tenth of them."""
    peaks = []
    for count in (events // 10, events):
        program = (
            "import resource, sys; sys.path.insert(0, sys.argv[1]); import bench_ingest as b\n"
            "count = int(sys.argv[3]); b.supervised([sys.argv[2], sys.argv[3]], count + 1)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        command = [sys.executable, "-c", program, str(Path(__file__).parent), str(writer), str(count)]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True).stdout))
    return (peaks[1] - peaks[0]) / 1024


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        writer = compile_writer(Path(folder))
        command = [str(writer), str(events)]
        samples: dict[str, list[float]] = {"ours": [], "same decoder": [], "bare msgspec": []}
        for number in range(6):
            for name, run in zip(samples, (supervised, blocking, bare), strict=True):
                cost = own_cpu(partial(run, command, events + 1))
                if number:
                    samples[name].append(cost)
        growth = peak_growth(writer, events * 2)
    cpu = {name: statistics.median(costs) for name, costs in samples.items()}
    report(
        f"ingest: {events:,} events of 200 bytes (µs of CPU per event: "
        + ", ".join(f"{name} {seconds / events * 1e6:.2f}" for name, seconds in cpu.items())
        + ")",
        [
            Row("CPU against a blocking loop, same decoder", cpu["ours"] / cpu["same decoder"], 1.2),
            Row("CPU against a blocking loop, bare msgspec", cpu["ours"] / cpu["bare msgspec"], None),
            Row("peak memory, ten times the stream", growth, 8, unit=" MiB"),
        ],
    )


if __name__ == "__main__":
    main()
