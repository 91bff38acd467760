"""The servers that bench_mcp.py compares, each in a process of its own: `python _mcp_servers.py KIND [PORT]`.

All offer one tool, `add`, and 500 others that are only listed. `bare` is the official package's low-level server with
nothing around it; `ours` is `narratoria`, the whole pipeline and the journal included.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LISTED = 500
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"result": {"type": "integer"}},
    "required": ["result"],
    "additionalProperties": False,
}


def bare_server() -> Any:
    import mcp_types as types
    from mcp.server.lowlevel.server import Server

    tools = [
        types.Tool(name="add", description="Add two numbers.", input_schema=SCHEMA, output_schema=OUTPUT)
    ]
    tools += [
        types.Tool(name=f"tool_{number:03}", description="Does nothing.", input_schema=SCHEMA)
        for number in range(LISTED - 1)
    ]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given = params.arguments or {}
        total = given["a"] + given["b"]
        text = types.TextContent(type="text", text=str(total))
        return types.CallToolResult(content=[text], structured_content={"result": total})

    return Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_bare(port: int | None) -> None:
    server = bare_server()
    if port is None:
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return
    import uvicorn

    config = uvicorn.Config(server.streamable_http_app(), port=port, log_level="warning")
    await uvicorn.Server(config).serve()


async def serve_highlevel(port: int | None) -> None:
    """The decorated functions of the official package, which grew out of FastMCP."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("high")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    assert port is None
    await server.run_stdio_async()


async def serve_ours(port: int | None) -> None:
    from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
    from narratoria.cli import spare_the_collector
    from narratoria.mcp_server import ToolServer
    from narratoria.store.sqlite import SqliteStore
    from narratoria.tools.tool import Tool

    @dataclass(frozen=True)
    class Add:
        a: int
        b: int

    @tool(description="Add two numbers.")
    async def add(params: Add, *, context: ToolContext) -> ToolResult[int]:
        return ToolResult.ok(params.a + params.b)

    registry = ToolRegistry([add])
    registry.register_all(
        Tool(f"tool_{number:03}", "Does nothing.", add.handler, parameters=SCHEMA)
        for number in range(LISTED - 1)
    )
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sessions.db", assets=Path(folder) / "assets")
        journal = store.create(Session(assets=store.assets))
        server = ToolServer(registry, journal.session)
        spare_the_collector()  # as every command does
        if port is None:
            from narratoria.mcp_server.stdio_server import serve_stdio

            await serve_stdio(server)
        else:
            from narratoria.mcp_server.http_server import serve_http

            await serve_http(server, port=port, token="a-token-for-the-benchmark")  # noqa: S106
        await journal.close()
        store.close()


SERVERS = {"bare": serve_bare, "high": serve_highlevel, "ours": serve_ours}

if __name__ == "__main__":
    asyncio.run(SERVERS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else None))
