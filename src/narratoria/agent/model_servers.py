"""Servers of language models: those that listen on this computer, the models each has, and a short test of one.

Only loopback is looked at unasked. Another address is asked only when a person entered it. No redirection is
followed, and every wait, body and list is bounded.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx2
import msgspec

from narratoria.agent.adapters.adapter import (
    MAX_NAME,
    ModelFailed,
    ModelRefused,
    ModelRequest,
    ModelTimedOut,
    ModelUnreachable,
)
from narratoria.agent.adapters.body_limit import bound
from narratoria.agent.adapters.settings import is_loopback
from narratoria.agent.chosen_model import PRESETS, ModelChoice, Preset, usual

if TYPE_CHECKING:
    from narratoria.agent.adapters.openai_compatible import OpenAIAdapter

MOST_MODELS: Final = 500
_MOST_BYTES: Final = 4 * 1024 * 1024
_LIST_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 2.5  # on loopback a server answers in milliseconds, or is not there
_WORDS: Final = 200  # letters of a model's answer that are shown
_TEST: Final = "Say hello to a reader in one short sentence."
_TEST_TOKENS: Final = 200  # a model that thinks first needs some for that
_UNKNOWN_MODEL: Final = (
    "not found",
    "not exist",
    "unknown",
    "invalid model",
    "no model",
    "not a valid",
    "not loaded",
)

Problem = Literal["unreachable", "key", "model", "address", "slow", "other"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The models of a server, and how many names it gave that are none."""

    models: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A server that listens on this computer."""

    preset: Preset
    models: tuple[str, ...]
    wants_key: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a test: the first words and what they took, or what is wrong and what to do about it."""

    seconds: float = 0.0
    words: str = ""
    streamed: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    problem: Problem | None = None
    says: str = ""
    advice: str = ""


async def find(presets: Sequence[Preset] | None = None) -> list[Found]:
    """Return the servers that listen on loopback, where those of the presets usually do. No key is sent."""
    local = [one for one in presets or usual() if is_loopback(one.address)]
    found = await asyncio.gather(*[_look(one) for one in local])
    return [one for one in found if one is not None]


async def _look(preset: Preset) -> Found | None:
    try:
        listing = await list_models(preset.address, None, seconds=_LOOK_SECONDS)
    except ModelFailed as error:
        return Found(preset, (), wants_key=True) if error.status == 401 else None
    return Found(preset, listing.models)


async def list_models(address: str, key: str | None, *, seconds: float = _LIST_SECONDS) -> Listing:
    """Return the models of a server; raise a `ModelFailed` that says what is wrong."""
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    client = httpx2.AsyncClient(
        headers=headers,
        # The certificates of the system take long to read, and plain HTTP needs none.
        verify=not address.startswith("http:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        follow_redirects=False,  # with the key it would go to another server
        trust_env=not is_loopback(address),  # a proxy does not reach this computer
        timeout=seconds,
        event_hooks={"response": [bound(_MOST_BYTES)]},
    )
    try:
        async with client, asyncio.timeout(seconds):
            answer = await client.get(f"{address}/models")
    except (TimeoutError, httpx2.TimeoutException):
        raise ModelTimedOut(f"{address}: no list of models within {seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        raise ModelUnreachable(f"nothing answers at {address}") from None
    if answer.status_code != 200:
        refusal = ModelRefused(f"{address} answered {answer.status_code} when it was asked for its models")
        refusal.status = answer.status_code
        raise refusal
    try:
        document: Any = msgspec.json.decode(answer.content)
        listed = document["data"]
        if not isinstance(listed, list):
            raise TypeError
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, ValueError):
        raise ModelFailed(
            f"{address}: what it answered is no list of models; is this the address of the API?"
        ) from None
    return _named(listed)


def _named(listed: Sequence[Any]) -> Listing:
    """Return the names among what a server listed: printable, not too long, each once."""
    names: dict[str, None] = {}
    for one in listed:
        name = one.get("id") if isinstance(one, dict) else None
        if (
            isinstance(name, str)
            and 0 < len(name) <= MAX_NAME
            and name.isprintable()
            and name == name.strip()
        ):
            names.setdefault(name)
    models = tuple(list(names)[:MOST_MODELS])
    return Listing(models, len(listed) - len(models))


async def try_model(wanted: ModelChoice, key: str | None) -> Trial:
    """Ask a model for a sentence, and return what became of it."""
    adapter = await asyncio.to_thread(_adapter, wanted, key)
    pieces: list[str] = []
    request = ModelRequest(
        [{"role": "user", "content": _TEST}], max_tokens=_TEST_TOKENS, timeout=wanted.timeout
    )
    began = time.monotonic()
    try:
        reply = await adapter.complete(request, pieces.append)
    except ModelFailed as error:
        return what_is_wrong(error, wanted, key)
    finally:
        await adapter.aclose()
    return Trial(
        seconds=round(time.monotonic() - began, 3),
        words=" ".join(reply.text.split())[:_WORDS],
        streamed=len(pieces) > 1,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
    )


def _adapter(wanted: ModelChoice, key: str | None) -> OpenAIAdapter:
    from narratoria.agent.adapters.openai_compatible import OpenAIAdapter  # takes a second to load

    return OpenAIAdapter(base_url=wanted.address, model=wanted.model or None, api_key=key, price=wanted.price)


def what_is_wrong(error: ModelFailed, wanted: ModelChoice, key: str | None) -> Trial:
    """Return a failure in words for a person, with what to do."""
    said = str(error)
    preset = next((one for one in PRESETS if one.name == wanted.preset), None)
    if isinstance(error, ModelUnreachable):
        start = f" ({preset.title}: {preset.start})" if preset is not None and preset.start else ""
        advice = f"Start the server{start}, or correct the address."
        return Trial(problem="unreachable", says=f"Nothing answers at {wanted.address}.", advice=advice)
    if isinstance(error, ModelTimedOut):
        says = f"There was no complete answer within {wanted.timeout:g} s."
        return Trial(
            problem="slow",
            says=says,
            advice="It may still be loading the model: test again, or allow it more time.",
        )
    if error.status in (401, 403):
        says = "The server refuses the key." if key else "The server wants a key."
        return Trial(problem="key", says=says, advice="Enter the key that the provider gave you.")
    folded = said.casefold()
    if error.status in (400, 404) and "model" in folded and any(words in folded for words in _UNKNOWN_MODEL):
        says = f"The server does not know the model {wanted.model!r}." if wanted.model else said
        return Trial(problem="model", says=says, advice="Choose one that it lists, or load it on the server.")
    if error.status in (301, 302, 303, 307, 308, 404, 405):
        advice = "Look at the address: that of most servers ends in /v1."
        return Trial(problem="address", says="There is no such API at this address.", advice=advice)
    return Trial(problem="other", says=said)
