"""Telemetry: what a call pays for OpenTelemetry while it is off, loaded by a library only, and on.

Each state is a process of its own, since a program that has loaded the SDK cannot forget it. Off is compared with the
same method without the line that looks for the SDK, on with the same span and measurement made by hand.
Run in a virtual environment: `python bench/bench_telemetry.py`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

from _measure import Row, report

from narratoria import Session, ToolContext, ToolExecutor, ToolRegistry, ToolResult, tool
from narratoria.run import executor

COUNT, ROUNDS = 1_000, 150
FREE = 1.02
NEARLY_FREE = 1.1  # each call looks for a provider, which may be set up at any time
STATES = ("off", "API loaded", "SDK without exporter", "SDK, sampled out", "SDK, batched")


@dataclass(frozen=True)
class Add:
    a: int
    b: int


@tool(description="Add two numbers.")
async def add(params: Add, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult.ok(params.a + params.b)


def set_up(state: str) -> None:
    if state == "off":
        return
    from opentelemetry import metrics, trace

    if state == "API loaded":
        return
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    if state == "SDK without exporter":
        return
    provider = TracerProvider(sampler=ALWAYS_OFF if state == "SDK, sampled out" else ALWAYS_ON)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))


def without_looking(runs: ToolExecutor) -> Callable[..., Awaitable[Any]]:
    """`execute` that does not look for the SDK."""
    source, looking = (
        textwrap.dedent(inspect.getsource(ToolExecutor.execute)),
        "self.around or SDK in modules",
    )
    assert looking in source
    made: dict[str, Any] = {}
    source = "from __future__ import annotations\n" + source.replace(looking, "self.around")
    exec(source, vars(executor), made)  # noqa: S102
    return MethodType(made["execute"], runs)


def by_hand(execute: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The call in a span and a histogram of the same form, as a program would make them itself."""
    from opentelemetry import metrics, trace

    tracer = trace.get_tracer("by hand")
    histogram = metrics.get_meter("by hand").create_histogram("duration", "s")

    async def call(name: str, arguments: dict[str, int], *, session: Session) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": "1:1",
            "gen_ai.tool.type": "function", "narratoria.tool.kind": "function",
        }  # fmt: skip
        begun = time.perf_counter()
        with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
            await execute(name, arguments, session=session)
            span.set_attribute("narratoria.call.attempts", 1)
            histogram.record(
                time.perf_counter() - begun, {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
            )

    return call


async def measure() -> dict[str, float]:
    """Microseconds per call, the best of many short turns: as users call it, and the references."""
    registry, session, arguments = ToolRegistry([add]), Session(), {"a": 2, "b": 3}
    bare = without_looking(registry.executor)
    contenders = {"call": registry.executor.execute, "without": bare}
    if "opentelemetry.sdk" in sys.modules:
        contenders["by hand"] = by_hand(bare)
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            begun = time.perf_counter()
            for _ in range(COUNT):
                await run("add", arguments, session=session)
            best[name] = min(best[name], (time.perf_counter() - begun) / COUNT * 1e6)
    return best


def in_a_process(state: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, state], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    if len(sys.argv) > 1:
        set_up(sys.argv[1])
        print(json.dumps(asyncio.run(measure())))
        return
    try:
        import opentelemetry.sdk  # noqa: F401
    except ImportError:
        print("skipped: opentelemetry is not installed; run: pip install 'narratoria[otel]'")
        return
    cost = {state: in_a_process(state) for state in STATES}
    off, on = cost["off"], cost["SDK, batched"]
    print(", ".join(f"{state} {found['call']:.2f} µs" for state, found in cost.items()))
    report(
        "telemetry of a two-int typed async tool",
        [
            # Free when off: the same time, but for what two runs of one thing differ by on a quiet machine.
            Row("off against a call that does not look", off["call"] / off["without"], FREE),
            Row("API loaded (as mcp does) against off", cost["API loaded"]["call"] / off["call"], FREE),
            Row(
                "SDK loaded, nothing set up", cost["SDK without exporter"]["call"] / off["call"], NEARLY_FREE
            ),
            Row("on, sampled out", cost["SDK, sampled out"]["call"] - off["call"], None, unit=" µs more"),
            Row("on, spans and metrics", on["call"] - off["call"], None, unit=" µs more"),
            Row("on, against the same by hand", on["call"] / on["by hand"], 1.15),
        ],
    )


if __name__ == "__main__":
    main()
