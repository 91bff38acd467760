"""Permissions of players: which role an operation needs, and which right to the session that it is about.

Every route of a shared server is guarded here, so a new one is the operator's alone until it is listed. A session that
the caller has no right to does not exist for them: the answer is that to an unknown one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from narratoria.store.postgres_players import RIGHTS, Players, Right, Role
from narratoria.web.access import GRANT
from narratoria.web.callers import Forbidden, caller_of, check_role

Endpoint = Callable[[Request], Awaitable[Response]]
KEPT_SECONDS: Final = 2.0
MOST: Final = 20_000
SESSION_PATHS: Final = ("/sessions/{id}", "/play/{id}")
ASSET: Final = "/assets/{hash}"

OPEN: Final = frozenset(
    {"/static/{path:path}", "/service-worker.js", "/healthz", "/readyz", "/sign-in", "/sign-in/done"}
)
"""Paths for everybody, signed in or not."""
OF_ROLE: Final[dict[tuple[str, str], Role]] = {
    ("GET", "/"): "guest",
    ("GET", "/settings"): "guest",
    ("GET", "/api"): "guest",
    ("GET", "/openapi.json"): "guest",
    ("GET", "/me"): "guest",
    ("GET", "/stories"): "guest",
    ("GET", "/sessions"): "guest",
    ("GET", ASSET): "guest",
    ("POST", "/sign-out"): "guest",
    ("POST", "/sessions"): "player",
    ("POST", "/import"): "player",
    ("POST", "/tokens"): "player",
}
"""The least role for an operation that is not about a session; the operator's for one that is not here."""
OF_SESSION: Final[dict[tuple[str, str], tuple[Right, Role]]] = {
    ("PATCH", "/sessions/{id}"): ("own", "guest"),
    ("DELETE", "/sessions/{id}"): ("own", "guest"),
    ("PUT", "/sessions/{id}/settings"): ("own", "guest"),
    ("GET", "/sessions/{id}/shares"): ("own", "guest"),
    ("POST", "/sessions/{id}/shares"): ("own", "player"),
    ("DELETE", "/sessions/{id}/shares/{share}"): ("own", "guest"),
    ("POST", "/sessions/{id}/branch"): ("read", "player"),
    ("POST", "/sessions/{id}/call/run"): ("play", "author"),
}
"""The right to a session, and the least role, where they are not what the method says: GET reads, all else plays."""


@dataclass(slots=True, eq=False)
class Grant:
    """The right of one player to one session, as it was read. Streams end when it does."""

    right: Right
    at: float
    ended: bool = False
    on_end: set[Callable[[], None]] = field(default_factory=set)

    def end(self) -> None:
        self.ended = True
        for act in tuple(self.on_end):
            act()


class Permissions:
    """Guards routes. `is_cover` tells if an asset belongs to a story, and so to nobody."""

    def __init__(
        self,
        players: Players,
        is_cover: Callable[[str], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._players = players
        self._is_cover = is_cover
        self._clock = clock
        self._grants: dict[tuple[str, str], Grant] = {}

    def guarded(self, route: BaseRoute) -> Route:
        """Return a route whose endpoint is reached only with permission."""
        assert isinstance(route, Route)  # noqa: S101 - there are no others
        if route.path in OPEN:
            return route
        endpoint: Endpoint = route.endpoint
        path = route.path

        async def permitted(request: Request) -> Response:
            await self._check(request, path)
            return await endpoint(request)

        return Route(path, permitted, methods=sorted(route.methods or ()))

    async def _check(self, request: Request, path: str) -> None:
        if "role" not in caller_of(request.scope):
            raise HTTPException(404)
        method = "GET" if request.method == "HEAD" else request.method
        if path.startswith(SESSION_PATHS):
            right, role = OF_SESSION.get((method, path), ("read" if method == "GET" else "play", "guest"))
            await self._check_session(request, right)
            check_role(request, role)
            return
        check_role(request, OF_ROLE.get((method, path), "operator"))
        if path == ASSET:
            await self._check_asset(request)

    async def _check_session(self, request: Request, right: Right) -> None:
        caller = caller_of(request.scope)
        if caller["role"] == "operator":
            return
        grant = await self._grant(caller["player"], request.path_params["id"])
        if grant is None:
            raise HTTPException(404)
        if RIGHTS.index(grant.right) < RIGHTS.index(right):
            raise Forbidden(
                "this session was shared with you to read; ask its player for a link to play"
                if right == "play"
                else "only the player whose session this is may do this"
            )
        request.scope[GRANT] = grant

    async def _grant(self, player: str, session_id: str) -> Grant | None:
        key = (player, session_id)
        grant = self._grants.get(key)
        if grant is None or self._clock() - grant.at > KEPT_SECONDS:
            await self._look([key])
        return self._grants.get(key)

    async def _look(self, keys: Sequence[tuple[str, str]]) -> None:
        """Read rights of players to sessions, and end those that are no more."""
        now = self._clock()
        rights = await asyncio.to_thread(self._players.rights, keys)
        for key in keys:
            right, grant = rights.get(key), self._grants.get(key)
            if grant is not None and grant.right == right:
                grant.at = now
                continue
            if grant is not None:
                del self._grants[key]
                grant.end()
            if right is not None:
                self._grants[key] = Grant(right, now)
        while len(self._grants) > MOST:
            self._grants.pop(next(iter(self._grants))).end()

    async def _check_asset(self, request: Request) -> None:
        caller, digest = caller_of(request.scope), request.path_params["hash"]
        if caller["role"] == "operator" or self._is_cover(digest):
            return
        if not await asyncio.to_thread(self._players.sees, caller["player"], digest):
            raise HTTPException(404)

    async def look_around(self) -> None:
        """End the streams of rights that were taken away elsewhere, and forget those that nobody uses."""
        streaming = [key for key, grant in self._grants.items() if grant.on_end]
        if streaming:
            await self._look(streaming)
        for key, grant in [*self._grants.items()]:
            if not grant.on_end and self._clock() - grant.at > KEPT_SECONDS:
                del self._grants[key]
