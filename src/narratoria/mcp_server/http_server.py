"""The server over HTTP, under the access rules of the page: Host, Origin and a token."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria.mcp_server.tool_server import ToolServer
from narratoria.web.access import LOOPBACK, Access, cookie_name
from narratoria.web.connections import Connections, Limits
from narratoria.web.listening import HttpServer, host_name, listen
from narratoria.web.sign_ins import SignIns

PATH: Final = "/mcp"
ADVICE: Final = "name another port, or 0 for any free one"
NO_PAGE: Final = {"X-Content-Type-Options": "nosniff"}
NOT_SIGNED_IN: Final = (
    "Not signed in. Send the header `Authorization: Bearer TOKEN`, with the token that `narratoria mcp --http` "
    "printed last."
)
LARGEST_REQUEST: Final = 16 * 1024 * 1024


def create_app(server: ToolServer, sign_ins: SignIns, *, host: str, port: int) -> ASGIApp:
    """The application: the protocol at `/mcp`, behind the page's checks."""
    # The library's own check of hosts knows no token and no other machine; ours stands in front of everything.
    ours = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, transport_security=ours, max_request_body_size=LARGEST_REQUEST
    )
    hosts = {host_name(host).lower()} - LOOPBACK
    return _Challenge(
        Access(
            app,
            sign_ins=sign_ins,
            cookie=cookie_name(port),
            hosts=hosts,
            headers=NO_PAGE,
            advice=NOT_SIGNED_IN,
        )
    )


class _Challenge:
    """Adds to a refusal how a program signs in."""

    # RFC 9110 §11.6.1: a 401 names the scheme.

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                MutableHeaders(scope=message)["WWW-Authenticate"] = 'Bearer realm="narratoria"'
            await send(message)

        await self._app(scope, receive, tell if scope["type"] == "http" else send)


async def serve_http(
    server: ToolServer,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    ready: Callable[[str, str], None] = lambda address, token: None,
) -> None:
    """Serve until the process is asked to end. `ready` gets the address and the token that programs send."""
    listener = listen(host, port, ADVICE)
    port = listener.getsockname()[1]
    sign_ins = SignIns()
    given = sign_ins.print_token() if token is None else sign_ins.admit(token)
    app = create_app(server, sign_ins, host=host, port=port)
    running = _Ending(app, server, lambda: ready(f"http://{host_name(host)}:{port}{PATH}", given))
    await running.serve(sockets=[listener])


class _Ending(HttpServer):
    """A server that tells when it is ready, and ends its clients' streams, which would keep it from ending."""

    def __init__(self, app: ASGIApp, server: ToolServer, ready: Callable[[], None]) -> None:
        super().__init__(app, Connections(Limits.of_this_process()))
        self._server = server
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._server.subscriptions.close()
        await self._server.exchanges.close()
        await super().shutdown(sockets)
        await asyncio.sleep(0)
