"""OpenTelemetry for the command line, set up from the standard `OTEL_*` variables.

A program that embeds the runtime sets up its own SDK; nothing of this is for it.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final

import click

from narratoria.extras import install_command

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
SIGNALS: Final = ("TRACES", "METRICS")
EXPORTERS: Final = ("otlp", "console", "none")
LAST_MOMENT: Final = 3.0  # seconds in which the rest is sent when the command ends


def wanted(env: Mapping[str, str]) -> dict[str, list[str]]:
    """Signal → its exporters: those its variable names, or `otlp` if only an address is given."""
    found: dict[str, list[str]] = {}
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return found
    for signal in SIGNALS:
        named = [one.strip() for one in env.get(f"OTEL_{signal}_EXPORTER", "").lower().split(",")]
        named = [one for one in named if one]
        if not named and (env.get(ENDPOINT) or env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")):
            named = ["otlp"]
        if named := [one for one in named if one != "none"]:
            found[signal] = named
    return found


def set_up(env: Mapping[str, str] = os.environ) -> None:
    """Send spans and metrics where the environment says. What cannot be used is told on standard error, once, and
    the command runs without it: the variables are often set for every program of a machine.
    """
    exporters = wanted(env)
    if not exporters:
        return
    for signal, names in exporters.items():
        for name in (one for one in names if one not in EXPORTERS):
            _complain(f"OTEL_{signal}_EXPORTER={name}: unknown here; known: {', '.join(EXPORTERS)}")
    try:
        _start(exporters, env)
    except ImportError as error:
        of_grpc = ".otlp.proto.grpc" in (error.name or "") and find_spec("opentelemetry.sdk") is not None
        command = "pip install opentelemetry-exporter-otlp-proto-grpc" if of_grpc else install_command("otel")
        _complain(
            f"{error.name or error} is not installed, so nothing is sent; run: {command}, or unset "
            f"{', '.join(_variables(env))}"
        )


def _start(exporters: Mapping[str, list[str]], env: Mapping[str, str]) -> None:
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    spans = [
        (name, _exporter("TRACES", name, env)) for name in exporters.get("TRACES", ()) if name in EXPORTERS
    ]
    readers: list[MetricReader] = [
        PeriodicExportingMetricReader(_exporter("METRICS", name, env))
        for name in exporters.get("METRICS", ())
        if name in EXPORTERS
    ]
    _quieten()
    named = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "narratoria"})
    endings: list[Callable[[], object]] = []
    if spans:
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        for name, exporter in spans:
            tracing.add_span_processor(
                SimpleSpanProcessor(exporter) if name == "console" else BatchSpanProcessor(exporter)
            )
        trace.set_tracer_provider(tracing)
        endings.append(tracing.shutdown)
    if readers:
        measuring = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        metrics.set_meter_provider(measuring)
        endings.append(measuring.shutdown)
    atexit.register(_end, endings)
    # What started us may have a trace of its own, and hand it on as we do to tools.
    context.attach(propagate.extract({name.lower(): env[name] for name in _CARRIED if name in env}))


_CARRIED: Final = ("TRACEPARENT", "TRACESTATE")


def _exporter(signal: str, name: str, env: Mapping[str, str]) -> Any:
    kind, short = ("Span", "trace") if signal == "TRACES" else ("Metric", "metric")
    if name == "console":
        # Standard output belongs to the command: its JSON, or a protocol.
        module = importlib.import_module(
            f"opentelemetry.sdk.{'trace' if kind == 'Span' else 'metrics'}.export"
        )
        return getattr(module, f"Console{kind}Exporter")(out=sys.stderr)
    protocol = env.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    way = "grpc" if protocol.strip().lower() == "grpc" else "http"
    module = importlib.import_module(f"opentelemetry.exporter.otlp.proto.{way}.{short}_exporter")
    return getattr(module, f"OTLP{kind}Exporter")()


def _end(endings: list[Callable[[], object]]) -> None:
    """Send the rest, but let nobody wait long for a collector that does not answer."""
    running = [threading.Thread(target=one, daemon=True) for one in endings]
    for one in running:
        one.start()
    until = time.monotonic() + LAST_MOMENT
    for one in running:
        one.join(max(0.0, until - time.monotonic()))


class _Once(logging.Handler):
    """Report the first problem of the exporters in one line. They repeat it at every attempt."""

    told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.told:
            self.told = True
            _complain(" ".join(record.getMessage().split())[:300])


def _quieten() -> None:
    theirs = logging.getLogger("opentelemetry")
    theirs.addHandler(_Once(logging.WARNING))
    theirs.propagate = False


def _variables(env: Mapping[str, str]) -> list[str]:
    names = [ENDPOINT, *(f"OTEL_{one}_EXPORTER" for one in SIGNALS)]
    names += [f"OTEL_EXPORTER_OTLP_{one}_ENDPOINT" for one in SIGNALS]
    return [name for name in names if env.get(name)]


def _complain(text: str) -> None:
    click.echo(f"narratoria: telemetry: {text}", err=True)
