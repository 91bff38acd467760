"""The MCP server of a registry and a session: the handlers of the protocol's requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from narratoria import __version__
from narratoria.events import Committed, JsonObject
from narratoria.mcp_server.calls import Calls, undo_tool
from narratoria.mcp_server.catalogue import Catalogue
from narratoria.mcp_server.exchange import Exchanges
from narratoria.mcp_server.list_watch import ListWatch
from narratoria.mcp_server.notices import LEVEL_KEY, connection_state
from narratoria.mcp_server.offered_prompts import OfferedPrompt, Prompts
from narratoria.mcp_server.offered_resources import STATE, OfferedResource, Resources
from narratoria.mcp_server.offered_skills import OfferedSkills
from narratoria.mcp_server.subscriptions import Subscriptions
from narratoria.mcp_server.turns import Turns
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.skills.skill_library import SkillLibrary
from narratoria.unicode_text import legible

Context = ServerRequestContext[Any, Any]
UNDO: Final = "undo"
OWN_UNDO: Final = "narratoria_undo"  # where a tool has the short name
MOST_COMPLETIONS: Final = 100


class ToolServer:
    """Offers the tools of a registry to MCP clients, which all share one session.

    If the session has a journal, each call is a turn of it, and a tool `undo` takes the newest back. `equip` is awaited
    before the tools are listed and before a tool is said not to exist: it brings the registry up to date. The guides of
    `skills` can be read; their tools are those of the registry. Clients are told when the tools, prompts or resources
    change.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        session: Session | None = None,
        *,
        name: str = "narratoria",
        title: str | None = None,
        instructions: str | None = None,
        prompts: Iterable[OfferedPrompt] = (),
        resources: Iterable[OfferedResource] = (),
        equip: Callable[[], Awaitable[None]] | None = None,
        skills: SkillLibrary | None = None,
    ) -> None:
        self.registry = registry
        self._equip = equip
        self.session = session or Session()
        self.turns = Turns(self.session, registry)
        self.undo_name = OWN_UNDO if registry.has(UNDO) else UNDO
        own = (undo_tool(self.undo_name),) if self.turns.journal is not None else ()
        self.catalogue = Catalogue(registry, own)
        self.skills = OfferedSkills(skills) if skills is not None else None
        self.prompts = Prompts(prompts, self.skills.prompts if self.skills is not None else None)
        self.resources = Resources(self.session, resources, self.skills)
        self.subscriptions = Subscriptions()
        self.exchanges = Exchanges()
        self._serving = 0
        self.protocol = self._protocol(name, title, instructions)

    def _protocol(self, name: str, title: str | None, instructions: str | None) -> Server[Any]:
        told = [instructions, self.skills.told() if self.skills is not None else None]
        server = _Protocol(
            legible(name),
            version=__version__,
            title=None if title is None else legible(title),
            instructions="\n\n".join(one for one in told if one) or None,
            lifespan=self._lifespan,
            # What was listed may change with the next call, so nobody is to keep it.
            cache_hints=dict.fromkeys(
                (
                    "tools/list",
                    "resources/list",
                    "resources/templates/list",
                    "resources/read",
                    "prompts/list",
                ),
                CacheHint(0, "private"),
            ),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._listing(self.resources.listed, "resources"),
            on_list_resource_templates=self._listing(self.resources.templates, "resourceTemplates"),
            on_read_resource=self._read_resource,
            on_subscribe_resource=self.subscriptions.subscribe,
            on_unsubscribe_resource=self.subscriptions.unsubscribe,
            on_subscriptions_listen=self.subscriptions.listen,
            on_list_prompts=self._listing(self.prompts.listed, "prompts"),
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        # Given to the constructor it warns that 2026-07-28 has no such request; clients before it do.
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.subscriptions.admit
        )
        if self.skills is not None:
            self.skills.extend(server)
        server.middleware.append(cast(ServerMiddleware[Any], self._listed_before))
        return server

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """Hear the session as long as a connection is served. HTTP enters once for all; connections in this process
        enter one by one.
        """
        self._serving += 1
        if self._serving == 1:
            self._calls = Calls(self.registry, self.session, self.turns)
            self._calls.on_change.append(self._tell_change)
            await self.turns.recover()
            self._watch = ListWatch(self.registry, self.prompts, self.skills, self.subscriptions)
            self._watching = asyncio.get_running_loop().create_task(self._watch.run())
        try:
            yield {}
        finally:
            self._serving -= 1
            if self._serving == 0:
                self._watching.cancel()
                self.subscriptions.close()
                await self.exchanges.close()
                self._calls.close()
                await asyncio.wait([self._watching])

    def _tell_change(self, event: Committed) -> None:
        self.subscriptions.tell(STATE, more=any(isinstance(change, int) for change in event.changes))

    # --- tools -----------------------------------------------------------------------------------------------

    async def _listed_before(self, context: Context, call_next: CallNext) -> HandlerResult:
        """Answer `tools/list` with what was answered last, as long as it holds: hundreds of schemas are neither
        rendered nor checked again.
        """
        if context.method != "tools/list" or (context.params or {}).get("cursor") is not None:
            return await call_next(context)
        if self._equip is not None:
            await self._equip()
            self._watch.look_at_tools()  # what this client is about to see, the others hear of now
        version = context.protocol_version
        known = self.catalogue.page(version)
        if known is not None and context.session.client_capabilities is not None:
            return known
        page = await call_next(context)  # also for a client that has not introduced itself, and is refused
        if isinstance(page, dict):
            self.catalogue.keep(version, page)
        return page

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> Any:
        _refuse_cursor(params)
        return _complete({"tools": self.catalogue.tools()})

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        listed = self.catalogue.get(name)
        return None if listed is None else listed.data["inputSchema"]

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        calls = self._calls
        if params.name == self.undo_name and self.turns.journal is not None:
            return _whole(await self.exchanges.serve(context, params, UNDO, calls.undo))
        listed = self.catalogue.get(params.name)
        if listed is None and self._equip is not None:
            await self._equip()
            listed = self.catalogue.get(params.name)
        if listed is None:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name!r}; tools/list has those there are"
            )
        arguments = params.arguments or {}
        answer = await self.exchanges.serve(
            context, params, params.name, lambda: calls.call(listed, arguments)
        )
        self._watch.look_at_tools()
        return _whole(answer)

    # --- resources and prompts -------------------------------------------------------------------------------

    def _listing(self, listed: Callable[[], list[JsonObject]], key: str) -> Any:
        async def answer(context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
            _refuse_cursor(params)
            return _complete({key: listed()})

        return answer

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> Any:
        return _complete(await self.resources.read(str(params.uri)))

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        given = params.arguments or {}
        return _whole(
            await self.exchanges.serve(
                context, params, params.name, lambda: self.prompts.get(params.name, given)
            )
        )

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> Any:
        argument = params.argument
        if isinstance(params.ref, types.PromptReference):
            values = self.prompts.complete(params.ref.name, argument.name, argument.value)
        else:
            values = self.resources.complete(params.ref.uri, argument.value)
        shown = values[:MOST_COMPLETIONS]
        found = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
        return _complete({"completion": found})


class _Protocol(Server[Any]):
    """The library's server, which says by itself that it tells of changed lists, whoever starts it."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(told, *rest, **more)


def _complete(answer: JsonObject) -> JsonObject:
    """Mark an answer as whole: 2026-07-28 asks for it, and the library drops the mark for clients before it."""
    answer["resultType"] = "complete"
    return answer


def _whole(answer: Any) -> Any:
    return _complete(answer) if isinstance(answer, dict) else answer  # else it asks the client something


async def _set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    connection_state(context)[LEVEL_KEY] = params.level
    return types.EmptyResult()


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "every list is one page here: leave the cursor out")
