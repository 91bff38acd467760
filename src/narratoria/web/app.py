"""The application: pages, API and access control."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ExceptionHandler

from narratoria.errors import NarratoriaError
from narratoria.web.access import Access, AccessPolicy
from narratoria.web.api import Api
from narratoria.web.api_operations import OPERATIONS
from narratoria.web.catalogues import Catalogues
from narratoria.web.fonts import FontCutting, read_fonts
from narratoria.web.games import Games
from narratoria.web.json_responses import explain
from narratoria.web.refusals import explain_route
from narratoria.web.static_files import StaticFiles
from narratoria.web.stream_limit import MAX_STREAMS
from narratoria.web.tracing import Tracing


def create_app(
    games: Games,
    *,
    sign_ins: AccessPolicy,
    cookie: str,
    hosts: Collection[str] = (),
    streams: int = MAX_STREAMS,
    fonts: Path | None = None,
    cuts_fonts: bool = True,
    catalogues: Catalogues | None = None,
    more_routes: Sequence[BaseRoute] = (),
    more_middleware: Sequence[Middleware] = (),
    more_handlers: Mapping[type[Exception], ExceptionHandler] | None = None,
    guarded: Callable[[BaseRoute], BaseRoute] = lambda route: route,
) -> Starlette:
    """Make the application, all under one origin. `hosts` are names it may be called by besides those of the
    loopback; `fonts` is the folder of the page's typefaces, cut when it is first used; `catalogues` are the languages
    of the page. Who may come in, `sign_ins` decides; `guarded` may put permissions before a route.
    """
    api = Api(games, sign_ins, cookie, streams)
    files = StaticFiles(fonts=read_fonts(fonts) if fonts else {}, catalogues=catalogues)
    cutting = FontCutting(fonts if cuts_fonts else None, files.use_fonts)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            async with games:
                yield
        finally:
            await cutting.end()

    async def story_page(request: Request) -> Response:
        cutting.begin()
        return files.page(request).response(request, partial(games.first_look, request.path_params["id"]))

    async def library_page(request: Request) -> Response:
        cutting.begin()
        return await files.library(request)

    routes = [
        *[Route(one.path, getattr(api, one.name), methods=[one.method]) for one in OPERATIONS],
        Route("/", library_page),
        Route("/settings", library_page),
        Route("/play/{id}", story_page),
        Route("/static/{path:path}", files.file),
        Route("/service-worker.js", files.worker),
        Route("/openapi.json", api.describe),
        Route("/api", api.reference),
        *more_routes,
    ]
    return Starlette(
        routes=[guarded(one) for one in routes],
        middleware=[
            Middleware(Tracing),
            Middleware(Access, sign_ins=sign_ins, cookie=cookie, hosts=hosts),
            *more_middleware,
        ],
        exception_handlers={**_HANDLERS, **(more_handlers or {})},
        lifespan=lifespan,
    )


async def _to_nobody(request: Request, error: Exception) -> Response:
    """Answer a client that left in the middle of its body, which is no error of ours."""
    return Response(status_code=400)


_HANDLERS: Final[Mapping[type[Exception], ExceptionHandler]] = {
    NarratoriaError: explain,
    HTTPException: explain_route,
    ClientDisconnect: _to_nobody,
}
