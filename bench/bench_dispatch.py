"""Dispatch: one call of a two-int typed async tool through the whole pipeline, against decoding and calling by hand.

The reference decodes the arguments with a prebuilt msgspec decoder and awaits the same handler: no name, no session,
no draft to take back, no record of anything. Peers run in an environment of their own (see peers/environment.py).
Run in a virtual environment: `python bench/bench_dispatch.py [--no-peers]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from _measure import Row, Samples, middle, ratio, report, turns
from peers.environment import Peer, PeerMissing, python_with

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.session import Record, ToolInvoked

COUNT, ROUNDS, PEER_ROUNDS = 1_000, 60, 3
PEERS = (
    Peer("openai-agents", "dispatch_openai_agents.py", 5),
    Peer("pydantic-ai-slim", "dispatch_pydantic_ai.py", 7),
    Peer("langchain-core", "dispatch_langchain_core.py", 80),
)


@dataclass(frozen=True)
class Add:
    a: int
    b: int


@tool(description="Add two numbers.")
async def add(params: Add, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult.ok(params.a + params.b)


class Nowhere:
    """A sink: with one attached, every call writes its records."""

    full = False

    def push(self, record: Record) -> None:
        pass

    async def wait(self) -> None:
        pass


def by_hand() -> Callable[[], Awaitable[None]]:
    decode, raw, handler = msgspec.json.Decoder(Add).decode, b'{"a": 2, "b": 3}', add.handler

    async def run() -> None:
        for _ in range(COUNT):
            await handler(decode(raw), context=None)  # type: ignore[misc]

    return run


def by_hand_from_a_mapping() -> Callable[[], Awaitable[None]]:
    arguments, handler = {"a": 2, "b": 3}, add.handler

    async def run() -> None:
        for _ in range(COUNT):
            await handler(msgspec.convert(arguments, Add), context=None)  # type: ignore[misc]

    return run


def pipeline(session: Session) -> Callable[[], Awaitable[None]]:
    registry, arguments = ToolRegistry([add]), {"a": 2, "b": 3}

    async def run() -> None:
        for _ in range(COUNT):
            await registry.execute("add", arguments, session=session)

    return run


def sessions() -> dict[str, Session]:
    subscribed, recorded = Session(), Session()
    subscribed.dispatcher.subscribe(ToolInvoked, lambda event: None)
    recorded.attach(Nowhere())
    nested = {f"room{n}": {f"item{m}": {"weight": m, "lit": False} for m in range(100)} for n in range(333)}
    return {
        "pipeline": Session(),
        "with a subscriber": subscribed,
        "with records": recorded,
        "state of 100,000": Session(state=nested),
    }


async def after_many_calls(session: Session, calls: int = 100_000) -> None:
    registry = ToolRegistry([add])
    for _ in range(calls):
        await registry.execute("add", {"a": 2, "b": 3}, session=session)


def peer_rows() -> list[Row]:
    """Ours and theirs take turns, each time in a process or a loop that begins anew."""
    rows = []
    for peer in PEERS:
        try:
            rows.append(peer_row(peer))
        except PeerMissing as reason:
            print(f"skipped: {peer.package}: {reason}")
    try:
        python_with("weakincentives")
    except PeerMissing as reason:
        print(f"skipped: weakincentives: {reason}")
    return rows


def peer_row(peer: Peer) -> Row:
    samples: Samples = {"ours": [], "theirs": []}
    for _ in range(PEER_ROUNDS):
        ours = asyncio.run(turns({"ours": pipeline(Session())}, COUNT, 20))["ours"]
        samples["ours"].append(min(ours))  # the peers print their best, too
        samples["theirs"].append(peer.measure())
    times, spread = ratio(samples, "theirs", "ours")
    note = f"{middle(samples['theirs'])[0]:.1f} against {middle(samples['ours'])[0]:.1f} µs"
    name = f"{peer.package} against ours"
    return Row(name, times, peer.factor, at_least=True, note=note, spread=spread, peer=peer.release)


def main() -> None:
    made = sessions()
    old = Session()
    asyncio.run(after_many_calls(old))
    contenders = {"by hand": by_hand(), "by hand, from a mapping": by_hand_from_a_mapping()}
    contenders |= {name: pipeline(session) for name, session in made.items()}
    contenders["after 100,000 calls"] = pipeline(old)
    samples = asyncio.run(turns(contenders, COUNT, ROUNDS))
    print(", ".join(f"{name} {middle(taken)[0]:.2f} µs" for name, taken in samples.items()))

    def row(name: str, ours: str, reference: str, target: float | None, note: str = "") -> Row:
        times, spread = ratio(samples, ours, reference)
        return Row(name, times, target, note=note, spread=spread)

    hand, listened = "by hand", "undo mark, nobody listening"
    rows = [
        row("pipeline against msgspec decode + call", "pipeline", hand, 4.5, listened),
        row("the same with a ToolInvoked subscriber", "with a subscriber", hand, 4.5),
        row("the same with records to a sink", "with records", hand, None),
        row("pipeline against msgspec.convert + call", "pipeline", "by hand, from a mapping", None),
        row("state of 100,000 nodes against none", "state of 100,000", "pipeline", 1.1),
        row("after 100,000 calls against the first", "after 100,000 calls", "pipeline", 1.1),
    ]
    if "--no-peers" not in sys.argv:
        rows += peer_rows()
    report("dispatch of a two-int typed async tool", rows)


if __name__ == "__main__":
    main()
