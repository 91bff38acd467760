"""The runtime's events of a call, from its first attempt to the commit of its changes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from narratoria.errors import EXECUTION_FAILED, ErrorSource
from narratoria.events.changes import Change, EffectApplied, ResourceChange
from narratoria.events.tool_events import JsonObject, ToolEvent


class RuntimeEvent(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True, gc=False
):
    """The base of the events that the runtime itself records."""


class CallStarted(RuntimeEvent, tag="call_started", frozen=True, kw_only=True):
    """An attempt at a call begins. `call` is the idempotency key the tool gets as `requestId`; `parent` is the call
    that this one is part of.
    """

    call: str
    tool: str
    attempt: int = 1
    tool_id: str | None = None
    plan: str | None = None
    parent: str | None = None
    cascade: bool = False  # made by an effect of the parent
    input: JsonObject = msgspec.field(default_factory=dict)


class ApprovalRequested(RuntimeEvent, tag="approval_requested", frozen=True, kw_only=True):
    """A call waits for a person: may `tool` run with `input`? `within` is the call that it is part of."""

    id: str
    call: str
    tool: str
    title: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)
    reason: str = ""
    within: str | None = None


class ApprovalGiven(RuntimeEvent, tag="approval_given", frozen=True, kw_only=True):
    """The answer to an `approval_requested`. With `edited`, the call runs with `input`; with `cancelled`, nobody
    answered before the turn ended.
    """

    id: str
    call: str
    decision: Literal["approved", "edited", "refused", "cancelled"]
    input: JsonObject | None = None
    reason: str = ""
    by: str = ""


class CallEmitted(RuntimeEvent, tag="call_emitted", frozen=True, kw_only=True):
    """An event of the tool protocol, from a process or from a handler in this process."""

    call: str
    event: ToolEvent


class AssetStored(RuntimeEvent, tag="asset_stored", frozen=True, kw_only=True):
    """A file of a call was copied into the store of assets, where its `hash` names it."""

    call: str
    asset_id: str
    kind: str
    media_type: str
    hash: str
    size: int
    name: str = ""
    metadata: JsonObject | None = None


class AssetDenied(RuntimeEvent, tag="asset_denied", frozen=True, kw_only=True):
    """A file of a call was refused; the call goes on."""

    call: str
    asset_id: str
    reason: str


class CallRetrying(RuntimeEvent, tag="call_retrying", frozen=True, kw_only=True):
    """An attempt failed and its changes were discarded; another follows after `delay` seconds.

    `duration` is that of the attempt, in seconds. `exit_code`, `signal` and `stderr` are of its process, if it was one.
    """

    call: str
    attempt: int
    delay: float
    error_code: str
    error: str
    duration: float = 0.0  # 0 in records older than the field
    exit_code: int | None = None
    signal: int | None = None
    stderr: str | None = None


class CallFinished(RuntimeEvent, tag="call_finished", frozen=True, kw_only=True):
    """A call has ended. `duration` is of all its attempts and the waits between them, `last_duration` of the last
    attempt if there were several. The fields from `exit_code` on are of its process, if it was one; `sent` is the input
    the process got, where the manifest's defaults were added to that of `call_started`.
    """

    call: str
    tool: str
    ok: bool
    state: Literal["completed", "failed", "skipped", "timeout"]
    attempts: int = 1
    duration: float = 0.0
    tool_id: str | None = None
    message: str = ""
    value: Any = None
    error_code: str | None = None
    error: str | None = None
    error_source: ErrorSource = (
        "runtime"  # of records older than the field, the runtime took every code for its own
    )
    recoverable: bool = True
    suggestions: list[str] = msgspec.field(default_factory=list)
    stderr: str | None = None
    part: bool = False  # of another call; its tool counts as completed once a `committed` names it
    last_duration: float = 0.0
    exit_code: int | None = None
    signal: int | None = None
    operation: str | None = None
    sent: JsonObject | None = None
    sent_state: bool = False  # the state was part of the request
    sandbox: JsonObject | None = None
    """The `profile` it ran in, and the walls of it that were `missing`, with the reasons; None outside a sandbox."""

    @property
    def verdict(self) -> str | None:
        """The runtime's own code for the failure, whatever code the tool gave it."""
        return EXECUTION_FAILED if self.error_source == "tool" else self.error_code


class Committed(RuntimeEvent, tag="committed", frozen=True, kw_only=True):
    """A call's changes became part of the session.

    A number stands for the record of that sequence number: a `call_emitted` whose `state_patch`, or an
    `asset_stored` whose asset, is committed here. So a patch is written once, and a failed attempt's patches are
    in the journal but never in the fold. `inverse` takes the changes back, applied in its order. `completed` names
    the tools of the calls within this one that were not dropped again. With `failed`, the call itself failed: these are
    the assets it leaves.
    """

    call: str
    changes: list[int | Change]
    inverse: list[Change] = msgspec.field(default_factory=list)
    effects: list[EffectApplied] = msgspec.field(default_factory=list)
    resources: list[ResourceChange] = msgspec.field(default_factory=list)
    completed: list[str] = msgspec.field(default_factory=list)
    failed: bool = False
