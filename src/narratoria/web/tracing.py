"""OpenTelemetry spans of HTTP requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria import telemetry
from narratoria.telemetry.provider import on

UNTRACED: Final = "/static/"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Tracing:
    """Puts each request into a span, where the program uses OpenTelemetry. What a request starts, such as a turn, is
    part of its trace even if it ends later. The span of an event stream ends when the stream begins: it may last for
    hours.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not on() or scope["type"] != "http" or scope["path"].startswith(UNTRACED):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        method = scope["method"] if scope["method"] in _METHODS else telemetry.OTHER
        with telemetry.http_request(method, scope["path"], scope.get("scheme", "http"), headers) as span:

            async def tell(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status: int = message["status"]
                    route = route_of(scope)
                    span.note(route=route, status=status)
                    span.rename(f"{method} {route or ''}".rstrip())
                    if status >= 500:
                        span.failed(str(status))
                    if (
                        Headers(raw=message["headers"])
                        .get("content-type", "")
                        .startswith("text/event-stream")
                    ):
                        span.end()
                await send(message)

            await self.app(scope, receive, tell)


def route_of(scope: Scope) -> str | None:
    """Return the path with the names of its parameters, `/sessions/{id}`; None where no route took the request."""
    if "endpoint" not in scope:
        return None
    given: Mapping[str, str] = scope.get("path_params", {})
    names = {str(value): f"{{{name}}}" for name, value in given.items()}
    path: str = scope["path"]
    return "/".join(names.get(part, part) for part in path.split("/"))
