"""Schemathesis against our own OpenAPI document and a real server: no request may be answered with a 5xx.

    python scripts/api_chaos.py build/schemathesis/bin/st --examples 100 --seed 1

Half of it asks about a game that exists, half about any. The server's own log must hold no traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

CHECKS: Final = "not_a_server_error,content_type_conformance,response_schema_conformance"
# An endless stream, and the end of the sign-in that the requests come with.
NEVER: Final = ("/sign-out", "/sessions/{id}/events")


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("schemathesis", help="its command")
    options.add_argument("--examples", type=int, default=100, help="for each operation")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--story", default="torch")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="narratoria-api-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            server = subprocess.Popen(
                [sys.executable, "-m", "narratoria", "play", chosen.story, "--no-browser", "--port", "0"],
                env={**os.environ, "NARRATORIA_HOME": str(Path(folder) / "home")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert server.stdout is not None  # noqa: S101 - asked for above
        try:
            address = urlsplit(server.stdout.readline().strip())
            failed = sum(
                run(chosen, Path(folder), address.netloc, parse_qs(address.query)["token"][0], game)
                for game in (address.path.rpartition("/")[2], None)
            )
            died = server.poll() is not None
        finally:
            server.terminate()
            server.wait(30)
            server.stdout.close()
        told = log.read_text(errors="replace")
    if died:
        print("the server has ended", file=sys.stderr)
    if "Traceback" in told:
        print(f"a traceback of the server:\n{told[-4000:]}", file=sys.stderr)
    return 1 if failed or died or "Traceback" in told else 0


def run(chosen: argparse.Namespace, folder: Path, place: str, token: str, game: str | None) -> bool:
    """Let it ask about one game, or about any that it makes up; tell if it found something."""
    config = folder / "schemathesis.toml"
    config.write_text("" if game is None else f'[parameters]\n"path.id" = {json.dumps(game)}\n')
    command = [chosen.schemathesis, "--config-file", config, "run", f"http://{place}/openapi.json"]
    command += ["--url", f"http://{place}", "--header", f"Authorization: Bearer {token}", "--checks", CHECKS]
    command += ["--max-examples", str(chosen.examples), "--seed", str(chosen.seed), "--no-color"]
    command += ["--generation-database", "none", "--request-timeout", "30", "--continue-on-failure"]
    command += [
        "--warnings",
        "off",
        "--suppress-health-check",
        "all",
        "--phases",
        "examples,coverage,fuzzing",
    ]
    for path in NEVER:
        command += ["--exclude-path", path]
    if game is not None:
        command += ["--exclude-name", "DELETE /sessions/{id}"]
    print("asks about", "a game" if game else "any game", flush=True)
    return subprocess.run(command, cwd=folder).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
