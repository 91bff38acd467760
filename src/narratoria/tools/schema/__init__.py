"""Arguments: their JSON Schema, and their strict parsing.

A tool's parameters are a dataclass, a msgspec Struct, a pydantic model, nothing at all, or a JSON Schema of their own.
In each case nothing is coerced, unknown keys are refused at every depth, and the error names each path.

`typed` has the way from a Python type, with `typed_schema`, `json_types` and `text_formats`, and with `translation`,
`stand_ins` and `constraints` for types that msgspec does not know; `schema_parser` the way from a JSON Schema, with
`drafts`, `references`, `unknown_keys` and `defaults`; `problems` the wording of errors; `dumping` the way back to JSON;
`copying` the copies that a handler may change;
`tables` the way from a document that somebody wrote.
"""

from narratoria.tools.schema.constraints import with_default_of
from narratoria.tools.schema.dumping import dump, dump_finite, dump_json
from narratoria.tools.schema.schema_parser import parser_for_schema
from narratoria.tools.schema.typed import parser_for
from narratoria.tools.schema.typed_schema import is_params_type, schema_for

__all__ = [
    "dump",
    "dump_finite",
    "dump_json",
    "is_params_type",
    "parser_for",
    "parser_for_schema",
    "schema_for",
    "with_default_of",
]
