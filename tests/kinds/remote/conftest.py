"""One Ray for all tests of a module: starting it takes seconds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.marked_processes import eventually, with_mark
from tests.recorder import Recorder

from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.remote.ray_engine import RayEngine
from narratoria.kinds.remote.remote import remote
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.tool import Tool, ToolResult


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which nodes keep the files of tools."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def engine(cache: Path) -> Iterator[RayEngine]:
    engine = RayEngine(num_cpus=2)
    engine.start()
    try:
        yield engine
    finally:
        engine.close()


class Field:
    """Tools on the engine, written on the spot, and a look at what they leave behind."""

    def __init__(self, engine: RayEngine, folder: Path, cache: Path) -> None:
        self.engine = engine
        self.cache = cache
        self.folder = folder
        self.mark = f"mark-{os.urandom(6).hex()}"
        self.session = Session()
        self.recorder = Recorder()
        self.session.attach(self.recorder)

    def tool(self, source: str, *, within: Path | None = None, **options: Any) -> Tool[Any, Any]:
        path = self.folder / "tool.sh"
        path.write_text(f"#!/bin/bash\n{source}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        if within is not None:
            path = within / "tool.sh"
        return remote(process_tool(path, env=[f"TRIAL_MARK={self.mark}"], **options), self.engine)

    async def call(self, tool: Tool[Any, Any], args: Any = None, **call: Any) -> ToolResult[Any]:
        executor = ToolRegistry().executor
        return await executor.execute(tool, args or {}, session=self.session, call=Call(**call))

    def alive(self) -> list[int]:
        return with_mark(self.mark)

    def leaves_nothing(self) -> bool:
        return eventually(lambda: not self.alive(), 5)


@pytest.fixture
def field(engine: RayEngine, tmp_path: Path, cache: Path) -> Iterator[Field]:
    field = Field(engine, tmp_path, cache)
    yield field
    assert field.leaves_nothing()
