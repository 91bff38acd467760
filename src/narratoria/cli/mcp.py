"""`narratoria mcp`: offer tools to any MCP host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from narratoria.cli.completion import SESSION, STORY
from narratoria.cli.env_option import env_option
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.skills_option import skills_option
from narratoria.cli.source_options import source_options
from narratoria.errors import NarratoriaError
from narratoria.extras import needed
from narratoria.kinds.foreign_sources import ToolSources, joined
from narratoria.kinds.process.custody import custody, sweep
from narratoria.narrator.roster import LAST_RESORT
from narratoria.play.game import Game, story_registry
from narratoria.play.game_sources import GameSources
from narratoria.play.session_story import folder_of, story_of
from narratoria.play.story import Story
from narratoria.play.story_library import open_story
from narratoria.play.story_skills import story_skills
from narratoria.run.registry import ToolRegistry
from narratoria.run.tool_folder import usable_tools
from narratoria.session import Session
from narratoria.skills.skill_library import SkillLibrary, given_places
from narratoria.store.default_store import default_store
from narratoria.store.journal import Journal
from narratoria.store.store import SessionUnknown, Store

if TYPE_CHECKING:
    from narratoria.mcp_server.tool_server import ToolServer

TOKEN: Final = "NARRATORIA_MCP_TOKEN"  # noqa: S105 - the name of a variable
SHORTEST_TOKEN: Final = 16


@dataclass(frozen=True)
class Address:
    host: str
    port: int


class _AddressType(click.ParamType[Address]):
    name = "[HOST:]PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        if isinstance(value, Address):
            return value
        host, _, port = str(value).rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        if not port.isdecimal() or int(port) > 65535:
            self.fail(
                f"{value!r} is no address; write a port (8400), or host:port (0.0.0.0:8400)", param, ctx
            )
        return Address(host, int(port))


@click.command()
@click.option(
    "--tools",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder with tools in it or below it; its `prompt/` has prompts.",
)
@click.option(
    "--story",
    type=STORY,
    metavar="STORY",
    help="Offer the tools of a story: a name from the library, or a folder.",
)
@click.option(
    "--http",
    "address",
    type=_AddressType(),
    help="Serve over HTTP, on this machine only unless a host is named; else over standard input and output.",
)
@click.option(
    "--session", "session_id", type=SESSION, help="Go on with a saved session; else a new one is begun."
)
@click.option("--grant", multiple=True, metavar="PERMISSION", help="Grant a permission that tools ask for.")
@env_option
@sandbox_option
@source_options
@skills_option
def mcp(
    tools: Path | None,
    story: str | None,
    address: Address | None,
    session_id: str | None,
    grant: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
) -> int:
    """Offer tools to an MCP host, such as an editor or an assistant.

    A story offers its own tools, those of its skills, of its MCP servers and of its OpenAPI documents. --mcp, --openapi
    and --skills add others. Without any of these, the tools that installed packages offer are served.
    """
    if tools is not None and story is not None:
        raise click.UsageError("--story and --tools exclude each other")
    try:
        import narratoria.mcp_server  # noqa: F401 - to say at once what is missing
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("mcp", "starlette", "uvicorn", "pydantic", "anyio")):
            raise
        raise NarratoriaError(f"the MCP server {needed('mcp')}") from None
    custody().adopt_orphans()
    asyncio.run(_serve(_Offer(tools, story, sources, skill_folders), address, session_id, grant))
    return 0


@dataclass(frozen=True)
class _Offer:
    """The sources of the tools, as the options name them."""

    tools: Path | None
    story: str | None
    sources: ToolSources | None
    skill_folders: tuple[Path, ...]


async def _serve(
    offer: _Offer, address: Address | None, session_id: str | None, grant: tuple[str, ...]
) -> None:
    store = await asyncio.to_thread(default_store)
    try:
        async with _server(store, offer, session_id, grant) as server:
            if address is None:
                from narratoria.mcp_server.stdio_server import serve_stdio

                await serve_stdio(server)
            else:
                await _serve_http(server, address)
    finally:
        store.close()
    await sweep()


async def _serve_http(server: ToolServer, address: Address) -> None:
    from narratoria.mcp_server.http_server import serve_http

    chosen = os.environ.get(TOKEN) or None
    if chosen is not None and len(chosen) < SHORTEST_TOKEN:
        raise NarratoriaError(f"{TOKEN}: use at least {SHORTEST_TOKEN} characters that nobody can guess")

    def ready(place: str, token: str) -> None:
        click.echo(f"{place}")
        how = f"the value of {TOKEN}" if chosen else token
        click.echo(f"Send with every request: Authorization: Bearer {how}\nCtrl+C ends it.", err=True)

    await serve_http(server, host=address.host, port=address.port, token=chosen, ready=ready)


@asynccontextmanager
async def _server(
    store: Store, offer: _Offer, session_id: str | None, grant: tuple[str, ...]
) -> AsyncIterator[ToolServer]:
    """The server over a session of the store: a saved one, or a new one."""
    from narratoria.mcp_server.offered_prompts import prompts_of_folder
    from narratoria.mcp_server.tool_server import ToolServer

    tools = offer.tools
    loaded = await asyncio.to_thread(open_story, offer.story) if offer.story is not None else None
    if loaded is None and tools is None and session_id is not None:
        loaded = await asyncio.to_thread(_story_of_session, store, session_id)
    registry, skills = await asyncio.to_thread(
        _registry, loaded, offer
    )  # first: what cannot be served is not kept
    journal = await _open(store, loaded, tools, session_id)
    found = joined([None if loaded is None else loaded.sources, offer.sources])
    opened = GameSources(found, registry)

    async def equip() -> None:
        skills.refresh()
        await opened.wait(_warn)

    try:
        opened.start()
        for problem in skills.problems:
            _warn(problem)
        session = journal.session
        if loaded is not None:
            session.grants.trust(loaded.permissions)
        session.grant(*(one for one in grant if not session.has_permission(one)))
        folder = loaded.root if loaded is not None else tools
        yield ToolServer(
            registry,
            session,
            title=loaded.title if loaded is not None else tools.name if tools is not None else None,
            instructions=loaded.premise.strip() or None if loaded is not None else None,
            prompts=prompts_of_folder(folder, _warn) if folder is not None else (),
            equip=equip,
            skills=skills if skills.places else None,
        )
    finally:
        await opened.close()
        await journal.close()


def _warn(line: str) -> None:
    click.echo(line, err=True)


def _story_of_session(store: Store, session_id: str) -> Story | None:
    try:
        meta = store.find(session_id)
    except SessionUnknown:
        return None
    return story_of(meta) if meta.story is not None else None


def _registry(loaded: Story | None, offer: _Offer) -> tuple[ToolRegistry, SkillLibrary]:
    """Return the tools that are there before any server is asked, and the skills among them."""
    if loaded is not None:
        library = story_skills(loaded, offer.skill_folders)
        return story_registry(loaded, library), library
    library = SkillLibrary(given_places(offer.skill_folders))
    registry, problems = usable_tools(offer.tools) if offer.tools is not None else (ToolRegistry(), [])
    for problem in problems:
        _warn(f"left out: {problem}")
    library.follow(registry)
    named = offer.tools is not None or offer.sources is not None or offer.skill_folders
    if not named and not registry.register_entry_points():
        raise NarratoriaError(
            "there are no tools to offer: no installed package has any; name a folder with --tools DIR, a story with "
            "--story, or others with --mcp, --openapi and --skills"
        )
    return registry, library


async def _open(store: Store, loaded: Story | None, tools: Path | None, session_id: str | None) -> Journal:
    if session_id is not None:
        try:
            meta = await asyncio.to_thread(store.find, session_id)
        except SessionUnknown:
            if loaded is not None:
                raise
            fresh = Session(session_id, assets=store.assets)
            return await asyncio.to_thread(store.create, fresh, title=_title(tools))
        if loaded is not None:
            await asyncio.to_thread(story_of, meta, loaded)
        return await asyncio.to_thread(store.open, meta.id)
    if loaded is None:
        return await asyncio.to_thread(store.create, Session(assets=store.assets), title=_title(tools))
    session = Session(state=loaded.state, permissions=loaded.permissions, assets=store.assets)
    game = Game(
        loaded, session, narrators=[LAST_RESORT]
    )  # it writes the opening, so that the session can be played
    journal = await asyncio.to_thread(
        store.create, session, story=loaded.id, title=loaded.title, folder=folder_of(loaded)
    )
    game.begin()
    return journal


def _title(tools: Path | None) -> str:
    return f"MCP: {tools.resolve().name}" if tools is not None else "MCP"
