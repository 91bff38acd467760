"""The operations of an OpenAPI document as tools: `openapi_tools(…)`."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from narratoria.errors import TIMEOUT, CallFailure, ToolFailure, ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.foreign_names import our_name, our_names
from narratoria.kinds.foreign_tool import ToolSettings, foreign_tool
from narratoria.kinds.openapi.api_request import Request, request_of
from narratoria.kinds.openapi.api_result import as_tool_result, failure_of
from narratoria.kinds.openapi.credentials import Credentials, Sent
from narratoria.kinds.openapi.document import DocumentInvalid, checked_address, read_document
from narratoria.kinds.openapi.http_exchange import LONGEST_WAIT, Answer, exchange, http_library, new_client
from narratoria.kinds.openapi.operations import IDEMPOTENT, READING, Operation, operations_of
from narratoria.tools import schema
from narratoria.tools.retry import pause
from narratoria.tools.tool import DEFAULT_TIMEOUT, Tool, ToolContext, ToolKind, ToolResult

if TYPE_CHECKING:
    import httpx2

OPENAPI: Final = ToolKind("openapi", ends_itself=True, foreign=True)
RETRIES: Final = 2
_BACKOFF: Final = 0.5  # seconds before the first retry, where the server names none; then twice that
_RETRIED: Final = frozenset((429, 502, 503, 504))
_parse_settings: Any = schema.parser_for(ToolSettings)

AnyTool = Tool[Any, Any]


def openapi_tools(
    spec: str | Path | Mapping[str, Any],
    base_url: str | None = None,
    *,
    name: str | None = None,
    only: Collection[str] | None = None,
    secrets: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    retries: int = RETRIES,
    permissions: Collection[str] = (),
    tools: Mapping[str, Mapping[str, Any]] | None = None,
    env: Mapping[str, str] | None = None,
) -> OpenApiTools:
    """Return the operations of an OpenAPI document (3.0 or 3.1) as tools.

    `spec` is data, the text of a document in JSON or YAML, or the path of one. `base_url` is the address of the API;
    without it, the document's own server is used. With a `name`, tools are named `name.operation`. `only` names the
    operations to take. `secrets` says, for each security scheme of the document, which environment variable holds its
    secret; `headers` are sent with each request, with `${VAR}` filled in. `tools` has settings of single operations,
    with the keys of a manifest. `env` replaces the environment. Raises `DocumentInvalid`; nothing is sent here.
    """
    document = read_document(spec)
    notes: list[str] = []
    address = None if base_url is None else checked_address(base_url, "base_url")
    credentials = Credentials(document, secrets or {}, headers or {}, env)
    found = {one.name: one for one in operations_of(document, notes, only)}
    chosen = {key: _settings(key, one) for key, one in (tools or {}).items()}
    missing = (chosen.keys() | set(only or ())) - found.keys()
    notes += [f"{document.title}: the document has no operation {one!r}" for one in sorted(missing)]
    made = OpenApiTools(document.title, notes)
    prefix = "" if name is None else f"{our_name(name)}."
    for original, ours in our_names(list(found)).items():
        operation = found[original]
        if ours != original:
            notes.append(f"{prefix}{ours}: the document calls it {original!r}")
        try:
            own = address or _address(operation, document.server_of(), document.where)
        except DocumentInvalid as error:
            notes.append(f"{prefix}{ours}: left out: {error}")
            continue
        maker = _Maker(made, operation, own, credentials, f"{prefix}{ours}", document.title)
        made.tools.append(maker.tool(chosen.get(original, ToolSettings()), timeout, retries, permissions))
    return made


class OpenApiTools:
    """The tools of a document; iterating over it gives them. As a context it keeps its connections open between calls
    and closes them at the end; otherwise each call has its own.
    """

    def __init__(self, title: str, notes: list[str]) -> None:
        self.title = title
        self.tools: list[AnyTool] = []
        self.notes = notes
        """Remarks: names that were mapped, operations that were left out, and secrets that are missing."""
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __repr__(self) -> str:
        return f"<OpenApiTools of {self.title!r}: {len(self.tools)}>"

    @property
    def client(self) -> httpx2.AsyncClient | None:
        """The client that calls share in this event loop, if there is one."""
        return self._client if self._loop is asyncio.get_running_loop() else None

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def open(self) -> None:
        """Keep connections open between the calls of this event loop, until `close`."""
        self._client, self._loop = new_client(), asyncio.get_running_loop()

    async def close(self) -> None:
        """Close the connections. A later call has its own."""
        client, self._client, self._loop = self._client, None, None
        if client is not None:
            await client.aclose()


def _settings(key: str, data: Mapping[str, Any]) -> ToolSettings:
    try:
        settings: ToolSettings = _parse_settings(data)
    except ToolValidationError as error:
        raise DocumentInvalid(f"tools: {key}: {error}") from None
    return settings


def _address(operation: Operation, general: str | None, where: str) -> str:
    """Return the address that the document gives an operation. Secrets are for the API's own host: an operation with
    another one is left out.
    """
    if operation.server is None:
        raise DocumentInvalid(f"{where}: it names no server; give base_url='https://…'")
    try:
        own = checked_address(operation.server, where)
    except DocumentInvalid as error:
        raise DocumentInvalid(f"{error}; give base_url='https://…'") from None
    if operation.has_own_server and general is not None and urlsplit(general)[:2] != urlsplit(own)[:2]:
        raise DocumentInvalid(f"it is at {own}, another host; take it by itself with base_url={own!r}")
    return own


@dataclass(frozen=True)
class _Maker:
    """Makes the tool of an operation."""

    owner: OpenApiTools
    operation: Operation
    address: str
    credentials: Credentials
    name: str
    title: str

    def tool(
        self, chosen: ToolSettings, timeout: float, retries: int, permissions: Collection[str]
    ) -> AnyTool:
        name, operation = self.name, self.operation
        schemes = self.credentials.of(operation)
        if schemes is None:
            wanted = " or ".join(" and ".join(one) for one in operation.security)
            self.owner.notes.append(f"{name}: its secret is not given: secrets={{…}} for {wanted}")
        operation = _without(operation, self.credentials.places(schemes or ()))
        again = retries if operation.method in IDEMPOTENT else 0
        call = _Call(
            self.owner, operation, self.address, self.credentials, schemes, again, chosen.retry is not None
        )
        return foreign_tool(
            name,
            operation.description,
            call.run,
            chosen,
            parameters=dict(operation.schema),
            kind=OPENAPI,
            origin=f"{self.title}: {operation.method} {self.address}{operation.path}",
            title=operation.title,
            timeout=timeout,
            permissions=permissions,
            only_reads=operation.method in READING,
            repeatable=call.repeatable,
            notes=self.owner.notes,
        )


def _without(operation: Operation, places: set[tuple[str, str]]) -> Operation:
    """Return an operation without the parameters that carry a key: the key is no argument."""

    hidden = {one.argument for one in operation.parameters if (one.place, one.name) in places}
    if not hidden:
        return operation
    properties = operation.schema["properties"]
    made = {
        **operation.schema,
        "properties": {key: one for key, one in properties.items() if key not in hidden},
        "required": [key for key in operation.schema.get("required", ()) if key not in hidden],
    }
    kept = tuple(one for one in operation.parameters if one.argument not in hidden)
    return replace(operation, parameters=kept, schema=made)


@dataclass(eq=False)
class _Call:
    """The handler of an operation."""

    owner: OpenApiTools
    operation: Operation
    address: str
    credentials: Credentials
    schemes: list[str] | None
    retries: int
    retry_declared: bool
    _free_at: float = field(default=0.0, init=False)
    """The moment until which the server wants no more of these requests."""

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[Any]:
        # A task of its own: the HTTP client cancels parts of itself, which the pipeline would take for its own word.
        return await asyncio.create_task(self._run(params, context))

    async def _run(self, params: JsonObject, context: ToolContext) -> ToolResult[Any]:
        name, limit = context.tool.name, context.time_limit or DEFAULT_TIMEOUT
        sent = self.credentials.sent(self.schemes or (), name)
        request = request_of(self.operation, self.address, params, sent)
        until, bound = time.monotonic() + limit, asyncio.timeout(limit)
        try:
            async with bound:
                answer = await self._answered(request, sent, context, until)
                return await self._result(answer, sent, context)
        except TimeoutError:
            if not bound.expired():
                raise
            raise CallFailure(
                TIMEOUT,
                f"{name}: no whole answer within {limit:g} s from {self.operation.method} {self._where}",
                recoverable=self.repeatable,
                suggestions=["allow more time with `timeout`"],
            ) from None

    async def _result(self, answer: Answer, sent: Sent, context: ToolContext) -> ToolResult[Any]:
        if 200 <= answer.status < 300:
            return await as_tool_result(answer, self.operation.method, context, sent.redaction)
        advice = []
        if answer.status in (401, 403) and self.schemes is None:
            wanted = next(iter(self.operation.security[0]))
            advice = [f"give openapi_tools(…, secrets={{{wanted!r}: 'NAME_OF_A_VARIABLE'}})"]
        raise failure_of(answer, context, sent.redaction, repeatable=self.repeatable, advice=advice)

    async def _answered(self, request: Request, sent: Sent, context: ToolContext, until: float) -> Answer:
        """Send the request, and again where the server asks for that and the method may be repeated."""
        httpx2 = http_library()
        attempt = 0
        while True:
            await self._wait(self._free_at - time.monotonic(), until, context)
            try:
                answer = await exchange(self.owner.client, request)
            except (httpx2.RequestError, httpx2.StreamError, httpx2.InvalidURL) as error:
                unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                wait = self._pause(attempt)
                if attempt >= self.retries or time.monotonic() + wait >= until:
                    raise self._cut_off(error, sent, context, unsent) from None
            else:
                said = answer.wait()
                if said is not None and (answer.is_rate_limit or answer.status < 300):
                    self._free_at = max(self._free_at, time.monotonic() + min(said, LONGEST_WAIT))
                wait = self._pause(attempt) if said is None else said
                again = answer.status in _RETRIED or answer.is_rate_limit
                if not again or attempt >= self.retries or time.monotonic() + wait >= until:
                    return answer
                context.log(f"{answer.status} {answer.reason}: again in {wait:.1f} s", "warn")
            attempt += 1
            await pause(wait)

    async def _wait(self, seconds: float, until: float, context: ToolContext) -> None:
        """Wait for the end of a rate limit that an earlier answer told of."""
        if seconds <= 0:
            return
        if time.monotonic() + seconds >= until:
            raise ToolFailure(
                "RATE_LIMIT",
                f"{context.tool.name}: the server takes no more requests for another {seconds:.0f} s; nothing was sent",
                suggestions=[f"try again in {math.ceil(seconds)} s"],
                details={"retryAfter": round(seconds, 3)},
            )
        await pause(seconds)

    def _pause(self, attempt: int) -> float:
        return float(_BACKOFF * 2**attempt * random.uniform(0.8, 1.2))  # noqa: S311 - no secret hangs on it

    def _cut_off(self, error: Exception, sent: Sent, context: ToolContext, unsent: bool) -> ToolFailure:
        said = sent.redaction.text(str(error) or type(error).__name__)[:500]
        return ToolFailure(
            "NETWORK",
            f"{context.tool.name}: {self.operation.method} {self._where}: {said}",
            recoverable=unsent or self.repeatable,
        )

    @property
    def repeatable(self) -> bool:
        """A call that may have been carried out is tried again only where that does no harm."""
        return self.retry_declared or self.operation.method in IDEMPOTENT

    @property
    def _where(self) -> str:
        return f"{self.address}{self.operation.path}"
