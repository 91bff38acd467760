"""The assets of a call: each file is checked, copied into the store, and becomes part of the call's draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from narratoria.errors import AssetRefused
from narratoria.events import Asset, AssetDenied, AssetStored
from narratoria.session.assets import cleaned
from narratoria.session.draft_operations import AssetMade
from narratoria.tools.schema.excerpts import quoted

if TYPE_CHECKING:
    from narratoria.session.draft import Draft


def accept_asset(
    draft: Draft,
    call_id: str,
    event: Asset,
    base: Path | None = None,
    clean: Callable[[bytes], bytes] | None = None,
    arrived: Path | str | None = None,
    within: Sequence[Path] | None = None,
) -> AssetStored | AssetDenied:
    """Check and copy the file, or what arrived of it from another machine.

    Touches nothing but the store, so it may run in a thread.
    """
    known = draft.asset_ids = draft.asset_ids or set()
    if event.asset_id in known:
        reason = f"asset {quoted(event.asset_id)}: already used in the same invocation; ids must be unique"
        return AssetDenied(call=call_id, asset_id=event.asset_id, reason=reason)
    try:
        stored = draft.root.assets.accept(call_id, event, base, clean, arrived, within)
    except AssetRefused as refusal:
        reason = str(refusal) if clean is None else cleaned(str(refusal), clean)
        return AssetDenied(call=call_id, asset_id=event.asset_id, reason=reason)
    known.add(event.asset_id)
    return stored


def add_asset(draft: Draft, call_id: str, event: Asset, outcome: AssetStored | AssetDenied) -> None:
    """Make an accepted file part of the draft, or record the refusal and report it."""
    draft.publish(call_id, event)
    if isinstance(outcome, AssetDenied):
        draft.on_loop(lambda: _refuse(draft, outcome))
        return
    operation = AssetMade(outcome)
    draft.operations.append(operation)

    def record() -> None:
        operation.seq = draft.root.record(outcome)

    draft.on_loop(record)


def _refuse(draft: Draft, denied: AssetDenied) -> None:
    draft.root.record(denied)
    draft.report(denied.reason, level="warn")
