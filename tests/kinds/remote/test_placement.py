"""Which tools run elsewhere: by their manifest, their story, the command, or the program. No Ray is started here."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from narratoria.cli.call import call
from narratoria.errors import NarratoriaError, StoryInvalid, ToolValidationError
from narratoria.events import Done
from narratoria.kinds.compose import sequence
from narratoria.kinds.load import load_tool
from narratoria.kinds.placement import FunctionJob, Job, Listener, choose, engine_for
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.kinds.remote.ray_engine import RayEngine
from narratoria.kinds.remote.remote import remote
from narratoria.play.game import story_registry
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.node_resources import Resources
from narratoria.tools.tool import Tool


def painter(folder: Path, **manifest: Any) -> Tool[Any, Any]:
    folder.mkdir(exist_ok=True)
    file = folder / "painter"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    described = {"name": "painter", "description": "Paints.", **manifest}
    (folder / "painter.tool.json").write_text(json.dumps(described))
    return load_tool(file)


def test_a_tool_that_asks_for_resources_runs_on_the_cluster_unless_told_otherwise(tmp_path: Path) -> None:
    plain = painter(tmp_path / "plain")
    asking = painter(tmp_path / "asking", resources={"gpu": 1, "custom": {"easel": 2}})
    assert asking.resources == Resources(cpu=1, gpu=1, custom={"easel": 2})
    take_back = choose(None)
    try:
        assert engine_for(plain) is None
        assert isinstance(engine_for(asking), RayEngine)
    finally:
        take_back()
    take_back = choose("local")
    try:
        assert engine_for(asking) is None
    finally:
        take_back()


def test_a_manifest_with_a_resource_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolValidationError, match="resources"):
        painter(tmp_path, resources={"gpus": 1})


def test_a_story_says_what_its_tools_need(tmp_path: Path) -> None:
    painter(tmp_path / "tools", resources={"cpu": 4})
    told = 'title = "A"\npremise = "B"\nnarrator = ["template"]\n[opening]\nnarrative = "C"\n'
    (tmp_path / "story.toml").write_text(told + "[resources.painter]\ngpu = 1\n")
    tool = story_registry(Story.load(tmp_path)).get("painter")
    assert tool is not None
    assert tool.resources == Resources(gpu=1)

    for wrong, said in (
        ("[resources.painted]\ngpu = 1", "did you mean"),
        ("[resources.painter]\ngpu = 'one'", "gpu"),
    ):
        (tmp_path / "story.toml").write_text(told + wrong)
        with pytest.raises(StoryInvalid, match=said):
            Story.load(tmp_path)


def test_remote_places_a_copy_and_refuses_a_composition(tmp_path: Path) -> None:
    tool, engine = painter(tmp_path), RayEngine()
    assert remote(tool, engine).engine is engine
    assert tool.engine is None
    with pytest.raises(ToolValidationError, match="place its parts"):
        remote(sequence([tool], name="both"), engine)


def test_without_the_extra_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = painter(tmp_path, resources={})
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NarratoriaError, match=r"pip install 'narratoria\[ray\]'"):
        engine_for(tool)
    refused = CliRunner().invoke(call, [str(tmp_path / "painter"), "--engine", "ray"])
    assert "narratoria[ray]" in str(refused.exception or refused.output)
    confused = CliRunner().invoke(call, [str(tmp_path / "painter"), "--engine", "local", "--ray", "auto"])
    assert "--engine local uses none" in confused.output


class SlowEngine:
    """An engine that takes a while to be ready, and says of each process that it was well."""

    ready = False

    async def prepare(self) -> None:
        await asyncio.sleep(0.6)

    async def launch(self, job: Job, listener: Listener) -> ProcessOutcome:
        done = Done(version="0", ok=True, summary=f"{job.tool} with {job.resources.told()}")
        return ProcessOutcome(0, None, done, None, False, "", 0.1, 0, False)

    async def execute(self, job: FunctionJob, listener: Listener) -> Any:
        raise AssertionError("no function is called here")

    def start(self) -> None: ...
    def close(self) -> None: ...


async def test_time_limits_stand_still_while_the_engine_starts(tmp_path: Path) -> None:
    placed = remote(painter(tmp_path), SlowEngine(), Resources(gpu=2))
    plan = PlanDocument.from_json('{"requestId": "r", "tools": [{"toolId": "a", "toolPath": "painter"}]}')
    ran = await PlanExecutor(ToolRegistry([placed]), Session(), plan_timeout=0.5).execute(plan)
    assert ran.success, ran


async def test_a_call_elsewhere_is_judged_here(tmp_path: Path) -> None:
    placed = remote(painter(tmp_path), SlowEngine(), Resources(gpu=2))
    result = await ToolRegistry([placed]).execute("painter", {})
    assert result.message == "painter with cpu 1, gpu 2"
