"""Our server, a process of its own as a host starts it, and the official client that talks to it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests import warm_start
from tests.marked_processes import MarkedProcesses

TOKEN = "a-token-that-nobody-guesses"
MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}
DONE = '{"version":"0","type":"done","ok":true,"summary":"All done."}'


class Workshop(MarkedProcesses):
    """A folder of tools, and the server over it. Strays are found by their mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir()
        super().__init__(folder)
        self.env["NARRATORIA_HOME"] = str(folder / "home")
        self.errors = folder / "stderr"

    def tool(self, name: str, *lines: str, **manifest: Any) -> None:
        """A tool in bash; lines that begin with { are printed."""
        printed = [f"echo '{line}'" if line.startswith("{") else line for line in lines]
        path = self.tools / name
        path.write_text("\n".join(["#!/bin/bash", "cat >/dev/null", *printed, ""]))
        path.chmod(0o755)
        if manifest:
            described = {"name": name, "description": f"Does {name}.", **manifest}
            (self.tools / f"{name}.tool.json").write_text(json.dumps(described))

    def command(self, *arguments: object, bare: bool = False, cold: bool = False) -> list[str]:
        """The command of the server; `bare` without the folder of tools.

        Cold, it is started as hosts do, and the process is the server: for what is killed, measured or looked for.
        """
        chosen = arguments if bare or "--story" in arguments else ("--tools", self.tools, *arguments)
        if cold:
            return [sys.executable, "-m", "narratoria", "mcp", *map(str, chosen)]
        return warm_start.command("mcp", *chosen)

    @asynccontextmanager
    async def over_stdio(
        self, *arguments: object, bare: bool = False, mode: str = "2026-07-28", **options: Any
    ) -> AsyncIterator[Client]:
        command = self.command(*arguments, bare=bare)
        server = StdioServerParameters(command=command[0], args=command[1:], env=self.env, cwd=self.folder)
        with self.errors.open("w") as errors:
            async with Client(stdio_client(server, errlog=errors), mode=mode, **options) as client:
                yield client

    @asynccontextmanager
    async def serving(
        self, *arguments: object, cold: bool = False
    ) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
        """The server over HTTP: its address and its process."""
        process = await asyncio.create_subprocess_exec(
            *self.command("--http", "0", *arguments, cold=cold),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL,
            env={**self.env, "NARRATORIA_MCP_TOKEN": TOKEN},
            cwd=self.folder,
        )
        assert process.stdout is not None
        try:
            address = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
            yield address, process
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.communicate(), 30)

    @asynccontextmanager
    async def over_http(
        self, *arguments: object, mode: str = "2026-07-28", **options: Any
    ) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            self.serving(*arguments) as (address, _),
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode, **options) as client,
        ):
            yield client


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


WAYS = [
    ("stdio", "2026-07-28"),
    ("http", "2025-11-25"),
    pytest.param(("stdio", "2025-11-25"), marks=pytest.mark.slow),
    pytest.param(("http", "2026-07-28"), marks=pytest.mark.slow),
]


class Host:
    """A client that comes one way and speaks one revision of the protocol."""

    def __init__(self, workshop: Workshop, way: str, revision: str) -> None:
        self.connect_by = workshop.over_stdio if way == "stdio" else workshop.over_http
        self.mode = MODES[revision]

    def __call__(self, *arguments: object, **options: Any) -> Any:
        return self.connect_by(*arguments, mode=self.mode, **options)


@pytest.fixture(params=WAYS, ids="-".join)
def any_host(request: pytest.FixtureRequest, workshop: Workshop) -> Host:
    """Each way with each revision; `make test` has each of them once."""
    return Host(workshop, *request.param)


@pytest.fixture(params=[WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.slow)], ids="-".join)
def host(request: pytest.FixtureRequest, workshop: Workshop) -> Host:
    """Each way and each revision once; `make test` has the first, since most hangs on neither."""
    return Host(workshop, *request.param)
