"""The node's half of a call of a Python function: the handler over a copy of the state, its events in batches.

Only what travels as an event reaches the session of the coordinator: patches, logs, assets and choices. A handler that
changes memory, slices or permissions on a node fails.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from narratoria.errors import EXECUTION_FAILED, CallFailure
from narratoria.events import Asset, AssetDenied, AssetStored, CallEmitted, JsonObject
from narratoria.kinds.remote import wire
from narratoria.kinds.remote.node import CHUNK_BYTES, Running, worker_loop
from narratoria.kinds.remote.outbox import Outbox
from narratoria.session import Draft, Record, Session
from narratoria.session.assets import AssetStore
from narratoria.session.draft_operations import AssetMade, Notified, PatchMade
from narratoria.tools.context import CallScope, ToolContext
from narratoria.tools.tool import Tool

_TRAVELS: Final = (PatchMade, AssetMade, Notified)
_STOP_SECONDS: Final = 2.0


def perform_function(
    name: str,
    handler: Callable[..., Any],
    params: Any,
    call_id: str,
    state: JsonObject,
    outputs: JsonObject | None,
    time_limit: float | None,
    asset_cap: int,
    batching: tuple[float, int],
) -> Iterator[bytes]:
    """Run a handler, and yield its events and its result."""
    outbox = Outbox(*batching)
    session = Session(state=state, assets=AssetStore(cap=asset_cap))
    session.attach(_Sender(outbox, session))
    tool: Tool[Any, Any] = Tool(name, "On a node.", handler, parameters={"type": "object"})
    context = ToolContext(tool, session.draft(), call_id, _NoPipeline(), CallScope(), time_limit, outputs)
    worked = threading.Event()
    running = Running(worker_loop(), _answer(handler, params, context, outbox, worked))
    try:
        while (batch := outbox.take()) is not None:
            yield batch
    finally:
        context.cancelled = True
        running.end()
        if not worked.wait(_STOP_SECONDS):
            # Nothing stops a thread but the end of its process; Ray starts another worker.
            os.kill(os.getpid(), signal.SIGKILL)


async def _answer(
    handler: Callable[..., Any],
    params: Any,
    context: ToolContext,
    outbox: Outbox,
    worked: threading.Event,
) -> None:
    import ray.cloudpickle

    pickle: Any = ray.cloudpickle
    try:
        try:
            result = await _handled(handler, params, context, worked)
            _check_travels(context.session, context.tool.name)
            part: wire.Part = wire.Returned(pickle.dumps(result))
        except Exception as error:  # the pipeline of the coordinator judges it
            part = wire.Raised(_pickled(error, pickle))
        outbox.put(part, 0)
    finally:
        outbox.close()


async def _handled(
    handler: Callable[..., Any], params: Any, context: ToolContext, worked: threading.Event
) -> Any:
    if inspect.iscoroutinefunction(handler):
        worked.set()
        return await handler(params, context=context)

    def work() -> Any:
        try:
            return handler(params, context=context)
        finally:
            worked.set()

    context.session.loop = asyncio.get_running_loop()
    result = await asyncio.to_thread(work)
    await asyncio.sleep(0)  # what the thread recorded last
    return result


def _check_travels(draft: Draft, name: str) -> None:
    stays = {type(one).__name__ for one in draft.operations if not isinstance(one, _TRAVELS)}
    if stays:
        raise CallFailure(
            EXECUTION_FAILED,
            f"{name}: on a node only events reach the session, and it changed more ({', '.join(sorted(stays))}); "
            "use context.patch, or run it here",
        )


def _pickled(error: Exception, pickle: Any) -> bytes:
    try:
        pickled: bytes = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # foreign classes may do anything there
        pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled


class _Sender:
    """Sends the events of a session that is the node's own."""

    def __init__(self, outbox: Outbox, session: Session) -> None:
        self._outbox = outbox
        self._session = session
        self._asset: Asset | None = None

    @property
    def full(self) -> bool:
        return self._outbox.crowded

    async def wait(self) -> None:
        await self._outbox.drained()

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallEmitted):
            if isinstance(event.event, Asset):
                self._asset = event.event
            else:
                part = wire.heard([event.event])
                self._outbox.put(part, len(part.events))
        elif isinstance(event, AssetStored) and self._asset is not None:
            with self._session.assets.path_of(event.hash).open("rb") as content:
                while chunk := content.read(CHUNK_BYTES):
                    self._outbox.put(wire.Chunk(chunk), len(chunk))
            self._outbox.put(wire.arrived(self._asset), 0)
        elif isinstance(event, AssetDenied) and self._asset is not None:
            self._outbox.put(wire.arrived(self._asset, event.reason), 0)


class _NoPipeline:
    """Stands where the pipeline is: a node has none."""

    scope: CallScope = CallScope()

    def has_tool(self, name: str) -> bool:
        return False

    async def execute(self, name: Any, args: Any, *, session: Draft) -> NoReturn:
        raise CallFailure(EXECUTION_FAILED, f"{name}: a tool on a node calls no others; compose them instead")

    async def compensate(self, tool: Any, args: Mapping[str, Any], *, session: Draft) -> NoReturn:
        raise CallFailure(EXECUTION_FAILED, "a tool on a node calls no others")

    async def drop(self, draft: Draft) -> None:
        draft.discard()
