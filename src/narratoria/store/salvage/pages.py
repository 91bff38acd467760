"""Rows of a damaged SQLite file, read page by page.

SQLite finds a row through the pages above it; if one of those is lost, so is everything below, though it is still
there. Here every page is read by itself (https://www.sqlite.org/fileformat2.html).
"""
# Its §1.6 and §2.

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_TABLE_LEAF: Final = 0x0D
_INDEX_LEAF: Final = 0x0A  # also of tables WITHOUT ROWID ...
_INDEX_NODE: Final = 0x02  # ... whose rows lie on the pages above the leaves too
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type: bytes
_SIZES: Final = frozenset(1 << power for power in range(9, 17))
_USUAL: Final = (4096, 0)  # bytes of a page, and those of it that SQLite leaves alone
_LONGEST: Final = 1 << 30  # of a row: a damaged length must not make us allocate everything


class _Unreadable(Exception):
    """A cell is damaged."""


Row = tuple[int, list[Any]]  # (rowid, values); 0 where a table has no rowid


def readable_rows(path: Path) -> list[Row]:
    """Return every row on any page that is in use. The page size is the one in the header or, if that is damaged,
    SQLite's usual one, whichever gives more rows.
    """
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    layouts = {(65536 if size == 1 else size, data[20] if len(data) > 20 else 0), _USUAL}
    found = [list(Pages(data, *layout).rows()) for layout in layouts if layout[0] in _SIZES]
    return max(found, key=len)


class Pages:
    """A database file as pages."""

    def __init__(self, data: bytes, size: int, reserved: int) -> None:
        self._bytes = data
        self._size = size
        self._usable = size - reserved
        self._count = len(data) // size

    def rows(self) -> Iterator[Row]:
        free = self._free()
        for number in range(1, self._count + 1):
            if number in free:
                continue
            page = self._page(number)
            start = 100 if number == 1 else 0
            kind = page[start]
            if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_NODE):
                continue
            cells = int.from_bytes(page[start + 3 : start + 5], "big")
            first = start + (12 if kind == _INDEX_NODE else 8)
            for place in range(first, min(first + 2 * cells, self._usable - 1), 2):
                try:
                    yield self._cell(page, int.from_bytes(page[place : place + 2], "big"), kind)
                except (_Unreadable, IndexError, UnicodeDecodeError, struct.error):
                    continue  # this one is lost, its neighbours need not be

    def _free(self) -> set[int]:
        """Return the free pages: deleted rows stay deleted. A damaged list of them is ignored."""
        # File format, §1.5.
        trunk, count = (int.from_bytes(self._bytes[at : at + 4], "big") for at in (32, 36))
        found: set[int] = set()
        while trunk:
            if trunk in found or not 1 < trunk <= self._count:
                return set()
            page = self._page(trunk)
            leaves = min(int.from_bytes(page[4:8], "big"), self._usable // 4 - 2)
            found.add(trunk)
            found.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * leaves, 4))
            trunk = int.from_bytes(page[:4], "big")
        sound = len(found) == count and all(1 < number <= self._count for number in found)
        return found if sound else set()

    def _page(self, number: int) -> bytes:
        return self._bytes[(number - 1) * self._size : number * self._size]

    def _cell(self, page: bytes, at: int, kind: int) -> tuple[int, list[Any]]:
        length, at = _varint(page, at + 4 if kind == _INDEX_NODE else at)  # after the page below it
        rowid = 0
        if kind == _TABLE_LEAF:
            rowid, at = _varint(page, at)
        if not 0 < length < _LONGEST:
            raise _Unreadable
        return rowid, _values(self._payload(page, at, length, kind))

    def _payload(self, page: bytes, at: int, length: int, kind: int) -> bytes:
        usable = self._usable
        most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        if local > most:
            local = least
        parts, left = [page[at : at + local]], length - local
        following = int.from_bytes(page[at + local : at + local + 4], "big")
        while left > 0:
            if not 0 < following <= self._count:
                raise _Unreadable
            overflow = self._page(following)
            parts.append(overflow[4 : 4 + min(left, usable - 4)])
            left -= usable - 4
            following = int.from_bytes(overflow[:4], "big")
        return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    raise _Unreadable


def _values(record: bytes) -> list[Any]:
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, at = _value(record, at, kind)
        values.append(value)
    if at != len(record):
        raise _Unreadable
    return values


def _value(record: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], at
    if kind in _INTEGERS:
        size = _INTEGERS[kind]
        return int.from_bytes(record[at : at + size], "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", record[at : at + 8])[0], at + 8
    if kind < 12:
        raise _Unreadable
    size = (kind - 12) // 2
    data = record[at : at + size]
    return (data if kind % 2 == 0 else data.decode()), at + size
