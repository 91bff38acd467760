"""Access of players to a shared server, each with an account: the policy of `narratoria serve`.

A player signs in by a token of their own and is the same player at every server, since tokens and sign-ins are in the
database. Each server remembers what it has read for `KEPT_SECONDS`, so a token that was revoked, and the streams of
whoever used it, end within that. Whoever has the token that the servers share is the operator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from narratoria.store.postgres_players import Player, Players, secret_hash
from narratoria.web.callers import CALLER, OPERATOR
from narratoria.web.shared_token import SharedToken
from narratoria.web.sign_ins import THIRTY_DAYS, TOKEN_SECONDS, SignIn

if TYPE_CHECKING:
    from narratoria.web.openid import Provider

KEPT_SECONDS: Final = 2.0
SIGN_IN_PATH: Final = "/sign-in"
MOST: Final = 20_000
"""Secrets that a server remembers, good ones and bad ones."""


@dataclass(slots=True, eq=False)
class PlayerSignIn(SignIn):
    """A browser or a program of one player. `mark` is the hash of its secret."""

    player: Player = field(kw_only=True)
    mark: str = field(kw_only=True)


@dataclass(slots=True)
class _Read:
    at: float
    known: PlayerSignIn | None


class Accounts:
    """The access policy. `shared` is the token of the operator, if there is one; `provider` knows players too."""

    def __init__(
        self,
        players: Players,
        shared: SharedToken | None = None,
        *,
        provider: Provider | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.players = players
        self._shared = shared
        self._clock = clock
        self._read: dict[str, _Read] = {}
        self.provider = provider
        self.sign_in_path = None if provider is None else SIGN_IN_PATH
        self.texts: Mapping[str, str] = {
            "not_signed_in": "refusal.no_account" if provider is None else "refusal.sign_in_first",
            "wrong_token": "refusal.no_such_token",
        }
        self.secure = provider is not None and provider.is_secure

    async def of_program(self, token: str) -> SignIn | None:
        known = None if self._shared is None else self._shared.of_program(token)
        return known or await self._known(token)

    async def of_browser(self, secret: str) -> SignIn | None:
        known = None if self._shared is None else self._shared.of_browser(secret)
        return known or await self._known(secret)

    async def exchange(self, token: str) -> str | None:
        secret = None if self._shared is None else self._shared.exchange(token)
        return secret or await asyncio.to_thread(self.players.exchange, token, THIRTY_DAYS)

    def renewed(self, known: SignIn) -> str | None:
        return None

    async def spend(self, token: str, *, by: SignIn) -> bool:
        """Use a token up; a link to a session becomes one of the player's."""
        if isinstance(by, PlayerSignIn) and await asyncio.to_thread(self.players.join, token, by.player.id):
            return True
        return not by.passing and await asyncio.to_thread(self.players.spend, token)

    async def new_token(self, *, of: SignIn) -> str:
        if isinstance(of, PlayerSignIn):
            return await asyncio.to_thread(self.players.hand_over, of.player, TOKEN_SECONDS)
        assert self._shared is not None  # noqa: S101 - nobody else is known
        return self._shared.new_token(of=of)

    async def end(self, known: SignIn) -> None:
        if isinstance(known, PlayerSignIn):
            await asyncio.to_thread(self.players.sign_out, known.mark)
            self._forget(known.mark)
        elif self._shared is not None:
            self._shared.end(known)

    def refuses(self, known: SignIn, scope: Scope) -> str | None:
        if isinstance(known, PlayerSignIn):
            player = known.player
            scope[CALLER] = {"player": player.id, "name": player.name, "role": player.role}
        else:
            scope[CALLER] = dict(OPERATOR)
        return None

    # --- what was read -------------------------------------------------------------------------------------

    async def _known(self, secret: str) -> PlayerSignIn | None:
        if not secret:
            return None
        mark = secret_hash(secret)
        read = self._read.get(mark)
        if read is None or self._clock() - read.at > KEPT_SECONDS:
            await self._look([mark])
            read = self._read.get(mark)
        return None if read is None else read.known

    async def _look(self, marks: list[str]) -> None:
        """Read whose these secrets are, and end the sign-ins that are no more."""
        now = self._clock()
        found = await asyncio.to_thread(self.players.who, marks)
        for mark in marks:
            player, before = found.get(mark), self._read.get(mark)
            if player is not None and before is not None and before.known and before.known.player == player:
                before.at = now
                continue
            self._forget(mark)
            known = None if player is None else _sign_in(player, mark)
            self._read[mark] = _Read(now, known)
        while len(self._read) > MOST:
            self._forget(next(iter(self._read)))

    def _forget(self, mark: str) -> None:
        """End the streams of a sign-in; a browser that may still come in makes new ones."""
        read = self._read.pop(mark, None)
        if read is not None and read.known is not None:
            read.known.ended = True
            for act in tuple(read.known.on_end):
                act()

    async def look_around(self) -> None:
        """End the streams of sign-ins that were ended elsewhere, and forget what nobody has asked about lately."""
        now = self._clock()
        streaming = [mark for mark, read in self._read.items() if read.known and read.known.on_end]
        if streaming:
            await self._look(streaming)
        for mark, read in [*self._read.items()]:
            if now - read.at > 30 * KEPT_SECONDS:
                del self._read[mark]


def _sign_in(player: Player, mark: str) -> PlayerSignIn:
    return PlayerSignIn(time.time(), passing=player.role == "guest", player=player, mark=mark)
