"""A server for the tests: `run_server.py HOME PORT [LIMITS] [watched] [covers]` prints its address, then serves."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from narratoria.store.default_store import default_store
from narratoria.web.catalogues import ROOT, Catalogues
from narratoria.web.games import Games
from narratoria.web.server import Server


async def main(home: Path, port: int, limits: dict[str, float], watched: bool, covers: bool) -> None:
    # on a machine that is busy with tests a page waits for its story as long as that takes
    server = Server(Games(default_store(home), patience=20, watched=watched, covers=covers), home, port=port)
    server.cuts_fonts = False  # which takes seconds; those in the cache of its home are used
    if (home / "words").is_dir():  # languages of a test's own
        server.catalogues = Catalogues(ROOT, home / "words")
    server.limits = replace(server.limits, **limits)
    listener = server.bind()
    print(server.address(), flush=True)
    await server.serve(listener)


if __name__ == "__main__":
    home, port, limits, *more = sys.argv[1:]
    asyncio.run(main(Path(home), int(port), json.loads(limits) or {}, "watched" in more, "covers" in more))
