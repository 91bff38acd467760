"""A real server for the tests: `python run_server.py HOME PORT` prints its address, then serves."""

import asyncio
import sys
from pathlib import Path

from narratoria.session.store import default_store
from narratoria.web.games import Games
from narratoria.web.server import Server


async def main(home: Path, port: int) -> None:
    # on a machine that is busy with tests a page waits for its story as long as that takes
    server = Server(Games(default_store(home), patience=20), home, port=port)
    listener = server.bind()
    print(server.address(), flush=True)
    await server.serve(listener)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
