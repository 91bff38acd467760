"""Locks on the sessions of a file store: files beside it, locked by the system, so that a dead process holds none."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from narratoria.errors import JournalError, SessionBusy
from narratoria.session.private_files import make_folder
from narratoria.store.sqlite_database import reason
from narratoria.store.store import is_plain_id, unwritable


@contextmanager
def nobody_playing(path: Path) -> Iterator[None]:
    """Lock every session of a database at once, or raise `SessionBusy` that says which is being played."""
    with ExitStack() as held:
        for lock in sorted(path.with_name("locks").glob("*.lock")):
            held.callback(FileLease(lock.parent, lock.stem).release)
        yield


def lock_name(session_id: str) -> str:
    """Return the file name of a session's lock: ids may hold any character."""
    name = session_id if is_plain_id(session_id) else hashlib.sha256(session_id.encode()).hexdigest()
    return f"{name}.lock"


class FileLease:
    """An exclusive `flock` on a small file that names its holder. The kernel drops it with the process."""

    def __init__(self, folder: Path, session_id: str) -> None:
        try:
            make_folder(folder)
            path = folder / lock_name(session_id)
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(unwritable(folder, error)) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 200).decode(errors="replace").strip() or "another process"
            os.close(self._descriptor)
            raise SessionBusy(f"session {session_id} is open in {holder}; close it there first") from None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        except OSError as error:
            self.release()
            raise JournalError(f"{path}: {reason(error)}; make room, then open the session again") from None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self, *, open_turn: bool = False) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
