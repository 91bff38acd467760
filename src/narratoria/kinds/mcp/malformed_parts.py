"""Malformed parts of a server's answers, left out one by one: a tool without a schema, content of an unknown type."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

from mcp_types import ContentBlock, JSONRPCResponse, Tool
from pydantic import TypeAdapter, ValidationError

_BLOCKS: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_SHOWN: Final = 60


@asynccontextmanager
async def mended(transport: Any, note: Callable[[list[str]], None]) -> AsyncIterator[tuple[Any, Any]]:
    """A transport to a server, of whatever kind, whose answers arrive without their malformed parts. `note` gets a line
    for each.
    """
    async with transport as (incoming, outgoing):
        yield _Mended(incoming, note), outgoing


class _Mended:
    """The messages of a stream; results are mended."""

    def __init__(self, stream: Any, note: Callable[[list[str]], None]) -> None:
        self._stream = stream
        self._note = note

    @property
    def last_context(self) -> Any:
        """The context of the sender, which the client looks for where a transport keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self._look(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._look(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        left: bool | None = await self._stream.__aexit__(kind, error, trace)
        return left

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _look(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        if isinstance(message, JSONRPCResponse) and (notes := mend(message.result)):
            self._note(notes)
        return item


def mend(result: Any) -> list[str]:
    """Take malformed tools and blocks of content out of a result, which is changed. Return a line for each."""
    if not isinstance(result, dict):
        return []
    notes: list[str] = []
    if isinstance(tools := result.get("tools"), list):
        result["tools"] = _sound(tools, _fault_of_tool, notes)
    if isinstance(content := result.get("content"), list):
        result["content"] = _sound(content, _fault_of_block, notes)
    return notes


def _sound(parts: list[Any], fault_of: Any, notes: list[str]) -> list[Any]:
    kept = []
    for part in parts:
        if (fault := fault_of(part)) is None:
            kept.append(part)
        else:
            notes.append(fault)
    return kept


def _fault_of_tool(tool: Any) -> str | None:
    named = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(named, str):
        return f"a tool was left out: it has no name: {_shown(tool)}"
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return f"the tool {_shown(named)} was left out: it has no inputSchema"
    if schema.setdefault("type", "object") != "object":
        kind = _shown(schema["type"])
        return f"the tool {_shown(named)} was left out: its inputSchema is of the type {kind}, not 'object'"
    output = tool.get("outputSchema")
    if output is not None and (not isinstance(output, dict) or output.get("type", "object") != "object"):
        del tool["outputSchema"]
    return _fault(Tool, tool, f"the tool {_shown(named)}")


def _fault_of_block(block: Any) -> str | None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in ("text", "image", "audio", "resource", "resource_link"):
        return f"a part of the result was left out: its type {_shown(kind)} is unknown"
    return _fault(_BLOCKS, block, f"a part of the result of the type {kind!r}")


def _fault(model: Any, data: Any, what: str) -> str | None:
    try:
        (model.validate_python if isinstance(model, TypeAdapter) else model.model_validate)(data)
    except ValidationError as error:
        first = error.errors()[-1]
        place = ".".join(str(one) for one in first["loc"])
        return f"{what} was left out: {place}: {first['msg']}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
