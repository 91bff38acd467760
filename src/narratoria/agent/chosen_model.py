"""The language model that a person chose: its server's address, its name, and where its key is kept.

The choice is in `model.json` of the data home; the page and the command line both write it here. The key is never in
it: `store.secret_keeping` has it, for one server alone. NARRATORIA_LLM_URL, set where a program is started, is used in
place of the choice; OPENAI_* are used where there is neither.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from narratoria import bounds, strict_json
from narratoria.agent.adapters.adapter import (
    MAX_NAME,
    ModelRefused,
    ModelReply,
    ModelRequest,
    Price,
    unheard,
)
from narratoria.agent.adapters.settings import number_in
from narratoria.errors import NarratoriaError
from narratoria.session.private_files import make_file, make_folder
from narratoria.store import secret_keeping
from narratoria.store.store import data_home
from narratoria.typed_values import convert

if TYPE_CHECKING:
    from narratoria.agent.adapters.openai_compatible import OpenAIAdapter

URL: Final = "NARRATORIA_LLM_URL"
TIMEOUT: Final = "NARRATORIA_LLM_TIMEOUT"
SECONDS: Final = 60.0
"""Seconds for one answer, unless a person says otherwise: a model on the person's own computer takes its time."""
LONGEST: Final = 600.0
_SECRET: Final = "model-key"  # noqa: S105 - the name of one
_MOST: Final = 64 * 1024
_LONGEST_ADDRESS: Final = 500
_LONGEST_KEY: Final = 2000
_MOST_DOLLARS: Final = 10_000.0
_OF_ANY_SERVER: Final = (
    TIMEOUT, "NARRATORIA_LLM_MAX_TOKENS", "NARRATORIA_LLM_MAX_COST", "NARRATORIA_LLM_TEMPERATURE"
)  # fmt: skip
_NONE: Final = (
    "no language model is configured: choose one in Settings under Language model, or with narratoria model use, "
    "or set NARRATORIA_LLM_URL"
)


_writing = Lock()  # two windows may save at once


class ChoiceInvalid(NarratoriaError):
    """The choice of a model cannot be used; the message names the field and what to do."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A kind of server, and where it usually listens."""

    name: str
    title: str
    address: str
    start: str = ""  # what to do if it does not answer


PRESETS: Final = (
    Preset("ollama", "Ollama", "http://127.0.0.1:11434/v1", "start it with: ollama serve"),
    Preset("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", "start it with: llama-server -m MODEL.gguf"),
    Preset("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "start its server under Developer"),
    Preset("vllm", "vLLM", "http://127.0.0.1:8000/v1", "start it with: vllm serve MODEL"),
    Preset("openai", "OpenAI-compatible", "https://api.openai.com/v1"),
)


class ModelChoice(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """A person's choice. `key` says where the key is kept, if there is one."""

    address: str
    model: str = ""
    preset: str = ""
    key: Literal["", "keyring", "file"] = ""
    timeout: float = SECONDS
    input_price: float = 0.0
    output_price: float = 0.0

    @property
    def price(self) -> Price:
        """Dollars for a million tokens."""
        return Price(self.input_price, self.output_price)


def choice() -> ModelChoice | None:
    """Return the person's choice; None if there is none. Raise `ChoiceInvalid` for a file that cannot be used."""
    path = _file()
    try:
        return checked(convert(strict_json.read_file(path, _MOST), ModelChoice))
    except FileNotFoundError:
        return None
    except ChoiceInvalid as error:
        raise ChoiceInvalid(f"{path}: {error}") from None
    except bounds.DocumentFault as error:
        where = f"{path}:{error.line}" if error.line else path
        raise ChoiceInvalid(f"{where}: cannot be used: {error}; choose a model again") from None
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ChoiceInvalid(f"{path}: cannot be used: {error}; choose a model again") from None


def choose(wanted: ModelChoice, key: str | None = None) -> ModelChoice:
    """Write a choice down and return it. Without `key` the one that is kept stays, if the server is the same; "" takes
    it away.
    """
    wanted = checked(wanted)
    with _writing:
        if key:
            # With the key goes the server it belongs to: it is never sent to another one, whatever the file says.
            place: Literal["", "keyring", "file"] = secret_keeping.keep(
                _SECRET, f"{_origin(wanted.address)} {checked_key(key)}"
            )
        elif (
            key is None
            and (before := _readable())
            and before.key
            and same_server(before.address, wanted.address)
        ):
            place = before.key
        else:
            secret_keeping.forget(_SECRET)
            place = ""
        wanted = msgspec.structs.replace(wanted, key=place)
        path = _file()
        make_folder(path.parent)
        fresh = path.with_name("model.json.new")
        fresh.unlink(missing_ok=True)
        make_file(fresh)
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(wanted), indent=2))
        fresh.replace(path)
    return wanted


def forget() -> None:
    """Delete the choice, and the key."""
    with _writing:
        secret_keeping.forget(_SECRET)
        _file().unlink(missing_ok=True)


def key_for(address: str) -> str | None:
    """Return the key that is kept for this server; None if there is none, or it is another server's."""
    chosen = _readable()
    if chosen is None or not chosen.key or not same_server(chosen.address, address):
        return None
    origin, _, key = secret_keeping.kept(_SECRET, chosen.key).partition(" ")
    return key if origin == _origin(address) else None


# --- checking ----------------------------------------------------------------------------------------------


def checked(wanted: ModelChoice) -> ModelChoice:
    """Return a choice with its address in the usual form; raise `ChoiceInvalid` for what cannot be used."""
    if wanted.preset and wanted.preset not in {one.name for one in PRESETS}:
        raise ChoiceInvalid(f"preset: there is none called {wanted.preset[:40]!r}")
    model = wanted.model.strip()
    if len(model) > MAX_NAME or not model.isprintable():
        raise ChoiceInvalid(f"model: a name has at most {MAX_NAME} letters, in one line")
    if not 1 <= wanted.timeout <= LONGEST:
        raise ChoiceInvalid(f"timeout: expected 1 to {LONGEST:g} seconds")
    for price in (wanted.input_price, wanted.output_price):
        if not (math.isfinite(price) and 0 <= price <= _MOST_DOLLARS):
            raise ChoiceInvalid(f"price: expected 0 to {_MOST_DOLLARS:,.0f} dollars for a million tokens")
    return msgspec.structs.replace(wanted, address=checked_address(wanted.address), model=model)


def checked_address(address: str) -> str:
    """Return the address of an API in the usual form. One without a path gets `/v1`, which most servers have."""
    text = address.strip()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if (
        not usable
        or len(text) > _LONGEST_ADDRESS
        or not text.isascii()
        or not text.isprintable()
        or " " in text
    ):
        raise ChoiceInvalid("address: expected one such as http://127.0.0.1:11434/v1")
    if "@" in parts.netloc:
        raise ChoiceInvalid("address: it holds a password; leave that out, and give the key as the key")
    if parts.query or parts.fragment:
        raise ChoiceInvalid("address: leave out what follows the ? or #")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or "/v1"))


def checked_key(key: str) -> str:
    """Return a key that a request can carry. The message of a refusal does not repeat it."""
    key = key.strip()
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise ChoiceInvalid("key: expected one word of plain letters, as the provider gave it")
    return key


def usual(env: Mapping[str, str] = os.environ) -> list[Preset]:
    """Return the presets, that of Ollama where its own variable says it listens."""
    host = env.get("OLLAMA_HOST", "").strip()
    presets = list(PRESETS)
    if host:
        address = host if "://" in host else f"http://{host}"
        try:
            address = checked_address(address.replace("//0.0.0.0", "//127.0.0.1"))
        except ChoiceInvalid:
            return presets
        at = next(at for at, one in enumerate(presets) if one.name == "ollama")
        if ":" in host.rpartition("//")[2].rpartition("]")[2]:  # without a port it is the usual one
            presets[at] = replace(presets[at], address=address)
    return presets


def same_server(one: str, other: str) -> bool:
    """Tell if two addresses are of one server: the same scheme, host and port."""
    return _origin(one) == _origin(other)


def _origin(address: str) -> str:
    parts = urlsplit(checked_address(address))
    return f"{parts.scheme}://{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _readable() -> ModelChoice | None:
    try:
        return choice()
    except ChoiceInvalid:
        return None


def _file() -> Path:
    return data_home() / "model.json"


# --- using -------------------------------------------------------------------------------------------------


def environment(env: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """Return the variables that describe the model to use: the person's choice in place of those of `env`, unless
    `env` names a server of its own. The key is not among them.
    """
    chosen = None if env.get(URL) else choice()
    if chosen is None:
        return env
    found = {URL: chosen.address, "NARRATORIA_LLM_MODEL": chosen.model, TIMEOUT: f"{chosen.timeout:g}"}
    if chosen.input_price or chosen.output_price:
        found["NARRATORIA_LLM_PRICE"] = f"{chosen.input_price!r}/{chosen.output_price!r}"
    return found | {name: env[name] for name in _OF_ANY_SERVER if env.get(name)}


def missing(env: Mapping[str, str] = os.environ) -> str:
    """Return why there is no model to use, in a sentence, or ""."""
    try:
        found = environment(env)
    except ChoiceInvalid as error:
        return str(error)
    return "" if any(found.get(name) for name in (URL, "OPENAI_API_KEY", "OPENAI_BASE_URL")) else _NONE


def adapter(env: Mapping[str, str] = os.environ) -> ChosenModel | None:
    """Return the adapter to the model a person chose; None where the environment names one."""
    chosen = None if env.get(URL) else choice()
    return None if chosen is None else ChosenModel(chosen, number_in(env, "NARRATORIA_LLM_TEMPERATURE"))


class ChosenModel:
    """The adapter to the model that a person chose. Its key is looked up when it is first asked, in a thread: a keyring
    may wait for a person to unlock it.
    """

    provider: Final = "openai"  # the API it speaks

    def __init__(self, chosen: ModelChoice, temperature: float | None = None) -> None:
        self.model = chosen.model or None
        self.address = chosen.address
        self._chosen = chosen
        self._temperature = temperature
        self._adapter: OpenAIAdapter | None = None

    @property
    def name(self) -> str:
        """The adapter's name in traces."""
        return f"{self.model or 'the only model'} at {self.address}"

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None] = unheard) -> ModelReply:
        """Return one reply, or raise a `ModelFailed` that says what the server did."""
        if self._adapter is None:
            self._adapter = await asyncio.to_thread(self._make)
        reply = await self._adapter.complete(request, on_text)
        self.model = self._adapter.model
        return reply

    def _make(self) -> OpenAIAdapter:
        from narratoria.agent.adapters.openai_compatible import OpenAIAdapter  # needs the extra `llm`

        try:
            key = key_for(self.address)
        except secret_keeping.SecretUnreadable as error:
            raise ModelRefused(f"the key for {self.address}: {error}; enter it again in Settings") from None
        return OpenAIAdapter(
            base_url=self.address,
            model=self.model,
            api_key=key,
            price=self._chosen.price,
            temperature=self._temperature,
        )
