"""Prefect: a flow of no-op tasks on its own temporary server, in CPU time without that of the server.

Arguments: the kind of graph, the number of tasks.
"""

import os
import sys
import tempfile

HOME = tempfile.TemporaryDirectory()
os.environ.update(
    PREFECT_HOME=HOME.name,
    PREFECT_LOGGING_LEVEL="CRITICAL",
    PREFECT_SERVER_LOGGING_LEVEL="CRITICAL",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="120",
    DO_NOT_TRACK="1",
)
os.environ.pop("PREFECT_API_URL", None)

import time  # noqa: E402 - the settings above are read when prefect is imported

from graphs import make_graph  # noqa: E402
from prefect import flow, task  # noqa: E402


@task
def nothing() -> None:
    return None


@flow
def run(kind: str, count: int) -> None:
    futures = {}
    for node, dependencies in make_graph(
        kind, count
    ).items():  # the graphs list a node after those it waits for
        futures[node] = nothing.submit(wait_for=[futures[one] for one in dependencies])
    for future in futures.values():
        future.result()


kind, count = sys.argv[1], int(sys.argv[2])
run(kind, 2)  # starts the server
begun = time.process_time()
run(kind, count)
print((time.process_time() - begun) / count * 1e6)
