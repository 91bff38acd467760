"""The store that the environment selects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from narratoria.errors import JournalError
from narratoria.session.private_files import close_home
from narratoria.store.store import Store, data_home


def _postgres(address: str, home: Path) -> Store:
    from narratoria.store.postgres import PostgresStore  # needs the extra `postgres`

    return PostgresStore(address, assets=home / "assets")


# One line for each kind of store that an address names.
STORES: Final[Mapping[str, Callable[[str, Path], Store]]] = {
    "postgres": _postgres,
    "postgresql": _postgres,
}


def default_store(home: Path | None = None) -> Store:
    """Return the store of `NARRATORIA_STORE`, by the scheme of its address (`postgresql://…`), else a file in the
    home.
    """
    home = home or data_home()
    close_home(home)
    shared = os.environ.get("NARRATORIA_STORE", "")
    scheme, is_address, _ = shared.partition("://")  # the rest may hold a password
    if is_address and scheme in STORES:
        return STORES[scheme](shared, home)
    if is_address:
        raise JournalError(
            f"NARRATORIA_STORE: there is no store of the kind {scheme!r}; give postgresql://… or the path of a file"
        )
    from narratoria.store.sqlite import SqliteStore

    return SqliteStore(Path(shared) if shared else home / "sessions.db", assets=home / "assets")
