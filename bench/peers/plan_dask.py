"""Dask: a graph of no-op tasks on its threaded scheduler with two workers, in CPU time.

It keeps nothing: no retries, no state, no record of a task. Arguments: the kind of graph, the number of tasks.
"""

import sys
import time

from dask.threaded import get
from graphs import make_graph

ROUNDS = 3


def nothing(*before: None) -> None:
    return None


kind, count = sys.argv[1], int(sys.argv[2])
tasks = {node: (nothing, *dependencies) for node, dependencies in make_graph(kind, count).items()}
best = float("inf")
for _ in range(ROUNDS):
    begun = time.process_time()
    done = get(tasks, list(tasks), num_workers=2)
    best = min(best, (time.process_time() - begun) / count * 1e6)
    assert len(done) == count
print(best)
