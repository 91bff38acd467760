"""The JSON documents about the language model that a person chooses. No answer ever holds a key."""

from __future__ import annotations

from typing import Literal

import msgspec

from narratoria.agent.chosen_model import SECONDS
from narratoria.web.documents import Document, Request


class ServerAsked(Request, frozen=True, kw_only=True):
    """A server and a model of it. Without `key` the one that is kept for this server is used; "" is none."""

    address: str
    model: str = ""
    preset: str = ""
    key: str | None = None
    timeout: float = SECONDS


class ModelChange(ServerAsked, frozen=True, kw_only=True):
    """The model to use from now on. Without `key` the one that is kept stays, if it is of the same server; "" takes it
    away. Prices are dollars for a million tokens.
    """

    input_price: float = 0.0
    output_price: float = 0.0


class ModelPreset(Document, frozen=True, kw_only=True):
    """A kind of server, and where it usually listens."""

    name: str
    title: str
    address: str


class ModelView(Document, frozen=True, kw_only=True):
    """The model a person chose, without its key; `key` says where that is kept. Without an address there is none."""

    address: str = ""
    model: str = ""
    preset: str = ""
    key: Literal["", "keyring", "file"] = ""
    timeout: float = SECONDS
    input_price: float = 0.0
    output_price: float = 0.0
    environment: str = ""
    """The variable of the server's environment that names the model in use, in place of this one."""
    missing: str = ""
    """The part of Narratoria that is not installed, and how to install it."""
    problem: str = ""
    """The fault of a choice that cannot be read."""
    presets: list[ModelPreset]


class FoundServer(Document, frozen=True, kw_only=True):
    """A server that listens on the computer on which Narratoria runs."""

    preset: str
    title: str
    address: str
    models: list[str]
    wants_key: bool = False


class ModelList(Document, frozen=True, kw_only=True):
    """The models of a server, or what is wrong and what to do. `left_out` are names that are too long or no text."""

    models: list[str] = msgspec.field(default_factory=list)
    left_out: int = 0
    problem: str = ""
    says: str = ""
    advice: str = ""


class ModelTrial(Document, frozen=True, kw_only=True):
    """The first words of a model and what they took, or what is wrong and what to do."""

    ok: bool
    seconds: float = 0.0
    words: str = ""
    streamed: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    problem: str = ""
    says: str = ""
    advice: str = ""
