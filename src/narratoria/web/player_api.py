"""The operations of the API about players: who is signed in, and links to sessions."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from narratoria.store.postgres_players import Players
from narratoria.web.callers import caller_of
from narratoria.web.game_moves import Refused
from narratoria.web.games import Games, NotFound
from narratoria.web.json_responses import json_response
from narratoria.web.openapi import Operation
from narratoria.web.player_documents import Me, NewShare, ShareCard
from narratoria.web.request_reading import body_of, session_id


class PlayerApi:
    """The operations about players."""

    games: Games

    async def me(self, request: HttpRequest) -> Response:
        caller = caller_of(request.scope)
        return json_response(Me(name=caller.get("name", ""), role=caller.get("role", "")))

    async def list_shares(self, request: HttpRequest) -> Response:
        found = await asyncio.to_thread(self._players().shares, session_id(request))
        return json_response([ShareCard(id=one.id, access=one.access) for one in found])

    async def share(self, request: HttpRequest) -> Response:
        asked, name = await body_of(request, NewShare), session_id(request)
        players = self._players()
        await self.games.card(name)  # there is one
        share, secret = await asyncio.to_thread(players.share, name, asked.access)
        path = f"/play/{quote(name)}?token={secret}"
        return json_response(ShareCard(id=share, access=asked.access, path=path), 201)

    async def unshare(self, request: HttpRequest) -> Response:
        share = request.path_params["share"]
        if not await asyncio.to_thread(self._players().unshare, session_id(request), share):
            raise NotFound("the session has no such link")
        return Response(status_code=204)

    def _players(self) -> Players:
        if self.games.players is None:
            raise Refused("a server for one person shares no sessions; `narratoria serve` does, or export it")
        return self.games.players


PLAYER_OPERATIONS: Final = (
    Operation("GET", "/me", "me", "Who is signed in, where players have accounts", answer=Me),
    Operation(
        "GET", "/sessions/{id}/shares", "list_shares", "Links to it, where players have accounts",
        answer=list[ShareCard],
    ),
    Operation(
        "POST", "/sessions/{id}/shares", "share", "Make a link by which others may read it, or play it",
        NewShare, ShareCard, 201,
    ),
    Operation(
        "DELETE", "/sessions/{id}/shares/{share}", "unshare", "Revoke a link, for everybody who came by it", status=204,
    ),
)  # fmt: skip
