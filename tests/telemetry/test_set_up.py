"""A program that has loaded the SDK pays for spans only once it has set up a provider."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk")

PROGRAM = """
import asyncio
from dataclasses import dataclass

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, telemetry, tool
from narratoria.telemetry.provider import live

made = []

@dataclass(frozen=True)
class Add:
    a: int

@tool(description="Add one.")
async def add(params: Add, *, context: ToolContext) -> ToolResult[int]:
    made.append(trace.get_current_span().is_recording())
    return ToolResult.ok(params.a + 1)

async def main():
    registry = ToolRegistry([add])
    assert (await registry.execute("add", {"a": 1}, session=Session())).value == 2
    assert not live() and telemetry.turn("tale", "s", 1) is telemetry.OFF
    assert telemetry.api.cache_info().currsize == 0  # nothing was made of the SDK
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    assert live()
    await registry.execute("add", {"a": 1}, session=Session())
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    await registry.execute("add", {"a": 1}, session=Session())
    assert [one.name for one in spans.get_finished_spans()] == ["execute_tool add"]
    (point,) = (
        point
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    )
    assert point.count == 2, point

asyncio.run(main())
assert made == [False, False, True], made
print("as it should be")
"""


def test_calls_have_spans_and_metrics_from_the_moment_a_provider_is_set_up() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "as it should be\n", ran.stderr
