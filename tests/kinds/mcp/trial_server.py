"""An MCP server written with the official package, with one tool for each way a server can behave."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c626001000000050001"
    "0d0a2db40000000049454e44ae426082"
)  # fmt: skip
WAV = (
    b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00"
    b"\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00"
)

server = MCPServer("trial", version="1")
reads = ToolAnnotations(read_only_hint=True)


class Sum(BaseModel):
    total: int


@server.tool(annotations=reads)
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool(annotations=reads)
def add(a: int, b: int = 1) -> Sum:
    """Adds."""
    return Sum(total=a + b)


@server.tool(name="getUser", annotations=reads)
def get_user() -> str:
    """A name that is not ours."""
    return "user"


@server.tool(description="Long. " + "Words and words. " * 100, annotations=reads)
def long_description() -> str:
    return "long"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("the dragon is asleep")


@server.tool()
def write(path: str, text: str) -> str:
    """Writes a file."""
    Path(path).write_text(text)
    return f"wrote {path}"


@server.tool()
def remove(path: str) -> str:
    """Removes a file."""
    Path(path).unlink()
    return f"removed {path}"


@server.tool(annotations=reads)
async def slow(seconds: float, ctx: Context) -> str:
    """Waits, and says how far it is."""
    for step in range(1, 5):
        await ctx.report_progress(step, 4, f"step {step}")
        await asyncio.sleep(seconds / 4)
    await ctx.info("the last step")
    return "slept"


@server.tool()
async def hang() -> str:
    """Blocks the whole server."""
    time.sleep(600)
    return "never"


@server.tool()
async def die(status: int = 3) -> str:
    """Ends the server in the middle of a call."""
    print("the server ran into a wall", file=sys.stderr, flush=True)
    os._exit(status)


@server.tool(annotations=reads)
async def flood(megabytes: int = 8) -> str:
    """Floods stderr."""
    for _ in range(megabytes * 16):
        os.write(2, b"x" * 65535 + b"\n")
    return "flooded"


@server.tool()
def bear() -> int:
    """Starts a child in a session of its own, and returns its pid."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL).pid


@server.tool(annotations=reads)
def pid() -> int:
    """The pid of the server."""
    return os.getpid()


@server.tool(annotations=reads)
def environ(name: str) -> str:
    """A variable of the server's environment."""
    return os.environ.get(name, "(unset)")


@server.tool(annotations=reads)
def picture() -> Image:
    """A picture."""
    return Image(data=PNG, format="png")


@server.tool(annotations=reads, structured_output=False)
def media() -> CallToolResult:
    """A text, a sound, two resources and a link."""
    import base64

    return CallToolResult(
        content=[
            TextContent(type="text", text="all kinds"),
            Audio(data=WAV, format="wav").to_audio_content(),
            EmbeddedResource(
                type="resource",
                resource=TextResourceContents(uri="note://a/poem.txt", mime_type="text/plain", text="a rose"),
            ),
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(
                    uri="file:///map.png", mime_type="image/png", blob=base64.b64encode(PNG).decode()
                ),
            ),
            ResourceLink(type="resource_link", uri="https://example.org/x", name="x"),
        ]
    )


class Answer(BaseModel):
    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the person."""
    answer = await ctx.elicit("What is your name?", Answer)
    return f"{answer.action}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool and takes one away."""

    def grown() -> str:
        """New."""
        return "I am new"

    server.add_tool(grown, annotations=reads)
    server.remove_tool("long_description")
    await ctx.notify_tools_changed()
    return "grew"


if __name__ == "__main__":
    if "--http" in sys.argv:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
    elif "--broken" in sys.argv:
        print(f"cannot start: no license {os.environ.get('LICENSE_KEY', '')}", file=sys.stderr)
        sys.exit(7)
    else:
        if "--noise" in sys.argv:
            print("Welcome to the trial server!", flush=True)
        server.run()
