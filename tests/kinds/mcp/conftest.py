"""MCP servers for the tests: real processes, and a look at what they leave behind."""

import asyncio
import os
import sys
import time
import uuid
from pathlib import Path

import pytest

from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.registry import ToolRegistry

SERVER = Path(__file__).with_name("trial_server.py")
PLAIN = Path(__file__).with_name("plain_server.py")  # starts at once, for what starts servers again and again


def eventually(holds, within=10.0):
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


async def becomes(holds, within=10.0):
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True


class Place:
    """A place for servers with a mark of their own in the environment."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = f"trial-{uuid.uuid4().hex}"
        self.eventually, self.becomes = eventually, becomes

    def entry(self, *args, script=SERVER, **more):
        env = {"TRIAL_MARK": self.mark, "PYTHONDONTWRITEBYTECODE": "", **more.pop("env", {})}
        return {"command": sys.executable, "args": [str(script), *args], "env": env, **more}

    def servers(self, *args, **more):
        return {"mcpServers": {"trial": self.entry(*args, **more)}}

    def plain(self, *args, **more):
        return self.entry(*args, script=PLAIN, **more)

    def plain_servers(self, *args, **more):
        return {"mcpServers": {"trial": self.plain(*args, **more)}}

    def script(self, source):
        path = self.folder / "server.py"
        path.write_text(source)
        return path

    def alive(self):
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found


@pytest.fixture(scope="session")
def place_class():
    return Place


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    assert eventually(lambda: not place.alive()), f"left behind: {place.alive()}"


@pytest.fixture
async def trial(place):
    """A registry with the tools of one trial server, which is a plain one."""
    async with mcp_tools(place.plain_servers()) as servers:
        registry = ToolRegistry()
        servers.follow(registry)
        registry.servers = servers
        yield registry


@pytest.fixture
def trial_script():
    return SERVER
