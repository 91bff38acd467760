"""Access to several servers by one token: each makes and knows the same cookies, since all are signed with it.

It lets in everybody who has the token, as one person. `accounts.py` takes it for the operator's.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from narratoria.web.sign_ins import THIRTY_DAYS, TOKEN_SECONDS, SignIn

COOKIE: Final = "narratoria"
MOST: Final = 10_000  # sign-ins that are remembered, for their streams to end with them


class SharedToken:
    """The access of whoever has the token."""

    sign_in_path: str | None = None
    texts: Mapping[str, str] = {}
    secure = False

    def __init__(self, token: str, *, clock: Callable[[], float] = time.time) -> None:
        self._token = token.encode()
        self._clock = clock
        self._program = SignIn(clock(), kept=False)
        self._known: dict[str, SignIn] = {}

    def of_program(self, token: str) -> SignIn | None:
        return self._program if hmac.compare_digest(token.encode("utf-8", "replace"), self._token) else None

    def of_browser(self, secret: str) -> SignIn | None:
        if not self._is_good("cookie", secret):
            return None
        known = self._known.get(secret)
        if known is None:
            if len(self._known) >= MOST:
                del self._known[next(iter(self._known))]
            known = self._known[secret] = SignIn(self._clock())
        return None if known.ended else known

    def exchange(self, token: str) -> str | None:
        if self.of_program(token) is None and not self._is_good("token", token):
            return None
        return self._made("cookie", THIRTY_DAYS)

    def renewed(self, known: SignIn) -> str | None:
        return None

    def spend(self, token: str, *, by: SignIn | None = None) -> bool:
        return False

    def new_token(self, *, of: SignIn) -> str:
        return self._made("token", TOKEN_SECONDS)

    def end(self, known: SignIn) -> None:
        """End the streams of a browser at this server; the answer takes its cookie away."""
        if known is self._program:
            return
        known.ended = True
        for act in tuple(known.on_end):
            act()

    def refuses(self, known: SignIn, scope: Mapping[str, Any]) -> str | None:
        return None

    def _made(self, kind: str, seconds: float) -> str:
        content = f"{int(self._clock() + seconds)}.{secrets.token_urlsafe(12)}"
        return f"{content}.{self._signature(kind, content)}"

    def _is_good(self, kind: str, given: str) -> bool:
        content, _, signature = given.rpartition(".")
        if not hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._signature(kind, content).encode()
        ):
            return False
        until = content.partition(".")[0]
        return until.isdecimal() and float(until) > self._clock()

    def _signature(self, kind: str, content: str) -> str:
        signed = f"{kind}.{content}".encode("utf-8", "replace")
        return hmac.new(self._token, signed, hashlib.sha256).hexdigest()
