"""Text forms of values in JSON: their patterns, and the words for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DATE: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?"

DURATION: Final = "^P([0-9]{1,8}D)?(T([0-9]{1,8}H)?([0-9]{1,8}M)?([0-9]{1,8}S)?)?$"
DECIMAL: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
LOCAL_DATE_TIME: Final = f"^{_DATE}T{_CLOCK}$"
LOCAL_TIME: Final = f"^{_CLOCK}$"
INT_KEY: Final = "^(0|-?[1-9][0-9]*)$"
NATURAL_KEY: Final = "^(0|[1-9][0-9]*)$"
POSITIVE_KEY: Final = "^[1-9][0-9]*$"

# Words for a pattern or a format, with an example.
WORDS: Final[Mapping[str, str]] = {
    DURATION: "a duration in days to whole seconds (P1DT2H30M)",
    DECIMAL: 'a decimal as text ("12.50")',
    BASE64: "base64 text",
    LOCAL_DATE_TIME: "a date-time without an offset (2026-03-01T12:00:00)",
    LOCAL_TIME: "a time without an offset (12:00:00)",
    INT_KEY: "a whole number as text",
    NATURAL_KEY: "a whole number from 0 on as text",
    POSITIVE_KEY: "a whole number from 1 on as text",
    "date-time": "a date-time with an offset (2026-03-01T12:00:00Z)",
    "time": "a time with an offset (12:00:00Z)",
    "date": "a date (2026-03-01)",
    "duration": "a duration (P1DT2H30M)",
}
