"""The assets of a session in parts, the newest first: a long game has thousands of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Final

from narratoria.events import AssetStored
from narratoria.store.store import Store
from narratoria.web.documents import AssetCard, AssetPage

MOST_ASSETS: Final = 500
"""Assets in one answer; the rest is asked for by record number."""


def asset_page(store: Store, session_id: str, before: int | None, most: int) -> AssetPage:
    """Return the newest assets that stand and were stored before the record `before`. Reads the disk."""
    standing = store.restore(session_id).asset_records
    numbers = sorted(seq for seq in standing if before is None or seq < before)
    spans = sorted((span.first, span.turn) for span in store.turns(session_id))
    first = max(0, len(numbers) - min(most, MOST_ASSETS))
    return AssetPage(
        total=len(numbers),
        kinds=dict(Counter(standing[seq].media_type for seq in numbers)),
        assets=[_card(seq, standing[seq], spans) for seq in reversed(numbers[first:])],
    )


def _card(seq: int, stored: AssetStored, spans: list[tuple[int, int]]) -> AssetCard:
    at = bisect_right(spans, (seq, 1 << 62)) - 1
    return AssetCard(
        seq=seq,
        turn=spans[at][1] if at >= 0 else 0,
        call=stored.call,
        asset_id=stored.asset_id,
        kind=stored.kind,
        media_type=stored.media_type,
        hash=stored.hash,
        size=stored.size,
        name=stored.name,
        metadata=stored.metadata,
    )
