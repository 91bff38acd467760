"""Settings from environment variables; a bad value is refused with the variable's name."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from urllib.parse import urlsplit

from narratoria.agent.adapters.adapter import Price
from narratoria.errors import NarratoriaError


def number_in(env: Mapping[str, str], name: str, *, above_zero: bool = False) -> float | None:
    """Return the number in the variable `name`, zero or more; None where it is not set."""
    if not env.get(name):
        return None
    number = _number(env[name])
    if number is None or (above_zero and not number):
        expected = "a number above zero" if above_zero else "a number, zero or more"
        raise NarratoriaError(f"{name}={env[name]!r}: expected {expected}")
    return number


def address_in(env: Mapping[str, str], name: str) -> str | None:
    """Return the server address in the variable `name`; None where it is not set."""
    text = env.get(name, "").strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        shown = repr(text) if "@" not in text else "…"  # what stands before an @ may be a password
        raise NarratoriaError(f"{name}={shown}: expected an address such as http://localhost:11434/v1")
    return text


def is_loopback(address: str) -> bool:
    """Tell if an address is of this computer."""
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def price_in(env: Mapping[str, str], name: str) -> Price:
    text = env.get(name, "")
    if not text:
        return Price()
    given, _, written = text.partition("/")
    asked, answered = _number(given), _number(written or given)
    if asked is None or answered is None:
        raise NarratoriaError(
            f'{name}={text!r}: expected "input/output" per million tokens, such as 0.15/0.60'
        )
    return Price(asked, answered)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
