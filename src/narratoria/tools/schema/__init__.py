"""Arguments: their JSON Schema, and their strict parsing.

A tool's parameters are a dataclass, a msgspec Struct, nothing at all, or a JSON Schema of their own. In each case
nothing is coerced, unknown keys are refused at every depth, and the error names each path.

`typed` has the way from a Python type, with `json_types` and `texts`; `supplied` the way from a JSON Schema, with
`drafts`, `references`, `unknown_keys` and `defaults`; `problems` the wording of errors; `dumping` the way back to JSON;
`tables` the way from a document that somebody wrote.
"""

from narratoria.tools.schema.dumping import dump, dump_json
from narratoria.tools.schema.supplied import parser_for_schema
from narratoria.tools.schema.typed import is_params_type, parser_for, schema_for

__all__ = ["dump", "dump_json", "is_params_type", "parser_for", "parser_for_schema", "schema_for"]
