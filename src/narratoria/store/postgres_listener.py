"""Messages between the processes that share a database, by LISTEN and NOTIFY.

A message is a hint, never the news itself: whoever missed one finds the same by asking the tables now and then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import psycopg

from narratoria.store.postgres_keeper import CHANNEL

LOOK_SECONDS: Final = 0.5  # between two looks whether to end
AGAIN_SECONDS: Final = 0.5
CONNECTED: Final = "connected"  # heard after each beginning: what was said before it is lost


class Listener:
    """A thread with a connection of its own. `heard` is called in it, with each message."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], heard: Callable[[str], None]) -> None:
        self._connect = connect
        self._heard = heard
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="narratoria-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._heard(CONNECTED)
                    while not self._ended.is_set():
                        for notice in connection.notifies(timeout=LOOK_SECONDS):
                            self._heard(notice.payload)
            except psycopg.Error:
                self._ended.wait(AGAIN_SECONDS)
