"""Sign-in by an OpenID Connect provider: authorization code with PKCE, discovery, signed ID tokens (extra `openid`).

What a sign-in needs to be finished (state, nonce, verifier) is in a cookie of that browser alone, so any server can
finish it. PyJWT checks the signature and the dates of an ID token; only asymmetric algorithms count.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.extras import needed
from narratoria.store.postgres_players import ROLES, Player, Role
from narratoria.unicode_text import as_one_line

try:
    import jwt
except ImportError:  # pragma: no cover - depends on what is installed
    raise NarratoriaError(f"sign-in by a provider {needed('openid')}") from None

DONE: Final = "/sign-in/done"
SECONDS: Final = 10.0  # for an answer of the provider
MOST_BYTES: Final = 1024 * 1024
KEPT_SECONDS: Final = 3600.0  # for which the provider's own data are believed
AGAIN_SECONDS: Final = 30.0  # between two looks for a key that is not known
LEEWAY: Final = 30.0  # between two clocks
LONGEST_NAME: Final = 80
# None of these can be made with what everybody knows: `none` and the symmetric ones are not here.
ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
REQUIRED: Final = ("exp", "iat", "iss", "aud", "sub")


class SignInFailed(NarratoriaError):
    """The provider did not say who this is, or nobody can believe it."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The provider, and what it knows us by. `roles` is a claim that has the role of a player."""

    issuer: str
    client: str
    public_url: str
    secret: str | None = None
    roles: str | None = None


class Attempt(msgspec.Struct, frozen=True):
    """A sign-in that a browser has begun."""

    state: str
    nonce: str
    verifier: str
    to: str

    def packed(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def unpacked(cls, cookie: str) -> Attempt:
        try:
            content = base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
            return msgspec.json.decode(content, type=cls)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            raise SignInFailed("this browser has begun no sign-in, or too long ago") from None


@dataclass(slots=True)
class _Kept:
    at: float
    content: dict[str, Any]


class Provider:
    """The client of one provider. Methods block; a server calls them in a thread."""

    def __init__(self, settings: ProviderSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._guard = threading.Lock()
        check_address(settings.issuer)
        check_address(settings.public_url)

    @property
    def is_secure(self) -> bool:
        return self.settings.public_url.startswith("https:")

    @property
    def _return_address(self) -> str:
        return self.settings.public_url.rstrip("/") + DONE

    def begin(self, to: str) -> tuple[str, Attempt]:
        """Return the address at the provider to send a browser to, and what that browser has to keep."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = Attempt(state, nonce, verifier, to)
        digest = hashlib.sha256(attempt.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client,
            "redirect_uri": self._return_address,
            "scope": "openid profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = self._endpoint("authorization_endpoint")
        return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(asked)}", attempt

    def finish(self, attempt: Attempt, answer: Mapping[str, str]) -> Player:
        """Return the player of a browser that comes back from the provider with an answer."""
        if not hmac.compare_digest(attempt.state.encode(), answer.get("state", "").encode()):
            raise SignInFailed("the state is not that of this browser")
        if answer.get("iss", self.settings.issuer) != self.settings.issuer:  # RFC 9207
            raise SignInFailed("the answer is from another issuer")
        if "code" not in answer:
            raise SignInFailed(f"the provider refused: {answer.get('error', 'no code')[:100]!r}")
        granted = self._redeem(answer["code"], attempt.verifier)
        token = granted.get("id_token")
        if not isinstance(token, str):
            raise SignInFailed("the provider gave no ID token")
        return self._player(self._verified(token, attempt.nonce))

    def _redeem(self, code: str, verifier: str) -> dict[str, Any]:
        """Exchange the code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._return_address,
            "code_verifier": verifier,
            "client_id": self.settings.client,
        }
        headers = {}
        if self.settings.secret is not None:
            ways = self._discovered().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            if "client_secret_basic" in ways:  # RFC 6749 §2.3.1: both are form-encoded first
                pair = f"{quote(self.settings.client, safe='')}:{quote(self.settings.secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = self.settings.secret
        return _fetch(self._endpoint("token_endpoint"), urlencode(form).encode(), headers)

    # --- the ID token --------------------------------------------------------------------------------------

    def _verified(self, token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token, once all of them are checked."""
        # OpenID Connect Core §3.1.3.7
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise SignInFailed(f"an ID token signed by {str(header.get('alg'))[:20]!r} is not believed")
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(header),
                algorithms=[header["alg"]],
                audience=self.settings.client,
                issuer=self.settings.issuer,
                leeway=LEEWAY,
                options={"require": list(REQUIRED)},
            )
        except jwt.PyJWTError as error:
            raise SignInFailed(f"the ID token is not good: {error}") from None
        audience = claims["aud"]
        alone = isinstance(audience, str) or len(audience) == 1
        if claims.get("azp", self.settings.client if alone else None) != self.settings.client:
            raise SignInFailed("the ID token is for another client")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInFailed("the nonce of the ID token is not that of this sign-in")
        return claims

    def _key(self, header: Mapping[str, Any]) -> Any:
        """Return the key that a token names; the keys are read again if it is new."""
        for again in (False, True):
            keys = self._document(self._endpoint("jwks_uri"), AGAIN_SECONDS if again else KEPT_SECONDS).get(
                "keys"
            )
            fit = [one for one in keys if _fits(one, header)] if isinstance(keys, list) else []
            if len(fit) == 1:
                return jwt.PyJWK(fit[0], algorithm=header["alg"]).key
        raise SignInFailed("the provider has no key of that name")

    def _player(self, claims: Mapping[str, Any]) -> Player:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255:
            raise SignInFailed("the ID token names nobody")
        known = hashlib.sha256(f"{self.settings.issuer}\n{subject}".encode()).hexdigest()[:40]
        names = (claims.get(one) for one in ("preferred_username", "name", "email"))
        name = next((one for one in names if isinstance(one, str) and as_one_line(one)), "player")
        return Player(f"openid:{known}", as_one_line(name)[:LONGEST_NAME], self._role(claims))

    def _role(self, claims: Mapping[str, Any]) -> Role:
        given = claims.get(self.settings.roles) if self.settings.roles else None
        found = {given} if isinstance(given, str) else set(filter(_is_text, given or ()))
        return next((role for role in reversed(ROLES) if role in found and role != "guest"), "player")

    # --- what the provider says of itself ------------------------------------------------------------------

    def _discovered(self) -> dict[str, Any]:
        issuer = self.settings.issuer
        found = self._document(f"{issuer.rstrip('/')}/.well-known/openid-configuration", KEPT_SECONDS)
        if found.get("issuer") != issuer:  # OpenID Connect Discovery §4.3
            raise SignInFailed(
                f"the provider calls itself {str(found.get('issuer'))[:200]!r}, not {issuer!r}"
            )
        return found

    def _endpoint(self, name: str) -> str:
        address = self._discovered().get(name)
        if not isinstance(address, str):
            raise SignInFailed(f"the provider names no {name}")
        check_address(address)
        return address

    def _document(self, address: str, seconds: float) -> dict[str, Any]:
        with self._guard:
            kept, now = self._kept.get(address), self._clock()
            if kept is None or now - kept.at > seconds:
                kept = self._kept[address] = _Kept(now, _fetch(address))
            return kept.content


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _fits(key: Any, header: Mapping[str, Any]) -> bool:
    """Tell if a key of the provider may have signed a token with this header."""
    return (
        isinstance(key, dict)
        and key.get("kty") != "oct"
        and key.get("use", "sig") == "sig"
        and key.get("alg", header["alg"]) == header["alg"]
        and ("kid" not in header or key.get("kid") == header["kid"])
    )


def check_address(address: str) -> None:
    """Refuse an address that somebody on the way could read: all but https, and this machine."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or not _is_here(parts.hostname or ""):
        raise SignInFailed(f"{address[:200]!r}: a provider and its players are reached by https://")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def _fetch(
    address: str, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object at an address that was checked; no redirect is followed."""
    request = urllib.request.Request(address, form, {"Accept": "application/json", **(headers or {})})  # noqa: S310
    where = urlsplit(address).netloc
    try:
        with _OPENER.open(request, timeout=SECONDS) as answer:
            content = answer.read(MOST_BYTES + 1)
        found = json.loads(content) if len(content) <= MOST_BYTES else None
    except urllib.error.HTTPError as error:
        said = error.read(500).decode("utf-8", "replace")
        error.close()
        raise SignInFailed(f"{where} answered {error.code}: {said!r}") from None
    except (OSError, ValueError) as error:
        raise SignInFailed(f"{where} did not answer as a provider does: {error}") from None
    if not isinstance(found, dict):
        raise SignInFailed(f"{where} did not answer with a JSON object")
    return found
