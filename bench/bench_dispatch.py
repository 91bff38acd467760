"""Dispatch: one call of a two-int typed async tool through the whole pipeline, against decoding and calling by hand.

The reference decodes the arguments with a prebuilt msgspec decoder and awaits the same handler: no name, no session,
no draft to take back, no record of anything. Peers run in an environment of their own (see peers/environment.py).
Run in a virtual environment: `python bench/bench_dispatch.py [--no-peers]`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from _measure import Row, report
from peers.environment import Peer, PeerMissing

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.session import Record, ToolInvoked

COUNT, ROUNDS = 1_000, 150
PEERS = (
    Peer("openai-agents", "dispatch_openai_agents.py", 6),
    Peer("pydantic-ai-slim", "dispatch_pydantic_ai.py", 25),
    Peer("langchain-core", "dispatch_langchain_core.py", 250),
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


async def fastest(contenders: dict[str, Callable[[], Awaitable[None]]]) -> dict[str, float]:
    """Microseconds per call: the best of many short turns, taken one after the other in every round."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            begun = time.perf_counter()
            await run()
            best[name] = min(best[name], (time.perf_counter() - begun) / COUNT * 1e6)
    return best


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


def peer_rows(ours: float) -> list[Row]:
    rows = []
    for peer in PEERS:
        try:
            theirs = peer.measure()
            rows.append(
                Row(
                    f"{peer.package} {peer.version} against ours",
                    theirs / ours,
                    peer.factor,
                    at_least=True,
                    note=f"{theirs:.1f} µs",
                )
            )
        except PeerMissing as reason:
            print(f"skipped: {peer.package}: {reason}")
    print("skipped: weakincentives: not on the package index, so it cannot be installed here")
    return rows


def main() -> None:
    made = sessions()
    old = Session()
    asyncio.run(after_many_calls(old))
    contenders = {"by hand": by_hand(), "by hand, from a mapping": by_hand_from_a_mapping()}
    contenders |= {name: pipeline(session) for name, session in made.items()}
    contenders["after 100,000 calls"] = pipeline(old)
    cost = asyncio.run(fastest(contenders))
    print(", ".join(f"{name} {microseconds:.2f} µs" for name, microseconds in cost.items()))
    ours, bare = cost["pipeline"], cost["by hand"]
    rows = [
        Row("pipeline against msgspec decode + call", ours / bare, 5, note="undo mark, nobody listening"),
        Row("the same with a ToolInvoked subscriber", cost["with a subscriber"] / bare, 5),
        Row("the same with records to a sink", cost["with records"] / bare, None),
        Row("pipeline against msgspec.convert + call", ours / cost["by hand, from a mapping"], None),
        Row("state of 100,000 nodes against none", cost["state of 100,000"] / ours, 1.1),
        Row("after 100,000 calls against the first", cost["after 100,000 calls"] / ours, 1.1),
    ]
    if "--no-peers" not in sys.argv:
        rows += peer_rows(ours)
    report("dispatch of a two-int typed async tool", rows)


if __name__ == "__main__":
    main()
