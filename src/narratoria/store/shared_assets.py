"""The assets of a shared store: in a table of the database or in a bucket, with copies in a folder of each server.

A row says what is kept, and is written in the transaction of the first record that refers to it; `discard` locks that
row and looks for references again, so nothing goes that another server has just recorded. An object in a bucket is
put there before that transaction, under a name that no other upload has: the deletion of an old one never meets a new
one. Objects without a row, of servers that ended in between, are found and removed by `sweep`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from narratoria.errors import JournalError
from narratoria.session.assets import AssetStore, HeldAsset, is_digest
from narratoria.session.private_files import make_file
from narratoria.store.bucket import Bucket, ObjectMissing
from narratoria.store.store import JournalDamaged
from narratoria.store.writer import ConnectionLost, Database, Writer

T = TypeVar("T")

CONTENTS: Final = "CREATE TABLE contents (hash TEXT PRIMARY KEY, data BYTEA NOT NULL)"
OBJECTS: Final = (
    "CREATE TABLE IF NOT EXISTS objects (hash TEXT PRIMARY KEY, name TEXT NOT NULL, size BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS object_folder (name TEXT NOT NULL)",
)
_UPLOADS: Final = 4  # at the same time
_FRESH_SECONDS: Final = 600.0
"""Seconds for which an upload is used; one that no record refers to is swept away after an hour."""
_NO_BUCKET: Final = (
    "this asset is in a bucket; set NARRATORIA_ASSETS and its keys as the other servers have them"
)
logger = logging.getLogger("narratoria")


class Uploaded(NamedTuple):
    """An object that no row names yet."""

    name: str
    size: int
    at: float


class SharedTables(Protocol):
    """The database of a shared store."""

    writer: Writer

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...


class SharedAssets(AssetStore):
    """A folder of copies in front of the table of contents, or of a bucket."""

    def __init__(self, root: Path | None, store: SharedTables, bucket: Bucket | None = None) -> None:
        super().__init__(root)
        self._store = store
        self._bucket = bucket
        self._uploaded: dict[str, Uploaded] = {}
        self._folder = ""
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if self._bucket is not None:
            self._bucket.close()

    def check(self) -> None:
        """Raise `JournalError` if the bucket refuses us. One that is away is waited for later."""
        if self._bucket is not None:
            with suppress(ConnectionLost):
                self._bucket.check()

    # --- looking -------------------------------------------------------------------------------------------

    def path_of(self, digest: str) -> Path:
        try:
            return super().path_of(digest)
        except KeyError:
            if not is_digest(digest):
                raise
        rows = self._store.query("SELECT name FROM objects WHERE hash = ?", (digest,))
        if rows:
            self._fetch(digest, str(rows[0][0]))
        else:
            self._copy_row(digest)
        return super().path_of(digest)

    def _fetch(self, digest: str, name: str) -> None:
        if self._bucket is None:
            raise JournalError(_NO_BUCKET)
        with tempfile.NamedTemporaryFile(dir=self._incoming(), delete=False) as copy:
            try:
                self._bucket.fetch(name, digest, copy)
            except BaseException as error:
                Path(copy.name).unlink(missing_ok=True)
                if isinstance(error, ObjectMissing):
                    raise KeyError(digest) from error
                raise
        self._settle(Path(copy.name), digest)

    def _copy_row(self, digest: str) -> None:
        rows = self._store.query("SELECT data FROM contents WHERE hash = ?", (digest,))
        if not rows:
            raise KeyError(digest)
        content = bytes(rows[0][0])
        found = hashlib.sha256(content).hexdigest()
        copy = self._incoming() / f"{found}.{uuid.uuid4().hex}"
        make_file(copy)
        copy.write_bytes(content)
        self._settle(copy, found)

    def __contains__(self, digest: str) -> bool:
        return self._has_copy(digest) or bool(
            self._store.query(
                "SELECT 1 FROM objects WHERE hash = ? UNION ALL SELECT 1 FROM contents WHERE hash = ?",
                (digest, digest),
            )
        )

    def _has_copy(self, digest: str) -> bool:
        return is_digest(digest) and (self.root / digest[:2] / digest).is_file()

    def is_whole(self, digest: str) -> bool | None:
        try:
            return super().is_whole(digest)
        except JournalDamaged:
            return False

    def holds_content(self, digest: str) -> bool:
        """Tell if the shared content of an asset is what was stored; this server's copy does not count."""
        rows = self._store.query("SELECT name FROM objects WHERE hash = ?", (digest,))
        if rows and self._bucket is not None:
            with (
                tempfile.TemporaryFile(dir=self._incoming()) as copy,
                suppress(JournalDamaged, ObjectMissing),
            ):
                self._bucket.fetch(str(rows[0][0]), digest, copy)
                return True
        rows = self._store.query("SELECT encode(sha256(data), 'hex') FROM contents WHERE hash = ?", (digest,))
        return bool(rows) and rows[0][0] == digest

    def held(self) -> Iterator[HeldAsset]:
        seen = set()
        for one in super().held():
            seen.add(one.digest)
            yield one
        for digest, size in self._store.query(
            "SELECT hash, size FROM objects UNION SELECT hash, length(data) FROM contents ORDER BY 1"
        ):
            if digest not in seen:  # a row comes with its reference: without one it waits for none
                yield HeldAsset(str(digest), int(size), 0.0)

    # --- keeping -------------------------------------------------------------------------------------------

    def bring(self, digests: Iterable[str]) -> None:
        """Put contents into the bucket that are not there, before the transaction that refers to them."""
        if self._bucket is None:
            return
        for digest in dict.fromkeys(digests):
            known = self._uploaded.get(digest)
            if known is not None and time.monotonic() - known.at < _FRESH_SECONDS:
                continue
            if not self._store.query("SELECT 1 FROM objects WHERE hash = ?", (digest,)):
                self._upload(self._bucket, digest)

    @contextmanager
    def brought(self, digests: Iterable[str]) -> Iterator[None]:
        """Bring contents; inside, their rows are written."""
        wanted = list(digests)
        self.bring(wanted)
        yield
        self._written(wanted)

    def _written(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._uploaded.pop(digest, None)  # its row says where it is, and may be gone tomorrow

    def _upload(self, bucket: Bucket, digest: str) -> None:
        path = self._own_copy(digest)
        name = f"{self._own_folder()}/{digest[:2]}/{digest}.{uuid.uuid4().hex[:12]}"
        at, size = time.monotonic(), path.stat().st_size
        bucket.put(name, path, digest)
        self._uploaded[digest] = Uploaded(name, size, at)

    def _own_copy(self, digest: str) -> Path:
        try:
            return self.path_of(digest)
        except KeyError:
            raise JournalError(f"asset {digest} has vanished from {self.root}") from None

    def _own_folder(self) -> str:
        """Return the folder of this database in the bucket: another database may have its own beside it."""
        if not self._folder:
            sql = "INSERT INTO object_folder (name) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM object_folder)"

            def name(database: Database) -> str:
                database.execute("LOCK TABLE object_folder IN EXCLUSIVE MODE")
                database.execute(sql, (uuid.uuid4().hex,))
                return str(database.execute("SELECT name FROM object_folder")[0][0])

            self._folder = self._store.writer.run(name)
        return self._folder

    def keep(self, database: Database, digest: str) -> None:
        """Write the row of a content, in the transaction of a record that refers to it: nobody discards it then."""
        if self._bucket is not None:
            self._keep_object(database, digest)
        elif not database.execute(
            "SELECT 1 FROM contents WHERE hash = ? FOR KEY SHARE", (digest,)
        ) and not database.execute("SELECT 1 FROM objects WHERE hash = ? FOR KEY SHARE", (digest,)):
            database.execute(
                "INSERT INTO contents (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (digest, self._own_copy(digest).read_bytes()),
            )

    def _keep_object(self, database: Database, digest: str) -> None:
        if database.execute("SELECT 1 FROM objects WHERE hash = ? FOR KEY SHARE", (digest,)):
            return
        made = self._uploaded.get(digest)
        if made is None:  # it was there a moment ago, and was discarded
            raise ConnectionLost(f"asset {digest} is not in the object store yet; it is put there again")
        database.execute(
            "INSERT INTO objects (hash, name, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (digest, made.name, made.size),
        )

    def first_bringing(self, digests: Sequence[str], submit: Callable[[], Future[T]]) -> Future[T]:
        """Bring contents in a thread, then submit a job; return the future of its result."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_UPLOADS, "narratoria-uploads")
        result: Future[T] = Future()

        def hand_on(done: Future[T]) -> None:
            error = done.exception()
            if error is not None:
                result.set_exception(error)
                return
            self._written(digests)
            result.set_result(done.result())

        def bring() -> None:
            try:
                self.bring(digests)
                submitted = submit()
            except BaseException as error:
                if isinstance(error, OSError):
                    error = JournalError(f"assets cannot be read from {self.root}: {error.strerror}")
                result.set_exception(error)
            else:
                submitted.add_done_callback(hand_on)

        self._pool.submit(bring)
        return result

    # --- removing ------------------------------------------------------------------------------------------

    def discard(self, digest: str) -> int:
        """Remove an unreferenced content everywhere; one that a record refers to by now stays. Return the bytes."""

        def forget(database: Database) -> tuple[int, str]:
            for table in ("objects", "contents"):
                database.execute(f"SELECT 1 FROM {table} WHERE hash = ? FOR UPDATE", (digest,))  # noqa: S608
            if database.execute(
                "SELECT 1 FROM assets WHERE hash = ? LIMIT 1", (digest,)
            ):  # seen after the lock
                return -1, ""
            rows = database.execute("DELETE FROM contents WHERE hash = ? RETURNING length(data)", (digest,))
            objects = database.execute("DELETE FROM objects WHERE hash = ? RETURNING size, name", (digest,))
            return sum(int(row[0]) for row in rows + objects), str(objects[0][1]) if objects else ""

        size, name = self._store.writer.run(forget)
        if size < 0:
            return 0
        if name and self._bucket is not None:
            self._remove(self._bucket, name)
        if self._has_copy(digest):
            size = max(size, super().discard(digest))
        return size

    def sweep(self, before: float) -> None:
        """Remove half-made copies, and objects without a row: both of processes that ended half way."""
        super().sweep(before)
        if self._bucket is None:
            return
        for one in list(self._bucket.list(f"{self._own_folder()}/")):
            if one.put < before and not self._store.query(
                "SELECT 1 FROM objects WHERE name = ?", (one.name,)
            ):
                self._remove(self._bucket, one.name)

    def _remove(self, bucket: Bucket, name: str) -> None:
        try:
            bucket.delete(name)
        except JournalError as error:  # the next sweep finds it
            logger.warning("%s was not removed: %s", os.path.basename(name), error)  # noqa: PTH119 - no file
