"""An exchange: one request of a client, its work, and what the work asks of the client on the way.

Until the revision 2025-11-25 a server asks by a request of its own. Since 2026-07-28 it answers with what it asks for
and a token; the client repeats its request with the answers and the token, and the work, which waited here, goes on.
Both look the same to the work: it awaits `client().elicit(…)`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from narratoria.errors import NarratoriaError
from narratoria.mcp_server.notices import Notices

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams | types.GetPromptRequestParams

MOST_WAITING: Final = 256
"""Requests that may wait for an answer of their client at once; the oldest is given up."""
ANSWER_SECONDS: Final = 600.0
"""Seconds a client may take to answer a question."""
END_SECONDS: Final = 30.0
"""Seconds that cancelled work may take to end its processes and take back its effects."""

_CAPABILITY: Final = {
    types.ElicitRequest: "elicitation",
    types.CreateMessageRequest: "sampling",
    types.ListRootsRequest: "roots",
}
_ANSWER: Final[dict[type[Any], type[Any]]] = {
    types.ElicitRequest: types.ElicitResult,
    types.CreateMessageRequest: types.CreateMessageResult,
    types.ListRootsRequest: types.ListRootsResult,
}
Question = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest


class ClientCannot(NarratoriaError):
    """The client did not declare the capability that a question needs."""


class Client:
    """The client whose request is served: what it can do, and the questions a tool may ask it."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def can(self, capability: str) -> bool:
        """Tell if the client declared `elicitation`, `sampling` or `roots`."""
        declared = self._exchange.context.session.client_capabilities
        if capability == "elicitation" and declared is not None and declared.elicitation is not None:
            modes = declared.elicitation  # without any mode it means forms
            return modes.form is not None or modes.url is None
        return declared is not None and getattr(declared, capability, None) is not None

    async def elicit(
        self, message: str, schema: dict[str, Any], *, key: str | None = None
    ) -> types.ElicitResult:
        """Ask the person at the client to fill in a form: a flat JSON Schema of plain fields. `key` names the question
        where the protocol does; a client may send the answer to it with the call.
        """
        form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        answer: types.ElicitResult = await self._exchange.ask(types.ElicitRequest(params=form), key)
        return answer

    async def sample(self, text: str, *, max_tokens: int) -> types.CreateMessageResult:
        """Ask the client's model to go on from one text of the user."""
        said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
        request = types.CreateMessageRequestParams(messages=[said], max_tokens=max_tokens)
        answer: types.CreateMessageResult = await self._exchange.ask(
            types.CreateMessageRequest(params=request)
        )
        return answer

    async def roots(self) -> types.ListRootsResult:
        """Ask the client for its roots."""
        answer: types.ListRootsResult = await self._exchange.ask(types.ListRootsRequest())
        return answer


class Exchange:
    """One request being served, over one round or several."""

    def __init__(self, context: Context, notices: Notices) -> None:
        self.context = context
        self.notices = notices
        self.client = Client(self)
        self.asked: dict[str, tuple[Question, asyncio.Future[Any]]] = {}
        self.given: dict[str, Any] = {}  # answers that came with the request, before they were asked for
        self.missing: str | None = None  # the capability whose absence ended the work
        self.binding: object = None
        self._work: asyncio.Task[Any] | None = None
        self._news: asyncio.Future[None] | None = None
        self._questions = 0

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Run the work in a task of its own: the library cancels its tasks again and again until they end, which our
        clean-up would not survive.
        """
        here = copy_context()
        here.run(_current.set, self)
        self._work = asyncio.get_running_loop().create_task(self._do(work), context=here)

    async def _do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await work()
        finally:
            self._wake()  # here rather than in a callback of the task, which would come a round of the loop later

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    @property
    def modern(self) -> bool:
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(self, question: Question, key: str | None = None) -> Any:
        """Ask the client, and return its answer. Raise `ClientCannot` if it cannot be asked that."""
        capability = _CAPABILITY[type(question)]
        if not self.client.can(capability):
            self.missing = capability
            raise ClientCannot(
                f"the client cannot be asked: it did not declare the capability {capability!r}"
            )
        async with asyncio.timeout(ANSWER_SECONDS):
            if not self.modern:
                return await self._ask_now(question)
            self._questions += 1
            key = key or f"{capability}-{self._questions}"
            if key in self.given:
                return self._checked(key, question, self.given.pop(key))
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.asked[key] = (question, answer)
            try:
                self._wake()
                return await answer
            finally:
                self.asked.pop(key, None)

    async def _ask_now(self, question: Question) -> Any:
        await self.notices.sent()
        on_its_stream = ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.context.session.send_request(
            question, _ANSWER[type(question)], metadata=on_its_stream
        )

    async def settle(self) -> bool:
        """Wait until the work has ended (True) or asks something (False). If the request is cancelled, so is the
        work.
        """
        work = self._work
        assert work is not None  # noqa: S101 - started by `Exchanges`
        try:
            while not work.done() and not self.asked:
                self._news = asyncio.get_running_loop().create_future()
                await self._news
            if not work.done():
                for _ in range(3):  # questions that are asked at once are sent together
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            await self.end()
            raise
        return work.done()

    async def end(self) -> None:
        """Cancel the work and wait until its clean-up is done."""
        work = self._work
        if work is not None and not work.done():
            with anyio.CancelScope(shield=True):
                work.cancel()
                await asyncio.wait([work], timeout=END_SECONDS)

    def give_up(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def result(self) -> Any:
        work = self._work
        assert work is not None  # noqa: S101
        if work.cancelled():
            raise MCPError(types.INTERNAL_ERROR, "the call was cancelled")
        return work.result()

    def answer(self, responses: dict[str, Any] | None) -> None:
        """Hand answers to the work. Refuse those of the wrong kind; extra ones are ignored."""
        responses = responses or {}
        checked: list[tuple[asyncio.Future[Any], Any]] = []
        for key, (question, future) in self.asked.items():
            if key not in responses:
                continue
            checked.append((future, self._checked(key, question, responses[key])))
        for future, value in checked:
            future.set_result(value)

    @staticmethod
    def _checked(key: str, question: Question, answer: Any) -> Any:
        data = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            return _ANSWER[type(question)].model_validate(data, by_name=False)
        except ValidationError:
            kind = _CAPABILITY[type(question)]
            raise MCPError(
                types.INVALID_PARAMS, f"inputResponses[{key!r}] is no answer to a question of {kind}"
            ) from None


_current: ContextVar[Exchange | None] = ContextVar("narratoria_mcp_exchange", default=None)


def current() -> Exchange | None:
    """The exchange in which this code runs, if any."""
    return _current.get()


def client() -> Client | None:
    """The MCP client of the call that runs; None if the call did not come over MCP."""
    exchange = _current.get()
    return None if exchange is None else exchange.client


class Exchanges:
    """The exchanges of a server, those that wait for their client included."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Exchange, asyncio.TimerHandle]] = {}

    async def serve(
        self, context: Context, params: Params, logger: str, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T | types.InputRequiredResult:
        """Do the work of a request, or the next part of it."""
        if params.request_state is None:
            exchange = Exchange(context, Notices(context, logger))
            exchange.binding = _binding(params)
            exchange.given = dict(params.input_responses or {})
            exchange.start(work)
        else:
            exchange = self._resume(context, params)
        done = await exchange.settle()
        if exchange.notices.sending:
            with anyio.CancelScope(shield=True):
                await exchange.notices.sent()
        if not done:
            return self._ask(exchange)
        try:
            answer: T = exchange.result()
        except ClientCannot:
            answer = None  # type: ignore[assignment]  # refused below
            if not exchange.modern:
                raise
        if exchange.missing is not None and exchange.modern and _failed(answer):
            capability = exchange.missing
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"the client did not declare the capability {capability!r}",
                {"requiredCapabilities": {capability: {}}},
            )
        return answer

    def _ask(self, exchange: Exchange) -> types.InputRequiredResult:
        token = secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._give_up, token)
        self._waiting[token] = (exchange, timer)
        while len(self._waiting) > MOST_WAITING:
            self._give_up(next(iter(self._waiting)))
        return types.InputRequiredResult(
            input_requests={key: question for key, (question, _) in exchange.asked.items()},
            request_state=token,
        )

    def _resume(self, context: Context, params: Params) -> Exchange:
        token = params.request_state or ""
        exchange, timer = self._waiting.get(token, (None, None))
        if exchange is None or timer is None or exchange.binding != _binding(params):
            raise MCPError(
                types.INVALID_PARAMS,
                "requestState is not one that this server gave for this request, or it is too old; begin again",
            )
        exchange.answer(params.input_responses)
        exchange.context = exchange.notices.context = context
        del self._waiting[token]
        timer.cancel()
        exchange.asked = {key: one for key, one in exchange.asked.items() if not one[1].done()}
        return exchange

    def _give_up(self, token: str) -> None:
        exchange, timer = self._waiting.pop(token)
        timer.cancel()
        exchange.give_up()

    async def close(self) -> None:
        """End the work of every exchange that waits for its client."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for exchange, timer in waiting:
            timer.cancel()
            await exchange.end()


def _binding(params: Params) -> object:
    """The part of a request that a repetition must have in common with it."""
    return (type(params), params.name, params.arguments or {})


def _failed(answer: Any) -> bool:
    return answer is None or (isinstance(answer, dict) and answer.get("isError") is True)
