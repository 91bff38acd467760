"""Names of tools as models call them: OpenAI-compatible servers take letters, digits, `_` and `-`, at most 64."""

from __future__ import annotations

import hashlib
from typing import Final

LONGEST: Final = 64


def function_name(name: str) -> str:
    """Return the name under which a model gets a tool: that of a server, `server.tool`, has no dot there."""
    spelled = name.replace(".", "__")
    if len(spelled) <= LONGEST:
        return spelled
    return f"{spelled[: LONGEST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
