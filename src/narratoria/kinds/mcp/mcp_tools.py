"""The tools of MCP servers as ours: `mcp_tools(…)`, and what keeps a registry in step with its servers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.catalogue_updates import Catalogue, replace_tools
from narratoria.kinds.foreign_names import our_names
from narratoria.kinds.foreign_tool import ToolSettings, foreign_tool
from narratoria.kinds.from_manifest import FileKind, tool_from_manifest
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.mcp.connection import Connection, ServerUnavailable
from narratoria.kinds.mcp.mcp_results import as_tool_result
from narratoria.kinds.mcp.server_file import (
    McpServer,
    ServerFile,
    read_server_file,
    servers_from_data,
)
from narratoria.kinds.process.custody import sweep
from narratoria.tools.tool import DEFAULT_TIMEOUT, Tool, ToolContext, ToolKind, ToolResult

if TYPE_CHECKING:
    import mcp_types

MCP: Final = ToolKind("mcp", ends_itself=True, foreign=True)
MCP_MANIFEST: Final = ToolKind("mcp", ends_itself=True)

AnyTool = Tool[Any, Any]


def mcp_tools(
    servers: str | Path | Mapping[str, Any] | ServerFile,
    *,
    only: Collection[str] | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> McpServers:
    """Return the MCP servers of a file, or of data of the same shape, to be opened with `async with`.

    `only` names the servers to take, by our names for them; `cwd` is the folder in which programs without one of their
    own run; `env` replaces the environment that `${VAR}` is looked up in. Raises `ServersInvalid` for a file that
    cannot be read. Nothing is started here.
    """
    if isinstance(servers, ServerFile):
        found = servers
    elif isinstance(servers, Mapping):
        found = servers_from_data(servers, cwd=None if cwd is None else Path(cwd).absolute(), env=env)
    else:
        found = read_server_file(servers, cwd=None if cwd is None else Path(cwd).absolute(), env=env)
    return McpServers(found, only=only)


class McpServers:
    """MCP servers and their tools. As a context, it lists the tools at the beginning and ends the servers at the end.

    Iterating over it gives the tools; `follow` registers them and keeps a registry in step with the servers.
    """

    def __init__(self, found: ServerFile, *, only: Collection[str] | None = None) -> None:
        taken = [one for one in found.servers if only is None or one.name in only]
        self._sources = {one.name: _Source(one, self._update) for one in taken}
        self.problems: dict[str, str] = {
            name: why for name, why in found.problems.items() if only is None or name in only
        }
        """Servers that cannot be used, each with the reason."""
        self._registries: list[Catalogue] = []

    @property
    def names(self) -> list[str]:
        """The names of the servers, those that cannot be used included."""
        return [*self._sources, *self.problems.keys() - self._sources.keys()]

    @property
    def tools(self) -> list[AnyTool]:
        """The tools of the servers, by the order of the file."""
        return [tool for source in self._sources.values() for tool in source.tools]

    @property
    def notes(self) -> list[str]:
        """Remarks on the tools: names that were mapped, and schemas that cannot be checked here."""
        return [note for source in self._sources.values() for note in source.notes]

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    async def __aenter__(self) -> Self:
        try:
            await self.open()
            if self.problems:
                raise ServerUnavailable("; ".join(self.problems.values()))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the servers that are not open yet and list their tools, all at once. A server that cannot be used goes
        to `problems`, and hides no other.
        """
        waiting = [one for one in self._sources.values() if not one.listed]
        outcomes = await asyncio.gather(*[one.look() for one in waiting], return_exceptions=True)
        for source, outcome in zip(waiting, outcomes, strict=True):
            name = source.server.name
            if isinstance(outcome, ServerUnavailable):
                self.problems[name] = str(outcome)
            elif outcome is not None:
                raise outcome
            else:
                self.problems.pop(name, None)
                self._update(source, ())

    async def close(self) -> None:
        """End the servers, and return once no child of theirs lives. A later call starts its server again."""
        await asyncio.gather(*[one.connection.close() for one in self._sources.values()])
        await sweep()

    def follow(self, registry: Catalogue) -> None:
        """Register the tools, now and whenever a server changes its list. A name that is taken stays with its owner."""
        self._registries.append(registry)
        for source in self._sources.values():
            self._update(source, ())

    def _update(self, source: _Source, before: Collection[AnyTool]) -> None:
        for registry in self._registries:
            replace_tools(registry, before, source.tools, source.notes, source.server.where)


class _Source:
    """One server: its connection, and its tools as they are now."""

    def __init__(self, server: McpServer, changed: Callable[[_Source, Collection[AnyTool]], None]) -> None:
        self.server = server
        self.connection = Connection(server)
        self.connection.on_change = self._relisted
        self.tools: list[AnyTool] = []
        self.notes: list[str] = []
        self.listed = False
        self._changed = changed
        self._made: dict[str, tuple[bytes, AnyTool]] = {}

    async def look(self) -> None:
        self._take(await self.connection.list_tools())
        self.listed = True

    def _relisted(self, offered: list[mcp_types.Tool]) -> None:
        before = self.tools
        self._take(offered)
        self._changed(self, before)

    def _take(self, offered: list[mcp_types.Tool]) -> None:
        """Make tools of a list. One that did not change stays the same object."""
        settings = self.server.settings
        self.notes = [f"{self.server.name}: {one}" for one in self.connection.left_out]
        safe = self.server.redaction.text
        told = [one for one in offered if safe(one.name) != one.name]
        self.notes += [f"{self.server.name}: a tool was left out: its name has a secret in it" for _ in told]
        offered = [one for one in offered if one not in told]
        wanted: dict[str, mcp_types.Tool] = {}
        for one in offered:
            if settings.only is not None and one.name not in settings.only:
                continue
            if wanted.setdefault(one.name, one) is not one:
                self.notes.append(
                    f"{self.server.name}: the server has two tools {one.name!r}; the second is left out"
                )
        missing = (settings.tools.keys() | set(settings.only or ())) - wanted.keys()
        self.notes += [f"{self.server.name}: the server has no tool {name!r}" for name in sorted(missing)]
        made: dict[str, tuple[bytes, AnyTool]] = {}
        for original, ours in our_names(list(wanted)).items():
            listed = wanted[original]
            name = f"{self.server.name}.{ours}"
            if ours != original:
                self.notes.append(f"{name}: the server calls it {original!r}")
            definition = listed.model_dump_json().encode() + name.encode()
            known = self._made.get(original)
            if known is not None and known[0] == definition:
                made[original] = known
            else:
                made[original] = definition, self._tool(listed, name)
        self._made = made
        self.tools = [tool for _, tool in made.values()]

    def _tool(self, listed: mcp_types.Tool, name: str) -> AnyTool:
        server, chosen = self.server, self.server.settings.tools.get(listed.name, ToolSettings())
        safe = server.redaction
        title = listed.title or (listed.annotations.title if listed.annotations else None)
        said = listed.description or chosen.title or title or f"The tool {listed.name} of {server.label}."
        repeatable = _is_repeatable(listed, chosen)
        return foreign_tool(
            name,
            safe.text(said.strip()) or listed.name,
            _Call(self.connection, listed.name, repeatable).run,
            chosen,
            parameters=safe.data(dict(listed.input_schema)),
            kind=MCP,
            origin=f"MCP server {server.name}: {server.where}",
            title=None if title is None else safe.text(title),
            timeout=server.settings.timeout or DEFAULT_TIMEOUT,
            permissions=server.settings.permissions,
            only_reads=listed.annotations is not None and bool(listed.annotations.read_only_hint),
            repeatable=repeatable,
            notes=self.notes,
        )


def _is_repeatable(listed: mcp_types.Tool, chosen: ToolSettings) -> bool:
    """Tell if a call may be tried again although it may have been carried out: it only reads, does the same again, or
    its settings say how to retry.
    """
    hints = listed.annotations
    return chosen.retry is not None or (
        hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
    )


@dataclass(frozen=True, eq=False)
class _Call:
    """The handler of a tool of a server."""

    connection: Connection
    tool: str
    repeatable: bool

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[Any]:
        result = await self.connection.call(self.tool, params, context, repeatable=self.repeatable)
        return await as_tool_result(result, context, self.connection.server.redaction)


# --- from a manifest ----------------------------------------------------------------------------------------

_shared: weakref.WeakValueDictionary[bytes, Connection] = weakref.WeakValueDictionary()


def manifest_tool(path: Path, manifest: Manifest) -> AnyTool:
    """Make the tool of a manifest of the kind `mcp`: its `settings` hold the `server`, with the keys of `mcpServers`,
    and the name of the `tool` there. The server runs in the manifest's folder, and is started at the first call.
    """
    server, tool = manifest.settings.get("server"), manifest.settings.get("tool")
    if (
        not isinstance(server, dict)
        or not isinstance(tool, str)
        or manifest.settings.keys() != {"server", "tool"}
    ):
        raise ToolValidationError(
            f'{path}: settings: expected {{"server": {{"command": "…"}}, "tool": "…"}} for the kind mcp'
        )
    folder = path.absolute().parent
    found = servers_from_data({manifest.name: server}, where=f"{path}: settings", folder=folder, cwd=folder)
    for problem in found.problems.values():
        raise ToolValidationError(problem)
    if not found.servers:
        raise ToolValidationError(f"{path}: settings: its server is disabled")
    key = msgspec.json.encode([str(folder), server], order="deterministic")
    connection = _shared.get(key)
    if connection is None:
        connection = _shared[key] = Connection(found.servers[0])
    return tool_from_manifest(
        manifest,
        _Call(connection, tool, manifest.read_only or manifest.retry is not None).run,
        kind=MCP_MANIFEST,
        origin=path.resolve(),
        repeatable=manifest.read_only or manifest.retry is not None,
    )


FILES: Final = FileKind(manifest_tool)
