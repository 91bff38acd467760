"""Sources of tools that a story or a person names: MCP servers and OpenAPI documents, and their tools once opened."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from narratoria.kinds.catalogue_updates import Catalogue
from narratoria.kinds.mcp.mcp_tools import McpServers
from narratoria.kinds.mcp.server_file import ServerFile
from narratoria.kinds.mcp.server_file import joined as joined_servers
from narratoria.kinds.openapi.api_file import ApiFile, Apis
from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]


@dataclass(frozen=True, slots=True)
class ToolSources:
    """MCP servers and OpenAPI documents, as files and options name them. Nothing is started."""

    servers: ServerFile = field(default_factory=ServerFile)
    apis: ApiFile = field(default_factory=ApiFile)

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def names(self) -> set[str]:
        """The names of all, those that cannot be used included."""
        return self.servers.names | self.apis.names

    @property
    def declares_effects(self) -> bool:
        """Tell if effects, which may have a rollback, are declared for any tool."""
        return self.servers.declares_effects or self.apis.declares_effects


def joined(sources: Iterable[ToolSources | None]) -> ToolSources:
    """Return several sources as one; of two with one name, the first, and servers before documents."""
    given = [one for one in sources if one is not None]
    servers = joined_servers(one.servers for one in given)
    problems = {name: why for one in given for name, why in one.apis.problems.items()}
    taken = {one.name: f"a server, {one.where}" for one in servers.servers}
    apis = []
    for api in (api for one in given for api in one.apis.apis):
        if api.name in taken:
            problems[f"{api.name} ({api.settings.spec})"] = (
                f"OpenAPI document {api.settings.spec}: {taken[api.name]} has the name {api.name!r} already; "
                f"name it another way"
            )
        else:
            taken[api.name] = f"the document {api.settings.spec}"
            apis.append(api)
    return ToolSources(servers, ApiFile(tuple(apis), problems))


class OpenSources:
    """Sources and their tools. Iterating over it gives the tools, once `open` has asked for them."""

    def __init__(self, found: ToolSources, *, only: Collection[str] | None = None) -> None:
        self._servers = McpServers(found.servers, only=only)
        self._apis = Apis(found.apis, only=only)

    @property
    def problems(self) -> list[str]:
        """The reasons why some cannot be used."""
        return [*self._servers.problems.values(), *self._apis.problems.values()]

    @property
    def notes(self) -> list[str]:
        """Remarks on the tools: names that were mapped, and what was left out."""
        return [*self._servers.notes, *self._apis.notes]

    def __iter__(self) -> Iterator[AnyTool]:
        yield from self._servers
        yield from self._apis

    def follow(self, registry: Catalogue) -> None:
        """Register the tools, now and whenever there are others."""
        self._servers.follow(registry)
        self._apis.follow(registry)

    async def open(self) -> None:
        """Start the servers and read the documents, all at once. What cannot be used goes to `problems`."""
        await asyncio.gather(self._servers.open(), self._apis.open())

    async def close(self) -> None:
        """End the servers, and close the connections."""
        await self._servers.close()
        await self._apis.close()
