"""A real server for the tests: `python run_server.py HOME PORT [LIMITS] [watched]` prints its address, then serves."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from narratoria.store.default_store import default_store
from narratoria.web.games import Games
from narratoria.web.server import Server


async def main(home: Path, port: int, limits: dict[str, float], watched: bool) -> None:
    # on a machine that is busy with tests a page waits for its story as long as that takes
    server = Server(Games(default_store(home), patience=20, watched=watched), home, port=port)
    server.cuts_fonts = False  # which takes seconds; those in the cache of its home are used
    server.limits = replace(server.limits, **limits)
    listener = server.bind()
    print(server.address(), flush=True)
    await server.serve(listener)


def start(arguments: list[str]) -> None:
    limits = json.loads(arguments[2]) or {}
    asyncio.run(main(Path(arguments[0]), int(arguments[1]), limits, "watched" in arguments[3:]))


if __name__ == "__main__":
    start(sys.argv[1:])
