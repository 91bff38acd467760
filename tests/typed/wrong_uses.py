# pyright: strict
"""Uses that type checkers must refuse, each on the line marked with `# error`."""

from dataclasses import dataclass
from pathlib import Path

from narratoria import (
    Branch,
    Session,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
    conditional,
    sequence,
    tool,
)


@dataclass(frozen=True)
class Light:
    target: str


@dataclass(frozen=True)
class Lit:
    colour: str


@dataclass(frozen=True)
class Dig:
    depth: int


@tool(description="Light something that burns.")
async def light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult.ok("yellow")  # error


@tool
async def dig(params: Dig) -> ToolResult[int]:
    """Dig, with the context forgotten."""
    return ToolResult.ok(params.depth)


@tool(description="Dig, with options and the context forgotten.")
def dig_deep(params: Dig) -> ToolResult[int]:
    return ToolResult.ok(params.depth)


@tool
async def weather(city: str, days: int = 3) -> Lit:
    """Forecast the weather."""
    return days  # error


@tool(timeout="5 s")  # error
async def slow(city: str) -> str:
    """Wait."""
    return city


async def bare(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult.ok(Lit("yellow"))


Tool[Dig, Lit]("bare", "A handler of another type.", bare)  # error
Tool[Light, int]("bare", "A handler with another result.", bare)  # error
ToolRegistry([dig])  # error
ToolRegistry([bare])  # error
sequence([light, dig_deep])  # error
conditional([Branch(lambda result: True, [light])])  # error


async def main() -> None:
    registry = ToolRegistry([light, weather])
    registry.register(dig_deep)  # error
    await registry.execute(light, Dig(3))  # error
    await registry.execute(light, "torch")  # error
    await registry.execute("light", Light("torch"))  # error
    await registry.execute(weather, Light("torch"))  # error
    await registry.executor.execute(light, Dig(3))  # error
    registry.execute_sync(light, Dig(3))  # error
    colour: int = (await registry.execute(light, Light("torch"))).value  # error
    print(colour, Session(), Path())


@tool(description="Call another with the wrong params.")
async def calls(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return await context.call(light, Dig(3))  # error
