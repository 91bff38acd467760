"""Hints for hosts about a tool, from its preconditions and effects.

A hint is given only where the contract says it. A tool that declares no effects may still patch the state or act
outside, so nothing is claimed about it: a host then takes the careful defaults of MCP.
"""

from __future__ import annotations

import re
from typing import Any, Final

from narratoria.tools.contract import (
    CascadeEffect,
    Effect,
    MemoryEffect,
    NotificationEffect,
    PermissionPrecondition,
    ResourcePrecondition,
    StateChangeEffect,
)
from narratoria.tools.tool import Tool

_OUTSIDE: Final = re.compile(
    r"(^|[^a-z])(net|network|http|https|web|internet|browser|email|mail|remote)([^a-z]|$)"
)


def annotations_of(tool: Tool[Any, Any]) -> dict[str, Any]:
    """The annotations of a tool, as MCP writes them; only those that its contract settles."""
    hints: dict[str, Any] = {} if tool.title is None else {"title": tool.title}
    effects = tool.effects
    open_world = _needs_the_world(tool) or any(map(_leaves_the_session, effects))
    if effects:
        hints["readOnlyHint"] = False
        hints["destructiveHint"] = any(map(_destroys, effects))
        hints["idempotentHint"] = all(map(_repeats_without_change, effects))
        hints["openWorldHint"] = open_world
    elif open_world:
        hints["openWorldHint"] = True
    return hints


def _needs_the_world(tool: Tool[Any, Any]) -> bool:
    """Tell if a precondition names something outside, such as the permission `net:fetch`."""
    names = [one.permission for one in tool.preconditions if isinstance(one, PermissionPrecondition)]
    names += [
        one.resource
        for one in tool.preconditions
        if isinstance(one, ResourcePrecondition) and isinstance(one.resource, str)
    ]
    return any(_OUTSIDE.search(name.lower()) for name in (*names, *tool.permissions))


def _leaves_the_session(effect: Effect) -> bool:
    return effect.reaches_outside or isinstance(effect, NotificationEffect | CascadeEffect)


def _destroys(effect: Effect) -> bool:
    """Tell if an effect cannot be taken back, or removes something. A notification only adds."""
    if isinstance(effect, NotificationEffect):
        return False
    if isinstance(effect, StateChangeEffect) and effect.change == "clear":
        return True
    if isinstance(effect, MemoryEffect) and effect.operation == "delete":
        return True
    return not effect.reversible or (effect.apply is not None and effect.rollback is None)


def _repeats_without_change(effect: Effect) -> bool:
    """Tell if applying an effect again with the same arguments changes nothing more."""
    if effect.reaches_outside:
        return False
    if isinstance(effect, StateChangeEffect):
        return effect.change in ("set", "clear")
    if isinstance(effect, MemoryEffect):
        return effect.scope != "episodic"
    return False
