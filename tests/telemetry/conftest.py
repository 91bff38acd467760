"""The OpenTelemetry SDK, set up once for the process as a host program does, and a look at what it was given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from narratoria import telemetry

DELTA = {Counter: AggregationTemporality.DELTA, Histogram: AggregationTemporality.DELTA}


class Seen:
    """What reached the exporters since the test began."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader(preferred_temporality=DELTA)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider([self.reader]))

    def forget(self) -> None:
        self.exporter.clear()
        self.reader.get_metrics_data()

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def parent(self, name: str) -> str | None:
        """The name of a span's parent."""
        above = self[name].parent
        if above is None:
            return None
        return next(
            (one.name for one in self.spans if one.context.span_id == above.span_id), "somewhere else"
        )

    def points(self) -> dict[str, list[tuple[dict[str, object], float]]]:
        """Metric → its attributes and its count, or the value of a counter. Can be asked once."""
        found: dict[str, list[tuple[dict[str, object], float]]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
                found[metric.name] = [
                    (dict(point.attributes), getattr(point, "count", None) or point.value)
                    for point in metric.data.data_points
                ]
        return found


@pytest.fixture(scope="session")
def sdk() -> Seen:
    return Seen()


@pytest.fixture
def seen(sdk: Seen) -> Iterator[Seen]:
    telemetry.capture_content(False)
    sdk.forget()
    yield sdk
    telemetry.capture_content(None)
