"""The operations of a document: parameters, body, address and security, and one JSON Schema for the arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from narratoria.kinds.openapi.document import Document, DocumentInvalid
from narratoria.kinds.openapi.request_schema import RequestSchemas, is_binary
from narratoria.kinds.openapi.styles import DEFAULT_STYLES

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
READING: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
IDEMPOTENT: Final = READING | {"PUT", "DELETE"}  # RFC 9110, 9.2.2
MOST_OPERATIONS: Final = 5_000
_IGNORED_HEADERS: Final = frozenset(("accept", "content-type", "authorization"))  # as OpenAPI 3.x says
_CONNECTION_HEADERS: Final = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "keep-alive",
    )
)  # an argument could send a request, with its secrets, elsewhere
Alternatives = list[dict[str, Any]]


@dataclass(frozen=True)
class Parameter:
    """One parameter; `argument` is its key among the arguments of the tool."""

    name: str
    place: str
    argument: str
    style: str
    explode: bool
    reserved: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Body:
    """The body of a request, as one of the media types that the document offers."""

    argument: str
    media_type: str
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One operation, ready to become a tool."""

    name: str
    """The `operationId`; without one, or where two share it, made of method and path."""
    method: str
    path: str
    description: str
    title: str | None
    parameters: tuple[Parameter, ...]
    body: Body | None
    schema: Mapping[str, Any]
    security: Alternatives
    server: str | None
    """The address that the document gives it; None without any."""
    has_own_server: bool
    accept: str


def operations_of(
    document: Document, notes: list[str], only: Collection[str] | None = None
) -> Iterator[Operation]:
    """Yield the operations of a document. One that cannot be read is a note, and hides no other."""
    paths = document.data.get("paths", {})
    if not isinstance(paths, Mapping):
        raise DocumentInvalid(f"{document.where}: paths: expected an object")
    found: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = []
    for path, item in paths.items():
        if path.startswith("x-"):
            continue
        try:
            shared = document.resolved(item, path)
        except DocumentInvalid as error:
            notes.append(str(error))
            continue
        for method in METHODS:
            if isinstance(operation := shared.get(method), Mapping):
                found.append((path, method, operation, shared))
            elif method in shared:
                notes.append(f"{method.upper()} {path}: left out: expected an object that describes it")
    if len(found) > MOST_OPERATIONS:
        raise DocumentInvalid(
            f"{document.where}: {len(found)} operations, more than {MOST_OPERATIONS}; name some with `only`"
        )
    ids = Counter(one.get("operationId") for _, _, one, _ in found)
    for path, method, operation, shared in found:
        name = operation.get("operationId")
        if not isinstance(name, str) or not name.strip():
            name = _plain(method, path)
        elif ids[name] > 1:
            name = f"{name}_{_plain(method, path)}"
        if only is not None and name not in only:
            continue
        try:
            yield _Reader(document, name, method, path, operation, shared).read()
        except DocumentInvalid as error:
            notes.append(f"{name}: left out: {error}")


def _plain(method: str, path: str) -> str:
    """`get`, `/pets/{petId}` → `get_pets_petId`."""
    return "_".join([method, *path.replace("{", "").replace("}", "").strip("/").split("/")]).rstrip("_")


class _Reader:
    """Reads one operation."""

    def __init__(
        self,
        document: Document,
        name: str,
        method: str,
        path: str,
        operation: Mapping[str, Any],
        shared: Mapping[str, Any],
    ) -> None:
        self.document, self.name, self.method, self.path = document, name, method, path
        self.operation, self.shared = operation, shared
        self.where = f"{method.upper()} {path}"
        self.schemas = RequestSchemas(document)
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []

    def read(self) -> Operation:
        operation = self.operation
        parameters = [self._parameter(one) for one in self._declared()]
        in_path = {one.name for one in parameters if one.place == "path"}
        for piece in self.path.split("{")[1:]:
            if (name := piece.partition("}")[0]) not in in_path:  # often forgotten, and always needed
                parameters.append(self._parameter({"name": name, "in": "path", "schema": {"type": "string"}}))
        body = self._body({one.argument for one in parameters})
        title = operation.get("summary")
        return Operation(
            self.name,
            self.method.upper(),
            self.path,
            self._description(),
            title.strip()[:200] if isinstance(title, str) and title.strip() else None,
            tuple(parameters),
            body,
            self._schema(),
            self._security(),
            self.document.server_of(operation, self.shared),
            bool(operation.get("servers") or self.shared.get("servers")),
            self._accept(),
        )

    def _declared(self) -> list[Mapping[str, Any]]:
        """The parameters of the path and of the operation; of the same name and place, the operation's counts."""
        found: dict[tuple[Any, Any], Mapping[str, Any]] = {}
        for level in (self.shared, self.operation):
            listed = level.get("parameters", [])
            if not isinstance(listed, list):
                raise DocumentInvalid(f"{self.document.where}: {self.where}: parameters: expected an array")
            for one in listed:
                parameter = self.document.resolved(one, f"{self.where}: parameters")
                found[parameter.get("name"), parameter.get("in")] = parameter
        kept = []
        for (name, place), parameter in found.items():
            if not isinstance(name, str) or place not in DEFAULT_STYLES:
                raise DocumentInvalid(
                    f"{self.document.where}: {self.where}: a parameter without name or place"
                )
            if place != "header" or name.lower() not in _IGNORED_HEADERS | _CONNECTION_HEADERS:
                kept.append(parameter)
        return sorted(kept, key=lambda one: [*DEFAULT_STYLES].index(one["in"]))

    def _parameter(self, data: Mapping[str, Any]) -> Parameter:
        name, place = str(data["name"]), str(data["in"])
        argument = name if name not in self.properties else f"{place}_{name}"
        style = data.get("style") if isinstance(data.get("style"), str) else DEFAULT_STYLES[place]
        explode = data.get("explode")
        content = data.get("content")
        as_json = isinstance(content, Mapping) and bool(content)
        schema = next(iter(content.values()), {}) if isinstance(content, Mapping) else data
        schema = schema.get("schema", {}) if isinstance(schema, Mapping) else {}
        self._add(argument, schema, data, required=data.get("required") is True or place == "path")
        return Parameter(
            name,
            place,
            argument,
            str(style),
            explode if isinstance(explode, bool) else style in ("form", "deepObject"),
            data.get("allowReserved") is True,
            as_json,
        )

    def _add(self, argument: str, schema: Any, data: Mapping[str, Any], *, required: bool) -> None:
        made = self.schemas.convert(schema, f"{self.where}: {argument}")
        said = data.get("description")
        if isinstance(said, str) and said.strip():
            made = {} if isinstance(made, bool) else made
            inner = made.get("description", "")
            told = f" {inner}" if "(The server's default" in inner and "$ref" not in made else ""
            made = {**made, "description": said.strip() + told}
        self.properties[argument] = made
        if required:
            self.required.append(argument)

    def _body(self, taken: set[str]) -> Body | None:
        if "requestBody" not in self.operation:
            return None
        if self.document.is_3_0 and self.method in ("get", "head", "trace"):
            return None  # 3.0: it is ignored where HTTP gives it no meaning
        body = self.document.resolved(self.operation["requestBody"], f"{self.where}: requestBody")
        content = body.get("content")
        if not isinstance(content, Mapping) or not content:
            return None
        media_type = min(content, key=_preference)
        chosen = content[media_type] if isinstance(content[media_type], Mapping) else {}
        argument = "body" if "body" not in taken else "request_body"
        schema = self._body_schema(media_type, chosen.get("schema", {}))
        self._add(argument, schema, body, required=body.get("required") is True)
        encodings = chosen.get("encoding")
        return Body(
            argument,
            "application/json" if media_type == "*/*" else media_type,
            encodings if isinstance(encodings, Mapping) else {},
        )

    def _body_schema(self, media_type: str, schema: Any) -> Any:
        if is_json(media_type) or is_form(media_type):
            return schema
        if media_type.startswith("text/") or media_type.endswith(("xml", "yaml")):
            return {"type": "string"}
        plain = isinstance(schema, Mapping) and schema.get("type") == "string" and not is_binary(schema)
        return schema if plain else {"type": "string", "format": "binary"}

    def _schema(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "type": "object",
            "properties": self.properties,
            "additionalProperties": False,
        }
        if self.required:
            made["required"] = self.required
        if self.schemas.definitions:
            made["$defs"] = self.schemas.definitions
        return made

    def _description(self) -> str:
        texts = [self.operation.get("summary"), self.operation.get("description")]
        said = [one.strip() for one in texts if isinstance(one, str) and one.strip()]
        if len(said) == 2 and said[1].startswith(said[0].rstrip(".")):
            said = said[1:]
        deprecated = "Deprecated. " if self.operation.get("deprecated") is True else ""
        return deprecated + ("\n\n".join(said) or f"{self.where} of {self.document.title}.")

    def _security(self) -> Alternatives:
        listed = self.operation.get("security", self.document.data.get("security"))
        return [dict(one) for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []

    def _accept(self) -> str:
        """The media types of answers that are no errors, and at last any."""
        responses, types = self.operation.get("responses"), dict[str, None]()
        for status, response in responses.items() if isinstance(responses, Mapping) else ():
            if str(status).startswith("2"):
                content = self.document.resolved(response, f"{self.where}: responses").get("content")
                types.update(dict.fromkeys(content if isinstance(content, Mapping) else ()))
        listed = sorted((one for one in types if one.isascii() and "," not in one), key=_preference)[:10]
        return ", ".join(
            [
                *(one for one in listed if one != "*/*"),
                "*/*;q=0.1" if listed else "application/json, */*;q=0.1",
            ]
        )


def is_json(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind in ("application/json", "*/*", "text/json") or kind.endswith("+json")


def is_form(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() in (FORM, MULTIPART)


FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


def _preference(media_type: str) -> int:
    """The order in which media types are chosen, the first best."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return 0
    if is_json(kind):
        return 1
    return {MULTIPART: 2, FORM: 3}.get(kind, 5 if kind.startswith("text/") else 4)
