"""The option `--mcp`, of every command that may use tools of MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from narratoria.cli.output import console, styled
from narratoria.errors import NarratoriaError

if TYPE_CHECKING:  # without servers, a command does not load what they need
    from narratoria.kinds.mcp.mcp_tools import McpServers
    from narratoria.kinds.mcp.server_file import ServerFile

mcp_option = click.option(
    "--mcp",
    "mcp_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file of MCP servers (`mcpServers`), whose tools can be used as server.tool.",
)


def read_servers(files: Sequence[Path]) -> ServerFile | None:
    """Return the servers of all files, None without a file; one that cannot be read is a usage error."""
    if not files:
        return None
    from narratoria.kinds.mcp.server_file import joined, read_server_file

    try:
        return joined([read_server_file(file) for file in files])
    except NarratoriaError as error:
        raise click.BadParameter(str(error), param_hint="--mcp") from None


@asynccontextmanager
async def opened_servers(
    found: ServerFile, *, only: Collection[str] | None = None, quiet: bool = False
) -> AsyncIterator[McpServers]:
    """Open servers, say which cannot be used, and end them at the end."""
    from narratoria.kinds.mcp.mcp_tools import McpServers

    servers = McpServers(found, only=only)
    try:
        await servers.open()
        if not quiet:
            for line in servers.problems.values():
                console(stderr=True).print(styled((line, "yellow")))
        yield servers
    finally:
        await servers.close()


def server_of(tool_path: str) -> str:
    """Return the server that a name such as `server.tool` would belong to."""
    return tool_path.partition(".")[0]
