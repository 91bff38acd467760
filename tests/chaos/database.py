"""A PostgreSQL server of chaos's own, which can be restarted in the middle of anything."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path

START = 60.0  # seconds


class PostgresServer:
    """A server on the loopback, from the system's own package. It ends with this process."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="narratoria-chaos-postgres-"))
        self.user = None
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            self.user = "postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody"
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [
            "-D",
            self.folder / "data",
            "-U",
            "narratoria",
            "--auth=trust",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(
            [binaries / "initdb", "--no-sync", *arguments],
            check=True, capture_output=True, user=self.user, cwd="/",
        )  # fmt: skip
        self.start()
        atexit.register(self.close)

    @property
    def url(self) -> str:
        return f"postgresql://narratoria@127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.folder / "data", "-p", str(self.port),
                 "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
                user=self.user, cwd="/", stdout=log, stderr=log,
            )  # fmt: skip
        ready = [self.binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "5"]
        until = time.monotonic() + START
        while subprocess.run(ready).returncode:
            if time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once, as in a crash
        self.process.wait(30)

    def restart(self) -> None:
        self.stop()
        self.start()

    def new_database(self) -> str:
        import psycopg

        name = f"chaos_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"{self.url}/{name}"

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)


@cache
def postgres_server() -> PostgresServer | None:
    """The server of this process; None where PostgreSQL or its driver is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    which = found[-1] if found else shutil.which("postgres")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return None
    return PostgresServer(Path(which).parent) if which else None
