"""Helpers for your own tests: a scripted model server (real HTTP on loopback, no model) and `cassette`.

    async with ScriptedModel(Says("Hello."), Fails(500)) as server:
        adapter = OpenAIAdapter(base_url=server.url, model="scripted")

Each request is answered by the next entry of the script; `server.requests` holds what was asked. And `cassette`: a
recorded session, played back through the real runtime without a process or a model.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from narratoria.authoring.cassette import Cassette as Cassette
from narratoria.authoring.cassette import cassette as cassette
from narratoria.conformance import check_tool

_HEADERS_END: Final = b"\r\n\r\n"
_PIECE: Final = 64 * 1024


def conformance(
    tool: str | Path,
    *,
    input: Mapping[str, Any] | None = None,  # noqa: A002 - the protocol's word
    timeout: float | None = None,
) -> None:
    """Run a tool with good and hostile requests; raise `AssertionError` with each rule of the protocol it breaks.

    `input` is a request that the tool accepts; by default the first example of its manifest.
    """
    report = check_tool(Path(tool), input=None if input is None else dict(input), timeout=timeout)
    broken = [one for one in report.judgements if one.verdict == "fail" and one.rule.level == "MUST"]
    if broken:
        listed = "".join(f"\n- {one.rule.says}: {one.detail}" for one in broken)
        raise AssertionError(f"{report.tool} does not conform:{listed}")


@dataclass(frozen=True, slots=True)
class Says:
    """A streamed reply: text in pieces of `piece` characters, tool calls as (name, arguments as JSON text)."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    piece: int = 7
    finish: str | None = None
    tokens: tuple[float, float] | None = (10, 5)  # input and output; None for a server that does not count
    cost: float | None = None  # in dollars, of servers that tell it
    model: str = "scripted"


@dataclass(frozen=True, slots=True)
class Fails:
    """An error response in the form of the API."""

    status: int = 500
    message: str = "out of order"
    retry_after: str = ""  # the header of that name


@dataclass(frozen=True, slots=True)
class Hangs:
    """Headers, perhaps some text, then silence until the caller goes away."""

    after: str = ""


@dataclass(frozen=True, slots=True)
class Writes:
    """Raw bytes, valid or not, then the end of the connection."""

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Floods:
    """A body that goes on for `size` bytes without ever ending a line."""

    size: int = 200 * 1024 * 1024
    status: int = 200


@dataclass(frozen=True, slots=True)
class Drips:
    """A streamed reply byte by byte, with a pause of `pause` seconds after each."""

    text: str
    pause: float = 1.0


@dataclass(frozen=True, slots=True)
class Babbles:
    """A stream of good events that never ends."""

    text: str = "and "


@dataclass(frozen=True, slots=True)
class Resets:
    """Headers, some text, then a connection that is torn down."""

    after: str = ""


@dataclass(frozen=True, slots=True)
class Redirects:
    """Sends the caller to another address."""

    to: str
    status: int = 307


@dataclass(frozen=True, slots=True)
class Serves:
    """A JSON document."""

    document: Mapping[str, Any]


Behaviour: TypeAlias = Says | Fails | Hangs | Writes | Floods | Drips | Babbles | Resets | Redirects | Serves


_ONE_MODEL: Final = Serves({"object": "list", "data": [{"id": "scripted", "object": "model"}]})


class ScriptedModel:
    """An OpenAI-compatible server that answers from a script. `models` answers whoever asks for its models."""

    def __init__(self, *script: Behaviour, models: Behaviour = _ONE_MODEL) -> None:
        self.script = list(script)
        self.models = models
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.looks: list[dict[str, str]] = []  # headers of those who asked for its models
        self.sent = 0  # bytes of flood that somebody took
        self.left_alone = asyncio.Event()  # a caller of `Hangs` has gone away
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - start_server runs this in one
        self._tasks.add(task)
        try:
            # Cancelled means that the server closes; asyncio would print the exception of a connection's task.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(_HEADERS_END)).decode("latin-1").split("\r\n")
        headers = {
            name.strip().casefold(): value.strip()
            for name, _, value in (one.partition(":") for one in head[1:])
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if head[0].startswith("GET"):
            self.looks.append(headers)
            await self._behave(self.models, reader, writer)
            return
        self.headers.append(headers)
        self.requests.append(msgspec.json.decode(body))
        behaviour = self.script.pop(0) if self.script else Fails(500, "the script is at its end")
        await self._behave(behaviour, reader, writer)

    async def _behave(
        self, behaviour: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match behaviour:
            case Says():
                _begin(writer)
                for event in _events(behaviour):
                    writer.write(b"data: " + event + b"\n\n")
                    await writer.drain()
            case Fails(status, message, retry_after):
                error = {"message": message, "type": "error", "code": status}
                await _answer(writer, status, {"error": error}, retry_after)
            case Hangs(after):
                _begin(writer)
                if after:
                    writer.write(b"data: " + _chunk({"content": after}) + b"\n\n")
                    await writer.drain()
                await reader.read()  # ends when the caller closes the connection
                self.left_alone.set()
            case Drips(text, pause):
                _begin(writer)
                for byte in b"".join(b"data: " + event + b"\n\n" for event in _events(Says(text))):
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(pause)
            case Babbles(text):
                _begin(writer)
                while True:
                    writer.write(b"data: " + _chunk({"content": text}) + b"\n\n")
                    await writer.drain()
            case Resets(after):
                _begin(writer)
                writer.write(b"data: " + _chunk({"content": after}) + b"\n\n")
                await writer.drain()
                linger = struct.pack("ii", 1, 0)  # on, for no time: close() sends RST instead of FIN
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
            case Redirects(to, status):
                writer.write(
                    f"HTTP/1.1 {status} -\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
                )
                await writer.drain()
            case Serves(document):
                await _answer(writer, 200, document)
            case Writes(raw, content_type, status):
                _begin(writer, status, content_type)
                writer.write(raw)
                await writer.drain()
            case Floods(size, status):
                _begin(writer, status)
                for _ in range(size // _PIECE):
                    writer.write(b"x" * _PIECE)
                    await writer.drain()
                    self.sent += _PIECE


def _begin(
    writer: asyncio.StreamWriter,
    status: int = 200,
    content_type: str = "text/event-stream",
    retry_after: str = "",
) -> None:
    pause = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {content_type}\r\n{pause}Connection: close\r\n\r\n"
    writer.write(head.encode())


async def _answer(
    writer: asyncio.StreamWriter, status: int, document: Mapping[str, Any], retry_after: str = ""
) -> None:
    _begin(writer, status, "application/json", retry_after)
    writer.write(msgspec.json.encode(document))
    await writer.drain()


def _events(reply: Says) -> list[bytes]:
    pieces = [reply.text[at : at + reply.piece] for at in range(0, len(reply.text), reply.piece)]
    events = [_chunk({"role": "assistant", "content": ""})]
    events += [_chunk({"content": piece}) for piece in pieces]
    for index, (name, arguments) in enumerate(reply.calls):
        opened = {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        events.append(_chunk({"tool_calls": [opened]}))
        for at in range(0, len(arguments), reply.piece):
            part = {"index": index, "function": {"arguments": arguments[at : at + reply.piece]}}
            events.append(_chunk({"tool_calls": [part]}))
    events.append(_chunk({}, reply.finish or ("tool_calls" if reply.calls else "stop")))
    if reply.tokens is not None:
        given, written = reply.tokens
        usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
        if reply.cost is not None:
            usage["cost"] = reply.cost
        events.append(
            msgspec.json.encode({**_envelope(), "model": reply.model, "choices": [], "usage": usage})
        )
    return [*events, b"[DONE]"]


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return msgspec.json.encode({**_envelope(), "choices": [choice]})


def _envelope() -> dict[str, Any]:
    return {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
