"""Secrets in the settings of a server, and texts without them.

A value counts as a secret if it stands in a header, or under a name such as `API_KEY`, or comes from a variable with
such a name, or is the password of an address. Addresses, folders and switches do not: taking them out of results would
spoil the results. A secret is found also as JSON, Python, HTML and an address write it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

HIDDEN: Final = "***"
LEAST: Final = 6
"""Shorter values are no secrets, and would be found by accident in any text."""
_SECRET_NAME: Final = re.compile(
    r"(?i)(key|token|secret|passw|passphrase|credential|auth|cookie|session|signature|bearer|dsn|private"
    r"|(?:^|[_.-])pat(?:$|[_.-])|[_.-]pwd$)"
)
_PASSWORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:([^\s/@]+)@")
_HEADER: Final = re.compile(r"(?:-[^=\s]*=)?([\w-]+):\s*(\S.*)")
_CODED: Final = re.compile("%[0-9A-F]{2}")
_SCHEME: Final = re.compile(r"(?i)(?:bearer|basic|token|digest|apikey)\s+(.+)")


def is_secret_name(name: str) -> bool:
    """Tell if a variable or header of this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def secrets_in(value: str) -> Iterable[str]:
    """Yield the texts by which a secret value may appear: itself, and without `Bearer` before it."""
    yield value
    if match := _SCHEME.fullmatch(value.strip()):
        yield match[1]


def secrets_within(value: str) -> Iterable[str]:
    """Yield the secrets that stand in a value which is none itself: the password and the keys of an address, and what
    follows the name of a header, as in `Authorization: Bearer …`.
    """
    for password in _PASSWORD.findall(value):
        yield password
        yield unquote(password)
    if "://" in value:
        yield from secrets_of_url(value)
    elif (header := _HEADER.fullmatch(value)) and is_secret_name(header[1]):
        yield from secrets_in(header[2])


def _written(secret: str) -> Iterable[str]:
    """Yield the ways in which a secret may be written: as it is, in JSON (once, and in a text of JSON again), as Python
    shows it, in HTML, and in an address.
    """
    yield secret
    for all_ascii in (True, False):
        text = json.dumps(secret, ensure_ascii=all_ascii)[1:-1]
        yield text
        yield json.dumps(text, ensure_ascii=all_ascii)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    for safe in ("", "/"):
        coded = quote(secret, safe=safe)
        yield coded
        yield _CODED.sub(lambda match: match[0].lower(), coded)
        yield coded.replace("%20", "+")


def secrets_of_url(url: str) -> Iterable[str]:
    """Yield the password and the values behind the question mark of an address."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:  # no address after all
        return
    if password:
        yield password
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if is_secret_name(name):
            yield value


def shown_url(url: str) -> str:
    """Return an address without its user, its password and what follows the question mark."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


class Redaction:
    """Takes known secrets out of texts and of JSON."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {written for one in secrets if len(one) >= LEAST for written in _written(one)}
        # The longest first: one may be a part of another.
        self._secrets = sorted(found, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._secrets)}>"

    def text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def content(self, content: bytes) -> bytes:
        """Return the bytes of a file without the secrets."""
        for secret in self._secrets:
            if (coded := secret.encode()) in content:
                content = content.replace(coded, HIDDEN.encode())
        return content

    def data(self, value: Any) -> Any:
        """Return JSON data without the secrets, keys included."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.data(child) for key, child in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(child) for child in value]
        return value
