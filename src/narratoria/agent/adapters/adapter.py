"""The adapter protocol: messages in, a reply out. All access to language models goes through an adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from narratoria import telemetry
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject, ModelAsked
from narratoria.telemetry.provider import live
from narratoria.tools.tool import Tool
from narratoria.unicode_text import legible

MAX_REPLY_BYTES: Final = 4 * 1024 * 1024
MAX_NAME: Final = 200  # letters of a model's name, as a server gives it
CHARACTERS_PER_TOKEN: Final = 4  # where a server does not count: close for English, generous for code


class ModelFailed(NarratoriaError):
    """A model gave no usable reply. It costs the attempt that asked, nothing more."""

    status: int | None = None
    """The HTTP status of the answer, where there was one."""


class ModelUnreachable(ModelFailed):
    """The address does not answer, or the connection broke."""


class ModelTimedOut(ModelFailed):
    """The reply was not complete in time."""


class ContextOverflow(ModelFailed):
    """The messages are longer than the model's context."""


class FormatRefused(ModelFailed):
    """The server rejects this response format; a simpler one may work."""


class ModelRefused(ModelFailed):
    """The server rejects this caller: the key, the address or the model's name is wrong."""


class ModelBusy(ModelFailed):
    """The server asks the caller to wait before the next request."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds, where the server says how many


class ReplyTooLarge(ModelFailed):
    """The reply exceeded the size limit and was cut off."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in the currency of the budget."""

    input: float = 0.0
    output: float = 0.0

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the price of so many tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The tokens of a reply and their cost; `counted` is False where the server told none and they were estimated."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    counted: bool = True  # False where the server told nothing and we estimated

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
            self.counted and other.counted,
        )


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call as the model wrote it: `arguments` is text, and may be anything."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. `messages` are chat messages: `{"role": …, "content": …}`."""

    messages: Sequence[JsonObject]
    tools: Sequence[Tool[Any, Any]] = ()
    tool_choice: str | None = None  # "auto", "required", "none"
    schema: JsonObject | None = None  # of the reply's JSON
    any_json: bool = False  # for servers without schemas: "answer in JSON"
    max_tokens: int = 1024
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of a model: its text and the calls it asks for. `finish` is `length` where it was cut off."""

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    usage: ModelUsage = field(default_factory=ModelUsage)
    finish: str = "stop"  # "length" where it was cut off at max_tokens
    model: str = ""

    def account(self, seconds: float, model: str = "") -> ModelAsked:
        """Return the record of this reply, which took `seconds`; `model` is the name where the server gave none."""
        usage = self.usage
        return ModelAsked(
            model=legible(self.model or model)[:MAX_NAME],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
            seconds=round(seconds, 3),
            estimated=not usage.counted,
        )


def unheard(text: str) -> None:
    """Ignore the pieces of a reply."""


@runtime_checkable
class Adapter(Protocol):
    """The connection to one provider. `on_text` gets the reply's text piece by piece, as it is written."""

    @property
    def name(self) -> str:
        """The name of the adapter, for messages."""

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None] = unheard) -> ModelReply:
        """Send a request and return the reply."""


async def complete(
    adapter: Adapter, request: ModelRequest, on_text: Callable[[str], None] = unheard
) -> ModelReply:
    """Ask a model through its adapter, in a span. The adapter may tell its `provider`, `model` and `address`."""
    if not live():
        return await adapter.complete(request, on_text)
    provider = str(getattr(adapter, "provider", type(adapter).__name__))
    model: str | None = getattr(adapter, "model", None)
    with telemetry.chat(provider, model, getattr(adapter, "address", ""), request.max_tokens) as span:
        if telemetry.captures():
            span.keep(input_messages=[telemetry.message(one) for one in request.messages])
        reply = await adapter.complete(request, on_text)
        span.note(answered_by=reply.model or None, finish_reasons=[reply.finish])
        if reply.usage.counted:
            asked, answered = reply.usage.input_tokens, reply.usage.output_tokens
            span.note(input_tokens=asked, output_tokens=answered)
            telemetry.tokens(provider, model, asked, answered)
        if telemetry.captures():
            said = telemetry.message(_as_message(reply))
            span.keep(output_messages=[{**said, "finish_reason": reply.finish}])
    return reply


def _as_message(reply: ModelReply) -> JsonObject:
    calls = [
        {"id": one.id, "function": {"name": one.name, "arguments": one.arguments}} for one in reply.calls
    ]
    return {"role": "assistant", "content": reply.text, "tool_calls": calls}


def estimated_tokens(text: str) -> int:
    return len(text) // CHARACTERS_PER_TOKEN + 1
