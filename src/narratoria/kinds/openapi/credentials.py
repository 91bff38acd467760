"""Credentials of an API, by reference: the names of environment variables, read when a call is made.

No value is kept, and none is an argument: a narrator never sees one, and a journal has none.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, quote_plus

from narratoria.errors import EXECUTION_FAILED, CallFailure
from narratoria.kinds.openapi.document import Document, DocumentInvalid
from narratoria.kinds.openapi.operations import Operation
from narratoria.kinds.redaction import Redaction, secrets_in

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass
class Sent:
    """The credentials that a call adds to its request, and the redaction that takes it out of every answer."""

    headers: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[tuple[str, str]] = field(default_factory=list)
    redaction: Redaction = field(default_factory=Redaction)


class Credentials:
    """The security schemes of a document, and the variables that hold their secrets."""

    def __init__(
        self,
        document: Document,
        secrets: Mapping[str, str],
        headers: Mapping[str, str],
        env: Mapping[str, str] | None,
    ) -> None:
        self._env = env
        self._headers = dict(headers)
        self._variables = dict(secrets)
        self.schemes = _schemes(document)
        for scheme, variable in secrets.items():
            if scheme not in self.schemes:
                known = ", ".join(self.schemes) or "none; use headers={…}"
                raise DocumentInvalid(
                    f"{document.where}: secrets: there is no security scheme {scheme!r}; known: {known}"
                )
            if not isinstance(variable, str) or not _NAME.fullmatch(variable):
                # The value itself may have been given, so it is not repeated.
                raise DocumentInvalid(
                    f"{document.where}: secrets: {scheme}: expected the name of an environment variable"
                )
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name) or not isinstance(value, str):
                raise DocumentInvalid(f"{document.where}: headers: {name!r}: expected a header and its value")

    def of(self, operation: Operation) -> list[str] | None:
        """Return the schemes that a call uses: those of the first alternative that we have every secret for. None if
        the operation needs one and there is none.
        """
        best: list[str] | None = None
        for alternative in operation.security:
            if alternative and all(name in self._variables for name in alternative):
                return list(alternative)
            if not alternative:
                best = []
        return best if operation.security else []

    def places(self, schemes: Iterable[str]) -> set[tuple[str, str]]:
        """Return the parameters that carry the keys of these schemes: (place, name)."""
        found = (self.schemes[name] for name in schemes)
        return {(str(one.get("in")), str(one.get("name"))) for one in found if one.get("type") == "apiKey"}

    def sent(self, schemes: Iterable[str], tool: str) -> Sent:
        """Read the secrets of a call. Raises `CallFailure`, which names the variable that is not set."""
        sent, hidden = Sent(), set[str]()
        for name in schemes:
            value = self._value(self._variables[name], tool)
            hidden.update(_shapes(value))
            self._put(self.schemes[name], value, sent, hidden)
        for header, template in self._headers.items():
            value = _VARIABLE.sub(lambda match: self._value(match[1], tool, match[2]), template)
            sent.headers[header] = value
            for one in secrets_in(value):
                hidden.update(_shapes(one))
        sent.redaction = Redaction(hidden)
        return sent

    def _put(self, scheme: Mapping[str, Any], value: str, sent: Sent, hidden: set[str]) -> None:
        kind, name = scheme.get("type"), str(scheme.get("name", ""))
        if kind == "apiKey":
            if scheme.get("in") == "query":
                sent.query.append((name, value))
            elif scheme.get("in") == "cookie":
                sent.cookies.append((name, value))
            else:
                sent.headers[name] = value
        elif kind == "http" and str(scheme.get("scheme", "")).lower() == "basic":
            coded = base64.b64encode(value.encode()).decode()
            hidden.update((coded, value.partition(":")[2]))
            sent.headers["Authorization"] = f"Basic {coded}"
        elif kind == "http" and str(scheme.get("scheme", "bearer")).lower() != "bearer":
            sent.headers["Authorization"] = f"{scheme['scheme']} {value}"
        else:  # bearer; oauth2 and openIdConnect: a token that was got elsewhere
            sent.headers["Authorization"] = f"Bearer {value}"

    def _value(self, variable: str, tool: str, default: str | None = None) -> str:
        env = os.environ if self._env is None else self._env
        value = env.get(variable) or default
        if value is None:
            raise CallFailure(
                EXECUTION_FAILED,
                f"{tool}: {variable} is not set; set it where narratoria is started",
                recoverable=False,
            )
        if any(ord(char) < 32 or ord(char) == 127 for char in value):
            raise CallFailure(
                EXECUTION_FAILED,
                f"{tool}: {variable} has a line break or a control character in it",
                recoverable=False,
            )
        return value


def _shapes(value: str) -> set[str]:
    """The forms in which a secret may come back: as it is, and as an address has it."""
    return {value, quote(value, safe=""), quote_plus(value)}


def _schemes(document: Document) -> dict[str, Mapping[str, Any]]:
    components = document.data.get("components")
    listed = components.get("securitySchemes") if isinstance(components, Mapping) else None
    if not isinstance(listed, Mapping):
        return {}
    return {name: document.resolved(one, f"securitySchemes/{name}") for name, one in listed.items()}
