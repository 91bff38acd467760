"""An OpenAPI document: read within bounds, with its references followed inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from narratoria import bounds, strict_json
from narratoria.errors import NarratoriaError
from narratoria.kinds.openapi.plain_yaml import decode_yaml

MOST_BYTES: Final = 64 * 1024 * 1024  # GitHub's own has 12 MB
MOST_STEPS: Final = 50  # references that lead to references
YAML_BYTES: Final = 8 * 1024 * 1024  # its parser is slow


class DocumentInvalid(NarratoriaError):
    """An OpenAPI document cannot be used; the message says where and why."""


class Document:
    """A document of OpenAPI 3.0 or 3.1."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where
        version = data.get("openapi")
        if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
            found = f"Swagger {data['swagger']}" if "swagger" in data else f"openapi: {version!r}"
            advice = "; convert it, such as with swagger2openapi" if "swagger" in data else ""
            raise DocumentInvalid(f"{where}: expected OpenAPI 3.0 or 3.1, got {found}{advice}")
        self.is_3_0 = version.startswith("3.0")

    @property
    def title(self) -> str:
        info = self.data.get("info")
        title = info.get("title") if isinstance(info, Mapping) else None
        return title if isinstance(title, str) and title.strip() else "an API"

    def resolved(self, value: Any, where: str) -> Mapping[str, Any]:
        """Return an object of the document, with references to others followed."""
        for _ in range(MOST_STEPS):
            if not isinstance(value, Mapping):
                raise DocumentInvalid(f"{self.where}: {where}: expected an object")
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self.at(reference, where)
        raise DocumentInvalid(f"{self.where}: {where}: its references lead in a circle")

    def at(self, reference: str, where: str) -> Any:
        """Return the value that a reference inside the document leads to."""
        if not reference.startswith("#/"):
            raise DocumentInvalid(
                f"{self.where}: {where}: {reference!r} leads out of the document; bundle it into one file"
            )
        value: Any = self.data
        for step in pointer_steps(reference):
            if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, Mapping) and step in value:
                value = value[step]
            else:
                raise DocumentInvalid(f"{self.where}: {where}: {reference!r} leads nowhere")
        return value

    def server_of(self, *levels: Mapping[str, Any]) -> str | None:
        """Return the address of the first server, of the innermost level that names one, with its variables filled
        in.
        """
        for level in (*levels, self.data):
            servers = level.get("servers")
            if isinstance(servers, list) and servers and isinstance(servers[0], Mapping):
                return _filled(servers[0])
        return None


def pointer_steps(reference: str) -> Iterator[str]:
    for step in reference[2:].split("/"):
        yield unquote(step).replace("~1", "/").replace("~0", "~")


def _filled(server: Mapping[str, Any]) -> str:
    url, variables = str(server.get("url", "")), server.get("variables")
    for name, variable in (variables if isinstance(variables, Mapping) else {}).items():
        if isinstance(variable, Mapping):
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    return url


def checked_address(address: str, what: str, relative_to: str | None = None) -> str:
    """Return an address of an API without a slash at its end. Only http and https are spoken."""
    if relative_to is not None:
        address = urljoin(relative_to.rstrip("/") + "/", address)
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise DocumentInvalid(f"{what}: {address!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DocumentInvalid(f"{what}: expected an address such as https://api.example.org, got {address!r}")
    if parts.username is not None or parts.password is not None:
        raise DocumentInvalid(
            f"{what}: an address with a password; name the variable that has it in `secrets`"
        )
    if parts.query or parts.fragment:
        raise DocumentInvalid(
            f"{what}: {address!r} has a part behind ? or #; the parameters of a call go there"
        )
    return address.rstrip("/")


def read_document(spec: str | Path | Mapping[str, Any]) -> Document:
    """Read a document: data, the text of one in JSON or YAML, or the path of a file. Raises `DocumentInvalid`."""
    if isinstance(spec, Mapping):
        return _of_data(spec, "the document")
    if isinstance(spec, Path) or not ("\n" in spec or spec.lstrip().startswith("{")):
        path = Path(spec)
        try:
            return _of_data(_decoded(bounds.read_file(path, MOST_BYTES), str(path)), str(path))
        except OSError as error:
            raise DocumentInvalid(f"{path}: cannot be read: {error.strerror or error}") from None
        except bounds.OutOfBounds as error:
            raise DocumentInvalid(error.at(path)) from None
        except ValueError as error:  # a zero byte, or half a character
            raise DocumentInvalid(f"{str(spec)[:200]!r} is no path of a file: {error}") from None
    try:
        content = spec.encode()
    except UnicodeEncodeError as error:
        raise DocumentInvalid(
            f"the document: half a character (a surrogate) at position {error.start:,}; write the whole one"
        ) from None
    return _of_data(_decoded(content, "the document"), "the document")


def _of_data(data: Any, where: str) -> Document:
    if not isinstance(data, Mapping):
        raise DocumentInvalid(f"{where}: expected an object with the key `openapi`")
    try:
        bounds.check_depth(data)
    except bounds.OutOfBounds as error:
        raise DocumentInvalid(f"{where}: {error}") from None
    return Document(data, where)


def _decoded(content: bytes, where: str) -> Any:
    if len(content) > MOST_BYTES:
        raise DocumentInvalid(f"{where}: it has more than the {MOST_BYTES:,} bytes allowed")
    try:
        if content.removeprefix(strict_json.BYTE_ORDER_MARK).lstrip()[:1] == b"{":
            return strict_json.read(content)
        bounds.text_of(content)
        return _yaml(content, where)
    except bounds.DocumentFault as error:
        raise DocumentInvalid(error.at(where)) from None


def _yaml(content: bytes, where: str) -> Any:
    if len(content) > YAML_BYTES:
        raise DocumentInvalid(f"{where}: YAML of more than {YAML_BYTES:,} bytes; convert it to JSON")
    try:
        return decode_yaml(content)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"{where}: not YAML that can be used: {error}") from None
