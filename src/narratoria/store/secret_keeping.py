"""A person's secrets, such as the key of a model's server: in the system's keyring, or in a file of their own.

The keyring is used where the package `keyring` is installed and finds one that works. The file is in `keys/` of the
data home, and only its owner may open it.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from pathlib import Path
from typing import Any, Final, Literal

from narratoria import bounds
from narratoria.errors import NarratoriaError
from narratoria.session.private_files import make_file, make_folder
from narratoria.store.store import data_home

SERVICE: Final = "narratoria"
"""The name under which the keyring keeps our entries."""
LONGEST: Final = 4096
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")

Place = Literal["keyring", "file"]


class SecretUnreadable(NarratoriaError):
    """A secret that was kept cannot be read now."""


def system_keyring() -> Any | None:
    """Return the module `keyring`; None where it is not installed."""
    try:
        return importlib.import_module("keyring")
    except ImportError:
        return None


def keep(name: str, secret: str) -> Place:
    """Keep a secret under a name, in place of the one before, and return where it is."""
    path = _file(name)
    if _to_keyring(name, secret):
        path.unlink(missing_ok=True)
        return "keyring"
    make_folder(path.parent)
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    make_file(fresh)
    fresh.write_text(secret, encoding="utf-8")
    fresh.replace(path)
    return "file"


def kept(name: str, place: Place) -> str:
    """Return the secret that is kept there under this name; raise `SecretUnreadable` if it is not."""
    if place == "file":
        try:
            return bounds.read_file(_file(name), LONGEST).decode()
        except (OSError, ValueError) as error:
            raise SecretUnreadable(f"{_file(name)} cannot be read: {error}") from None
    ring = system_keyring()
    if ring is None:
        raise SecretUnreadable("it is in the keyring, whose package is gone; run: pip install keyring")
    try:
        found = ring.get_password(SERVICE, name)
    except _failures(ring) as error:
        raise SecretUnreadable(f"the keyring does not give it out: {error}") from None
    if not isinstance(found, str) or not found:
        raise SecretUnreadable(f"the keyring has no entry {name!r}")
    return found


def forget(name: str) -> None:
    """Delete a secret wherever it is kept."""
    _file(name).unlink(missing_ok=True)
    ring = system_keyring()
    if ring is not None:
        with contextlib.suppress(*_failures(ring)):  # it is not there, or nothing is
            ring.delete_password(SERVICE, name)


def _to_keyring(name: str, secret: str) -> bool:
    """Put a secret into the keyring; tell if it is there. Some keyrings take everything and keep nothing."""
    ring = system_keyring()
    if ring is None:
        return False
    try:
        ring.set_password(SERVICE, name, secret)
        return bool(ring.get_password(SERVICE, name) == secret)
    except _failures(ring):
        return False


def _failures(ring: Any) -> tuple[type[BaseException], ...]:
    own = getattr(getattr(ring, "errors", None), "KeyringError", RuntimeError)
    return own, RuntimeError, OSError


def _file(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a secret")
    return data_home() / "keys" / name


__all__ = ["LONGEST", "SERVICE", "Place", "SecretUnreadable", "forget", "keep", "kept", "system_keyring"]
