"""Viewers get everything once, in order; a slow one gets a snapshot and slows nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from narratoria.events import CallEmitted, Log, Narration, NarrationDelta
from narratoria.session import Record
from narratoria.web.feed import QUEUE_BYTES, SNAPSHOT_LOG_LINES, Feed, condense
from narratoria.web.past import Window


def log(seq: int, message: str = "line") -> Record:
    event = CallEmitted(call="c", event=Log(version="0", level="info", message=message))
    return Record(seq, 0.0, 1, event)


def parsed(chunk: bytes) -> tuple[str, Any]:
    lines = dict(line.split(": ", 1) for line in chunk.decode().strip().split("\n"))
    return lines.get("event", "message"), msgspec.json.decode(lines["data"])


class Ten:
    """A past of ten records, which must never be read where it would hold up everybody else."""

    def read(self, after: int, before: int) -> Iterable[Record]:
        for seq in range(after + 1, min(before, 11)):
            assert threading.current_thread() is not threading.main_thread()
            yield log(seq)

    def newest(self, turns: int, until: int) -> Window:
        return Window(list(self.read(0, until + 1))[-turns:], 10 - turns)


async def first_message(viewer: AsyncIterator[bytes]) -> tuple[str, Any]:
    async with asyncio.timeout(5):
        async for chunk in viewer:
            if b"data: " in chunk:
                return parsed(chunk)
    raise AssertionError("the stream ended")


async def test_records_that_come_together_travel_together() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    for seq in range(1, 501):
        feed.push(log(seq))
    _, records = await first_message(viewer)
    assert [record["seq"] for record in records] == list(range(1, 501))
    await viewer.aclose()


async def test_past_and_present_meet_without_gap_or_repetition() -> None:
    feed = Feed(Ten(), seq=10)
    early = feed.follow()
    await anext(early)
    feed.push(log(11))  # gathered for `early` when the next viewer comes
    late = feed.follow(after=3)
    await anext(late)
    feed.push(log(12))
    seen: list[int] = []
    while len(seen) < 9:
        _, records = await first_message(late)
        seen += [record["seq"] for record in records]
    assert seen == list(range(4, 13))
    await early.aclose()
    await late.aclose()


async def test_viewers_that_come_together_share_the_same_bytes() -> None:
    feed = Feed(Ten(), seq=10)
    viewers = [feed.follow(turns=3) for _ in range(3)]
    for viewer in viewers:
        await anext(viewer)
    chunks = [await anext(viewer) for viewer in viewers]
    assert chunks[0] is chunks[1] is chunks[2]
    name, data = parsed(chunks[0])
    assert (name, data["earlier"], [one["seq"] for one in data["records"]]) == ("snapshot", 7, [8, 9, 10])
    feed.push(log(11))
    chunks = [await anext(viewer) for viewer in viewers]
    assert chunks[0] is chunks[1] is chunks[2]
    for viewer in viewers:
        await viewer.aclose()


async def test_what_happens_while_a_snapshot_is_made_follows_it_once() -> None:
    feed = Feed(Ten(), seq=10)
    viewer = feed.follow(turns=3)
    await anext(viewer)
    making = asyncio.ensure_future(anext(viewer))
    await asyncio.sleep(0)  # the thread is reading
    feed.push(log(11))
    _, data = parsed(await making)
    assert data["seq"] == 10
    _, records = await first_message(viewer)
    assert [one["seq"] for one in records] == [11]
    await viewer.aclose()


async def test_a_viewer_that_does_not_read_is_given_a_snapshot_and_nobody_waits() -> None:
    feed = Feed()
    slow = feed.follow()
    await anext(slow)
    feed.push(log(1, "x" * QUEUE_BYTES))
    assert feed.full is False
    name, data = await first_message(slow)
    assert name == "snapshot"
    assert data["seq"] == 1
    assert [record["seq"] for record in data["records"]] == [1]
    feed.push(log(2))
    name, records = await first_message(slow)
    assert (name, [record["seq"] for record in records]) == ("message", [2])
    await slow.aclose()


async def test_an_idle_stream_is_kept_alive() -> None:
    viewer = Feed(keep_alive=0.01).follow()
    await anext(viewer)
    assert (await anext(viewer)).startswith(b":")
    await viewer.aclose()


async def test_closing_ends_every_stream() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    feed.push(log(1))
    feed.close()
    assert [chunk async for chunk in viewer] == []


def test_a_snapshot_keeps_the_end_of_a_long_log() -> None:
    records = [log(seq, str(seq)) for seq in range(1, SNAPSHOT_LOG_LINES + 501)]
    kept = condense(records)
    assert [record.seq for record in kept] == list(range(501, SNAPSHOT_LOG_LINES + 501))


def test_pieces_of_a_finished_narration_do_not_travel() -> None:
    pieces = [Record(seq, 0.0, 1, NarrationDelta(text="a", attempt=1)) for seq in (1, 2)]
    told = Record(3, 0.0, 1, Narration(text="aa"))
    unfinished = Record(4, 0.0, 2, NarrationDelta(text="b"))
    # the first says where the text stands among the pictures of its turn
    assert [record.seq for record in condense([*pieces, told, unfinished])] == [1, 3, 4]
