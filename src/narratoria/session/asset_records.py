"""The assets of a session, by the record that stored each. A long game has thousands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

import msgspec

from narratoria.events import AssetStored


class AssetChanges(msgspec.Struct, omit_defaults=True):
    """The assets added and removed between two snapshots."""

    made: dict[int, AssetStored] = {}
    gone: list[int] = []

    def apply_to(self, assets: dict[int, AssetStored]) -> None:
        for seq in self.gone:
            assets.pop(seq, None)
        assets.update(self.made)


class AssetRecords(MutableMapping[int, AssetStored]):
    """The standing assets by record number. A snapshot holds only the changes since the one before; earlier ones are
    read when an asset is asked for, so that neither a snapshot nor an opening costs more the longer the game is.

    `earlier(seq)` gives the assets that stood at the snapshot `seq`.
    """

    def __init__(self, earlier: Callable[[int], dict[int, AssetStored]] | None = None, seq: int = 0) -> None:
        self._earlier = earlier
        self._seq = seq  # of the newest snapshot that was kept
        self._all: dict[int, AssetStored] | None = None if earlier else {}
        self._made: dict[int, AssetStored] = {}
        self._gone: set[int] = set()

    def __setitem__(self, seq: int, stored: AssetStored) -> None:
        self._made[seq] = stored
        self._gone.discard(seq)
        if self._all is not None:
            self._all[seq] = stored

    def discard(self, seq: int) -> None:
        """Remove an asset, if it is there."""
        self._made.pop(seq, None)
        self._gone.add(seq)
        if self._all is not None:
            self._all.pop(seq, None)

    def changes(self) -> AssetChanges:
        """Return the changes that the next snapshot has to hold."""
        return AssetChanges(dict(self._made), sorted(self._gone))

    def kept(self, changes: AssetChanges, seq: int) -> None:
        """Note that the snapshot `seq` holds these changes."""
        self._seq = seq
        self._gone.difference_update(changes.gone)
        for key, stored in changes.made.items():
            if self._made.get(key) is stored:
                del self._made[key]

    def _read(self) -> dict[int, AssetStored]:
        if self._all is None:
            assert self._earlier is not None  # noqa: S101 - without it all are known from the start
            found = self._earlier(self._seq)
            self.changes().apply_to(found)
            self._all = found
        return self._all

    def __delitem__(self, seq: int) -> None:
        if seq not in self._read():
            raise KeyError(seq)
        self.discard(seq)

    def __getitem__(self, seq: int) -> AssetStored:
        return self._read()[seq]

    def __iter__(self) -> Iterator[int]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())
