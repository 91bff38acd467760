"""A call in the tool protocol, whatever carries it: the request, the events of the answer, and the result of them.

A process has them on its standard streams. A kind that has them elsewhere, such as in the body of an HTTP response,
sends `request_for(…)` and returns `await Conversation(context).answer(manifest, chunks)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from narratoria.errors import EXECUTION_FAILED, MISSING_DONE, CallFailure, ToolFailure
from narratoria.events import Asset, AssetDenied, AssetStored, Done, JsonObject, ToolErrorEvent, ToolEvent
from narratoria.kinds.line_faults import printable
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.ndjson import Decoder, Limits, ProtocolFailure
from narratoria.session.draft_assets import accept_asset, add_asset
from narratoria.state import plain
from narratoria.tools.schema.excerpts import quoted
from narratoria.tools.tool import ToolContext, ToolResult
from narratoria.unicode_text import escaped

LAYOUT: Final = "\n\t"
"""Control characters that a tool's message may keep."""
_encode: Final = msgspec.json.Encoder().encode


def request_for(manifest: Manifest, params: JsonObject, context: ToolContext) -> bytes:
    """Return the request as JSON. `requestId` is the call's id: the same on every attempt, and after a crash."""
    # 000 §6.
    request: JsonObject = {
        "requestId": context.call_id,
        "tool": manifest.name,
        "operation": manifest.operation,
        "input": params,
        "dependencies": context.outputs or {},
    }
    if manifest.wants_state:
        request["state"] = plain(context.session.state)
    return _encode(request)


class Conversation:
    """The events of a call so far, passed on to its draft as they arrive.

    `folder` is where the relative paths of assets begin. Files are read only for a kind of tool that says
    `local_files`: the paths of a remote tool are those of another machine, and are refused.
    """

    def __init__(self, context: ToolContext, folder: Path | None = None) -> None:
        self.context = context
        self.folder = folder
        self.error: ToolErrorEvent | None = None

    within: tuple[Path, ...] | None = None
    """The only folders that assets are read from; None where the tool can read what we can."""

    def hear(self, events: list[ToolEvent]) -> Awaitable[None] | None:
        """Hand events to the draft; whoever reads them reads no further while the returned awaitable is pending."""
        kinds = list(map(type, events))
        if Asset in kinds:
            return self._with_assets(events, kinds.index(Asset))
        if ToolErrorEvent in kinds:
            self.error = [event for event in events if isinstance(event, ToolErrorEvent)][-1]
        self.context.emit_all(events)
        return self.context.session.drain() if self.context.session.congested else None

    async def _with_assets(self, events: list[ToolEvent], first: int) -> None:
        """Hand over events with assets: files are copied in a thread, in the order of the events."""
        await self._heard(events[:first])
        for event in events[first:]:
            if isinstance(event, Asset):
                draft, call_id = self.context.session, self.context.call_id
                add_asset(draft, call_id, self.shown(event), await self._accepted(event))
            else:
                await self._heard([event])

    async def receive(self, event: Asset, arrived: Path | str) -> None:
        """Hand over an asset of a process on another machine: its content in a file, or why there is none."""
        draft, call_id = self.context.session, self.context.call_id
        outcome = await asyncio.to_thread(
            accept_asset, draft, call_id, event, self.folder, self.clean, arrived
        )
        add_asset(draft, call_id, self.shown(event), outcome)

    def shown(self, event: Asset) -> Asset:
        """Return the event of an asset as it may be told."""
        return event

    clean: Callable[[bytes], bytes] | None = None
    """Takes out of a file what must not be kept; None where there is nothing to take out."""

    async def _accepted(self, event: Asset) -> AssetStored | AssetDenied:
        draft, call_id, kind = self.context.session, self.context.call_id, self.context.tool.kind
        if kind.local_files:
            return await asyncio.to_thread(
                accept_asset, draft, call_id, event, self.folder, self.clean, within=self.within
            )
        reason = (
            f"asset {quoted(event.asset_id)}: {printable(event.path.encode())} was not read: a tool of the kind "
            f"{kind.name} does not write files on this machine"
        )
        return AssetDenied(call=call_id, asset_id=event.asset_id, reason=reason)

    async def _heard(self, events: list[ToolEvent]) -> None:
        waiting = self.hear(events) if events else None
        if waiting is not None:
            await waiting

    async def answer(
        self,
        manifest: Manifest,
        chunks: AsyncIterable[bytes],
        limits: Limits = Limits(),  # noqa: B008 (frozen)
    ) -> ToolResult[JsonObject]:
        """Read a whole answer, piece by piece, and return the result; a `CallFailure` says what is wrong with it."""
        decoder = Decoder(manifest.name, limits.with_manifest(manifest.limits))
        try:
            async for chunk in chunks:
                await self._heard(decoder.feed(chunk))
            await self._heard(decoder.close())
        except ProtocolFailure as failure:
            await self._heard(failure.events)
            raise CallFailure(failure.code, str(failure)) from failure
        self.report_after_done(manifest.name, decoder.lines + 1, decoder.after_done, decoder.after_done_head)
        return self.result(manifest.name, decoder.done, ended="the answer ended")

    def report_after_done(self, name: str, line: int, count: int, head: bytes) -> None:
        """Report bytes that came after `done`, from `line` on."""
        if count:
            self.context.session.report(
                f"{name}: line {line}: {count:,} bytes written after `done` were ignored: {printable(head)}"
            )

    def result(
        self, name: str, done: Done | None, *, ended: str, note: str = "", details: JsonObject | None = None
    ) -> ToolResult[JsonObject]:
        """Return the result of a call that kept the protocol. `ended` and `note` are for one without `done`."""
        details = details or {}
        if done is None:
            raise CallFailure(
                MISSING_DONE,
                f"{name}: {ended} without a `done` event{note}"
                ' (fix: write {"version":"0","type":"done","ok":true} as the last line, and flush it)',
                details=details,
            )
        if not done.ok:
            error = self.error
            message = error.error_message if error else done.summary or "the tool reported failure"
            if error and error.details:
                details = {**error.details, **details}
            raise ToolFailure(
                error.error_code if error else EXECUTION_FAILED,
                f"{name}: {escaped(message, keep=LAYOUT)}",
                details=details,
            )
        return ToolResult.ok(self.context.session.patched, message=done.summary or "")
