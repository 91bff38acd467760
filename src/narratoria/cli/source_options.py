"""The options `--mcp` and `--openapi`, of every command that may use tools of MCP servers and OpenAPI documents."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from narratoria.cli.output import console, styled
from narratoria.errors import NarratoriaError

if TYPE_CHECKING:  # without sources, a command does not load what they need
    from narratoria.kinds.foreign_sources import OpenSources, ToolSources
    from narratoria.kinds.openapi.api_file import ApiFile

_OPTIONS: Final = (
    click.option(
        "--mcp",
        "mcp_files",
        multiple=True,
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="A file of MCP servers (`mcpServers`), whose tools can be used as server.tool.",
    ),
    click.option(
        "--openapi",
        "documents",
        multiple=True,
        metavar="[NAME=]FILE_OR_URL",
        help="An OpenAPI document, whose operations can be used as name.operation.",
    ),
    click.option(
        "--api-url",
        "addresses",
        multiple=True,
        metavar="[NAME=]URL",
        help="With --openapi: the address of the API, if not the document's own.",
    ),
    click.option(
        "--api-secret",
        "secrets",
        multiple=True,
        metavar="[NAME.]SCHEME=VARIABLE",
        help="With --openapi: the environment variable that holds the secret of a security scheme.",
    ),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets `sources`, which is None where none is named."""

    @functools.wraps(command)
    def with_sources(
        *args: Any,
        mcp_files: Sequence[Path],
        documents: Sequence[str],
        addresses: Sequence[str],
        secrets: Sequence[str],
        **rest: Any,
    ) -> Any:
        return command(*args, sources=_sources(mcp_files, documents, addresses, secrets), **rest)

    made: Callable[..., Any] = with_sources
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def _sources(
    files: Sequence[Path], documents: Sequence[str], addresses: Sequence[str], secrets: Sequence[str]
) -> ToolSources | None:
    """Return all that the options name; what cannot be read is a usage error."""
    if not documents and (addresses or secrets):
        raise click.UsageError("--api-url and --api-secret belong to a document; name it with --openapi")
    if not files and not documents:
        return None
    from narratoria.kinds.foreign_sources import ToolSources
    from narratoria.kinds.mcp.server_file import ServerFile, joined, read_server_file

    try:
        servers = joined([read_server_file(file) for file in files]) if files else ServerFile()
    except NarratoriaError as error:
        raise click.BadParameter(str(error), param_hint="--mcp") from None
    return ToolSources(servers, _apis(documents, addresses, secrets)) if documents else ToolSources(servers)


def _apis(documents: Sequence[str], addresses: Sequence[str], secrets: Sequence[str]) -> ApiFile:
    from narratoria.kinds.openapi.api_file import apis_from_data, is_address

    found = _documents(documents)
    for given in addresses:
        name, equals, url = given.partition("=")
        named = bool(equals) and not is_address(given)
        for one in _chosen(name if named else None, found, "--api-url"):
            one["url"] = url if named else given
    for given in secrets:
        scheme, equals, variable = given.partition("=")
        if not equals or not scheme:
            raise click.BadParameter(
                "expected SCHEME=VARIABLE: the name of a variable, not a secret", param_hint="--api-secret"
            )
        name, dot, rest = scheme.partition(".")
        named = bool(dot) and name in found
        for one in _chosen(name if named else None, found, "--api-secret"):
            one["secrets"][rest if named else scheme] = variable
    try:
        return apis_from_data(found, where="--openapi")
    except NarratoriaError as error:
        raise click.BadParameter(str(error), param_hint="--openapi") from None


def _documents(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the documents of `--openapi` by name; a file that is missing is a usage error."""
    from narratoria.kinds.openapi.api_file import default_api_name, is_address

    found: dict[str, dict[str, Any]] = {}
    for one in given:
        name, equals, spec = one.partition("=")
        if not equals or "/" in name or is_address(one):
            name, spec = default_api_name(one), one
        if name in found:
            raise click.BadParameter(
                f"two documents are named {name!r}; name one with NAME={spec}", param_hint="--openapi"
            )
        if not is_address(spec) and not Path(spec).is_file():
            raise click.BadParameter(f"{spec}: there is no such file", param_hint="--openapi")
        found[name] = {"spec": spec, "secrets": {}}
    return found


def _chosen(name: str | None, found: dict[str, dict[str, Any]], option: str) -> Collection[dict[str, Any]]:
    """Return the document that an option names, or without a name the only one there is."""
    if name is None and len(found) == 1:
        return found.values()
    if name is None or name not in found:
        raise click.BadParameter(
            f"say which document it is for: {', '.join(sorted(found))}", param_hint=option
        )
    return [found[name]]


@asynccontextmanager
async def opened_sources(
    found: ToolSources, *, only: Collection[str] | None = None, quiet: bool = False
) -> AsyncIterator[OpenSources]:
    """Open sources, say which cannot be used, and end them at the end."""
    from narratoria.kinds.foreign_sources import OpenSources

    sources = OpenSources(found, only=only)
    try:
        await sources.open()
        if not quiet:
            for line in sources.problems:
                console(stderr=True).print(styled((line, "yellow")))
        yield sources
    finally:
        await sources.close()


def source_of(tool_path: str) -> str:
    """Return the server or document that a name such as `server.tool` would belong to."""
    return tool_path.partition(".")[0]
