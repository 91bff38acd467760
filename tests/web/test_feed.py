"""Viewers get everything once, in order; a slow one gets a snapshot and slows nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from narratoria.events import CallEmitted, Log, Narration, NarrationDelta, TurnCommitted
from narratoria.prose import LONGEST
from narratoria.session import Record
from narratoria.web.feed import QUEUE_BYTES, SNAPSHOT_LOG_LINES, Feed, condense
from narratoria.web.turn_pages import Window


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


# --- narration as blocks ------------------------------------------------------------------------------------


def piece(seq: int, text: str, *, anew: bool = False) -> Record:
    return Record(seq, 0.0, 1, NarrationDelta(text=text, attempt=1, anew=anew))


def p(text: str) -> str:
    return f'<p dir="auto">{text}</p>'


async def test_a_finished_narration_carries_its_blocks_and_its_text() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    feed.push(Record(1, 0.0, 1, Narration(text="It is **lit**.\n\n<b>")))
    _, (record,) = await first_message(viewer)
    assert record["event"] == {"type": "narration", "text": "It is **lit**.\n\n<b>"}
    assert record["prose"] == {"blocks": [p("It is <strong>lit</strong>."), p("&lt;b&gt;")]}
    await viewer.aclose()


async def test_while_a_narration_is_told_only_blocks_that_changed_are_sent() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    seen = []
    for seq, text in enumerate(["A *lamp", "*.\n\nYou", " wait.", "\n\nLong."], 1):
        feed.push(piece(seq, text))
        _, (record,) = await first_message(viewer)
        seen.append(record["prose"])
    assert seen == [
        {"blocks": [p("A *lamp")]},
        {"blocks": [p("A <em>lamp</em>."), p("You")]},
        {"blocks": [p("You wait.")], "kept": 1},
        {"blocks": [p("Long.")], "kept": 2},
    ]
    feed.push(piece(5, "", anew=True))
    feed.push(piece(6, "A *lamp*.\n\nNo."))
    _, records = await first_message(viewer)
    assert records[-1]["prose"] == {"blocks": [p("A <em>lamp</em>."), p("No.")]}, "nothing of before stands"
    await viewer.aclose()


async def test_of_pieces_that_travel_together_the_last_carries_what_they_make() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    for seq, text in enumerate(["A", " *lamp*", "."], 1):
        feed.push(piece(seq, text))
    _, records = await first_message(viewer)
    assert [record.get("prose") for record in records] == [None, None, {"blocks": [p("A <em>lamp</em>.")]}]
    await viewer.aclose()


async def test_who_comes_in_mid_narration_has_the_blocks_so_far_and_goes_on_with_the_others() -> None:
    feed = Feed()
    early = feed.follow()
    await anext(early)
    feed.push(piece(1, "One.\n\nTwo"))
    feed.push(piece(2, " *and* a"))
    late = [feed.follow(turns=3), feed.follow(after=1)]
    for viewer in late:
        await anext(viewer)
        _, data = await first_message(viewer)
        record = (data["records"] if isinstance(data, dict) else data)[-1]
        assert record["seq"] == 2
        assert record["prose"] == {"blocks": [p("One."), p("Two <em>and</em> a")]}
    feed.push(piece(3, " half."))
    for viewer in late:
        _, (record,) = await first_message(viewer)
        assert (record["seq"], record["prose"].get("kept", 0)) == (3, 0), "not everybody has the same blocks"
    feed.push(piece(4, "\n\nThree."))
    for viewer in late:
        _, (record,) = await first_message(viewer)
        assert record["prose"] == {"blocks": [p("Three.")], "kept": 2}
    for viewer in (early, *late):
        await viewer.aclose()


async def records_until(viewer: AsyncIterator[bytes], seq: int) -> list[Any]:
    """However many messages they come in."""
    found: list[Any] = []
    while not found or found[-1]["seq"] < seq:
        async with asyncio.timeout(10):
            chunk = await anext(viewer)
        for message in chunk.split(b"\n\n"):
            found += parsed(message)[1] if message else []
    return found


async def test_a_text_that_is_long_to_render_holds_nobody_up_and_keeps_its_place() -> None:
    hostile = "\n\n".join(f"{number}" + "![" * 3000 for number in range(5))
    feed = Feed()
    early = feed.follow()
    await anext(early)
    feed.push(Record(1, 0.0, 1, Narration(text=hostile)))
    feed.push(Record(2, 0.0, 1, TurnCommitted(turn=1)))
    reading = asyncio.ensure_future(records_until(early, 4))
    for _ in range(10):
        await asyncio.sleep(0)  # it is being rendered now, for half a second
    feed.push(log(3))
    late = feed.follow(after=2)
    await anext(late)
    feed.push(log(4))
    assert not reading.done()
    records = await reading
    assert [record["seq"] for record in records] == [1, 2, 3, 4]
    assert "prose" in records[0]
    assert [record["seq"] for record in await records_until(late, 4)] == [3, 4]
    await early.aclose()
    await late.aclose()


async def test_an_endless_text_travels_plain() -> None:
    feed = Feed()
    viewer = feed.follow()
    await anext(viewer)
    feed.push(piece(1, "a" * LONGEST))
    assert (await first_message(viewer))[1][0]["prose"]["blocks"] == [p("a" * LONGEST)]
    feed.push(piece(2, "b"))
    assert "prose" not in (await first_message(viewer))[1][0]
    feed.push(Record(3, 0.0, 1, Narration(text="c" * (LONGEST + 1))))
    assert "prose" not in (await first_message(viewer))[1][0]
    await viewer.aclose()
