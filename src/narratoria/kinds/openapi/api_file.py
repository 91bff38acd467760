"""OpenAPI documents that a story or a command line names, and their tools once the documents are read.

An API is a document (`spec`, a file or an address) with the address of the API, the names of the variables that hold
its secrets, and settings of its operations. A document that cannot be used is a problem and hides no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Meta

from narratoria.errors import CallFailure, NarratoriaError, ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.catalogue_updates import Catalogue, replace_tools
from narratoria.kinds.foreign_names import our_name, our_names
from narratoria.kinds.openapi.api_request import Request
from narratoria.kinds.openapi.document import DocumentInvalid, read_document
from narratoria.kinds.openapi.http_exchange import exchange, http_library
from narratoria.kinds.openapi.openapi_tools import RETRIES, OpenApiTools, openapi_tools
from narratoria.kinds.redaction import shown_url
from narratoria.tools import schema
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_seconds
from narratoria.tools.tool import DEFAULT_TIMEOUT, Tool

FETCH_TIMEOUT: Final = 30.0
"""Seconds that the fetching of a document may take."""
MOST_APIS: Final = 100

AnyTool = Tool[Any, Any]


class ApisInvalid(NarratoriaError):
    """A table of APIs cannot be used; the message names the key."""


class ApiSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One API: its document, its address, its secrets by reference, and settings of its operations."""

    spec: Annotated[str, Meta(min_length=1)]
    url: str | None = None
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    only: list[str] | None = None
    timeout: Annotated[float, Meta(gt=0, extra_json_schema={"maximum": int(LONGEST_TIMEOUT)})] = (
        DEFAULT_TIMEOUT
    )
    retries: Annotated[int, Meta(ge=0, le=100)] = RETRIES
    permissions: list[str] = msgspec.field(default_factory=list)
    tools: dict[str, JsonObject] = msgspec.field(default_factory=dict)


_parse: Any = schema.parser_for(ApiSettings)


@dataclass(frozen=True, slots=True)
class Api:
    """An API by our name for it. `spec` is an address, or a path below `folder`."""

    name: str
    settings: ApiSettings
    folder: Path | None = None

    @property
    def is_remote(self) -> bool:
        return is_address(self.settings.spec)

    @property
    def path(self) -> Path:
        return (self.folder or Path.cwd()) / self.settings.spec


@dataclass(frozen=True, slots=True)
class ApiFile:
    """APIs, and the reasons why some cannot be used, by name."""

    apis: tuple[Api, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The names of the APIs, those that cannot be used included."""
        return {one.name for one in self.apis} | self.problems.keys()

    @property
    def declares_effects(self) -> bool:
        """Tell if effects, which may have a rollback, are declared for any operation."""
        return any(one.get("effects") for api in self.apis for one in api.settings.tools.values())


def is_address(spec: str) -> bool:
    """Tell if a document is named by its address."""
    return spec.startswith(("http://", "https://"))


def default_api_name(spec: str) -> str:
    """Return the name of an API that was given none: of the document's file, else of its host."""
    parts = urlsplit(spec) if is_address(spec) else None
    stem = PurePosixPath(parts.path).stem if parts else Path(spec).stem
    return our_name(stem or (parts.hostname or "api" if parts else "api"))


def apis_from_data(data: Any, *, where: str = "openapi", folder: Path | None = None) -> ApiFile:
    """Read APIs from data: a document alone, or tables by name: `{"pets": {"spec": "pets.yaml"}}`. Files are looked for
    in `folder`. Raises `ApisInvalid` for data of another shape.
    """
    if isinstance(data, str):
        data = {default_api_name(data): {"spec": data}}
    if not isinstance(data, Mapping) or not all(isinstance(one, Mapping) for one in data.values()):
        raise ApisInvalid(f'{where}: expected a document, or a table each: NAME = {{ spec = "pets.yaml" }}')
    if len(data) > MOST_APIS:
        raise ApisInvalid(f"{where}: {len(data)} APIs, more than {MOST_APIS}")
    names, apis = our_names(list(data)), []
    for label, entry in data.items():
        try:
            check_seconds("timeout", entry.get("timeout"), LONGEST_TIMEOUT)
            apis.append(Api(names[label], _parse(dict(entry)), folder))
        except ToolValidationError as error:
            raise ApisInvalid(f"{where}: {label}: {error}") from None
    return ApiFile(tuple(apis))


async def read_api(api: Api) -> OpenApiTools:
    """Read the document of an API, from its file or its address, and return its tools. Raises `DocumentInvalid`."""
    one = api.settings
    spec: str | Path = api.path
    url = one.url
    if api.is_remote:
        spec = await _fetched(one.spec)
        url = url or await asyncio.to_thread(_own_address, spec, one.spec)
    made = await asyncio.to_thread(
        openapi_tools,
        spec,
        url,
        name=api.name,
        only=one.only,
        secrets=one.secrets,
        headers=one.headers,
        timeout=one.timeout,
        retries=one.retries,
        permissions=one.permissions,
        tools=one.tools,
    )
    try:
        made.open()
    except CallFailure as error:  # the HTTP client is not installed
        raise DocumentInvalid(str(error)) from None
    return made


def _own_address(text: str, address: str) -> str | None:
    """Return the API's address where the document names it relative to its own."""
    named = read_document(text).server_of()
    if named is not None and is_address(named):
        return None  # absolute: the document is believed as it is
    return urljoin(address, named or "/")


async def _fetched(address: str) -> str:
    try:
        library = http_library()
        async with asyncio.timeout(FETCH_TIMEOUT):
            answer = await exchange(None, Request("GET", address))
    except CallFailure as error:
        raise DocumentInvalid(f"{shown_url(address)}: {error}") from None
    except TimeoutError:
        raise DocumentInvalid(f"{shown_url(address)}: not fetched within {FETCH_TIMEOUT:g} s") from None
    except (library.HTTPError, library.InvalidURL, library.StreamError) as error:
        raise DocumentInvalid(f"{shown_url(address)}: cannot be fetched: {error}") from None
    if answer.status != 200:
        raise DocumentInvalid(f"{shown_url(address)}: cannot be fetched: {answer.status} {answer.reason}")
    try:
        text = answer.content.decode()
    except UnicodeDecodeError as error:
        raise DocumentInvalid(f"{shown_url(address)}: not UTF-8 at byte {error.start:,}") from None
    return text if "\n" in text else f"{text}\n"  # a document of one line is still no path


class Apis:
    """APIs and their tools, once `open` has read the documents."""

    def __init__(self, found: ApiFile, *, only: Collection[str] | None = None) -> None:
        self._waiting = {one.name: one for one in found.apis if only is None or one.name in only}
        self._read: dict[str, OpenApiTools] = {}
        self.problems = {name: why for name, why in found.problems.items() if only is None or name in only}
        """APIs that cannot be used, each with the reason."""
        self.notes: list[str] = []
        self._registries: list[Catalogue] = []

    def __iter__(self) -> Iterator[AnyTool]:
        return (tool for one in self._read.values() for tool in one)

    async def open(self) -> None:
        """Read the documents that are not read yet, all at once."""
        waiting = list(self._waiting.values())
        outcomes = await asyncio.gather(*[read_api(one) for one in waiting], return_exceptions=True)
        for api, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, NarratoriaError):
                self.problems[api.name] = f"OpenAPI document {api.name}: {outcome}"
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self.problems.pop(api.name, None)
                del self._waiting[api.name]
                self._read[api.name] = outcome
                self.notes += outcome.notes
                self._register(outcome)

    async def close(self) -> None:
        """Close the connections. A later call opens its own."""
        for one in self._read.values():
            await one.close()

    def follow(self, registry: Catalogue) -> None:
        """Register the tools, now and when more documents are read. A name that is taken stays with its owner."""
        self._registries.append(registry)
        for one in self._read.values():
            self._register(one)

    def _register(self, tools: OpenApiTools) -> None:
        for registry in self._registries:
            replace_tools(registry, (), tools.tools, self.notes, tools.title)
