"""FastMCP: a two-int async tool, served over standard input and output."""

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run(transport="stdio", show_banner=False)
