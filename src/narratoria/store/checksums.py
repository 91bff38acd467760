"""Checksums in a store: each batch and each snapshot has one and knows that of the one before, each row has one.

They are against damage, not against a forger: whoever can write to the store can make them too. A checksum of a batch
is 16 bytes: the link, which is the sum of the batch before, and the batch's own sum. So a batch can be checked by
itself, and that none is missing before it by the link. The link of the first one is made of the session's id.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Any, Final

import msgspec

_SIZE: Final = 8  # bytes of a sum: by chance, one damage in 2**64 goes unnoticed
_NUMBERS: Final = struct.Struct("<qq").pack
_GROWTH: Final = struct.Struct("<dqqq").pack
_encode: Final = msgspec.msgpack.Encoder().encode


def seal(values: tuple[Any, ...]) -> bytes:
    """Return the checksum of the values of a row."""
    return blake2b(_encode(values), digest_size=_SIZE).digest()


def lasting(values: tuple[Any, ...]) -> bytes:
    """Return the part of a session's row that stays, as it goes into each of the row's checksums."""
    return _encode(values)


def growing_seal(
    stays: bytes, updated: float, turns: int, last_seq: int, size: int, head: bytes | None
) -> bytes:
    """Return the checksum of a session's row: of the part that stays, and of what each batch changes."""
    grows = _GROWTH(updated, turns, last_seq, size)
    return blake2b(stays + grows + (head or b""), digest_size=_SIZE).digest()


def first_link(session_id: str) -> bytes:
    return seal((session_id,))


def own_sum(checksum: bytes) -> bytes:
    """Return the part of a checksum that the next one takes up."""
    return checksum[_SIZE:]


def batch_checksum(link: bytes, first: int, last: int, data: bytes) -> bytes:
    return link + blake2b(link + _NUMBERS(first, last) + data, digest_size=_SIZE).digest()


def snapshot_checksum(link: bytes, session_id: str, seq: int, data: bytes) -> bytes:
    """Return the checksum of a snapshot. It holds for that session only: a snapshot is read without those before it."""
    return batch_checksum(link, seq, seq, first_link(session_id) + data)


def links_to(checksum: Any, link: bytes) -> bool:
    return isinstance(checksum, bytes) and checksum[:_SIZE] == link


def fits_batch(checksum: Any, first: Any, last: Any, data: Any) -> bool:
    """Tell if a batch is the one that its checksum was made of."""
    if not isinstance(first, int) or not isinstance(last, int) or not isinstance(data, bytes):
        return False
    return _is_one(checksum) and checksum == batch_checksum(checksum[:_SIZE], first, last, data)


def fits_snapshot(checksum: Any, session_id: str, seq: int, data: bytes) -> bool:
    return _is_one(checksum) and checksum == snapshot_checksum(checksum[:_SIZE], session_id, seq, data)


def _is_one(checksum: Any) -> bool:
    return isinstance(checksum, bytes) and len(checksum) == 2 * _SIZE


class BatchChain:
    """Follows the batches of one session, in order, and finds the first that is altered or missing.

    Records up to `chained` were written before there were checksums; None: all of them.
    """

    def __init__(self, chained: int | None, link: bytes) -> None:
        self._chained = chained
        self.link = link

    def fault(self, first: Any, last: Any, checksum: Any, data: Any) -> str:
        """Return what is wrong with the next batch, or nothing."""
        if not isinstance(first, int) or not isinstance(last, int) or not isinstance(data, bytes):
            return "is not a batch any more"
        if self._chained is None or first <= self._chained:
            return "" if checksum is None else "has a checksum where none was written"
        if checksum is None:
            return "has no checksum"
        if not fits_batch(checksum, first, last, data):
            return "differs from its checksum"
        if not links_to(checksum, self.link):
            return "does not follow the one before: a batch is missing"
        self.link = own_sum(checksum)
        return ""
