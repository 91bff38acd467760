"""A stand-in for an output that JSON cannot carry."""

from __future__ import annotations

from typing import Any


class NotJson(dict[str, Any]):
    """Stands for a value that JSON cannot carry: `{"notJson": type}`.

    A tool may hand the next one a thing that lives in this program alone, such as an open page. Its call has
    succeeded and is not failed for the journal's sake; the journal says what it could not keep.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(notJson=type(value).__qualname__)

    @property
    def explanation(self) -> str:
        return (
            f"it returned {self['notJson']}, which is not JSON data, so the journal has only its name; "
            f"return a dataclass or plain data if a replay, a plan or a model is to see it"
        )
