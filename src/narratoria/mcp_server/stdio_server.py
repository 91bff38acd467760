"""The server over standard input and output.

Nothing but the protocol reaches standard output: while the server runs, descriptor 1 is standard error for this process
and everything it starts, and descriptor 0 is empty. Reading happens in a thread that nobody waits for, so that the
server ends at once when it is asked to, also while its client is silent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from narratoria.mcp_server.tool_server import ToolServer
from narratoria.unicode_text import encodes, legible_data

PIECE: Final = 64 * 1024
LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of one message; a longer one is refused."""
LAST_SECONDS: Final = 5.0
"""Seconds a client may take to read the last answer."""
AHEAD: Final = 64
"""Messages that are read before they are asked for."""

SHOWN: Final = 200  # bytes of a refused line

logger = logging.getLogger("narratoria")

Incoming = MemoryObjectSendStream[SessionMessage | Exception]


async def serve_stdio(server: ToolServer) -> None:
    """Serve one client until it closes its end."""
    with _private_streams() as (source, sink):
        incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](AHEAD)
        write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        written = anyio.Event()
        async with anyio.create_task_group() as group:

            async def write() -> None:
                try:
                    await _write(sink, outgoing)
                except OSError:
                    group.cancel_scope.cancel()  # the client is gone
                finally:
                    written.set()

            group.start_soon(_read, source, incoming, write_stream.clone())
            group.start_soon(write)
            await server.protocol.run(
                read_stream, write_stream, server.protocol.create_initialization_options()
            )
            with anyio.move_on_after(LAST_SECONDS):
                await written.wait()
            group.cancel_scope.cancel()


@contextmanager
def _private_streams() -> Iterator[tuple[int, int]]:
    """Take standard input and output for ourselves; give them back at the end."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)  # not inherited by what we start
    os.set_blocking(source, True)  # whoever started us may have left them otherwise
    os.set_blocking(sink, True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        sys.stdout.flush()
        os.dup2(sink, 1)
        os.close(sink)  # `source` stays open: the thread may still read from it


class _Lines:
    """The lines of a descriptor, handed to the loop by a daemon thread."""

    def __init__(self, source: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
        self._room = threading.Semaphore(4)  # pieces under way: a client that floods us waits
        threading.Thread(target=self._run, args=(source,), name="mcp-stdin", daemon=True).start()

    def _run(self, source: int) -> None:
        begun: list[bytes] = []  # the pieces of a line whose end has not come
        length = 0
        while True:
            try:
                piece = os.read(source, PIECE)
            except OSError:
                piece = b""
            if not piece:
                break
            if b"\n" not in piece:
                length += len(piece)
                if length <= LONGEST_LINE:
                    begun.append(piece)
                else:
                    begun = begun[:1]  # what is left of it is no JSON, and is refused as such
                continue
            *lines, rest = b"".join((*begun, piece)).split(b"\n")
            begun, length = [rest], len(rest)
            if not self._hand_over(lines):
                return
        self._hand_over([b"".join(begun)])
        self._hand_over(None)

    def _hand_over(self, lines: list[bytes] | None) -> bool:
        if lines is not None:
            self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, lines)
        except RuntimeError:  # the loop is closed
            return False
        return True

    async def next(self) -> list[bytes] | None:
        lines = await self._arrived.get()
        if lines is not None:
            self._room.release()
        return lines


async def _read(source: int, incoming: Incoming, refusals: MemoryObjectSendStream[SessionMessage]) -> None:
    lines = _Lines(source)
    parse: Any = types.jsonrpc_message_adapter.validate_json
    async with incoming, refusals:
        while (some := await lines.next()) is not None:
            for line in some:
                if not line.strip():
                    continue
                to: MemoryObjectSendStream[Any] = incoming
                try:
                    message = parse(line, by_name=False)
                except (ValidationError, ValueError):
                    message, to = refusal(line), refusals
                try:
                    await to.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return


def refusal(line: bytes) -> types.JSONRPCError:
    """The answer to a line that is no message. The library drops such lines, and a client that asked something waits
    for ever; so the id of the request is looked for.
    """
    try:
        data: Any = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        data, code, told = None, types.PARSE_ERROR, "this line is not JSON"
    else:
        code, told = (
            types.INVALID_REQUEST,
            "this line is no message of JSON-RPC 2.0, or has text that is not Unicode",
        )
    shown = line[:SHOWN].decode("utf-8", "backslashreplace")
    logger.warning("a line of the MCP client was refused: %s: %s", told, shown)
    number = data.get("id") if isinstance(data, dict) else None
    usable = encodes(number) if isinstance(number, str) else type(number) is int
    asked = number if usable else None
    return types.JSONRPCError(jsonrpc="2.0", id=asked, error=types.ErrorData(code=code, message=told))


async def _write(sink: int, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    ready = select.poll()
    ready.register(sink, select.POLLOUT)
    async with outgoing:
        async for message in outgoing:
            data = _encoded(message.message)
            # A pipe that is ready takes this many bytes without waiting (POSIX, PIPE_BUF).
            if len(data) <= select.PIPE_BUF and ready.poll(0):
                os.write(sink, data)
            else:
                await _in_thread(sink, data)


def _encoded(message: types.JSONRPCMessage) -> bytes:
    """Return a message as a line. Half a character in it, as in the name of a file, is shown as U+FFFD; an answer that
    is no JSON for another reason is replaced by an error, and any other message is left out.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        pass
    try:
        data = message.model_dump(by_alias=True, exclude_unset=True)
        return json.dumps(legible_data(data), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (ValueError, TypeError, RecursionError) as error:
        logger.warning("a message to the MCP client cannot be written as JSON and was left out: %s", error)
    if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        return b""
    told = types.ErrorData(
        code=types.INTERNAL_ERROR, message="the answer is no JSON; the server's log says why"
    )
    return types.JSONRPCError(jsonrpc="2.0", id=message.id, error=told).model_dump_json().encode() + b"\n"


async def _in_thread(sink: int, data: bytes) -> None:
    """Write to a reader that may be slow, or never read: neither the loop nor the end of the process waits."""
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def settle(error: OSError | None) -> None:
        if not written.done():
            written.set_result(None) if error is None else written.set_exception(error)

    def work() -> None:
        failed: OSError | None = None
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(sink, view) :]
        except OSError as error:
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=work, name="mcp-stdout", daemon=True).start()
    await written
