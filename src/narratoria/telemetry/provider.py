"""The OpenTelemetry of the program: whether it collects anything, and the parts of it that are used here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from sys import modules
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from narratoria.telemetry.names import HISTOGRAMS, RETRIES

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import SpanKind, Tracer

SDK: Final = "opentelemetry.sdk"
"""The module that a program loads when it uses OpenTelemetry. Its API alone, which libraries load, makes no span."""

_TRACES: Final = "_TRACER_PROVIDER"
_METRICS: Final = "_METER_PROVIDER"
_set_up = False
_holders: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None


def on() -> bool:
    """Tell if the program uses OpenTelemetry."""
    return SDK in modules


def live() -> bool:
    """Tell if anybody collects spans or metrics: a provider is set up. Once it is, it stays."""
    global _set_up
    if _set_up:
        return True
    if SDK not in modules:
        return False
    traces, metrics = _holders or _look()
    if traces[_TRACES] is None and metrics[_METRICS] is None:
        return False
    _set_up = True
    return True


def _look() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Find where the providers are held: every call looks there, and the functions that return them are too slow for
    that. Variables of the environment that name providers are heeded first.
    """
    global _holders
    from opentelemetry import metrics, trace

    trace.get_tracer_provider()
    metrics.get_meter_provider()
    holders = trace.get_tracer_provider.__globals__, metrics.get_meter_provider.__globals__
    if _TRACES not in holders[0] or _METRICS not in holders[1]:  # another version: take them as set up
        holders = {_TRACES: True}, {_METRICS: True}
    _holders = holders
    return holders


class Api(NamedTuple):
    """The parts of OpenTelemetry in use, imported once."""

    tracer: Tracer
    histograms: Mapping[str, Histogram]
    retries: Counter
    attach: Any
    detach: Any
    with_span: Any
    current: Any
    inject: Any
    extract: Any
    internal: SpanKind
    client: SpanKind
    server: SpanKind
    wrong: Any


@cache
def api() -> Api:
    """Return the parts of OpenTelemetry in use."""
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    from narratoria import __version__

    meter = metrics.get_meter("narratoria", __version__)
    return Api(
        tracer=trace.get_tracer("narratoria", __version__),
        histograms={
            name: meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=[float(one) for one in bounds]
            )
            for name, (unit, description, bounds) in HISTOGRAMS.items()
        },
        retries=meter.create_counter(RETRIES, "{retry}", "Attempts of calls that were tried again."),
        attach=context.attach,
        detach=context.detach,
        with_span=trace.set_span_in_context,
        current=trace.get_current_span,
        inject=TraceContextTextMapPropagator().inject,  # without baggage: it is not for strangers
        extract=propagate.extract,
        internal=trace.SpanKind.INTERNAL,
        client=trace.SpanKind.CLIENT,
        server=trace.SpanKind.SERVER,
        wrong=trace.StatusCode.ERROR,
    )
