"""Requests for a session that another server plays: they go there through the database, and the answer comes back.

The server that got a request writes it into the table `commands`, the one that plays the session takes it, runs it as
if it had come to itself, and writes the answer beside it. Servers need no way to each other but the database. A command
for a server that died is run here if that had not taken it; else the answer says that nobody knows if it was done.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria.errors import JournalError, NarratoriaError, SessionElsewhere
from narratoria.store.postgres_keeper import CHANNEL
from narratoria.store.postgres_listener import CONNECTED
from narratoria.store.writer import Database
from narratoria.web.access import FORWARDED, SIGN_IN
from narratoria.web.callers import CALLER
from narratoria.web.games import Unavailable
from narratoria.web.json_responses import explain
from narratoria.web.server_tasks import ServerTasks
from narratoria.web.shared_games import SharedGames
from narratoria.web.sign_ins import SignIn

ANSWER_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.5
MOST_HOPS: Final = 4
MOST_BYTES: Final = 16 * 1024 * 1024  # of a request
PASSED: Final = (b"content-type", b"accept", b"accept-language", b"accept-encoding", b"if-none-match")
BODY: Final = "narratoria.body"
FAULT: Final = (
    b'{"error": "fault", "message": "The server that plays this session failed; its log says how."}'
)
logger = logging.getLogger("narratoria")

_SEND: Final = f"""WITH c AS (INSERT INTO commands (id, server, sender, request) VALUES (?, ?, ?, ?) RETURNING server)
    SELECT pg_notify('{CHANNEL}', 'command ' || server) FROM c"""  # noqa: S608 - our own words
_TAKE: Final = "UPDATE commands SET taken = TRUE WHERE server = ? AND NOT taken RETURNING id, sender, request"
_ANSWER: Final = f"""WITH c AS (UPDATE commands SET answer = ? WHERE id = ? RETURNING sender)
    SELECT pg_notify('{CHANNEL}', 'answer ' || sender) FROM c"""  # noqa: S608 - our own words
_READ: Final = "DELETE FROM commands WHERE sender = ? AND answer IS NOT NULL RETURNING id, answer"
_WITHDRAW: Final = "DELETE FROM commands WHERE id = ? AND NOT taken RETURNING id"
_SWEEP: Final = "DELETE FROM commands WHERE made < clock_timestamp() - interval '10 minutes'"


class Command(msgspec.Struct, frozen=True):
    """A request on its way to another server. `caller` is what the access policy knows of whoever sent it."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    hops: int
    caller: dict[str, str]


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class OwnerLost(Unavailable):
    """The server that had a command died before it answered."""

    code = "owner_lost"


class Forwarding:
    """Sends requests to other servers, and runs theirs."""

    def __init__(self, games: SharedGames) -> None:
        self._games = games
        self._keeper = games.keeper
        self._tasks = ServerTasks()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._taking = asyncio.Lock()
        self.app: ASGIApp | None = None  # runs the commands
        games.on_message(self._hear)

    # --- sending -------------------------------------------------------------------------------------------

    async def elsewhere(self, request: Request, error: Exception) -> Response:
        """Answer a request for a session that another server plays."""
        assert isinstance(error, SessionElsewhere)  # noqa: S101 - registered for it
        hops = int(request.scope.get(FORWARDED, 0))
        if hops >= MOST_HOPS:
            return await explain(request, error)
        command = await _command(request, hops + 1)
        try:
            answer = await self._ask(command, error.server)
        except NarratoriaError as failure:
            return await explain(request, failure)
        response = Response(answer.body, answer.status)
        response.raw_headers = [(name, value) for name, value in answer.headers]
        return response

    async def _ask(self, command: Command, server: str) -> Answer:
        self._games.metrics.add("commands_sent")
        name = uuid.uuid4().hex
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[name] = waiting
        content = msgspec.msgpack.encode(command)
        try:
            await self._do(_SEND, name, server, self._keeper.id, content)
            until = time.monotonic() + ANSWER_SECONDS
            while True:
                await asyncio.wait([waiting], timeout=LOOK_SECONDS)
                if waiting.done():
                    return waiting.result()
                await self._read()
                if waiting.done():
                    continue
                if not await asyncio.to_thread(self._keeper.is_alive, server):
                    break
                if time.monotonic() > until:
                    raise OwnerLost("the server that plays this session does not answer; try again")
            if await self._do(_WITHDRAW, name):
                return await self._run(command)
            raise OwnerLost(
                "the server that played this session ended before it answered, and another one goes on with it; "
                "look at the story before you try again"
            )
        finally:
            del self._waiting[name]

    async def _read(self) -> None:
        for name, content in await self._do(_READ, self._keeper.id):
            waiting = self._waiting.get(name)
            if waiting is not None and not waiting.done():
                waiting.set_result(msgspec.msgpack.decode(content, type=Answer))

    async def _do(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        def run(database: Database) -> list[tuple[Any, ...]]:
            return database.execute(sql, values)

        return await asyncio.wrap_future(self._keeper.submit(run))

    # --- receiving -----------------------------------------------------------------------------------------

    def _hear(self, what: str, rest: str) -> None:
        if what == "command" and rest == self._keeper.id:
            self._tasks.start(self._take())
        elif what == "answer" and rest == self._keeper.id:
            self._tasks.start(self._read())
        elif what == CONNECTED:
            self._tasks.start(self._take())
            self._tasks.start(self._read())

    async def look_around(self) -> None:
        """Take the commands that no message told of, now and then."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            try:
                await self._take()
                if looks % 600 == 0:
                    await self._do(_SWEEP)
            except JournalError:
                continue

    async def _take(self) -> None:
        async with self._taking:
            taken = await self._do(_TAKE, self._keeper.id)
        for name, _, content in taken:
            command = msgspec.msgpack.decode(content, type=Command)
            self._tasks.start(self._answer(name, command))

    async def _answer(self, name: str, command: Command) -> None:
        self._games.metrics.add("commands_done")
        answer = await self._run(command)
        await self._do(_ANSWER, msgspec.msgpack.encode(answer), name)

    async def _run(self, command: Command) -> Answer:
        """Run a command here, as a request whose sender is known."""
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": command.method,
            "path": command.path,
            "raw_path": command.path.encode(),
            "query_string": command.query,
            "root_path": "",
            "scheme": "http",
            "headers": [(b"host", b"127.0.0.1"), *command.headers],
            "client": None,
            "server": None,
            FORWARDED: command.hops,
            SIGN_IN: SignIn(time.time(), kept=False),
            CALLER: command.caller,
        }
        ended = asyncio.Event()
        sent: list[Message] = [{"type": "http.request", "body": command.body, "more_body": False}]
        status, headers, body = 500, list[tuple[bytes, bytes]](), bytearray()

        async def receive() -> Message:
            if sent:
                return sent.pop()
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], [(bytes(k), bytes(v)) for k, v in message["headers"]]
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        assert self.app is not None  # noqa: S101 - set by the server
        running = asyncio.ensure_future(self.app(scope, receive, send))
        try:
            await asyncio.wait([running])
        finally:
            ended.set()
            running.cancel()
        if (fault := running.exception()) is not None:
            logger.error("a request of another server failed", exc_info=fault)
        return Answer(status, headers, bytes(body) or FAULT)

    async def close(self) -> None:
        await self._tasks.end()


async def _command(request: Request, hops: int) -> Command:
    scope = request.scope
    headers = [(name, value) for name, value in scope["headers"] if name in PASSED]
    if "authorization" in request.headers:  # it was a program; which one is in `caller`
        headers.append((b"authorization", b"forwarded"))
    caller: dict[str, str] = scope.get(CALLER, {})
    body: Recorded | None = scope.get(BODY)
    content = await body.whole() if body is not None else b""
    return Command(request.method, scope["path"], scope["query_string"], headers, content, hops, caller)


class Recorded:
    """The body of a request that may have to be sent on, as far as it was read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._content = bytearray()
        self._complete = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            if len(self._content) <= MOST_BYTES:
                self._content += message.get("body", b"")
            self._complete = not message.get("more_body", False)
        else:
            self._complete = True
        return message

    async def whole(self) -> bytes:
        while not self._complete and len(self._content) <= MOST_BYTES:
            await self()
        if len(self._content) > MOST_BYTES:
            raise OwnerLost("this request is too large to be sent on to the server that plays the session")
        return bytes(self._content)


class Recording:
    """Keeps the bodies of requests about sessions while they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/sessions/") and scope["method"] != "GET":
            scope[BODY] = receive = Recorded(receive)
        await self.app(scope, receive, send)
