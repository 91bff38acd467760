# pyright: strict
"""Uses of the public API that type checkers must accept. `test_typing.py` runs mypy and pyright on this file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

import msgspec

from narratoria import (
    Branch,
    Session,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
    conditional,
    function_tool,
    parallel,
    sequence,
    tool,
)


@dataclass(frozen=True)
class Light:
    target: str


@dataclass(frozen=True)
class Lit:
    colour: str


class Dig(msgspec.Struct):
    depth: int


@tool(description="Light something that burns.")
async def light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    if not params.target:
        return ToolResult.error("nothing to light", code="NOTHING")
    return ToolResult.ok(Lit("yellow"), message=f"{params.target} burns.")


@tool
def dig(params: Dig, *, context: ToolContext) -> ToolResult[int]:
    """Dig a hole."""
    return ToolResult.ok(params.depth)


@tool(description="Tell the time.")
async def now(params: None, *, context: ToolContext) -> ToolResult[str]:
    return ToolResult.ok("noon")


@tool
async def weather(city: Annotated[str, "the city"], days: int = 3) -> Lit:
    """Forecast the weather."""
    return Lit(city * days)


@tool(timeout=5.0)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def tell(what: str, *, context: ToolContext) -> ToolResult[str]:
    """Tell something."""
    context.log(what)
    return ToolResult.ok(what)


@tool
async def near(place: Light, radius: int) -> list[str]:
    """List what is near."""
    return [place.target] * radius


@tool
def pet(animal: Light | Dig) -> str:
    """Pet one of two."""
    return str(animal)


@tool(timeout=5.0)
async def find(animal: Light | None = None) -> str:
    """Find one, or any."""
    return str(animal)


async def bare(params: Light, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult.ok(None)


assert_type(light, Tool[Light, Lit])
assert_type(dig, Tool[Dig, int])
assert_type(now, Tool[None, str])
assert_type(weather, Tool[Mapping[str, Any], Lit])
assert_type(add, Tool[Mapping[str, Any], int])
assert_type(tell, Tool[Mapping[str, Any], str])
assert_type(near, Tool[Mapping[str, Any], list[str]])
assert_type(pet, Tool[Mapping[str, Any], str])
assert_type(find, Tool[Mapping[str, Any], str])
assert_type(function_tool(bare, description="Do nothing."), Tool[Light, None])
assert_type(Tool[Light, None]("bare", "Do nothing.", bare), Tool[Light, None])

both = sequence([light, add])
assert_type(both, Tool[Mapping[str, Any], dict[str, list[ToolResult[Any]]]])
assert_type(parallel([light, tell]), Tool[Mapping[str, Any], dict[str, ToolResult[Any]]])
either = conditional([Branch(lambda result, context: result.success, [light, dig])], fallback=[now])
assert_type(either, Tool[Mapping[str, Any], Any])


async def main() -> None:
    registry = ToolRegistry([light, dig, now, weather, add, tell, near, both])
    assert_type(await registry.execute(light, Light("torch")), ToolResult[Lit])
    assert_type(await registry.execute(light, {"target": "torch"}, session=Session()), ToolResult[Lit])
    assert_type((await registry.execute(light, {"target": "torch"})).value, Lit | None)
    assert_type(await registry.execute(dig, Dig(3)), ToolResult[int])
    assert_type(await registry.execute(now, None), ToolResult[str])
    assert_type(await registry.execute(weather, {"city": "Oslo"}), ToolResult[Lit])
    assert_type(await registry.execute("light", {"target": "torch"}), ToolResult[Any])
    assert_type(
        (await registry.execute(both, {"target": "torch"})).value, dict[str, list[ToolResult[Any]]] | None
    )
    assert_type(registry.execute_sync(light, Light("torch")), ToolResult[Lit])
    assert_type(registry.executor.execute_sync(add, {"a": 1, "b": 2}).value, int | None)
    assert_type(await registry.executor.execute(add, {"a": 1, "b": 2}), ToolResult[int])


@tool(description="Call another.")
async def calls(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    result = await context.call(light, params)
    assert_type(result, ToolResult[Lit])
    return result
