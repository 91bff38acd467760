"""Sign-ins: one-time tokens, and the secrets of the browsers and programs that exchanged one.

A token stands in an address, where a history, a log or a list of processes may show it; so it works once. It is
exchanged for a secret of that browser alone, kept here as a hash, for one port. A browser that comes back after a
restart gets a new secret; the old one works for a minute more, for requests under way.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from narratoria.session.private_files import make_file, make_folder

THIRTY_DAYS: Final = 30 * 24 * 3600
GRACE: Final = 60.0
"""Seconds a secret still works after it was renewed."""
TOKEN_SECONDS: Final = 600.0
"""Seconds a requested token works; the printed one works until it is used."""
MOST: Final = 64
"""Number of browsers that stay signed in; the oldest is forgotten."""
MOST_TOKENS: Final = 64


@dataclass(slots=True, eq=False)
class SignIn:
    """One browser, or one program."""

    made: float
    of_this_start: bool = True
    kept: bool = True  # a program's is not: it has the token it was started with
    passing: bool = False  # it came by a link: another token takes its place
    ended: bool = False
    until: float | None = None
    successor: str | None = None
    on_end: set[Callable[[], None]] = field(default_factory=set)
    """Called when it ends: its streams end with it."""
    tokens: set[str] = field(default_factory=set)
    """Hashes of the tokens it asked for: those that nobody has used yet end with it."""


class SignIns:
    """The sign-ins at one port. `file` keeps them over restarts; without one they end with the server."""

    sign_in_path: str | None = None
    texts: Mapping[str, str] = {}
    secure = False

    def __init__(
        self,
        file: Path | None = None,
        *,
        clock: Callable[[], float] = time.time,
        used: Callable[[], None] | None = None,
    ) -> None:
        self._file = file
        self._clock = clock
        self._used = used  # called when the printed token has been used
        self._tokens: dict[str, float | None] = {}  # the hash of each, and when it ends
        self._known: dict[str, SignIn] = {}
        self.printed = ""
        self._read()

    # --- tokens --------------------------------------------------------------------------------------------

    def print_token(self) -> str:
        """Return a new token to show to the player; it works until it is used."""
        self.printed = secrets.token_urlsafe(24)
        self._tokens[_hash(self.printed)] = None
        return self.printed

    def new_token(self, seconds: float = TOKEN_SECONDS, *, of: SignIn | None = None) -> str:
        """Return a token that a signed-in client may hand to another browser. It ends with the sign-in it is `of`."""
        now = self._clock()
        for old in [one for one, end in self._tokens.items() if end is not None and end < now]:
            del self._tokens[old]
        waiting = [one for one, end in self._tokens.items() if end is not None]
        for old in waiting[: max(0, len(waiting) + 1 - MOST_TOKENS)]:
            del self._tokens[old]
        token = secrets.token_urlsafe(24)
        self._tokens[_hash(token)] = now + seconds
        if of is not None:
            of.tokens.intersection_update(self._tokens)
            of.tokens.add(_hash(token))
        return token

    def admit(self, token: str) -> str:
        """Accept a token that a person chose, from any number of programs, until the server ends. Return it."""
        self._known[_hash(token)] = SignIn(self._clock(), kept=False)
        return token

    def exchange(self, token: str) -> str | None:
        """Return the secret for a token, which is used up by that; None for a used or unknown one."""
        if not self.spend(token):
            return None
        secret = self._sign_in(kept=True)
        self._write()
        return secret

    def waits(self, token: str) -> bool:
        """Tell if a token was not used yet."""
        return _hash(token) in self._tokens

    def spend(self, token: str, *, by: SignIn | None = None) -> bool:
        """Use a token up; tell if it was good."""
        end = self._tokens.pop(_hash(token), 0.0)
        if end is not None and end < self._clock():
            return False
        if end is None and self._used is not None:
            self._used()
        return True

    # --- who is known --------------------------------------------------------------------------------------

    def of_program(self, token: str) -> SignIn | None:
        """Return the sign-in of a program that sends this token with every request: its first use makes it a secret."""
        known = self.of_browser(token)
        if known is None and self.spend(token):
            known = self._known[_hash(token)] = SignIn(self._clock(), kept=False)
        return known

    def of_browser(self, secret: str) -> SignIn | None:
        known = self._known.get(_hash(secret)) if secret else None
        if known is None:
            return None
        now = self._clock()
        if (known.until or known.made + THIRTY_DAYS) < now:
            self._forget(known)
            return None
        return known

    def renewed(self, known: SignIn) -> str | None:
        """Return a new secret for a sign-in from before a restart."""
        if known.of_this_start:
            return None
        if known.successor is None:
            known.until = self._clock() + GRACE
            known.successor = self._sign_in(kept=True)
            self._known[_hash(known.successor)].tokens = known.tokens
            self._write()
        return known.successor

    def refuses(self, known: SignIn, scope: Mapping[str, Any]) -> str | None:
        """Everybody who is signed in may do everything: it is one person."""
        return None

    def end(self, known: SignIn) -> None:
        """Sign out, under both the renewed and the earlier secret. Tokens that it asked for end too."""
        for one in list(self._known.values()):
            if one is known or self._follows(one, known) or self._follows(known, one):
                self._forget(one)
        self._write()

    def _follows(self, one: SignIn, other: SignIn) -> bool:
        return other.successor is not None and self._known.get(_hash(other.successor)) is one

    def _forget(self, known: SignIn) -> None:
        known.ended = True
        for act in tuple(known.on_end):
            act()
        self._known = {mark: one for mark, one in self._known.items() if one is not known}
        if known.successor is None:  # else it goes on under a new secret
            for mark in known.tokens:
                self._tokens.pop(mark, None)

    def _sign_in(self, *, kept: bool) -> str:
        secret = secrets.token_urlsafe(32)
        self._known[_hash(secret)] = SignIn(self._clock(), kept=kept)
        browsers = [one for one in self._known.values() if one.kept]
        for one in browsers[: max(0, len(browsers) - MOST)]:
            self._forget(one)
        return secret

    # --- the file ------------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self._file is None:
            return
        try:
            kept: Any = json.loads(self._file.read_bytes())
            self._known = {str(mark): SignIn(float(made), of_this_start=False) for mark, made in kept.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._known = {}  # everybody signs in again

    def _write(self) -> None:
        if self._file is None:
            return
        kept = {mark: one.made for mark, one in self._known.items() if one.kept and one.successor is None}
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # then they end with the server
            make_folder(self._file.parent)
            make_file(fresh)
            fresh.write_text(json.dumps(kept), encoding="utf-8")
            fresh.replace(self._file)


def _hash(secret: str) -> str:
    """Return the hash of a secret. It has too many bits to be guessed, so a plain hash is enough, and can be looked
    up.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
