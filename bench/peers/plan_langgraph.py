"""LangGraph: a graph of no-op nodes, compiled beforehand, in CPU time.

Arguments: the kind of graph, the number of nodes.
"""

import asyncio
import sys
import time
from typing import Annotated, TypedDict

from graphs import make_graph
from langgraph.graph import START, StateGraph

ROUNDS = 3  # of small graphs; a large one takes long enough to be measured once


class State(TypedDict):
    done: Annotated[int, lambda old, new: old + new]


async def nothing(state: State) -> dict[str, int]:
    return {"done": 1}


async def main(kind: str, count: int) -> None:
    graph = make_graph(kind, count)
    builder = StateGraph(State)
    for node in graph:
        builder.add_node(node, nothing)
    for node, dependencies in graph.items():
        builder.add_edge(dependencies or START, node) if len(dependencies) != 1 else builder.add_edge(
            dependencies[0], node
        )
    compiled = builder.compile()
    best = float("inf")
    for _ in range(ROUNDS if count < 1_000 else 1):
        begun = time.process_time()
        result = await compiled.ainvoke({"done": 0}, {"recursion_limit": count + 10, "max_concurrency": 2})
        best = min(best, (time.process_time() - begun) / count * 1e6)
        assert result["done"] == count, result
    print(best)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
