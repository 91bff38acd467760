"""Narration in a real Chromium: Markdown shown, nothing run, nothing frozen, nothing that jumps while it is told."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from narratoria.events import Narration, TurnCommitted, TurnStarted
from narratoria.prose import LONGEST
from narratoria.session import Session
from narratoria.store.default_store import default_store

if TYPE_CHECKING:
    from conftest import RunningServer

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]

LETTER = """\
# The third night

The lamp is **out**, and somebody has written *wait* on the pane, in a hand
that is not `yours_alone`.

> Come down, it says below.
> And bring the oil.
>
> Do not sign your name.

You have:

1. the oil can
2. a match
   - damp
   - the last one

***

- [the tide table](https://tides.example/today) and ![a map of the skerry](map.png)

  with a loose paragraph
- <b>not bold</b> &amp; <img src=x onerror="window.hacked=1">

```
19:40  light
       no answer
```

שלום, **אמר** השומר.

> מי שם?

- ראשון
- שני

潮が**満ちる**。🌊
"""


def write_session(home: Path, *narrations: str) -> str:
    """A session that tells these, on the shelf of the server in `home`."""

    async def write() -> str:
        store = default_store(home)
        session = Session(assets=store.assets)
        journal = store.create(session, story="workshop", title="Told")
        for number, text in enumerate(narrations, 1):
            session.turn = session.turn_count = number
            session.record(TurnStarted(turn=number, prompt=f"tell {number}"))
            session.record(Narration(text=text))
            session.record(TurnCommitted(turn=number))
            session.turn = None
        await journal.close()
        store.close()
        return session.id

    with ThreadPoolExecutor(1) as thread:  # this one may run Playwright's loop
        return thread.submit(asyncio.run, write()).result()


def narration(page: Any, turn: int = 1) -> Any:
    return page.locator(".turn").nth(turn - 1).locator(".narration")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_markdown_is_shown_as_what_it_means(
    server: RunningServer, open_page: Open, shoot: Shoot, theme: str
) -> None:
    page = open_page(
        server.at(f"/play/{write_session(server.home, LETTER)}"),
        theme=theme,
        viewport={"width": 1280, "height": 1700},
        reduced_motion="reduce",
    )
    told = narration(page)
    expect(told.locator("h2")).to_have_text("The third night")
    expect(told.locator("strong").first).to_have_text("out")
    expect(told.locator("blockquote").first.locator("p")).to_have_count(2)
    expect(told.locator("ol > li")).to_have_count(2)
    expect(told.locator("ol ul > li")).to_have_text(["damp", "the last one"])
    expect(told.locator("hr")).to_have_count(1)
    expect(told.locator("pre")).to_have_text("19:40  light\n       no answer")
    expect(told).to_contain_text('<b>not bold</b> & <img src=x onerror="window.hacked=1">')
    expect(told).to_contain_text("the tide table and a map of the skerry")
    assert told.locator("a, img, script, b").count() == 0
    assert page.evaluate("window.hacked") is None
    directions = {
        text: told.locator(selector, has_text=text).last.evaluate("node => getComputedStyle(node).direction")
        for selector, text in (("p", "אמר"), ("blockquote", "מי"), ("li", "ראשון"), ("p", "満ちる"))
    }
    assert directions == {"אמר": "rtl", "מי": "rtl", "ראשון": "rtl", "満ちる": "ltr"}
    shoot(page, f"story-markdown-{theme}")
    assert Axe().run(page).response["violations"] == []


HOSTILE = {
    "one paragraph": "**a " * 8000 + "_b " * 8000,
    "a longer one": "**a " * 25_000,
    "long paragraphs": "\n\n".join(f"{number}" + "*_" * 3900 for number in range(12)),
    "shorter ones": "\n\n".join(f"{number}" + "*_" * 600 for number in range(80)),
    "as many as are shown": "\n\n".join(f"{number}" + "*_" * 600 for number in range(24)),
    "tiny ones": "a\n\n" * 33_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_markdown_does_not_freeze_the_page(server: RunningServer, open_page: Open, text: str) -> None:
    page = open_page(server.at(f"/play/{write_session(server.home, text, 'The *end*.')}"))
    end = narration(page, 2).locator("em")
    expect(end).to_have_text("end", timeout=20_000)  # rendering such a text takes the server a while
    assert narration(page).evaluate("node => node.textContent.length") > 5_000


def test_an_endless_narration_is_shown_as_it_was_written(server: RunningServer, open_page: Open) -> None:
    text = "A **word**\nand another.\n\n" * 40_000
    assert len(text) > 9 * LONGEST
    page = open_page(server.at("/"))
    page.goto(server.at(f"/play/{write_session(server.home, text, 'The *end*.')}"))
    expect(narration(page, 2).locator("em")).to_have_text("end")
    told = narration(page)
    expect(told.locator("p")).to_have_count(1)
    assert told.evaluate("node => node.textContent.length") > 9 * LONGEST
    lines = told.evaluate("node => node.offsetHeight / parseFloat(getComputedStyle(node).lineHeight)")
    assert lines > 119_000, "each line is one"


def test_no_other_script_of_the_page_can_make_elements_of_text(
    server: RunningServer, open_page: Open
) -> None:
    page = open_page(server.at(f"/play/{server.new_session()}"))
    expect(narration(page).locator("strong")).to_have_text("bare")
    tried = "() => {{ try {{ {}; return ''; }} catch (error) {{ return error.name; }} }}"
    for trick in (
        "document.body.innerHTML += '<i>x</i>'",
        "trustedTypes.createPolicy('narration', {})",
        "trustedTypes.createPolicy('other', {})",
    ):
        assert page.evaluate(tried.format(trick)) == "TypeError"


class Storyteller:
    """A model server that says what the test hands it, when the test hands it over."""

    def __init__(self) -> None:
        pieces: queue.Queue[str | None] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                while (piece := pieces.get(timeout=60)) is not None:
                    choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
                    self.wfile.write(f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode())
                    self.wfile.flush()
                self.wfile.write(b"data: [DONE]\n\n")

            def do_GET(self) -> None:
                body = b'{"object": "list", "data": [{"id": "teller", "object": "model"}]}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.pieces = pieces
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def say(self, text: str) -> None:
        self.pieces.put(json.dumps(text)[1:-1])

    def close(self) -> None:
        self.pieces.put(None)
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def storyteller(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storyteller]:
    teller = Storyteller()
    monkeypatch.setenv("NARRATORIA_LLM_URL", teller.url)
    monkeypatch.setenv("NARRATORIA_LLM_MODEL", "teller")
    monkeypatch.setenv("NARRATORIA_LLM_TIMEOUT", "60")
    yield teller
    teller.close()


def test_a_narration_is_shown_as_it_is_told_and_what_is_read_stays(
    storyteller: Storyteller, make_server: Callable[[], RunningServer], open_page: Open, shoot: Shoot
) -> None:
    server = make_server()
    session = server.new_session()
    with server.client() as client:
        client.put(f"/sessions/{session}/settings", json={"narrator": "llm"}).raise_for_status()
    page, other = open_page(server.at(f"/play/{session}")), open_page(server.at(f"/play/{session}"))
    page.get_by_label("What do you do?").fill("look out")
    page.get_by_role("button", name="Send", exact=True).click()
    told = narration(page, 2)

    storyteller.pieces.put('{"narrative": "')
    storyteller.say("The **lamp** is lit.\n\nYou wai")
    expect(told.locator("strong")).to_have_text("lamp")
    expect(told.locator("p")).to_have_text(["The lamp is lit.", "You wai"])
    page.evaluate("window.read = document.querySelectorAll('.turn')[1].querySelector('.narration > p')")
    top = told.locator("p").first.bounding_box()["y"]

    storyteller.say("t *long")
    expect(told.locator("p")).to_have_text(["The lamp is lit.", "You wait *long"])
    storyteller.say("er* now.\n\n1. one\n\n2. t")
    expect(told.locator("em")).to_have_text("longer")
    expect(told.locator("ol > li")).to_have_text(["one", "t"])
    shoot(page, "story-streaming")

    other.reload()
    expect(narration(other, 2).locator("ol > li")).to_have_text(["one", "t"])
    storyteller.say("wo\n\nAnd so on.")
    for one in (page, other):
        expect(narration(one, 2).locator("> *")).to_have_text(
            ["The lamp is lit.", "You wait longer now.", "one two", "And so on."], use_inner_text=True
        )
    storyteller.pieces.put('", "calls": [], "order": "together"}')
    storyteller.pieces.put(None)
    expect(page.get_by_role("status")).to_have_text("Your turn")
    expect(page.locator(".narration.streaming")).to_have_count(0)
    assert page.evaluate("window.read.isConnected"), "the paragraph that was read is still the same one"
    assert told.locator("p").first.bounding_box()["y"] == top
    assert told.inner_html() == narration(other, 2).inner_html()
