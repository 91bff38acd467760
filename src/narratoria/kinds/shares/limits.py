"""The limits of a server or a program that many share, from a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.kinds.shares.quotas import HOUR, Amount, Count, Quota
from narratoria.typed_values import convert

PLACES_PER_CORE: Final = 8


class ShareLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of everybody together, of each player, of each session, and of tools by their names.

    Without a file, only what protects a machine is limited: see `default_limits`.
    """

    processes: Count | None = None
    """Processes of tools at once; more wait."""
    turns: Count | None = None
    """Turns at once; more are refused."""
    waiting: Count = 10_000
    """Calls that may wait at once; more fail."""
    wait_seconds: Amount = 60.0
    """The longest wait of one call; it fails then."""
    overload_seconds: Amount = 10.0
    """Turns are refused while their first call would wait for longer."""
    player: Quota = Quota()
    session: Quota = Quota()
    tools: dict[str, Quota] = {}


def default_limits(cores: int) -> ShareLimits:
    """Return the limits of a server without a file: eight processes per core, half of them and half of the CPU time for
    one session. Tools that wait for something else than the processor need more places than cores.
    """
    places = PLACES_PER_CORE * cores
    return ShareLimits(
        processes=places,
        turns=2_000,
        session=Quota(processes=max(1, places // 2), cpu_seconds_per_hour=HOUR * cores / 2),
    )


def read_limits(file: Path, cores: int) -> ShareLimits:
    """Read limits from a file. What it does not name is as without one; a table that it has is taken whole."""
    try:
        given: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise NarratoriaError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise NarratoriaError(f"{file} is not TOML: {error}") from None
    usual = default_limits(cores)
    named = {name: given.get(name, getattr(usual, name)) for name in usual.__struct_fields__}
    try:
        whole: ShareLimits = convert({**given, **msgspec.to_builtins(named)}, ShareLimits)
    except msgspec.ValidationError as error:
        raise NarratoriaError(f"{file}: {error}; docs/shares.md lists the keys") from None
    return whole
