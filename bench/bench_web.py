"""The page: cold load against NiceGUI, weight, log lines per second, event to pixel, two hundred viewers.

Run in a virtual environment: `python bench/bench_web.py [load|lines|pixel|viewers …]`. Needs Chromium and
playwright; NiceGUI is installed into the peers' own environment, build/peers/nicegui.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from _measure import Row, ratio, report
from _web import CHROMIUM, FLAGS, Meter, OurServer, nicegui_server, write_story
from peers.environment import python_with, release

LOADS = 7
FLOOD = 100_000
STREAM = 5_000
VIEWERS = 200
TURNS = 12

# Clicks as soon as there is something to click, and notes when the answer is on the page. Both pages get the same.
FIRST_CLICK = """
(() => {
  const says = (one) => one.textContent.toLowerCase().includes("look around");
  let clicked = 0;
  const timer = setInterval(() => {
    const button = [...document.querySelectorAll("button")].find(says);
    const now = performance.now();
    if (button && (!clicked || now > clicked + 2000)) { button.click(); clicked = now; }
    if (clicked && document.body.textContent.includes("a clock ticks")) {
      window.answeredAt = performance.now();
      clearInterval(timer);
    }
  }, 4);
})();
"""
# Notes, for each frame that shows newer lines, how old the oldest of them is once that frame is on the screen.
FRESHNESS = """
() => new Promise((resolve) => {
  const ages = [];
  let newest = 0, started = 0;
  const look = () => {
    const shown = [...document.querySelectorAll(".log-line:not([hidden]) .message")]
      .map((one) => Number(/^at ([0-9.]+)$/.exec(one.textContent)?.[1] ?? 0));
    const last = Math.max(0, ...shown);
    if (last > newest) {
      const oldest = newest ? newest + 0.001 : last;
      requestAnimationFrame(() => ages.push(Date.now() - 1000 * oldest));
      newest = last;
      started ||= performance.now();
    }
    if (started && performance.now() - started > 4000) resolve(ages);
    else requestAnimationFrame(look);
  };
  look();
})
"""


def wait_until(page: Any, condition: str) -> None:
    """Until the page says so. Playwright's own way needs `eval`, which our pages forbid."""
    looking = f"const look = () => ({condition}) ? done() : setTimeout(look, 4)"
    bound = f"setTimeout(() => fail(new Error('not within a minute: ' + {json.dumps(condition)})), 60000)"
    page.evaluate(f"() => new Promise((done, fail) => {{ {looking}; look(); {bound}; }})")


def cold_load(browser: Any, address: str) -> float:
    """Milliseconds from nothing in the cache to an answered click."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.add_init_script(FIRST_CLICK)
    page = context.new_page()
    page.goto(address, wait_until="commit")
    wait_until(page, "window.answeredAt")
    took = float(page.evaluate("window.answeredAt"))
    context.close()
    return took


def loads(browser: Any, ours: OurServer, python: Path) -> list[Row]:
    times: dict[str, list[float]] = {"ours": [], "nicegui": []}
    sizes = {}
    with nicegui_server(python) as peer:
        for _ in range(LOADS):
            times["ours"].append(cold_load(browser, ours.page(ours.begin())))
            times["nicegui"].append(cold_load(browser, f"http://127.0.0.1:{peer}/"))
        with Meter(ours.port) as meter:
            cold_load(browser, ours.page(ours.begin(), meter.port))
            sizes["ours"] = meter.received / 1000
        with Meter(peer) as meter:
            cold_load(browser, f"http://127.0.0.1:{meter.port}/")
            sizes["nicegui"] = meter.received / 1000
    ours_ms, peer_ms = statistics.median(times["ours"]), statistics.median(times["nicegui"])
    measured, spread = ratio(times, "ours", "nicegui")
    # A page that waits on five processes suffers more from a busy machine than one that computes in a single one.
    quickest = min(times["ours"]), min(times["nicegui"])
    return [
        Row(
            "cold load to first answered click, against NiceGUI",
            measured,
            0.25,
            spread=spread,
            peer=release("nicegui"),
            note=f"{ours_ms:.0f} ms and {peer_ms:.0f} ms; at their quickest {quickest[0]:.0f} and {quickest[1]:.0f}",
        ),
        Row("over the wire, first visit and a turn", sizes["ours"], 220, unit=" kB"),
        Row("the same in NiceGUI", sizes["nicegui"], None, unit=" kB"),
    ]


def log_lines(browser: Any, ours: OurServer) -> list[Row]:
    session = ours.begin()
    page = browser.new_page()
    page.goto(ours.page(session, view="tools"))
    page.get_by_role("heading", name="No tool has run yet").wait_for()
    ours.ask("POST", f"/sessions/{session}/prompt", {"prompt": "flood"})
    wait_until(page, "document.querySelector('.log-count')?.textContent.endsWith('lines')")
    start = time.perf_counter()
    first = int(page.locator(".log-count").text_content().split()[0].replace(",", ""))
    wait_until(page, f"document.querySelector('.log-count').textContent === '{FLOOD:,} lines'")
    rate = (FLOOD - first) / (time.perf_counter() - start)
    page.close()
    return [Row("log lines shown in a second", rate, 20_000, at_least=True, unit="")]


def event_to_pixel(browser: Any, ours: OurServer) -> list[Row]:
    session = ours.begin()
    page = browser.new_page()
    page.goto(ours.page(session, view="tools"))
    page.get_by_role("heading", name="No tool has run yet").wait_for()
    ours.ask("POST", f"/sessions/{session}/prompt", {"prompt": "stream"})
    ages = sorted(page.evaluate(FRESHNESS))
    page.close()
    return [
        Row(
            "event to pixel at 1,000 events/s, oldest of a frame, median",
            statistics.median(ages),
            100,
            unit=" ms",
        ),
        Row("the same, 95th percentile", ages[int(0.95 * len(ages))], 100, unit=" ms"),
    ]


class Audience:
    """So many viewers of one session, in this process, reading what comes as a browser would."""

    def __init__(self, server: OurServer, session: str, count: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.sockets = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", server.port))
            request = f"GET /sessions/{session}/events?turns=50 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            one.sendall(f"{request}Authorization: Bearer {server.token}\r\n\r\n".encode())
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ)
            self.sockets.append(one)

    def read_until(self, marker: bytes) -> None:
        """Until every viewer has seen it."""
        tails = dict.fromkeys(self.sockets, b"")
        missing = set(self.sockets)
        deadline = time.monotonic() + 60
        while missing:
            assert time.monotonic() < deadline, f"{len(missing)} viewers did not see {marker!r}"
            for key, _ in self.selector.select(1):
                block = key.fileobj.recv(1 << 18)
                assert block, "the server hung up"
                tails[key.fileobj] = (tails[key.fileobj] + block)[-4096 - len(block) :]
                if marker in tails[key.fileobj]:
                    missing.discard(key.fileobj)
                tails[key.fileobj] = tails[key.fileobj][-len(marker) :]

    def close(self) -> None:
        for one in self.sockets:
            one.close()
        self.selector.close()


def take_turns(server: OurServer, viewers: int) -> tuple[float, float]:
    """Median seconds of a turn, by the journal's own clock, and the server's CPU seconds for each."""
    session = server.begin()
    audience = Audience(server, session, viewers)
    audience.read_until(b'"turn":0')
    durations, cpu = [], server.cpu_seconds()
    for number in range(1, TURNS + 1):
        server.ask("POST", f"/sessions/{session}/prompt", {"prompt": "work"})
        audience.read_until(b'"type":"turn_committed","turn":%d' % number)
    cpu = (server.cpu_seconds() - cpu) / TURNS
    audience.close()
    start: dict[int, float] = {}
    for record in records(server, session):
        if record["event"]["type"] == "turn_started":
            start[record["turn"]] = record["ts"]
        elif record["event"]["type"] == "turn_committed" and record["turn"]:
            durations.append(record["ts"] - start[record["turn"]])
    return statistics.median(durations), cpu


def records(server: OurServer, session: str) -> list[dict[str, Any]]:
    request = Request(
        f"http://127.0.0.1:{server.port}/sessions/{session}/events?turns=1000",
        headers={"Authorization": f"Bearer {server.token}"},
    )
    with urlopen(request, timeout=60) as stream:  # noqa: S310
        for line in stream:
            if line.startswith(b"data: "):
                return list(json.loads(line[6:])["records"])
    raise AssertionError("the stream ended")


def many_viewers(server: OurServer) -> list[Row]:
    cores = sorted(os.sched_getaffinity(0))
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {cores[0]})
    os.sched_setaffinity(0, {cores[-1]})
    take_turns(server, 1)
    one, many = [], []
    for _ in range(3):
        one.append(take_turns(server, 1))
        many.append(take_turns(server, VIEWERS))
    os.sched_setaffinity(0, set(cores))
    alone, crowded = (statistics.median(turn for turn, _ in runs) for runs in (one, many))
    cpu_alone, cpu_crowded = (1000 * statistics.median(cpu for _, cpu in runs) for runs in (one, many))
    return [
        Row(
            f"a turn with {VIEWERS} viewers on one core, against one viewer",
            crowded / alone,
            1.10,
            note=f"{1000 * crowded:.0f} ms and {1000 * alone:.0f} ms",
        ),
        Row(
            "CPU of the server for such a turn",
            cpu_crowded,
            None,
            unit=" ms",
            note=f"one viewer: {cpu_alone:.0f} ms",
        ),
    ]


def main(wanted: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    python = python_with("nicegui")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        write_story(home, flood=FLOOD, stream=STREAM)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with OurServer(home) as ours:
            parts = {
                "load": lambda: loads(browser, ours, python),
                "lines": lambda: log_lines(browser, ours),
                "pixel": lambda: event_to_pixel(browser, ours),
                "viewers": lambda: many_viewers(ours),
            }
            rows = [row for name in wanted or parts for row in parts[name]()]
        browser.close()
    report("the page", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
