"""The two addresses of a sign-in by a provider: there, and back again."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from narratoria.store.postgres_players import Players
from narratoria.web.access import local_path, set_cookie
from narratoria.web.accounts import SIGN_IN_PATH
from narratoria.web.openid import DONE, Attempt, Provider, SignInFailed
from narratoria.web.refusals import refusal

ATTEMPT_SECONDS: Final = 600
SIGNED_IN_SECONDS: Final = 24 * 3600
"""For so long a browser is signed in; then the provider is asked again."""
LONGEST_PATH: Final = 500
logger = logging.getLogger("narratoria")


class OpenIdPages:
    """Sends browsers to the provider, and signs in those that come back. `cookie` is that of the server."""

    def __init__(self, provider: Provider, players: Players, cookie: str) -> None:
        self._provider = provider
        self._players = players
        self._cookie = cookie
        # A cookie of this name cannot be set by another host of the same domain, nor over plain HTTP.
        self._attempt = f"__Host-{cookie}-sign-in" if provider.is_secure else f"{cookie}-sign-in"

    def routes(self) -> list[Route]:
        return [Route(SIGN_IN_PATH, self.begin), Route(DONE, self.finish)]

    async def begin(self, request: Request) -> Response:
        to = local_path(request.query_params.get("to", "/"))
        try:
            address, attempt = await asyncio.to_thread(
                self._provider.begin, to if len(to) <= LONGEST_PATH else "/"
            )
        except SignInFailed as error:
            return self._failed(request, error, 503)
        answer = RedirectResponse(address, 303)
        self._set(answer, self._attempt, attempt.packed(), ATTEMPT_SECONDS)
        return answer

    async def finish(self, request: Request) -> Response:
        try:
            attempt = Attempt.unpacked(request.cookies.get(self._attempt, ""))
            player = await asyncio.to_thread(self._provider.finish, attempt, dict(request.query_params))
        except SignInFailed as error:
            return self._failed(request, error, 401)
        secret = await asyncio.to_thread(self._players.sign_in, player, SIGNED_IN_SECONDS)
        answer = RedirectResponse(local_path(attempt.to), 303)
        self._set(answer, self._cookie, secret, SIGNED_IN_SECONDS)
        self._set(answer, self._attempt, "", 0)
        return answer

    def _set(self, answer: Response, name: str, value: str, seconds: int) -> None:
        cookie = set_cookie(name, value, seconds, secure=self._provider.is_secure)
        answer.headers.append("Set-Cookie", cookie)

    def _failed(self, request: Request, error: SignInFailed, status: int) -> Response:
        logger.warning("a sign-in by the provider failed: %s", error)
        answer = refusal(request.headers, status, "sign_in_failed", sign_in=SIGN_IN_PATH)
        self._set(answer, self._attempt, "", 0)
        return answer
