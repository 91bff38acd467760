"""The stores the tests run over: SQLite with each driver, and a real PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store

sys.path.insert(0, str(Path(__file__).parent))  # for `digging`, the game these tests share

MakeStore = Callable[[], Store]
KINDS = [
    "sqlite-apsw",
    "sqlite-standard",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("postgres-bucket", marks=[pytest.mark.postgres, pytest.mark.slow]),
]


@pytest.fixture(params=KINDS)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Opens the same store again and again, as processes that follow each other would."""
    stores: list[Store] = []
    if request.param.startswith("postgres"):
        url = request.getfixturevalue("postgres_database")
        server = request.getfixturevalue("s3_server") if request.param == "postgres-bucket" else None
        name = server.make_bucket() if server is not None else ""

        def make() -> Store:
            from narratoria.store.postgres import PostgresStore

            bucket = server.bucket(name) if server is not None else None
            stores.append(PostgresStore(url, assets=tmp_path / f"assets{len(stores)}", bucket=bucket))
            return stores[-1]
    else:
        driver = {"sqlite-apsw": "apsw", "sqlite-standard": "sqlite3"}[request.param]

        def make() -> Store:
            stores.append(SqliteStore(tmp_path / "sessions.db", driver=driver))
            return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: NARRATORIA_TEST_POSTGRES, or one started from the system's own package."""
    given = os.environ.get("NARRATORIA_TEST_POSTGRES")
    if given:
        yield given
        return
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    binaries = found[-1].parent if found else None
    if binaries is None:
        which = shutil.which("postgres")
        if which is None:
            pytest.skip("NO POSTGRESQL: install the package postgresql, or set NARRATORIA_TEST_POSTGRES")
        binaries = Path(which).parent
    with tempfile.TemporaryDirectory(prefix="narratoria-postgres-") as folder:  # pytest's own is for one user
        yield from _serve(binaries, Path(folder))


def _serve(binaries: Path, folder: Path) -> Iterator[str]:
    user: str | None = None
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        user = next((one for one in ("postgres", "nobody") if _exists(one)), None)
        if user is None:
            pytest.skip("NO POSTGRESQL: it does not run as root, and there is no other user")
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    arguments = ["-D", str(data), "-U", "narratoria", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run([binaries / "initdb", *arguments], check=True, capture_output=True, user=user, cwd="/")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = [binaries / "postgres", "-D", data, "-p", str(port), "-F", "-c", "listen_addresses=127.0.0.1",
              "-c", "unix_socket_directories="]  # fmt: skip
    if shutil.which("setpriv"):  # a test run that is killed takes its server along
        server = ["setpriv", "--pdeathsig", "INT", *server]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(server, user=user, cwd="/", stdout=log, stderr=log)
    try:
        ready = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "5"]
        deadline = time.monotonic() + 60
        while subprocess.run(ready).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL did not start: {(folder / 'log').read_text()[-2000:]}")
        yield f"postgresql://narratoria@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGQUIT)  # PostgreSQL's immediate shutdown
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Any]:
    from buckets import moto

    with tempfile.TemporaryDirectory(prefix="narratoria-s3-") as folder:
        yield from moto(Path(folder))


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[str]:
    """An empty database of its own."""
    import psycopg

    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    base, _, _ = postgres_server.rpartition("/")
    yield f"{base}/{name}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
