"""A connection of this process to Ray: to the cluster at an address, or to one of its own that listens on loopback."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from narratoria.errors import NarratoriaError
from narratoria.kinds.process import marks
from narratoria.kinds.process.custody import custody
from narratoria.kinds.remote import node

STORE_BYTES: Final = 128 * 1024 * 1024
"""Memory of the object store of a cluster of our own: answers pass through it in pieces of a megabyte."""
START_SECONDS: Final = 240.0
_WARM_SECONDS: Final = 60.0  # the first worker of a busy machine; its time is not the first call's
_PREFIX: Final = "nray-"
_LONGEST_PLACE: Final = 30  # Ray adds 75 characters to it, and the path of a socket has at most 107


class RayUnavailable(NarratoriaError):
    """There is no connection to Ray."""


class Connection:
    """This process's connection to Ray, which can have one only.

    It lives in a thread of its own: the servers of a local cluster end with the thread that started them, and Ray takes
    over the signals of a process only in its main thread.
    """

    def __init__(self, address: str | None, **options: Any) -> None:
        self.address = address
        self.ray: Any = None
        """The module, once it may be imported."""
        self._options = options
        self._ready = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._signals_taken = False

    @property
    def ready(self) -> bool:
        """True once calls can be made."""
        return self._ready.is_set() and self._failure is None

    @property
    def losses(self) -> tuple[type[Exception], ...]:
        """The errors that tell of a lost node, worker or object."""
        errors = self.ray.exceptions
        return (
            errors.NodeDiedError,
            errors.WorkerCrashedError,
            errors.LocalRayletDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
            errors.RaySystemError,
        )

    def open(self) -> None:
        """Connect, or wait until somebody else's call of this has; it blocks for seconds."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="narratoria-ray", daemon=True)
                self._thread.start()
                atexit.register(self.close)
        if not self._ready.wait(START_SECONDS):
            raise RayUnavailable(f"Ray did not start within {START_SECONDS:g} s; look at its logs")
        if self._failure is not None:
            raise RayUnavailable(f"{self._where()}: {self._failure}") from self._failure
        self.take_signals_back()

    def take_signals_back(self) -> None:
        """Undo what Ray does to TERM: it writes a trace of its own, and ends the process three seconds later.

        Only the main thread can; whoever connects in another calls this there afterwards.
        """
        if self._signals_taken and threading.current_thread() is threading.main_thread():
            self._signals_taken = False
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.getsignal(number) or signal.SIG_DFL)

    def close(self) -> None:
        """End the connection, and the cluster if it is our own."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            atexit.unregister(self.close)

    def _where(self) -> str:
        if self.address is None:
            return "Ray cannot be started here"
        return f"there is no Ray cluster at {self.address}; start one with `ray start --head`, or check the address"

    def _live(self) -> None:
        with contextlib.ExitStack() as leaving:
            try:
                self._connect(leaving)
            except BaseException as error:  # whoever waits gets it
                self._failure = error
                self._ready.set()
                return
            self._ready.set()
            self._over.wait()

    def _connect(self, leaving: contextlib.ExitStack) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.address is None:
            # Ray reads it when it is imported: without a cluster, its servers listen on loopback.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
            os.environ["RAY_AUTH_MODE"] = "token"  # other users of this machine can reach loopback too
            os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())
        import ray

        self.ray = ray
        if ray.is_initialized():
            return  # by the program we are part of, which also ends it
        cookie = ""
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self.address is None:
            settings |= {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_temp_dir": leaving.enter_context(_short_folder()),
            }
            cookie = leaving.enter_context(_guarded())
        else:
            settings["address"] = self.address
        logging.getLogger("ray").setLevel(logging.ERROR)  # it says that it left our signals alone
        self._signals_taken = True
        leaving.callback(ray.shutdown)
        with _marked(cookie):
            try:
                ray.init(**settings, **self._options)
            except Exception:
                # Ray gives its servers 30 s to come up, which a busy machine may need twice.
                if self.address is not None:
                    raise
                ray.shutdown()
                ray.init(**settings, **self._options)
        if self.address is None:
            with contextlib.suppress(ray.exceptions.RayError):  # who calls hears of it
                ray.get(ray.remote(node.warm).remote(), timeout=_WARM_SECONDS)


@contextlib.contextmanager
def _guarded() -> Iterator[str]:
    """Make the servers of a cluster a call of ours: the guardian ends what carries its cookie if we are killed."""
    call, cookie = custody().begin()
    try:
        yield cookie
    finally:
        custody().end(call)
        custody().sweep_now(thorough=True)


@contextlib.contextmanager
def _marked(cookie: str) -> Iterator[None]:
    """Start processes with a cookie in their environment, which is ours."""
    before = os.environ.get(marks.COOKIE)
    if cookie:
        os.environ[marks.COOKIE] = cookie
    try:
        yield
    finally:
        if before is not None:
            os.environ[marks.COOKIE] = before
        elif cookie:
            del os.environ[marks.COOKIE]


@contextlib.contextmanager
def _short_folder() -> Iterator[str]:
    """Make the folder of a cluster. It goes with the cluster; one whose process was killed goes with the next.

    It is none of the guardian's, whose names are too long for the sockets in it.
    """
    place = tempfile.gettempdir()
    place = place if len(place) < _LONGEST_PLACE else "/tmp"  # noqa: S108
    for left in Path(place).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if left.stat().st_uid == os.geteuid() and (lock := _lock(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    lock = _lock(Path(folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return the descriptor; None if its process lives."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
