"""The command line sends spans and metrics where the `OTEL_*` variables say: to a collector over real HTTP."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAN = EXAMPLES / "plans" / "torch-and-door.json"


def narratoria(home: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACE"))}
    env |= {"NARRATORIA_HOME": str(home), "NO_COLOR": "1", **variables}
    command = [sys.executable, "-m", "narratoria", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env, cwd=home)


def run_plan(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return narratoria(home, "run", PLAN, "--tools", EXAMPLES, "--json", **variables)


class Collector(ThreadingHTTPServer):
    """Takes what exporters send, and says so."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.taken: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def bodies(self, path: str) -> list[bytes]:
        return [body for where, body in self.taken if where == path]


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert isinstance(self.server, Collector)
        self.server.taken.append((self.path, body))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_collector_gets_one_trace_and_the_metrics_of_a_command(collector, tmp_path):
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    ran = run_plan(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["success"] is True and ran.stderr == ""
    sent = [
        (one, span)
        for body in collector.bodies("/v1/traces")
        for one in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in one.scope_spans
        for span in scope.spans
    ]
    spans = {span.name: span for _, span in sent}
    assert {*spans} == {
        "invoke_workflow", "execute_tool torch-lighter", "torch-lighter", "execute_tool door-examiner",
        "door-examiner",
    }  # fmt: skip
    assert len({span.trace_id for span in spans.values()}) == 1
    assert spans["torch-lighter"].parent_span_id == spans["execute_tool torch-lighter"].span_id
    told = {one.key: one.value.string_value for one in sent[0][0].resource.attributes}
    assert told["service.name"] == "narratoria"
    metrics = {
        metric.name
        for body in collector.bodies("/v1/metrics")
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in one.scope_metrics
        for metric in scope.metrics
    }
    assert metrics == {"gen_ai.execute_tool.duration", "gen_ai.workflow.duration"}


def test_a_collector_gets_a_turn_of_the_page_in_the_trace_of_its_request(collector, tmp_path):
    """`narratoria play`, a prompt over HTTP, and the spans down to the process of a tool."""
    httpx = pytest.importorskip("httpx")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    env = {**os.environ, "NARRATORIA_HOME": str(tmp_path), "OTEL_BSP_SCHEDULE_DELAY": "50"}
    env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_METRICS_EXPORTER": "none"}
    command = [sys.executable, "-m", "narratoria", "play", "torch", "--narrator", "rules"]
    command += ["--no-browser", "--port", "0"]

    def spans() -> dict[str, Any]:
        """Those of the trace of the request; covers are drawn at the same time, by tools too."""
        sent = [
            span
            for body in collector.bodies("/v1/traces")
            for one in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in one.scope_spans
            for span in scope.spans
        ]
        traces = {span.trace_id for span in sent if span.name == "POST /sessions/{id}/prompt"}
        return {span.name: span for span in sent if span.trace_id in traces}

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path) as server:
        try:
            address = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
            token = parse_qs(urlsplit(address).query)["token"][0]
            base = f"http://{urlsplit(address).netloc}"
            with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}) as client:
                session = client.post("/sessions", json={"story": "torch"}).json()["id"]
                client.post(f"/sessions/{session}/prompt", json={"prompt": "light the torch"})
                until = time.monotonic() + 30
                while "invoke_agent torch" not in spans() and time.monotonic() < until:
                    time.sleep(0.05)
        finally:
            server.terminate()
    found = spans()
    ways = [
        "POST /sessions/{id}/prompt",
        "invoke_agent torch",
        "invoke_workflow",
        "execute_tool torch-lighter",
    ]
    for above, below in pairwise([*ways, "torch-lighter"]):
        assert found[below].parent_span_id == found[above].span_id, (above, below, [*found])


def test_a_collector_that_is_not_there_costs_one_line_and_seconds(tmp_path):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    begun = time.monotonic()
    ran = run_plan(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert ran.returncode == 0 and json.loads(ran.stdout)["success"] is True
    assert len(ran.stderr.splitlines()) == 1 and ran.stderr.startswith("narratoria: telemetry: ")
    assert time.monotonic() - begun < 20


def test_the_console_exporter_writes_to_standard_error_and_takes_up_the_callers_trace(tmp_path):
    trace = "0af7651916cd43dd8448eb211c80319c"
    ran = run_plan(tmp_path, OTEL_TRACES_EXPORTER="console", TRACEPARENT=f"00-{trace}-b7ad6b7169203331-01")
    assert ran.returncode == 0 and json.loads(ran.stdout)["success"] is True
    assert '"name": "execute_tool torch-lighter"' in ran.stderr
    assert ran.stderr.count(f'"trace_id": "0x{trace}"') == 5


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_SERVICE_NAME": "tales"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_loaded_unless_something_is_to_be_sent(tmp_path, variables):
    program = (
        "import sys, atexit; from narratoria.cli import main\n"
        "atexit.register(lambda: print('opentelemetry.sdk' in sys.modules, file=sys.stderr))\n"
        "main(['--version'])"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | variables
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    assert ran.stderr == "False\n"


def test_an_unknown_exporter_and_a_missing_package_are_told_in_one_line(tmp_path):
    ran = narratoria(tmp_path, "--version", OTEL_TRACES_EXPORTER="zipkin")
    assert ran.returncode == 0
    assert (
        ran.stderr
        == "narratoria: telemetry: OTEL_TRACES_EXPORTER=zipkin: unknown here; known: otlp, console, none\n"
    )
    program = "import sys; sys.modules['opentelemetry.sdk'] = None\n"
    program += "from narratoria.cli import main; main(['--version'])"
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert "pip install 'narratoria[otel]'" in line and "unset OTEL_EXPORTER_OTLP_ENDPOINT" in line


def test_every_logger_of_ours_is_on_the_page():
    """Its name, and that of every attribute and metric."""
    from narratoria.telemetry.names import ATTRIBUTES, HISTOGRAMS, RETRIES

    root = Path(__file__).parents[2]
    page = (root / "docs" / "telemetry.md").read_text(encoding="utf-8")
    package = Path(sys.modules["narratoria"].__file__ or "").parent
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    loggers = {name for text in sources for name in re.findall(r'getLogger\("([a-z_.]+)"\)', text)}
    loggers.discard("ray")  # Ray's own, told to be quiet
    assert "narratoria" in loggers
    names = {*loggers, *ATTRIBUTES.values(), *HISTOGRAMS, RETRIES}
    assert sorted(name for name in names if f"`{name}`" not in page) == []
