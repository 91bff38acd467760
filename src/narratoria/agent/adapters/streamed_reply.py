"""A reply of a language model while its pieces arrive: text, tool calls, tokens and cost, each bounded."""

from __future__ import annotations

from typing import Any, Final

from openai.types.chat import ChatCompletionChunk

from narratoria.agent.adapters.adapter import (
    ModelCall,
    ModelFailed,
    ModelReply,
    ModelRequest,
    ModelUsage,
    Price,
    estimated_tokens,
)

MAX_CALLS: Final = 64  # tool calls in one reply
_MOST_TOKENS: Final = 1e12  # beyond that a server's count is nonsense
_MOST_DOLLARS: Final = 1e6


class StreamedReply:
    """A reply while it is being received."""

    def __init__(self) -> None:
        self.begun = False
        self.finish = ""
        self.model = ""
        self.texts: list[str] = []
        self.calls: dict[int, list[str]] = {}  # by index: id, name, arguments
        self.usage: ModelUsage | None = None
        self.cost = 0.0  # as the server tells it

    def add(self, chunk: ChatCompletionChunk) -> str:
        """Take in a chunk; return the text it adds."""
        text = ""
        self.model = chunk.model or self.model
        if chunk.usage is not None:
            given, written = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
            # OpenRouter and others tell what a reply cost, in dollars.
            self.cost = _amount(getattr(chunk.usage, "cost", None), _MOST_DOLLARS)
            self.usage = ModelUsage(_count(given), _count(written))
        for choice in chunk.choices or ():
            if choice.index not in (0, None) or choice.delta is None:
                continue
            self.begun = True
            self.finish = choice.finish_reason or self.finish
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                self._add_call(piece.index or 0, piece.id, piece.function)
        self.texts.append(text)
        return text

    def _add_call(self, index: int, call_id: str | None, function: Any) -> None:
        if index not in self.calls and len(self.calls) >= MAX_CALLS:
            raise ModelFailed(f"the reply has more than {MAX_CALLS} tool calls")
        call = self.calls.setdefault(index, ["", "", ""])
        call[0] = call_id or call[0]
        if function is not None:
            call[1] += function.name or ""
            call[2] += function.arguments or ""

    def finished(self, request: ModelRequest, price: Price) -> ModelReply:
        """Return the whole reply; tokens are estimated where the server did not count them."""
        text = "".join(self.texts)
        calls = tuple(
            ModelCall(call_id or f"call_{index}", name, arguments)
            for index, (call_id, name, arguments) in sorted(self.calls.items())
        )
        usage = self.usage or _estimate(request, text, calls)
        cost = self.cost or price.of(usage.input_tokens, usage.output_tokens)
        usage = ModelUsage(usage.input_tokens, usage.output_tokens, cost, usage.counted)
        return ModelReply(text, calls, usage, self.finish or "stop", self.model)


def _estimate(request: ModelRequest, text: str, calls: tuple[ModelCall, ...]) -> ModelUsage:
    asked = sum(estimated_tokens(str(message.get("content") or "")) for message in request.messages)
    written = estimated_tokens(text + "".join(call.arguments for call in calls))
    return ModelUsage(asked, written, counted=False)


def _count(tokens: Any) -> int:
    if not isinstance(tokens, int | float | None):
        raise TypeError(f"{type(tokens).__name__} in the place of a number of tokens")
    return int(_amount(tokens, _MOST_TOKENS))


def _amount(value: Any, most: float) -> float:
    """Return a number that a server counted; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return 0.0
    return float(value)
