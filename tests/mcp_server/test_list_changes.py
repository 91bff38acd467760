"""News of changed lists: a host hears that tools, prompts or resources changed, and need not ask again and again."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client

from narratoria import ToolContext, ToolRegistry, ToolResult
from narratoria.mcp_server import ToolServer
from narratoria.skills.skill_library import SkillLibrary, given_places
from narratoria.tools.tool import Tool

UPSTREAM = Path(__file__).parents[1] / "kinds" / "mcp" / "plain_server.py"
ALL = {"tools", "prompts", "resources"}


async def plain_handler(params: Any, *, context: ToolContext) -> ToolResult[Any]:
    return ToolResult("ok")


def plain(name: str) -> Tool[Any, Any]:
    return Tool(name, "Does it.", plain_handler, parameters={"type": "object"})


def add_skill(shelf: Path, name: str) -> None:
    (shelf / name / "scripts").mkdir(parents=True)
    (shelf / name / "scripts" / "go.sh").write_text("echo gone\n")
    (shelf / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\nGo.\n")


class News:
    """The news that a host heard, by either way of the protocol."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._came = asyncio.Event()

    async def message(self, message: Any) -> None:
        """Take a notification that came unasked, as until 2025-11-25."""
        method = getattr(message, "method", "")
        if method.endswith("/list_changed"):
            self._take(method.split("/")[1])

    async def read(self, subscription: Any) -> None:
        """Take the events of a stream that the host listens to, as since 2026-07-28."""
        async for event in subscription:
            self._take(type(event).__name__.removesuffix("ListChanged").lower())

    def _take(self, kind: str) -> None:
        self.heard.append(kind)
        self._came.set()

    async def all_of(self, kinds: set[str]) -> None:
        """Wait until these were heard, and forget them."""
        async with asyncio.timeout(15):
            while not kinds <= set(self.heard):
                self._came.clear()
                await self._came.wait()
        assert set(self.heard) == kinds
        self.heard.clear()


class Listening:
    """A host that listens to all lists, in either revision."""

    def __init__(self, client: Client, news: News, mode: str) -> None:
        self._client, self._news, self._modern = client, news, mode != "legacy"

    async def __aenter__(self) -> News:
        if self._modern:
            self._stream = self._client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            )
            self._reader = asyncio.create_task(self._news.read(await self._stream.__aenter__()))
        return self._news

    async def __aexit__(self, *error: Any) -> None:
        if self._modern:
            self._reader.cancel()
            await self._stream.__aexit__(*error)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_host_hears_of_new_skills_and_of_tools_that_a_program_registers(tmp_path, mode):
    add_skill(tmp_path, "knots")
    library, registry, news = SkillLibrary(given_places([tmp_path])), ToolRegistry(), News()
    library.follow(registry)
    server = ToolServer(registry, skills=library)
    async with Client(server.protocol, mode=mode, message_handler=news.message) as client:
        able = client.server_capabilities
        declared = (able.tools, able.prompts, able.resources)
        assert all(one is not None and one.list_changed for one in declared)
        await client.list_tools()
        async with Listening(client, news, mode) as heard:
            registry.register(plain("late"))  # nobody calls anything
            await heard.all_of({"tools"})
            (tmp_path / "knots" / "scripts" / "tie.sh").write_text("echo tied\n")
            await heard.all_of({"tools"})
            add_skill(tmp_path, "maps")
            await heard.all_of(ALL)
            assert {"late", "knots.tie", "maps.go"} <= {one.name for one in (await client.list_tools()).tools}
            await client.call_tool("late", {})
            assert not news.heard  # each change is told once


async def test_every_host_hears_of_a_change_that_another_one_listed_first():
    registry, news = ToolRegistry([plain("early")]), News()
    server = ToolServer(registry)
    async with (
        Client(server.protocol, mode="legacy", message_handler=news.message) as first,
        Client(server.protocol, mode="legacy") as second,
    ):
        await first.list_tools()
        registry.register(plain("late"))
        await second.list_tools()
        await news.all_of({"tools"})


async def test_the_change_of_an_upstream_server_is_passed_on(workshop, tmp_path):
    file = tmp_path / "servers.json"
    upstream = {"command": sys.executable, "args": [str(UPSTREAM)]}
    file.write_text(json.dumps({"mcpServers": {"up": upstream}}))
    news = News()
    async with workshop.over_stdio("--mcp", file, bare=True) as client:
        await client.list_tools()
        async with Listening(client, news, "auto") as heard:
            await client.call_tool("up.grow", {})
            await heard.all_of({"tools"})
        assert "up.grown" in {one.name for one in (await client.list_tools()).tools}


async def test_a_host_that_reads_nothing_keeps_no_other_from_the_news():
    registry, news = ToolRegistry([plain("early")]), News()
    server = ToolServer(registry)
    never = asyncio.Event()

    async def stuck(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            await never.wait()

    async with (
        Client(server.protocol, mode="legacy", message_handler=stuck) as first,
        Client(server.protocol, mode="legacy", message_handler=news.message) as second,
    ):
        await first.list_tools()
        await second.list_tools()
        for name in ("one", "two"):
            registry.register(plain(name))
            await news.all_of({"tools"})
        never.set()
