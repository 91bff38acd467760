"""Names of other people's servers and tools, mapped to ours.

`GitHub` and `getUser` become `github` and `getuser`: small letters, and `_` for each character that our names do not
have. A name that is too long, or that two tools would share, ends in eight digits of the hash of the original, so the
mapping is the same on every machine and in every order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

LONGEST: Final = 64
_DIGITS: Final = 8
_FOREIGN: Final = re.compile(r"[^a-z0-9_-]")


def our_name(original: str) -> str:
    """Return the name that a server or a tool of this name has here."""
    name = _FOREIGN.sub("_", original.lower())
    return name if 1 <= len(name) <= LONGEST else with_digits(original)


def with_digits(original: str) -> str:
    """Return the name with digits of its hash."""
    name = _FOREIGN.sub("_", original.lower())[: LONGEST - _DIGITS - 1]
    return f"{name}_{hashlib.sha256(original.encode()).hexdigest()[:_DIGITS]}"


def our_names(originals: Sequence[str]) -> dict[str, str]:
    """Return original → ours. Of names that collide, the one that needed no change keeps its name."""
    wanted = {original: our_name(original) for original in originals}
    shared = Counter(wanted.values())
    return {
        original: name if shared[name] == 1 or name == original else with_digits(original)
        for original, name in wanted.items()
    }
