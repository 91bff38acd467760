"""A connection of this process to Ray: to the cluster at an address, or to one of its own that listens on loopback."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, Final

from narratoria.errors import NarratoriaError

STORE_BYTES: Final = 128 * 1024 * 1024
"""Memory of the object store of a cluster of our own: answers pass through it in pieces of a megabyte."""
START_SECONDS: Final = 120.0
_LONGEST_FOLDER: Final = 40  # of the path in front of Ray's own; a socket's path has at most 107 bytes


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
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self.address is None:
            settings |= {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_temp_dir": leaving.enter_context(_short_folder()),
            }
        else:
            settings["address"] = self.address
        logging.getLogger("ray").setLevel(logging.ERROR)  # it says that it left our signals alone
        leaving.callback(ray.shutdown)
        ray.init(**settings, **self._options)


@contextlib.contextmanager
def _short_folder() -> Iterator[str]:
    """Make the folder of a cluster; it is removed with the cluster."""
    place = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="nray-", dir=place if len(place) < _LONGEST_FOLDER else "/tmp")  # noqa: S108
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
