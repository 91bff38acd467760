"""The environment of a tool: a short standard list, the names in its manifest, and the variables a person passes.

Nothing else is passed on: keys, tokens and addresses of databases are kept from a tool that did not ask for them.
Reading `os.environ` variable by variable would be a fifth of the cost of a launch; the list is cut out of it at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from narratoria.errors import ToolValidationError
from narratoria.kinds.process.marks import COOKIE

STANDARD: Final = {
    "programs and libraries": (
        "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV",
        "CONDA_PREFIX", "NODE_PATH", "PERL5LIB", "RUBYLIB", "GEM_HOME", "GEM_PATH", "JAVA_HOME",
    ),
    "the person": ("HOME", "USER", "LOGNAME", "SHELL"),
    "language and time": (
        "LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
        "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "TZ", "TZDIR",
    ),
    "folders": (
        "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS",
        "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    ),
    "certificates": ("SSL_CERT_DIR", "SSL_CERT_FILE"),
    "the terminal": ("TERM",),
    "tracing": ("TRACEPARENT", "TRACESTATE"),
}  # fmt: skip
"""The variables every tool gets, if they are set, by purpose. `docs/protocol.md` lists them."""

OURS: Final = ("TMPDIR", "TEMP", "TMP", COOKIE)
"""The variables the runtime sets for each call; nobody else can."""

_standard: Final = frozenset(name.encode() for names in STANDARD.values() for name in names)
_ENTRY: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:=([^\0]*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Named:
    """Variables beside the standard ones: names whose values are taken from our environment, and names given with
    values.
    """

    names: frozenset[bytes] = frozenset()
    values: Mapping[bytes, bytes] = field(default_factory=dict)


NOTHING: Final = Named()
_passed: list[Named] = []


def named(entries: Iterable[str], *, where: str = "env") -> Named:
    """Read entries `NAME` and `NAME=VALUE`; raise `ToolValidationError` for a bad entry or one of `OURS`."""
    names: set[bytes] = set()
    values: dict[bytes, bytes] = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ToolValidationError(f"{where}: {entry!r} is neither NAME nor NAME=VALUE")
        name, value = match.groups()
        if name in OURS:
            raise ToolValidationError(f"{where}: {name} is set by the runtime for each call; leave it out")
        key = name.encode()
        names.discard(key)
        values.pop(key, None)
        if value is None:
            names.add(key)
        else:
            values[key] = os.fsencode(value)
    return Named(frozenset(names), values) if names or values else NOTHING


def pass_on(entries: Iterable[str]) -> Callable[[], None]:
    """Give every tool of this process these variables too (`NAME` or `NAME=VALUE`), until the returned function is
    called.

    They take precedence over a manifest. `narratoria … --env` uses this.
    """
    given = named(entries, where="--env")
    unset = unset_of(given)
    if unset:
        raise ToolValidationError(
            f"--env: {', '.join(unset)} is not set here; set it first, or give its value: --env {unset[0]}=…"
        )
    _passed.append(given)

    def take_back() -> None:
        _passed[:] = [one for one in _passed if one is not given]

    return take_back


def standard() -> dict[bytes, bytes]:
    """Return the standard variables alone."""
    ours = _ours()
    return {name: ours[name] for name in _standard & ours.keys()}


def environment(asked: Named = NOTHING) -> dict[bytes, bytes]:
    """Return a tool's environment, without its temporary folder and our cookie."""
    env = standard()
    if _passed or asked is not NOTHING:
        env.update(given(asked))
    return env


def given(asked: Named = NOTHING) -> dict[bytes, bytes]:
    """Return the variables a tool gets beside the standard ones: those it asks for, and those a person passes."""
    env: dict[bytes, bytes] = {}
    ours = _ours()
    for one in (asked, *_passed):
        env.update({name: ours[name] for name in one.names & ours.keys()})
        env.update(one.values)
    return env


def unset_of(asked: Named) -> list[str]:
    """Return the names that have no value."""
    known = {name for one in _passed for name in one.values}
    return sorted(os.fsdecode(name) for name in asked.names - _ours().keys() - known)


def _ours() -> Mapping[bytes, bytes]:
    # On POSIX os.environ keeps encoded bytes and decodes each at every look; `os.environb` looks up as slowly.
    raw = getattr(os.environ, "_data", None)
    if os.name == "posix" and isinstance(raw, dict):
        return raw
    return {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
