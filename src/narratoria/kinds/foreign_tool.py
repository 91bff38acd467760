"""A tool of a foreign source, an MCP server or an OpenAPI document, with the settings that a file gives it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.from_manifest import permissions_of
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.outside_effect import OutsideEffect
from narratoria.tools import schema
from narratoria.tools.contract import Effect, effects_from_data, preconditions_from_data
from narratoria.tools.retry import RetryPolicies, policy_from_data
from narratoria.tools.tool import Approval, Tool, ToolKind

LONGEST_TEXT: Final = 20_000  # characters of a description
_ANYTHING: Final = {"type": "object", "additionalProperties": True}

AnyTool = Tool[Any, Any]


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The settings of one tool of a server; the keys are those of a manifest."""

    title: str | None = None
    timeout: float | None = None
    retry: JsonObject | None = None
    permissions: list[str] = msgspec.field(default_factory=list)
    preconditions: list[JsonObject] = msgspec.field(default_factory=list)
    effects: list[JsonObject] | None = None
    skill: str | None = None
    approval: Approval | None = None


def foreign_tool(
    name: str,
    description: str,
    handler: Callable[..., Any],
    chosen: ToolSettings,
    *,
    parameters: JsonObject,
    kind: ToolKind,
    origin: str,
    title: str | None,
    timeout: float,
    permissions: Collection[str],
    only_reads: bool,
    repeatable: bool,
    notes: list[str],
) -> AnyTool:
    """Make a tool of what its source says and what its settings change.

    `title`, `timeout` and `permissions` are those of the source; `repeatable` tells if a call that may have been
    carried out may be made again. A schema of arguments that cannot be checked here goes to `notes`, and the tool takes
    any arguments.
    """
    try:
        schema.parser_for_schema(parameters, name=name)
    except ToolValidationError as error:
        notes.append(f"{name}: its arguments are checked by the server only, since {error}")
        parameters = dict(_ANYTHING)
    asked = [*dict.fromkeys([*permissions, *chosen.permissions])]
    manifest = Manifest(name=name, description=description, permissions=asked)
    return Tool(
        name,
        description[:LONGEST_TEXT],
        handler,
        parameters=parameters,
        preconditions=(
            *permissions_of(manifest),
            *preconditions_from_data(chosen.preconditions, name=name),
        ),
        effects=_effects(chosen, name, only_reads),
        timeout=chosen.timeout or timeout,
        retry=RetryPolicies.NONE if chosen.retry is None else policy_from_data(chosen.retry, name=name),
        permissions=asked,
        skill=chosen.skill,
        approval=chosen.approval,
        kind=kind,
        title=chosen.title or title,
        read_only=only_reads and not chosen.effects,
        origin=origin,
        repeatable=repeatable,
    )


def _effects(chosen: ToolSettings, name: str, only_reads: bool) -> tuple[Effect, ...]:
    """The effects that the settings declare; without any, that what it does stays, unless it only reads."""
    if chosen.effects is not None:
        return effects_from_data(chosen.effects, name=name)
    if only_reads:
        return ()
    return (OutsideEffect(description=f"what {name} did at its server"),)
