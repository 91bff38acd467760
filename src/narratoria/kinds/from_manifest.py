"""A `Tool` from a manifest and a handler, whatever kind the handler is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narratoria.kinds.manifest import Manifest
from narratoria.tools.contract import (
    Effect,
    PermissionPrecondition,
    effects_from_data,
    preconditions_from_data,
)
from narratoria.tools.retry import RetryPolicies, policy_from_data
from narratoria.tools.tool import Tool, ToolExample, ToolHandler, ToolKind


@dataclass(frozen=True)
class FileKind:
    """A kind of tool that lies in files: how one is made of its path and its manifest."""

    load: Callable[[Path, Manifest], Tool[Any, Any]]
    runs_a_file: bool = False
    """True if the manifest lies beside a file that is run; of other kinds it is the whole tool."""


def tool_from_manifest(
    manifest: Manifest,
    handler: ToolHandler[Any, Any],
    *,
    kind: ToolKind,
    checks: Mapping[str, Any] | None = None,
    origin: Path | None = None,
    bind: Callable[[Effect], Effect] = lambda effect: effect,
    repeatable: bool | None = None,
) -> Tool[Any, Any]:
    """Make the tool a manifest describes.

    `checks` holds, by id, the functions behind its `custom` preconditions. `bind` may give an effect what only the kind
    knows, such as the tool that runs its rollback. `repeatable` is for kinds that know it better than the effects.
    """
    return Tool(
        manifest.name,
        manifest.description,
        handler,
        [ToolExample(example.description, example.input) for example in manifest.examples],
        parameters=manifest.parameters,
        preconditions=(
            *permissions_of(manifest),
            *preconditions_from_data(manifest.preconditions, name=manifest.name, checks=checks),
        ),
        effects=[bind(effect) for effect in effects_from_data(manifest.effects, name=manifest.name)],
        timeout=manifest.timeout,
        retry=RetryPolicies.NONE
        if manifest.retry is None
        else policy_from_data(manifest.retry, name=manifest.name),
        skill=manifest.skill,
        permissions=manifest.permissions,
        kind=kind,
        title=manifest.title,
        origin=origin,
        read_only=manifest.read_only,
        approval=manifest.approval,
        repeatable=repeatable,
        resources=manifest.resources,
    )


def permissions_of(manifest: Manifest) -> tuple[PermissionPrecondition, ...]:
    """The preconditions that the manifest's `permissions` stand for."""
    return tuple(
        PermissionPrecondition(description=f"the permission {name!r} must be granted", permission=name)
        for name in manifest.permissions
    )
