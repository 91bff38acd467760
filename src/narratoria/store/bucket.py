"""A bucket of an S3-compatible store (extra `s3`): objects are put, fetched, listed and deleted.

Contents stream in both directions. Every request has a bound in time, and is made once more if the store did not
answer. An answer is never shown as it is: errors name the store, the status and the code, and no header.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from narratoria.errors import JournalError
from narratoria.extras import needed
from narratoria.store.s3_signing import NO_BODY, Keys, encoded, query_string, signed
from narratoria.store.store import JournalDamaged
from narratoria.store.writer import ConnectionLost

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 10.0  # without a byte, in either direction
SLOWEST: Final = 64 * 1024  # bytes a second; what is slower is given up
_BLOCK: Final = 256 * 1024
_ANSWER: Final = 8 * 1024 * 1024  # bytes of a list, or of an error
_ATTEMPTS: Final = 2
_PAUSE: Final = 0.2
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9.]{1,80})</Code>")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class StoreAway(ConnectionLost):
    """The object store does not answer, or is too slow. What waits to be kept is kept once it does."""


class ObjectMissing(JournalError):
    """The bucket has no object of that name."""


class Listed(NamedTuple):
    """An object in a list: its name and the time, by the store's clock, at which it was put there."""

    name: str
    put: float


class Bucket:
    """The objects under one prefix of a bucket. Its methods block, and may be called in any thread."""

    def __init__(self, name: str, keys: Keys, *, prefix: str = "", endpoint: str = "") -> None:
        if not _NAME.fullmatch(name):
            raise JournalError(f"{name!r} is no name of a bucket; write s3://BUCKET or s3://BUCKET/PREFIX")
        at_amazon = f"s3.{keys.region}.amazonaws.com"
        own_host = not endpoint and "." not in name
        parts = urlsplit(endpoint or f"https://{f'{name}.' if own_host else ''}{at_amazon}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise JournalError(
                "AWS_ENDPOINT_URL_S3 is no address of a store; write https://HOST or https://HOST:PORT, and give "
                "the keys with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        default = {"http": 80, "https": 443}[parts.scheme]
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._host = host if parts.port in (None, default) else f"{host}:{parts.port}"
        self._origin = f"{parts.scheme}://{self._host}"
        self._root = parts.path.rstrip("/") + ("" if own_host else f"/{name}")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._keys = keys
        self.shown = f"s3://{name}/{self._prefix} at {self._host}"
        try:
            import httpx2
        except ImportError:
            raise JournalError(f"a store of assets in a bucket {needed('s3')}") from None
        self._library = httpx2
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS), follow_redirects=False
        )

    def close(self) -> None:
        self._client.close()

    def check(self) -> None:
        """Ask for a list of one object: whoever may not, or names a bucket that is not there, is told at once."""
        self._list_page({"prefix": self._prefix, "max-keys": "1"})

    def put(self, name: str, file: Path, digest: str) -> None:
        """Put a file there. The signature has its SHA-256, so a store that checks signatures checks the content."""
        size = file.stat().st_size

        def send() -> None:
            with file.open("rb") as content:
                more = {"content-length": str(size), "content-type": "application/octet-stream"}
                body = _sent(content, self._deadline(size)) if size else b""
                with self._asked("PUT", name, body=body, body_hash=digest, more=more) as answer:
                    answer.read()

        self._attempt(f"put {name}", send)

    def fetch(self, name: str, digest: str, file: IO[bytes]) -> int:
        """Write the content of an object to a file; return its size. Raise `JournalDamaged` if it is another."""

        def receive() -> int:
            file.seek(0)
            file.truncate()
            hasher = hashlib.sha256()
            with self._asked("GET", name) as answer:
                whole = int(answer.headers.get("content-length", "0"))
                until = self._deadline(whole)
                for block in answer.iter_raw(_BLOCK):
                    hasher.update(block)
                    file.write(block)
                    _check_time(until)
            if hasher.hexdigest() != digest:
                raise JournalDamaged(f"{name} in {self.shown} is damaged: its content is not what was stored")
            return file.tell()

        return self._attempt(f"fetch {name}", receive)

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is deleted already."""

        def remove() -> None:
            with contextlib.suppress(ObjectMissing), self._asked("DELETE", name) as answer:
                answer.read()

        self._attempt(f"delete {name}", remove)

    def list(self, under: str) -> Iterator[Listed]:
        """The objects whose names begin with `under`."""
        query = {"prefix": self._prefix + under}
        while True:
            page = self._list_page(query)
            for entry in page.iter("Contents"):
                key, put = unquote(entry.findtext("Key", "")), entry.findtext("LastModified", "")
                with contextlib.suppress(ValueError):  # of whose time nothing is known is nobody's to delete
                    yield Listed(key.removeprefix(self._prefix), datetime.fromisoformat(put).timestamp())
            token = page.findtext("NextContinuationToken")
            if not token:
                return
            query["continuation-token"] = token

    def _list_page(self, query: Mapping[str, str]) -> ElementTree.Element:
        asked = {"list-type": "2", "encoding-type": "url", **query}

        def receive() -> ElementTree.Element:
            content = bytearray()
            until = self._deadline(0)
            with self._asked("GET", None, query=asked) as answer:
                for block in answer.iter_raw(_BLOCK):
                    content += block
                    _check_time(until)
                    if len(content) > _ANSWER:
                        raise JournalError(
                            f"{self.shown} answered with a list of more than {_ANSWER:,} bytes"
                        )
            try:
                found = ElementTree.fromstring(bytes(content))  # noqa: S314 - the operator's own store, bounded
            except ElementTree.ParseError:
                raise JournalError(
                    f"{self.shown} did not answer like an S3 store; check the endpoint"
                ) from None
            for one in found.iter():
                one.tag = one.tag.rpartition("}")[2]
            return found

        return self._attempt("list objects", receive)

    def _deadline(self, size: int) -> float:
        return time.monotonic() + SILENT_SECONDS + CONNECT_SECONDS + size / SLOWEST

    def _attempt(self, what: str, act: Callable[[], T]) -> T:
        left = _ATTEMPTS
        while True:
            left -= 1
            try:
                return act()
            except (self._library.TransportError, self._library.StreamError, StoreAway) as error:
                if left <= 0:
                    why = str(error) if isinstance(error, StoreAway) else _reason(error)
                    raise StoreAway(
                        f"the object store does not answer as it should: {self.shown} ({what}: {why}); "
                        "look at it, or try again in a moment"
                    ) from None
            time.sleep(_PAUSE)

    @contextlib.contextmanager
    def _asked(
        self,
        method: str,
        name: str | None,
        *,
        query: Mapping[str, str] | None = None,
        body: Iterator[bytes] | bytes = b"",
        body_hash: str = NO_BODY,
        more: Mapping[str, str] | None = None,
    ) -> Iterator[httpx2.Response]:
        """Send a signed request; the answer is one that says yes, with its body unread."""
        path = encoded(self._root if name is None else f"{self._root}/{self._prefix}{name}", safe="/") or "/"
        asked = query_string(query or {})
        headers = {
            **signed(self._keys, method, self._host, path, asked, body_hash),
            "accept-encoding": "identity", **(more or {}),
        }  # fmt: skip
        url = f"{self._origin}{path}{f'?{asked}' if asked else ''}"
        with self._client.stream(method, url, headers=headers, content=body) as answer:
            if answer.status_code not in (200, 204):
                self._refuse(answer, name)
            yield answer

    def _refuse(self, answer: httpx2.Response, name: str | None) -> None:
        content = bytearray()
        for block in answer.iter_raw(4096):
            content += block
            if len(content) > 65536:
                break
        found = _CODE.search(content)
        code = found[1].decode() if found else ""
        said = f"{answer.status_code} {code}".strip()
        if answer.status_code == 404 and name is not None and code in ("", "NoSuchKey"):
            raise ObjectMissing(f"{name} is not in {self.shown}")
        if answer.status_code in (408, 429) or answer.status_code >= 500 or code == "RequestTimeout":
            raise StoreAway(said)
        advice = "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do with this bucket"
        if code == "NoSuchBucket":
            advice = "make the bucket, or name another in NARRATORIA_ASSETS"
        elif code == "RequestTimeTooSkewed":
            advice = "set the clock of this machine"
        elif answer.status_code in (301, 307, 308) or code == "AuthorizationHeaderMalformed":
            advice = "the bucket is elsewhere: set AWS_REGION or AWS_ENDPOINT_URL_S3"
        elif answer.status_code not in (401, 403):
            advice = "check the endpoint and the bucket"
        raise JournalError(f"the object store refuses: {self.shown} ({said}); {advice}")


def bucket_of_environment() -> Bucket | None:
    """Return the bucket that `NARRATORIA_ASSETS` names (s3://BUCKET/PREFIX), with the usual variables for its keys;
    None if it names none.
    """
    address = os.environ.get("NARRATORIA_ASSETS", "").strip()
    if not address:
        return None
    scheme, _, rest = address.partition("://")
    if scheme != "s3":
        raise JournalError("NARRATORIA_ASSETS is no bucket; write s3://BUCKET or s3://BUCKET/PREFIX")
    if "@" in rest:
        raise JournalError(
            "NARRATORIA_ASSETS holds no keys; give them with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    name, _, prefix = rest.partition("/")
    keys = Keys(
        _setting("AWS_ACCESS_KEY_ID"),
        _setting("AWS_SECRET_ACCESS_KEY"),
        _setting("AWS_SESSION_TOKEN"),
        _setting("AWS_REGION") or _setting("AWS_DEFAULT_REGION") or "us-east-1",
    )
    if not keys.id or not keys.secret:
        raise JournalError(
            "NARRATORIA_ASSETS names a bucket without keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    endpoint = _setting("AWS_ENDPOINT_URL_S3") or _setting("AWS_ENDPOINT_URL")
    return Bucket(name, keys, prefix=prefix, endpoint=endpoint)


def _setting(name: str) -> str:
    return os.environ.get(name, "").strip()


def _sent(content: BinaryIO, until: float) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        _check_time(until)
        yield block


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise StoreAway(f"it takes less than {SLOWEST:,} bytes a second")


def _reason(error: Exception) -> str:
    """Return what happened, by its kind: a text of the network may hold anything."""
    words = {
        "ConnectError": "no connection", "ConnectTimeout": "no connection in time", "ReadTimeout": "no answer in time",
        "WriteTimeout": "it takes nothing", "RemoteProtocolError": "the answer ended half way",
        "ReadError": "the connection broke", "WriteError": "the connection broke",
    }  # fmt: skip
    return words.get(type(error).__name__, type(error).__name__)
