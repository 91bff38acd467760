"""A real Firefox for the tests, driven by the protocol it has built in (Marionette: JSON with its length before it)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIREFOX = os.environ.get("NARRATORIA_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE = 60.0  # seconds that it gets to start, on a machine that is busy with other tests
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name for a reference to one
# It asks nobody for anything: no updates, no captive portals, no studies.
PREFERENCES = {
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "media.autoplay.default": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class FirefoxError(Exception):
    """Firefox could not do what it was asked."""


@dataclass
class Firefox:
    """One window of a Firefox with a profile of its own."""

    connection: socket.socket
    number: int = 0
    unread: bytes = field(default=b"")

    def do(self, command: str, **parameters: Any) -> Any:
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.connection.sendall(f"{len(message)}:".encode() + message)
        _, number, error, result = self._read()
        assert number == self.number
        if error:
            raise FirefoxError(f"{command}: {error['error']}: {error['message']}")
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def _read(self) -> Any:
        while b":" not in self.unread:
            self._more()
        length, _, self.unread = self.unread.partition(b":")
        while len(self.unread) < int(length):
            self._more()
        message, self.unread = self.unread[: int(length)], self.unread[int(length) :]
        return json.loads(message)

    def _more(self) -> None:
        more = self.connection.recv(65536)
        if not more:
            raise FirefoxError("it has ended")
        self.unread += more

    def open(self, address: str) -> None:
        self.do("WebDriver:Navigate", url=address)

    def run(self, script: str) -> Any:
        """Return the value of an expression on the page."""
        return self.do("WebDriver:ExecuteScript", script=f"return {script}", args=[])

    def wait_for(self, script: str, seconds: float = 20) -> Any:
        """Return the value of an expression, once it has one that counts."""
        asked = (
            "const [end, done] = [Date.now() + arguments[0], arguments[1]];"
            f"const look = () => {{ const found = {script};"
            " if (found || Date.now() > end) done(found || null); else setTimeout(look, 30); };"
            "look();"
        )
        self.do("WebDriver:SetTimeouts", script=int(seconds * 1000) + 5000)
        found = self.do("WebDriver:ExecuteAsyncScript", script=asked, args=[int(seconds * 1000)])
        assert found, f"not within {seconds:g} s: {script}"
        return found

    def click(self, selector: str) -> None:
        self.do("WebDriver:ElementClick", id=self._find(selector))

    def type(self, selector: str, text: str) -> None:
        self.do("WebDriver:ElementSendKeys", id=self._find(selector), text=text)

    def _find(self, selector: str) -> str:
        self.wait_for(f"document.querySelector({json.dumps(selector)})?.checkVisibility()")
        found = self.do("WebDriver:FindElement", using="css selector", value=selector)
        return str(found[ELEMENT])

    def shoot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.do("WebDriver:TakeScreenshot", full=False)))

    def complaints(self, origin: str) -> list[str]:
        """Return the errors in its console that come from pages at `origin`."""
        self.do("Marionette:SetContext", value="chrome")
        try:
            return list(
                self.do(
                    "WebDriver:ExecuteScript",
                    script="""
                        return Services.console.getMessageArray()
                            .filter((one) => one instanceof Ci.nsIScriptError && !(one.flags & 1))
                            .filter((one) => one.sourceName.startsWith(arguments[0]))
                            .map((one) => `${one.errorMessage} (${one.sourceName}:${one.lineNumber})`)""",
                    args=[origin],
                )
            )
        finally:
            self.do("Marionette:SetContext", value="content")


@contextlib.contextmanager
def running_firefox(profile: Path) -> Iterator[Firefox]:
    """Run a Firefox without a window; it ends with the block."""
    assert FIREFOX is not None
    profile.mkdir(parents=True)
    preferences = PREFERENCES | {"marionette.port": 0}
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
    (profile / "user.js").write_text("\n".join(lines))
    command = [FIREFOX, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
    with (profile / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--profile", str(profile)],
            stdout=log,
            stderr=log,
            env=os.environ | {"MOZ_HEADLESS_WIDTH": "1280"},
        )
    try:
        with socket.create_connection(("127.0.0.1", _port(profile, process))) as connection:
            connection.settimeout(PATIENCE)
            firefox = Firefox(connection)
            firefox._read()  # it says who it is
            firefox.do("WebDriver:NewSession")
            firefox.do("WebDriver:SetWindowRect", width=1280, height=860)
            yield firefox
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    """Return the port it listens on, once it has written it down."""
    written, end = profile / "MarionetteActivePort", time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if written.exists() and (port := written.read_text().strip()):
            return int(port)
        time.sleep(0.1)
    said = (profile / "log").read_text(errors="replace")[-2000:]
    raise FirefoxError(f"it did not start within {PATIENCE:g} s; it said: {said}")
