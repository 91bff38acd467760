"""DBOS: a workflow of no-op steps, each recorded in SQLite, one level of the graph after another, in CPU time.

Steps of one level run at the same time. Arguments: the kind of graph, the number of steps.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from dbos import DBOS
from graphs import make_graph


def levels(kind: str, count: int) -> list[int]:
    """How many steps are at each depth of the graph."""
    depth: dict[str, int] = {}
    for node, dependencies in make_graph(kind, count).items():
        depth[node] = 1 + max((depth[one] for one in dependencies), default=-1)
    return [list(depth.values()).count(level) for level in range(max(depth.values()) + 1)]


@DBOS.step()
async def nothing() -> None:
    return None


@DBOS.workflow()
async def run(sizes: list[int]) -> int:
    for size in sizes:
        await asyncio.gather(*(nothing() for _ in range(size)))
    return sum(sizes)


async def main(kind: str, count: int) -> None:
    sizes = levels(kind, count)
    await run([2])
    begun = time.process_time()
    assert await run(sizes) == count
    print((time.process_time() - begun) / count * 1e6)


with tempfile.TemporaryDirectory() as folder:
    database = f"sqlite:///{Path(folder, 'dbos.sqlite')}"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": database,
            "log_level": "CRITICAL",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
    DBOS.destroy()
