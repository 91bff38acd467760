"""Ways between a server and its database that can be cut while players still reach the server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from urllib.parse import urlsplit

from serving import Link


class Proxied:
    """A server beside the test, whose database is behind a socket that can be cut."""

    command: Sequence[str] | None = None
    here = "127.0.0.1"
    options: Sequence[str] = ()

    def __init__(self, database: str) -> None:
        self._link = Link(database)
        self.database = self._link.url

    def cut(self) -> None:
        self._link.whole.clear()

    def mend(self) -> None:
        self._link.whole.set()

    def close(self) -> None:
        self._link.close()


class Namespaced:
    """A server in a network namespace of its own, with one wire to its players and one to its database."""

    def __init__(self, database: str, number: int) -> None:
        self._name = f"narr{os.getpid()}n{number}"
        block = os.getpid() % 200
        _ip("netns", "add", self._name)
        ends = {}
        for wire, third in (("p", 2 * number), ("d", 2 * number + 1)):
            near, far = f"n{os.getpid()}{wire}{number}", f"{wire}{number}"
            start = (third % 64) * 4
            ends[wire] = f"198.18.{block}.{start + 1}", f"198.18.{block}.{start + 2}"
            _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", self._name)
            _ip("addr", "add", f"{ends[wire][0]}/30", "dev", near)
            _ip("link", "set", near, "up")
            _ip("-n", self._name, "addr", "add", f"{ends[wire][1]}/30", "dev", far)
            _ip("-n", self._name, "link", "set", far, "up")
        _ip("-n", self._name, "link", "set", "lo", "up")
        self._wire = f"n{os.getpid()}d{number}"
        self.here = ends["p"][0]
        self.command = ["nsenter", f"--net=/run/netns/{self._name}"]
        self.options = ["--host", ends["p"][1]]
        parts = urlsplit(database)
        self.database = database.replace(f"@{parts.hostname}:", f"@{ends['d'][0]}:")

    def cut(self) -> None:
        _ip("link", "set", self._wire, "down")

    def mend(self) -> None:
        _ip("link", "set", self._wire, "up")

    def close(self) -> None:
        _ip("netns", "del", self._name)  # its ends of the wires go with it, and so do ours


def namespaces_can_be_made() -> bool:
    if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    name = f"narr{os.getpid()}try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return False
    made = subprocess.run(
        ["ip", "-n", name, "link", "add", "one", "type", "veth", "peer", "name", "two"], capture_output=True
    )
    subprocess.run(["ip", "netns", "del", name], check=True)
    return made.returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
