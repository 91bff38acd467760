"""Schemas of OpenAPI as JSON Schema 2020-12, for what is sent: references become `$defs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from narratoria.kinds.openapi.document import Document, DocumentInvalid, pointer_steps

MOST_DEFINITIONS: Final = 2_000  # of one operation
_SCHEMAS: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_ONE: Final = frozenset(
    ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else",
     "unevaluatedItems", "unevaluatedProperties", "contentSchema")
)  # fmt: skip
_DROPPED: Final = frozenset(
    ("nullable", "discriminator", "xml", "externalDocs", "example", "default", "readOnly", "writeOnly", "$id",
     "$schema", "$comment")
)  # fmt: skip
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
BINARY: Final[Mapping[str, Any]] = {
    "description": 'A file: a text is sent as it is; bytes are {"base64": "…"}.',
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "base64": {"type": "string"},
                "filename": {"type": "string"},
                "mediaType": {"type": "string"},
            },
            "required": ["base64"],
            "additionalProperties": False,
        },
    ],
}


def is_binary(schema: Mapping[str, Any]) -> bool:
    """Tell if a schema means bytes: 3.0 says `format: binary`, 3.1 a media type without an encoding."""
    return schema.get("format") == "binary" or (
        "contentMediaType" in schema and "contentEncoding" not in schema and schema.get("type") == "string"
    )


class RequestSchemas:
    """Converts the schemas of one operation, and collects the definitions that they refer to."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}

    def convert(self, schema: Any, where: str) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise DocumentInvalid(f"{self.document.where}: {where}: expected a schema")
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(schema, reference, where)
        if is_binary(schema):
            return dict(BINARY)
        made = {key: self._part(key, value, where) for key, value in schema.items() if self._stays(key)}
        self._tell_default(schema, made)
        self._leave_out_read_only(schema, made, where)
        if "example" in schema and "examples" not in made:
            made["examples"] = [schema["example"]]
        return self._from_3_0(schema, made) if self.document.is_3_0 else made

    def _stays(self, key: str) -> bool:
        return key not in _DROPPED and not key.startswith("x-")

    def _part(self, key: str, value: Any, where: str) -> Any:
        here = f"{where}/{key}"
        if key in _SCHEMAS and isinstance(value, Mapping):
            return {name: self.convert(one, f"{here}/{name}") for name, one in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self.convert(one, f"{here}/{index}") for index, one in enumerate(value)]
        if key in _ONE:
            return self.convert(value, here)
        return value

    def _referred(self, schema: Mapping[str, Any], reference: str, where: str) -> dict[str, Any]:
        target = self.document.at(reference, where)
        if isinstance(target, Mapping) and is_binary(target):
            return dict(BINARY)
        name = self._names.get(reference)
        if name is None:
            if len(self._names) >= MOST_DEFINITIONS:
                raise DocumentInvalid(
                    f"{self.document.where}: {where}: more than {MOST_DEFINITIONS} definitions"
                )
            name = self._names[reference] = self._free_name(reference)
            self.definitions[name] = True  # it may refer to itself
            self.definitions[name] = self.convert(target, reference)
        made: dict[str, Any] = {"$ref": f"#/$defs/{name}"}
        if not self.document.is_3_0:  # 3.0: what stands beside a reference is ignored
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            beside = self.convert(rest, where) if rest else {}
            made.update({key: value for key, value in beside.items() if key != "$ref"})
        elif isinstance(schema.get("description"), str):
            made["description"] = schema["description"]
        return made

    def _free_name(self, reference: str) -> str:
        wanted = _UNSAFE.sub("_", [*pointer_steps(reference)][-1]) or "schema"
        name, number = wanted, 1
        while name in self.definitions:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _tell_default(self, schema: Mapping[str, Any], made: dict[str, Any]) -> None:
        """Say the default in words. Filled in, it would be sent, and a PATCH would set what nobody named."""
        if schema.get("default") is not None:
            said = made.get("description")
            before = f"{said.rstrip()} " if isinstance(said, str) and said.strip() else ""
            made["description"] = f"{before}(The server's default: {str(schema['default'])[:200]})"

    def _leave_out_read_only(self, schema: Mapping[str, Any], made: dict[str, Any], where: str) -> None:
        """Leave out what only answers have, also where it is required."""
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        hidden = {name for name, one in properties.items() if self._is_read_only(one, where)}
        if hidden:
            made["properties"] = {name: one for name, one in made["properties"].items() if name not in hidden}
            if isinstance(required := made.get("required"), list):
                made["required"] = [name for name in required if name not in hidden]

    def _is_read_only(self, schema: Any, where: str) -> bool:
        return isinstance(schema, Mapping) and schema.get("readOnly") is True

    def _from_3_0(self, schema: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(exclusive := made.get(bound), bool):
                del made[bound]
                if exclusive and limit in made:
                    made[bound] = made.pop(limit)
        if schema.get("nullable") is not True:
            return made
        if isinstance(kind := made.get("type"), str):
            # An enum without null stays without: 3.0.3, "Clarify Nullable".
            return {**made, "type": [kind, "null"]}
        if made.keys() & _LISTS:
            return {"anyOf": [made, {"type": "null"}]}
        return made
