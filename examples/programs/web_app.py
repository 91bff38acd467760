"""A web application of your own around a story: Starlette, a session for each player, turns, and events as they happen.

Run it with `uvicorn --app-dir examples/programs web_app:app`, and then

    curl -X POST localhost:8000/games
    curl -N localhost:8000/games/ID/events &
    curl -X POST localhost:8000/games/ID/turns -d '{"prompt": "light the torch"}' -H 'Content-Type: application/json'

It has no accounts: whoever knows an id plays that game. `narratoria play` has sign-ins, and a journal behind each game.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from narratoria import Session
from narratoria.errors import SessionBusy
from narratoria.events import encode
from narratoria.play.game import Game
from narratoria.play.story_library import open_story
from narratoria.session import Record

STORY = "torch"
MOST_WAITING = 1000  # records that a slow viewer may be behind


class Viewer:
    """A sink: the records of a session, waiting for one browser."""

    full = False  # true would slow the tools down; a viewer that is too slow is cut off instead

    def __init__(self) -> None:
        self.records: asyncio.Queue[Record] = asyncio.Queue(MOST_WAITING)
        self.cut_off = False

    def push(self, record: Record) -> None:
        try:
            self.records.put_nowait(record)
        except asyncio.QueueFull:
            self.cut_off = True

    async def wait(self) -> None:
        pass


class Prompt(msgspec.Struct, forbid_unknown_fields=True):
    """What a player sends."""

    prompt: str


@dataclass
class Games:
    """The games that are being played, in memory."""

    by_id: dict[str, Game] = field(default_factory=dict)

    def start(self) -> Game:
        story = open_story(STORY)
        game = Game(story, Session(state=story.state, permissions=story.permissions), narrators=["rules"])
        game.begin()
        self.by_id[game.session.id] = game
        return game

    def of(self, request: Request) -> Game:
        game = self.by_id.get(request.path_params["id"])
        if game is None:
            raise HTTPException(404, "no such game; POST /games starts one")
        return game


games = Games()


async def start(request: Request) -> JSONResponse:
    game = games.start()
    return JSONResponse({"id": game.session.id, "title": game.story.title}, 201)


async def take_turn(request: Request) -> JSONResponse:
    game = games.of(request)
    try:
        said = msgspec.json.decode(await request.body(), type=Prompt)
    except msgspec.DecodeError as error:
        raise HTTPException(400, f'send {{"prompt": "…"}}: {error}') from None
    try:
        turn = await game.prompt(said.prompt)
    except SessionBusy as error:
        raise HTTPException(429, str(error)) from None
    return JSONResponse(
        {"turn": turn.turn, "outcome": turn.outcome, "narrative": turn.narrative, "choices": turn.choices}
    )


async def state(request: Request) -> JSONResponse:
    return JSONResponse(games.of(request).session.snapshot())


async def events(request: Request) -> StreamingResponse:
    return StreamingResponse(records_of(games.of(request)), media_type="text/event-stream")


async def records_of(game: Game) -> AsyncIterator[bytes]:
    """Every record from now on, as server-sent events."""
    viewer = Viewer()
    detach = game.session.attach(viewer)
    try:
        while not viewer.cut_off:
            yield b"data: " + encode((await viewer.records.get()).event) + b"\n\n"
    finally:
        detach()


app = Starlette(
    routes=[
        Route("/games", start, methods=["POST"]),
        Route("/games/{id}/turns", take_turn, methods=["POST"]),
        Route("/games/{id}/state", state),
        Route("/games/{id}/events", events),
    ]
)
