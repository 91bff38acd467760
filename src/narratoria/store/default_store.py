"""The store that the environment selects."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from narratoria.errors import JournalError
from narratoria.session.private_files import close_home
from narratoria.store.store import Store, data_home

# Where the store is that an address names by its scheme: a function from the address and the home to a store.
STORES: Final[Mapping[str, str]] = {
    "postgres": "narratoria.store.postgres:open_address",
    "postgresql": "narratoria.store.postgres:open_address",
}


def default_store(home: Path | None = None) -> Store:
    """Return the store of `NARRATORIA_STORE`, by the scheme of its address (`postgresql://…`), else a file in the
    home.
    """
    return open_store(os.environ.get("NARRATORIA_STORE", ""), home)


def open_store(shared: str, home: Path | None = None) -> Store:
    """Return the store at an address, or in a file; without either, the one in the home."""
    home = home or data_home()
    close_home(home)
    scheme, is_address, _ = shared.partition("://")  # the rest may hold a password
    if is_address and scheme in STORES:
        store: Store = pkgutil.resolve_name(STORES[scheme])(shared, home)
        return store
    if is_address:
        raise JournalError(
            f"NARRATORIA_STORE: there is no store of the kind {scheme!r}; give the path of a file, or an address that "
            f"begins with {' or '.join(f'{one}://' for one in STORES)}"
        )
    from narratoria.store.sqlite import SqliteStore

    return SqliteStore(Path(shared) if shared else home / "sessions.db", assets=home / "assets")
