"""An adapter for any server that speaks OpenAI's chat completions: Ollama, llama.cpp, vLLM, hosted models.

Replies are always streamed, bounded in bytes and in time, and never retried here: the caller decides that.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx2
import msgspec
import openai
from openai.types.chat import ChatCompletionChunk

from narratoria.agent.adapters.adapter import (
    MAX_REPLY_BYTES,
    ContextOverflow,
    FormatRefused,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    ModelTimedOut,
    ModelUnreachable,
    Price,
    unheard,
)
from narratoria.agent.adapters.body_limit import bound
from narratoria.agent.adapters.function_names import function_name
from narratoria.agent.adapters.key_masking import Discreet
from narratoria.agent.adapters.settings import address_in, is_loopback, number_in, price_in
from narratoria.agent.adapters.streamed_reply import StreamedReply
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject

_NO_KEY: Final = "none"
_SECRET: Final = 12  # letters: what is shorter ("ollama") is no secret, and may be a word of the reply
_QUOTED: Final = 300  # characters of a server's message that are passed on
_CONNECT_TIMEOUT: Final = 5.0
_OVERFLOW_WORDS: Final = (
    "context length",
    "context size",
    "context window",
    "context_length",
    "too many tokens",
)
_PASSING: Final = (408, 409, 425)  # of the 4xx, those that another try may not meet
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "grammar", "schema")


_ENVELOPE: Final = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": ""}
# What looks like a key: servers quote the one they refuse.
_KEYS: Final = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)[-_][\w*-]{6,}|(?<=Bearer )\S+", re.IGNORECASE)


class OpenAIAdapter:
    """The adapter to one model at one address."""

    provider: Final = "openai"  # the API it speaks, whoever answers

    def __init__(
        self,
        *,
        base_url: str | None = None,
        model: str | None = None,
        api_key: str | None = None,
        price: Price = Price(),  # noqa: B008 (frozen)
        temperature: float | None = None,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """`model` may be left out where the server has only one; `extra_body` goes into every request."""
        self.model = model
        self.price = price
        self.temperature = temperature
        self.extra_body = dict(extra_body or {})
        # A local server wants no key, but the SDK does not start without one. Without an address the SDK
        # goes to the hosted service, and takes OPENAI_API_KEY itself.
        try:
            self._client = openai.AsyncOpenAI(
                base_url=base_url,
                api_key=api_key or (None if base_url is None else _NO_KEY),
                max_retries=0,
                default_headers={"Accept-Encoding": "identity"},
                http_client=openai.DefaultAsyncHttpxClient(
                    event_hooks={"response": [bound(max_reply_bytes)]},
                    trust_env=base_url is None
                    or not is_loopback(base_url),  # a proxy does not reach this computer
                    follow_redirects=False,  # a player's words go to the address that was set, and nowhere else
                    # No connection outlives its reply: an adapter may be used from one event loop after another.
                    limits=httpx2.Limits(max_keepalive_connections=0),
                    timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT),
                ),
            )
        except openai.OpenAIError as error:
            raise NarratoriaError(
                "no language model is configured: pass base_url, the address of an OpenAI-compatible server "
                "(Ollama: http://localhost:11434/v1), or api_key for OpenAI's own, or set OPENAI_API_KEY"
            ) from error
        self.address = _shown(str(self._client.base_url))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> OpenAIAdapter:
        """From NARRATORIA_LLM_URL, _MODEL, _KEY, _PRICE and _TEMPERATURE, or else from OPENAI_*.

        A key goes only where it belongs: OPENAI_API_KEY is never sent to the address in NARRATORIA_LLM_URL.
        """
        env = os.environ if environment is None else environment
        url, key = address_in(env, "NARRATORIA_LLM_URL"), env.get("NARRATORIA_LLM_KEY")
        if not url:
            url, key = address_in(env, "OPENAI_BASE_URL"), key or env.get("OPENAI_API_KEY")
        if not url and not key:
            raise NarratoriaError(
                "no language model is configured: set NARRATORIA_LLM_URL to an OpenAI-compatible address "
                "(Ollama: http://localhost:11434/v1) or OPENAI_API_KEY"
            )
        return cls(
            base_url=url,
            api_key=key,
            model=env.get("NARRATORIA_LLM_MODEL") or env.get("OPENAI_MODEL"),
            price=price_in(env, "NARRATORIA_LLM_PRICE"),
            temperature=number_in(env, "NARRATORIA_LLM_TEMPERATURE"),
        )

    @property
    def name(self) -> str:
        """The adapter's name in traces."""
        return f"{self.model or 'the only model'} at {self.address}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None] = unheard) -> ModelReply:
        """Return one reply, or raise a `ModelFailed` that says what the server did. A key the server repeats is
        removed.
        """
        key = self._client.api_key
        secret = key if len(key) >= _SECRET else ""
        heard = Discreet(secret, on_text)
        try:
            reply = await self._bounded(request, heard)
            heard.end()
            return replace(reply, text=self._without_key(reply.text)) if secret else reply
        except ModelFailed as error:
            error.args = tuple(_KEYS.sub("[key]", self._without_key(str(one))) for one in error.args)
            raise

    def _without_key(self, text: str) -> str:
        key = self._client.api_key
        return text.replace(key, "[key]") if key and key != _NO_KEY else text

    async def _bounded(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._complete(request, on_text)
        except (TimeoutError, openai.APITimeoutError):
            limit = "in time" if request.timeout is None else f"within {request.timeout:g} s"
            raise ModelTimedOut(f"{self.address}: no complete reply {limit}") from None
        except openai.APIStatusError as error:
            refusal = self._refusal(error, request)
            refusal.status = error.status_code
            raise refusal from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, ModelFailed):
                raise error.__cause__ from None
            raise ModelUnreachable(
                f"{self.address}: {_clip(error.__cause__ or error)}; is the server running?"
            ) from None
        except openai.APIError as error:
            raise self._judged(error.message, request) from None
        except httpx2.HTTPError as error:
            raise ModelUnreachable(f"{self.address}: {_clip(error)}") from None
        except (ValueError, RecursionError) as error:  # an event of the stream that is not JSON
            raise ModelFailed(f"{self.address}: the reply cannot be read: {_clip(error)}") from None

    async def _complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.model = self.model or await self._only_model()
        stream = await self._client.chat.completions.create(**self._body(request))
        if not isinstance(stream, openai.AsyncStream):
            raise ModelFailed(f"{self.address}: the server does not stream its replies")
        reply = StreamedReply()
        kind = stream.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        async with stream:
            if kind == "application/json":  # a server that knows no streams, or an error with a good status
                return self._whole(msgspec.json.decode(await stream.response.aread()), request, on_text)
            if kind == "text/html":
                raise ModelFailed(
                    f"{self.address}: a page ({kind}) in the place of a reply; is this the address of the API?"
                )
            async for chunk in stream:
                if not isinstance(chunk, ChatCompletionChunk):
                    raise ModelFailed(f"{self.address}: {_clip(repr(chunk))} is no part of a reply")
                try:
                    text = reply.add(chunk)
                except (AttributeError, TypeError) as error:  # the SDK does not check what servers send
                    raise ModelFailed(
                        f"{self.address}: a malformed part of a reply: {_clip(error)}"
                    ) from None
                if text:
                    on_text(text)
        if not reply.begun:
            raise ModelFailed(f"{self.address}: the stream ({kind or 'of no type'}) ended without a reply")
        return reply.finished(request, self.price)

    def _whole(self, document: Any, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """Read a reply that came in one piece, as if it had been streamed."""
        if isinstance(document, dict) and document.get("error"):
            error = document["error"]
            raise self._judged(
                str(error.get("message", error) if isinstance(error, dict) else error), request
            )
        try:
            for choice in document["choices"]:
                choice["delta"] = message = choice.pop("message")
                for index, call in enumerate(message.get("tool_calls") or ()):
                    call.setdefault("index", index)
            reply = StreamedReply()
            text = reply.add(
                ChatCompletionChunk.model_validate({**_ENVELOPE, **document, "object": _ENVELOPE["object"]})
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFailed(f"{self.address}: a malformed reply: {_clip(error)}") from None
        if not reply.begun:
            raise ModelFailed(f"{self.address}: a reply without a choice")
        if text:
            on_text(text)
        return reply.finished(request, self.price)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        # Hosted OpenAI models refuse the old name, most other servers know only that.
        hosted = (urlsplit(self.address).hostname or "").endswith("openai.com")
        body["max_completion_tokens" if hosted else "max_tokens"] = request.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if request.tools:
            body["tools"] = [_function(tool) for tool in request.tools]
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        if request.schema is not None:
            described = {"name": "reply", "schema": request.schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif request.any_json:
            body["response_format"] = {"type": "json_object"}
        if self.extra_body:
            body["extra_body"] = self.extra_body
        return body

    async def _only_model(self) -> str:
        page = await self._client.models.list()
        names = [str(model.id) for model in (page.data or [])[:20]]
        if len(names) == 1:
            return names[0]
        raise ModelFailed(
            f"{self.address} serves {len(names)} models ({_clip(', '.join(names))}); "
            f"choose one of them, in Settings or with NARRATORIA_LLM_MODEL"
        )

    def _refusal(self, error: openai.APIStatusError, request: ModelRequest) -> ModelFailed:
        detail = error.body.get("message") if isinstance(error.body, dict) else error.body
        message = str(detail or error.message)
        if error.status_code in (400, 413, 422):
            return self._judged(message, request, status=error.status_code)
        if 300 <= error.status_code < 400:
            goal = _shown(error.response.headers.get("location", "nowhere"))
            return ModelRefused(
                f"{self.address} answered {error.status_code} and would have us go to {_clip(goal)}; "
                "if that is the API, set its address"
            )
        answered = f"{self.address} answered {error.status_code}: {_clip(message)}"
        wait = _retry_after(error.response.headers.get("retry-after", ""))
        if error.status_code == 429 or (error.status_code == 503 and wait is not None):
            return ModelBusy(answered if wait is None else f"{answered} (again in {wait:g} s)", wait)
        if 400 <= error.status_code < 500 and error.status_code not in _PASSING:
            return ModelRefused(answered)
        return ModelFailed(answered)

    def _judged(self, message: str, request: ModelRequest, *, status: int | None = None) -> ModelFailed:
        folded = message.casefold()
        answered = f"{self.address} answered{f' {status}' if status else ''}: {_clip(message)}"
        if any(words in folded for words in _OVERFLOW_WORDS):
            return ContextOverflow(answered)
        if (request.schema or request.any_json) and any(words in folded for words in _FORMAT_WORDS):
            return FormatRefused(answered)
        return ModelFailed(answered)


def _function(tool: Any) -> JsonObject:
    described = {
        "name": function_name(tool.name),
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": described}


# --- what servers say --------------------------------------------------------------------------------------


def _retry_after(value: str) -> float | None:
    """Parse a Retry-After header: seconds, or a date."""
    # RFC 9110 §10.2.3.
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _shown(address: str) -> str:
    """Return an address without the user name and password that may stand in it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that is none"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _clip(message: object) -> str:
    text = " ".join(str(message).split()) or type(message).__name__
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


__all__ = ["OpenAIAdapter"]
