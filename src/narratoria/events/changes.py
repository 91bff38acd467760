"""Changes that a commit records: in the state, memory, slices, permissions and resources, and effects outside."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from narratoria.events.tool_events import JsonObject


class MemoryChange(msgspec.Struct, frozen=True, tag_field="change", tag="memory", omit_defaults=True):
    """A change of a memory: a key was written or deleted, or a scope cleared."""

    scope: str
    op: Literal["write", "delete", "clear"]
    key: str = ""
    value: Any = None
    expires: float | None = None


class PatchChange(msgspec.Struct, frozen=True, tag_field="change", tag="patch", omit_defaults=True, gc=False):
    """A patch made by the runtime: a state effect, already evaluated."""

    patch: JsonObject


class SliceChange(msgspec.Struct, frozen=True, tag_field="change", tag="slice", omit_defaults=True):
    """The encoded values of a typed slice after a call."""

    slice: str
    values: list[Any]


class PermissionChange(msgspec.Struct, frozen=True, tag_field="change", tag="permission", omit_defaults=True):
    """A permission granted or taken away. One `claimed` by an imported file counts only if the story grants it too."""

    permission: str
    granted: bool
    claimed: bool = False


Change: TypeAlias = PatchChange | MemoryChange | SliceChange | PermissionChange


class EffectApplied(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An effect that reached outside the session, with the receipt that a later undo needs.

    One that was `imported` is what a file says: it is taken back only if a person asks for that.
    """

    tool: str
    call: str
    effect: int
    description: str
    reversible: bool
    receipt: Any = None
    imported: bool = False


class ResourceChange(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change that a call made in a resource, such as a file, with the receipt that a later undo needs."""

    resource: str
    description: str
    receipt: Any
    imported: bool = False
