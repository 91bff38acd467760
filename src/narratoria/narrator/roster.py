"""The list of narrators. A new one is a module with `make`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Each name with its module: `make(cast)` returns the narrator, and `missing(story, environment)` says what it lacks to
# speak in a story, or "", without loading anything.
NARRATORS: Final[Mapping[str, str]] = {
    "rules": "narratoria.narrator.rules",
    "paraphrase": "narratoria.narrator.paraphrase",
    "local": "narratoria.narrator.local",
    "llm": "narratoria.narrator.llm",
    "template": "narratoria.narrator.template",
}
RULES: Final = "rules"
BY_RULES: Final = (RULES, "paraphrase")  # those that speak by a story's rules
LAST_RESORT: Final = "template"
BY_TOOLS: Final = tuple(
    name for name in NARRATORS if name not in (*BY_RULES, LAST_RESORT)
)  # who need no rules
USUAL: Final = (RULES, LAST_RESORT)  # of a story that names none
