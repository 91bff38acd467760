"""A registry is kept in step with a source whose tools come and go."""

from __future__ import annotations

from typing import Any

from narratoria import Tool, ToolRegistry, ToolResult
from narratoria.kinds.catalogue_updates import replace_tools


def named(name: str) -> Tool[Any, Any]:
    return Tool(name, "Does it.", lambda params, *, context: ToolResult.ok({}), parameters={"type": "object"})


def test_new_tools_take_the_place_of_the_old_ones() -> None:
    registry, old, new, notes = ToolRegistry(), named("old"), named("new"), list[str]()
    replace_tools(registry, (), [old], notes)
    replace_tools(registry, [old], [new], notes)
    assert list(registry.tools.values()) == [new]
    assert notes == []


def test_a_name_that_is_taken_stays_with_its_owner_and_is_noted_once() -> None:
    owner, other, notes = named("bell"), named("bell"), list[str]()
    registries = [ToolRegistry([owner]), ToolRegistry([owner])]
    for registry in registries:
        replace_tools(registry, (), [other], notes, "a server")
        replace_tools(registry, [other], (), notes, "a server")
        assert registry.tools["bell"] is owner
    assert notes == ["bell: another tool has this name; that of a server is left out"]
