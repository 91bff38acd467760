"""langchain-core: a two-int async tool, given the tool call of a model by `ainvoke`, as its agents do."""

import asyncio
import time

from langchain_core.tools import tool

CALL = {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 2, "b": 3}}
COUNT, ROUNDS = 100, 30


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def main() -> None:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(COUNT):
            message = await add.ainvoke({**CALL})
            assert message.content == "5"
        best = min(best, (time.perf_counter() - begun) / COUNT * 1e6)
    print(best)


asyncio.run(main())
