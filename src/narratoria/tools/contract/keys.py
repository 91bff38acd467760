"""JSON Schemas that the keys of preconditions and effects share."""

from __future__ import annotations

from typing import Final

from narratoria.events import JsonObject

TEXT: Final[JsonObject] = {"type": "string", "minLength": 1}
FLAG: Final[JsonObject] = {"type": "boolean"}
OBJECT: Final[JsonObject] = {"type": "object", "additionalProperties": True}
