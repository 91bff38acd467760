"""The signature of a request to an S3-compatible store: AWS Signature Version 4, in its headers."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

NO_BODY: Final = hashlib.sha256(b"").hexdigest()
_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Keys:
    """The keys of an account, and the region that is part of every signature. Only the id is ever shown."""

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)
    region: str = "us-east-1"


def encoded(text: str, *, safe: str = "") -> str:
    """Return a text as a signature wants it in an address."""
    return quote(text, safe=f"{safe}-_.~")


def query_string(query: Mapping[str, str]) -> str:
    """Return the query of an address, in the order of a signature."""
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in sorted(query.items()))


def signed(
    keys: Keys, method: str, host: str, path: str, query: str, body_hash: str, now: datetime | None = None
) -> dict[str, str]:
    """Return the headers of a request. `path` and `query` are encoded; `body_hash` is the SHA-256 of the body."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": body_hash, "x-amz-date": moment}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{body_hash}"
    scope = f"{moment[:8]}/{keys.region}/s3/aws4_request"
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    to_sign = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    headers["authorization"] = (
        f"{_ALGORITHM} Credential={keys.id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers
