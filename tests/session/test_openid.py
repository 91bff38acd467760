"""Sign-in by an OpenID Connect provider: a small real one, over HTTP on this machine."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from houses import House, begin, house

jwt = pytest.importorskip("jwt")

from narratoria.store.postgres_players import Player  # noqa: E402
from narratoria.web.openid import Provider, ProviderSettings, SignInFailed, check_address  # noqa: E402

PUBLIC = "http://127.0.0.1"
SECRET = "what only the two know: 100%"
KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)
Claims = dict[str, Any]


class SmallProvider:
    """A provider of one person. A test changes what it says by `change`, `sign`, `keys` and `discovery`."""

    def __init__(self) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self.codes: dict[str, dict[str, str]] = {}
        self.change: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = lambda claims: jwt.encode(
            claims, KEY, "RS256", headers={"kid": "one"}
        )
        self.keys = [public_key(KEY, "one")]
        self.discovery: Claims = {}
        self.asked: list[str] = []
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, query: str) -> tuple[int, Any]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
            found = {name: f"{self.issuer}/{at}" for name, at in names.items()}
            return 200, {"issuer": self.issuer, **found, **self.discovery}
        if path == "/keys":
            return 200, {"keys": self.keys}
        asked = dict(parse_qsl(query))
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split() and asked["client_id"] == "stories"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return 302, f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], credentials: str) -> tuple[int, Any]:
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        known = [
            unquote(one) for one in base64.b64decode(credentials.removeprefix("Basic ")).decode().split(":")
        ]
        if asked is None or asked["code_challenge"] != challenge or known != ["stories", SECRET]:
            return 400, {"error": "invalid_grant"}
        assert asked["redirect_uri"] == form["redirect_uri"]
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": "stories", "sub": "anna-1", "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], "preferred_username": "Anna", "groups": ["author", "staff"],
        }  # fmt: skip
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(self.change(claims))}

    def _handler(provider) -> type[http.server.BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the request's
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                self.say(*provider.answer(parts.path, parts.query))

            def do_POST(self) -> None:
                form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
                self.say(*provider.token(form, self.headers.get("authorization", "")))

            def say(self, status: int, content: Any) -> None:
                body = b"" if status == 302 else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if status == 302:
                    self.send_header("Location", content)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        return Handler


def public_key(key: Any, name: str) -> Claims:
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(kind.to_jwk(key.public_key())), "kid": name, "use": "sig"}


@pytest.fixture
def provider() -> Iterator[SmallProvider]:
    made = SmallProvider()
    yield made
    made.close()


def settings(provider: SmallProvider, **more: Any) -> ProviderSettings:
    return ProviderSettings(provider.issuer, "stories", PUBLIC, SECRET, "groups", **more)


def answered(address: str) -> dict[str, str]:
    """Go to the provider, as a browser does; return what it sends back with."""
    at = httpx.get(address).headers["location"]
    assert at.startswith(f"{PUBLIC}/sign-in/done?")
    return {name: values[0] for name, values in parse_qs(urlsplit(at).query).items()}


def signed_in(provider: SmallProvider, client: Provider | None = None) -> Player:
    client = client or Provider(settings(provider))
    address, attempt = client.begin("/")
    return client.finish(attempt, answered(address))


def test_a_provider_says_who_it_is_and_which_role(provider: SmallProvider) -> None:
    anna = signed_in(provider)
    assert (anna.name, anna.role) == ("Anna", "author") and anna.id.startswith("openid:")
    assert signed_in(provider).id == anna.id
    provider.change = lambda claims: {**claims, "sub": "bert-2", "groups": "guest"}
    bert = signed_in(provider)
    assert bert.id != anna.id and bert.role == "player", "a provider makes no guests"
    provider.discovery = {"issuer": f"{provider.issuer}/"}
    with pytest.raises(SignInFailed, match="calls itself"):
        signed_in(provider)


def unsigned(claims: Claims) -> str:
    return str(jwt.encode(claims, "", "none"))


def by_public_key(claims: Claims) -> str:
    """Signed with what everybody knows, as an HMAC: the confusion of algorithms."""
    known = public_key(KEY, "one")["n"].encode()
    return str(jwt.encode(claims, known, "HS256", headers={"kid": "one"}))


WRONG: dict[str, tuple[Callable[[Claims], Claims] | None, Callable[[Claims], str] | None, str]] = {
    "nonce": (lambda claims: {**claims, "nonce": "another"}, None, "nonce"),
    "no nonce": (lambda claims: {k: v for k, v in claims.items() if k != "nonce"}, None, "nonce"),
    "audience": (lambda claims: {**claims, "aud": "others"}, None, "[Aa]udience"),
    "one of two audiences": (lambda claims: {**claims, "aud": ["stories", "others"]}, None, "another client"),
    "party": (lambda claims: {**claims, "azp": "others"}, None, "another client"),
    "issuer": (lambda claims: {**claims, "iss": "https://elsewhere.example"}, None, "[Ii]ssuer"),
    "expired": (lambda claims: {**claims, "exp": int(time.time()) - 60}, None, "expired"),
    "endless": (lambda claims: {k: v for k, v in claims.items() if k != "exp"}, None, "exp"),
    "not yet": (lambda claims: {**claims, "iat": int(time.time()) + 600}, None, "not yet"),
    "nobody": (lambda claims: {**claims, "sub": ""}, None, "nobody"),
    "alg none": (None, unsigned, "'none' is not believed"),
    "symmetric": (None, by_public_key, "'HS256' is not believed"),
    "other key": (
        None,
        lambda claims: jwt.encode(claims, OTHER_KEY, "RS256", headers={"kid": "one"}),
        "Signature",
    ),
    "unknown key": (
        None,
        lambda claims: jwt.encode(claims, OTHER_KEY, "RS256", headers={"kid": "two"}),
        "no key",
    ),
    "no token": (None, lambda claims: "x.y.z", "not good"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_id_token_that_is_wrong_is_refused(provider: SmallProvider, what: str) -> None:
    change, sign, why = WRONG[what]
    provider.change, provider.sign = change or provider.change, sign or provider.sign
    with pytest.raises(SignInFailed, match=why):
        signed_in(provider)


def test_an_answer_must_be_to_the_question_of_this_browser(provider: SmallProvider) -> None:
    client = Provider(settings(provider))
    address, attempt = client.begin("/")
    _, other = client.begin("/")
    answer = answered(address)
    with pytest.raises(SignInFailed, match="state"):
        client.finish(other, answer)
    with pytest.raises(
        SignInFailed, match="invalid_grant"
    ):  # a code that was stolen, with a state of the thief's
        client.finish(other, {**answer, "state": other.state})
    with pytest.raises(SignInFailed, match="access_denied"):
        client.finish(attempt, {"state": attempt.state, "error": "access_denied"})
    with pytest.raises(SignInFailed, match="another issuer"):
        client.finish(attempt, {**answer, "iss": "https://elsewhere.example"})


def test_a_new_key_of_the_provider_is_looked_for_now_and_then(provider: SmallProvider) -> None:
    now = [0.0]
    client = Provider(settings(provider), clock=lambda: now[0])
    signed_in(provider, client)
    fresh = ec.generate_private_key(ec.SECP256R1())
    provider.sign = lambda claims: jwt.encode(claims, fresh, "ES256", headers={"kid": "new"})
    for _ in range(3):
        with pytest.raises(SignInFailed, match="no key"):
            signed_in(provider, client)
    assert provider.asked.count("/keys") == 1, "whoever sends unknown keys makes no load"
    provider.keys.append(public_key(fresh, "new"))
    now[0] += 31
    assert signed_in(provider, client).name == "Anna" and provider.asked.count("/keys") == 2
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_only_addresses_that_nobody_can_read_on_the_way() -> None:
    for address in (
        "http://accounts.example",
        "ftp://x",
        "file:///etc/passwd",
        "https://",
        "http://127.0.0.1.x",
    ):
        with pytest.raises(SignInFailed):
            check_address(address)
    check_address("https://accounts.example")
    assert Provider(ProviderSettings("https://a.example", "c", "https://b.example")).is_secure


# --- through a server ---------------------------------------------------------------------------------------


@pytest.fixture
async def served(
    provider: SmallProvider, postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    async with house(postgres_database, tmp_path, provider=Provider(settings(provider))) as made:
        yield made


@pytest.mark.postgres
async def test_a_browser_signs_in_by_the_provider_and_comes_back_where_it_was(
    served: House, provider: SmallProvider
) -> None:
    browser = served.client(Accept="text/html")
    page = await browser.get("/settings")
    assert page.status_code == 401 and 'href="/sign-in?to=%2Fsettings"' in page.text
    there = await browser.get("/sign-in?to=/settings")
    assert there.status_code == 303 and there.headers["location"].startswith(provider.issuer)
    back = httpx.get(there.headers["location"]).headers["location"]
    stranger = await served.client(Accept="text/html").get(back)
    assert stranger.status_code == 401 and 'href="/sign-in"' in stranger.text, "the state of another browser"
    arrived = await browser.get(back)
    assert arrived.status_code == 303 and arrived.headers["location"] == "/settings"
    assert (await browser.get("/me")).json() == {"name": "Anna", "role": "author"}
    assert (await browser.get(back)).status_code == 401, "an answer is used once"
    session = await begin(browser)
    again = served.client()
    there = await again.get("/sign-in?to=//elsewhere.example/")
    arrived = await again.get(httpx.get(there.headers["location"]).headers["location"])
    assert arrived.headers["location"] == "/elsewhere.example/"
    assert [one["id"] for one in (await again.get("/sessions")).json()] in ([session], [])
    assert (await again.get(f"/sessions/{session}")).status_code == 200
    assert (await browser.post("/sign-out")).status_code == 204
    assert (await browser.get("/me")).status_code == 401


@pytest.mark.postgres
async def test_a_provider_that_is_away_is_said(served: House, provider: SmallProvider) -> None:
    provider.close()
    answer = await served.client().get("/sign-in")
    assert (answer.status_code, answer.json()["error"]) == (503, "sign_in_failed")
