"""What holds for every test."""

from __future__ import annotations

import gc
import http.server
import json
import os
import signal
import threading
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Spare the garbage collector the thousands of tests: they live as long as this process."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal() -> Iterator[None]:
    """What the tests start hears interrupt and hang-up, also where the suite itself was told to ignore them.

    `nohup` and a script's `&` ignore them, and an ignored signal is inherited. A handler that does nothing keeps the
    suite as deaf and is not inherited: exec makes it the default again.
    """
    ignored = [
        number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", choices=["local", "ray"], default="local", help="where the executables of the tests run"
    )


@pytest.fixture(scope="session", autouse=True)
def chosen_engine(pytestconfig: pytest.Config) -> Iterator[None]:
    """With `--engine ray`, every executable of the tests runs on a Ray that starts once, and ends with them."""
    if pytestconfig.getoption("--engine") == "local":
        yield
        return
    from narratoria.kinds.placement import choose

    take_back = choose("ray", num_cpus=4)
    try:
        yield
    finally:
        take_back()


@pytest.fixture(scope="session", autouse=True)
def stories_are_our_own() -> Iterator[None]:
    """The tests write their stories themselves, and let tools leave marks beside them: they are their authors, who say
    so. What a sandbox does to a story of somebody else is shown where this is taken back.
    """
    os.environ["NARRATORIA_SANDBOX"] = "trusted"
    yield
    del os.environ["NARRATORIA_SANDBOX"]


PETS = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "/v1"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
    "paths": {
        "/pets/{petId}": {
            "get": {
                "operationId": "getPet",
                "summary": "Finds a pet.",
                "parameters": [
                    {"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "responses": {"200": {"description": "The pet."}},
            }
        }
    },
}


@pytest.fixture
def pet_shop() -> Iterator[str]:
    """The address of an API, which has its own document at `/pets.json` and tells what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = {"path": self.path, "key": "given" if self.headers.get("X-Key") == "sesame" else "wrong"}
            body = json.dumps(PETS if self.path == "/pets.json" else asked).encode()
            self.send_response(404 if self.path == "/missing.json" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
