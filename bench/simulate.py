"""A simulation of many servers: times measured on one machine, drawn out to a thousand nodes. It measures nothing.

    python bench/simulate.py                          # 1 to 1,000 nodes, players in proportion
    python bench/simulate.py --nodes 50 --players 40000 --think 20

Players read and think, then send a prompt. A turn is work of the server that owns the session, tool calls on the tool
workers of any node, and commits in one database. Each place has a queue: two cores to a node, a number of connections
to the database. Nodes fail and come back; a turn that was under way is taken over and begun again elsewhere.
The times of service are those that the benchmarks print here (see docs/scale.md); give others with the options.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import statistics
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

CORES = 2


@dataclass(frozen=True)
class Load:
    """The players and what their turns need; times in seconds."""

    nodes: int
    players: int
    think: float = 30.0  # between a turn's end and the next prompt
    turn: float = 0.005  # CPU of the server for a turn, with its journal
    tools: int = 2  # calls of a turn
    tool: float = 0.02  # CPU of a call, where it runs
    remote: float = 0.003  # to hand a call to another node and back
    commit: float = 0.002  # of the database for a commit
    commits: int = 2  # of a turn
    connections: int = 64  # at work in the database at one time
    failures: float = 1 / 86_400  # of a node in a second
    takeover: float = 2.0
    seconds: float = 60.0


@dataclass
class Place:
    """A queue in front of so many servers."""

    servers: int
    busy: int = 0
    waiting: deque[tuple[float, Turn]] = field(default_factory=deque)
    worked: float = 0.0


@dataclass
class Turn:
    began: float
    steps: Iterator[tuple[Place | None, float]]  # where and for how long; no place is a mere delay


@dataclass(frozen=True)
class Outcome:
    turns: int
    median: float
    p99: float
    node_use: float
    database_use: float
    taken_over: int


class Simulation:
    def __init__(self, load: Load, seed: int) -> None:
        self.load, self.dice = load, random.Random(seed)
        self.nodes = [Place(CORES) for _ in range(load.nodes)]
        self.database = Place(load.connections)
        self.agenda: list[tuple[float, int, str, object]] = []
        self.number = itertools.count()
        self.taken: list[float] = []
        self.taken_over = 0

    def at(self, when: float, what: str, whom: object) -> None:
        heapq.heappush(self.agenda, (when, next(self.number), what, whom))

    def around(self, seconds: float) -> float:
        """A time of service: an Erlang of four phases, whose spread is half its mean."""
        return self.dice.gammavariate(4, seconds / 4)

    def steps(self) -> Iterator[tuple[Place | None, float]]:
        load, own = self.load, self.dice.choice(self.nodes)
        if (
            self.dice.random() < load.failures * load.think
        ):  # its node fails while the player reads or the turn runs
            self.taken_over += 1
            yield None, load.takeover
            own = self.dice.choice(self.nodes)
        yield self.database, self.around(load.commit)
        yield own, self.around(load.turn / 2)
        for _ in range(load.tools):
            yield None, load.remote
            yield self.dice.choice(self.nodes), self.around(load.tool)
        yield own, self.around(load.turn / 2)
        for _ in range(load.commits - 1):
            yield self.database, self.around(load.commit)

    def advance(self, now: float, turn: Turn) -> None:
        step = next(turn.steps, None)
        if step is None:
            self.taken.append(now - turn.began)
            self.at(now + self.dice.expovariate(1 / self.load.think), "prompt", None)
            return
        place, seconds = step
        if place is None:
            self.at(now + seconds, "waited", turn)
        elif place.busy < place.servers:
            self.start(now, place, seconds, turn)
        else:
            place.waiting.append((seconds, turn))

    def start(self, now: float, place: Place, seconds: float, turn: Turn) -> None:
        place.busy += 1
        place.worked += seconds
        self.at(now + seconds, "served", (place, turn))

    def run(self) -> Outcome:
        for _ in range(self.load.players):
            self.at(self.dice.expovariate(1 / self.load.think), "prompt", None)
        while self.agenda:
            now, _, what, whom = heapq.heappop(self.agenda)
            if now > self.load.seconds:
                break
            if what == "prompt":
                self.advance(now, Turn(now, self.steps()))
            elif what == "waited":
                assert isinstance(whom, Turn)
                self.advance(now, whom)
            else:
                assert isinstance(whom, tuple)
                place, turn = whom
                place.busy -= 1
                if place.waiting:
                    self.start(now, place, *place.waiting.popleft())
                self.advance(now, turn)
        return self.outcome()

    def outcome(self) -> Outcome:
        taken = sorted(self.taken[len(self.taken) // 5 :])  # the queues fill in the first fifth
        span = self.load.seconds
        return Outcome(
            turns=len(self.taken),
            median=statistics.median(taken),
            p99=taken[int(len(taken) * 0.99)],
            node_use=sum(node.worked for node in self.nodes) / (span * CORES * len(self.nodes)),
            database_use=self.database.worked / (span * self.database.servers),
            taken_over=self.taken_over,
        )


def show(load: Load, seed: int) -> None:
    found = Simulation(load, seed).run()
    rate = found.turns / load.seconds
    print(
        f"{load.nodes:>6,} {load.players:>10,} {rate:>10,.0f} {found.median * 1e3:>9,.0f} {found.p99 * 1e3:>9,.0f}"
        f" {found.node_use:>7.0%} {found.database_use:>9.0%} {found.taken_over:>7,}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--players", type=int, help="in all; without it --per-node for each node")
    parser.add_argument("--per-node", type=int, default=800)
    parser.add_argument("--seed", type=int, default=1)
    for name in ("think", "turn", "tool", "remote", "commit", "failures", "takeover", "seconds"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Load, name))
    for name in ("tools", "commits", "connections"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Load, name))
    options = parser.parse_args()
    given = {name: value for name, value in vars(options).items() if name in Load.__dataclass_fields__}
    print(
        "SIMULATED, not measured: times of service as given, queues and failures drawn by seed", options.seed
    )
    heads = [("nodes", 6), ("players", 10), ("turns/s", 10), ("p50 ms", 9), ("p99 ms", 9)]
    heads += [("nodes", 7), ("database", 9), ("taken", 7)]
    print(" ".join(f"{head:>{width}}" for head, width in heads))
    for nodes in [options.nodes] if options.nodes else (1, 3, 10, 30, 100, 300, 1_000):
        players = options.players or nodes * options.per_node
        # a minute of a thousand nodes is a million turns: larger ones are watched for a shorter while
        seconds = (
            max(min(options.seconds, 1_500_000 / players), options.think / 6)
            if not options.nodes
            else options.seconds
        )
        show(Load(**{**given, "nodes": nodes, "players": players, "seconds": seconds}), options.seed)


if __name__ == "__main__":
    main()
