"""Tools on a real Ray of several nodes, one of which is killed; and a command that is killed with its Ray."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kinds.remote.conftest import Field
from tests.marked_processes import MarkedProcesses, eventually

from narratoria.events import CallEmitted, CallRetrying, CallStarted, Log
from narratoria.kinds.remote.ray_engine import RayEngine
from narratoria.tools.node_resources import Resources

pytestmark = pytest.mark.slow

DONE = """echo '{"version":"0","type":"done","ok":true,"summary":"fine"}'\n"""


@pytest.fixture(scope="module")
def cluster(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three nodes on loopback: a head that runs no tool, and two that have a place each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", os.environ.get("RAY_AUTH_TOKEN") or os.urandom(32).hex())
        folder = Path(f"/tmp/nrt-{os.getpid()}")  # the path of a socket must be short
        patch.setenv("RAY_TMPDIR", str(folder))
        from ray.cluster_utils import Cluster

        common = {"include_dashboard": False, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1, resources={"easel": 1}, **common)
            yield cluster
        finally:
            cluster.shutdown()
            subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.fixture(scope="module")
def engine(cluster: Any) -> Iterator[RayEngine]:
    engine = RayEngine(cluster.address)
    engine.start()
    try:
        yield engine
    finally:
        engine.close()


def raylet_of(worker: int) -> int:
    return int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])


async def test_a_call_on_a_killed_node_runs_again_on_another(field: Field, cluster: Any) -> None:
    tool = field.tool(
        """(setsid sleep 300 </dev/null >/dev/null 2>&1 &)
        echo '{"version":"0","type":"state_patch","patch":{"half":true}}'
        echo '{"version":"0","type":"log","level":"info","message":"'$PPID'"}'
        if [ ! -e second ]; then touch second; sleep 300; fi
        """
        + DONE,
        cwd=field.folder,
    )
    tool.resources = Resources(custom={"easel": 1})
    running = asyncio.create_task(field.call(tool))
    while not (heard := [one.event for one in field.recorder.of(CallEmitted) if isinstance(one.event, Log)]):
        await asyncio.sleep(0.02)
    raylet = raylet_of(int(heard[0].message))
    lost = next(
        node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid == raylet
    )
    await asyncio.to_thread(cluster.remove_node, lost, False)
    result = await running

    assert result.success, result
    started = field.recorder.of(CallStarted)
    assert [one.attempt for one in started] == [1, 2]
    assert len({one.call for one in started}) == 1
    assert [one.error_code for one in field.recorder.of(CallRetrying)] == ["NODE_LOST"]
    assert field.leaves_nothing()


async def test_a_call_that_no_node_can_run_says_what_it_asked_for(field: Field) -> None:
    tool = field.tool(DONE)
    tool.resources = Resources(gpu=8)
    result = await field.call(tool, timeout=0.1)
    assert result.failure is not None
    assert result.failure.code == "TIMEOUT"
    assert "none may have cpu 1, gpu 8 free" in result.failure.message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_takes_its_ray_and_its_tools_with_it(number: int, tmp_path: Path) -> None:
    marked = MarkedProcesses(tmp_path)
    tool = tmp_path / "tool.sh"
    tool.write_text(
        "#!/bin/bash\ntrap '' TERM\n(setsid sleep 300 </dev/null >/dev/null 2>&1 &)\n"
        """echo '{"version":"0","type":"log","level":"info","message":"began"}'; sleep 300"""
    )
    tool.chmod(0o755)
    command = [sys.executable, "-m", "narratoria", "call", str(tool), "--engine", "ray", "--events"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, env=marked.env)
    assert running.stdout is not None
    assert msgspec.json.decode(running.stdout.readline())["message"] == "began"
    running.send_signal(number)
    assert running.wait(30) == (-number if number == signal.SIGKILL else 128 + number)
    running.stdout.close()
    assert marked.leaves_nothing()
    assert eventually(lambda: not marked.strays())
