"""Calls of tools: each runs through the pipeline, in a turn of the session, and is heard by its exchange alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from mcp.shared.exceptions import MCPError

from narratoria.errors import JournalError
from narratoria.events import (
    AssetStored,
    CallEmitted,
    CallRetrying,
    Committed,
    JsonObject,
    ToolEvent,
    UiEvent,
)
from narratoria.mcp_server.catalogue import Listed
from narratoria.mcp_server.client_approval import ask_client
from narratoria.mcp_server.exchange import ClientCannot, Exchange, current
from narratoria.mcp_server.results import answer_of
from narratoria.mcp_server.turns import Turns
from narratoria.play.undo_outcomes import Undone
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.record import EmittedRecords

CHOICE: Final = "narrative_choice"
MOST_CHOICES: Final = 50


class Heard:
    """The parts of a call's answer that come from its events: the files it made, and the choices it offers."""

    __slots__ = ("assets", "choices", "exchange")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.assets: list[AssetStored] = []
        self.choices: list[str] = []

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallEmitted):
            self.tool_event(event.event)
        elif isinstance(event, AssetStored):
            self.assets.append(event)
        else:
            if isinstance(event, CallRetrying):
                self.assets.clear()  # they went with the attempt
                self.choices.clear()
            self.exchange.notices.hear(event)

    def tool_event(self, event: ToolEvent) -> None:
        if type(event) is UiEvent and event.event == CHOICE:
            self.choices = choices_of(event)
        self.exchange.notices.hear_tool(event)


class Calls:
    """Runs calls against one session. It listens to the session's records and passes each on to its call."""

    full = False  # of the session's stream: only a call whose client reads slowly is slowed

    def __init__(self, registry: ToolRegistry, session: Session, turns: Turns) -> None:
        self._registry = registry
        self._session = session
        self._turns = turns
        self._heard: dict[Exchange, Heard] = {}
        self.on_change: list[Any] = []  # called after each commit, with its record
        self._detach = session.attach(self)
        if session.approvals.approver is None:  # else the program asks in its own way
            session.approvals.approver = ask_client

    def close(self) -> None:
        self._detach()

    # --- the session's stream --------------------------------------------------------------------------------

    def push(self, record: Record) -> None:
        if type(record.event) is Committed:
            self._turns.changed = True
            for act in self.on_change:
                act(record.event)
            return
        exchange = current()
        heard = self._heard.get(exchange) if exchange is not None else None
        if heard is not None:
            heard.push(record)

    def push_emitted(self, emitted: EmittedRecords) -> None:
        exchange = current()
        heard = self._heard.get(exchange) if exchange is not None else None
        if heard is not None:
            for event in emitted.emitted:
                heard.tool_event(event)
            self.full = heard.exchange.notices.full

    async def wait(self) -> None:
        """Let a tool that says more than its client reads wait for the client."""
        exchange = current()
        if exchange is not None:
            await exchange.notices.sent()
        self.full = False

    # --- calls -----------------------------------------------------------------------------------------------

    async def call(self, listed: Listed, arguments: JsonObject) -> JsonObject:
        """Run a tool and return the answer to its request."""
        exchange = current()
        assert exchange is not None  # noqa: S101 - every request is an exchange
        tool = listed.tool
        await self._turns.begin(tool.name, arguments)
        heard = self._heard[exchange] = Heard(exchange)
        told, cancelled = "", True
        try:
            result = await self._registry.executor.execute(tool, arguments, session=self._session)
            told, cancelled = result.message, False
            if result.success and heard.choices:
                self._turns.choices = heard.choices
        finally:
            del self._heard[exchange]
            await self._turns.end(told, cancelled=cancelled)
        if heard.assets:
            answer = await asyncio.to_thread(answer_of, result, listed, heard.assets, self._session.assets)
        else:
            answer = answer_of(result, listed, (), self._session.assets)
        if heard.choices and result.success:
            await _choose(exchange, heard.choices, answer)
        return answer

    async def undo(self) -> JsonObject:
        """Take back the newest call that changed something, and those that ran beside it; the answer tells what."""
        try:
            calls, undone = await self._turns.undo()
        except JournalError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        data = undo_data(calls, undone)
        return {
            "content": [{"type": "text", "text": undo_text(data)}],
            "structuredContent": data,
            "isError": False,
        }


# --- choices -------------------------------------------------------------------------------------------------


def choices_of(event: UiEvent) -> list[str]:
    offered = (event.payload or {}).get("choices")
    if not isinstance(offered, list):
        return []
    return list(dict.fromkeys(str(one) for one in offered if isinstance(one, str) and one))[:MOST_CHOICES]


async def _choose(exchange: Exchange, choices: list[str], answer: JsonObject) -> None:
    """Offer a call's choices to the person at the client, if it can show them; else only name them in the answer."""
    meta = answer.setdefault("_meta", {})
    meta["narratoria/choices"] = choices
    chosen: str | None = None
    if exchange.client.can("elicitation"):
        form = {
            "type": "object",
            "properties": {"choice": {"type": "string", "title": "Choice", "enum": choices}},
            "required": ["choice"],
        }
        try:
            reply = await exchange.client.elicit("What do you choose?", form)
        except (TimeoutError, MCPError, ClientCannot):
            reply = None  # nobody answered: the call is done all the same
        if reply is not None and reply.action == "accept":
            given = (reply.content or {}).get("choice")
            chosen = given if given in choices else None
    if chosen is not None:
        meta["narratoria/choice"] = chosen
        text = f"The user chose: {chosen}"
    else:
        text = "Choices: " + " · ".join(choices)
    answer["content"].append({"type": "text", "text": text})


# --- undo ----------------------------------------------------------------------------------------------------

UNDO_OUTPUT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "undone": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The calls, the newest first.",
        },
        "takenBack": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What was taken back outside the session.",
        },
        "staying": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What stays as it is outside the session.",
        },
    },
    "required": ["undone", "takenBack", "staying"],
}


def undo_tool(name: str) -> JsonObject:
    """The tool that takes the newest call back, as it is listed."""
    return {
        "name": name,
        "title": "Undo",
        "description": "Take back the newest tool call that changed something in this session: its changes of the "
        "state, its memories and files, and its effects outside where they can be taken back. Calls that ran at the "
        "same time are taken back together.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "outputSchema": UNDO_OUTPUT,
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        },
    }


def undo_data(calls: Sequence[str], undone: Sequence[Undone]) -> JsonObject:
    return {
        "undone": list(calls),
        "takenBack": [what for one in undone for what in one.compensated],
        "staying": [what for one in undone for what in (*one.irreversible, *one.failed)],
    }


def undo_text(data: JsonObject) -> str:
    lines = [f"Undone: {prompt}" for prompt in data["undone"]]
    lines += [f"Taken back outside: {one}" for one in data["takenBack"]]
    lines += [f"Stays outside: {one}" for one in data["staying"]]
    return "\n".join(lines)
