"""The page's modules packed into two scripts: one to show and play a story, and one loaded later.

Thirty requests of a first visit cost more than all the code in them. Our modules are few and plain, so this reads
only what they use: `import { a, b } from "./x.js";`, `import("./later.js")` for later modules, and `export` before a
declaration or a list of names. Anything else is refused when the server starts. Comments that have lines of their own
and indents are left out. Each script brings the words of the interface that its modules name, in one language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from narratoria.web.catalogues import Catalogue

_IMPORT: Final = re.compile(r'^import \{ ([\w$, ]+) \} from "\./([\w.]+)";$', re.MULTILINE)
LATER: Final = "later.js"
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const) ([\w$]+))", re.MULTILINE)
_EXPORT_LIST: Final = re.compile(r"^export \{ ([\w$, ]+) \};$", re.MULTILINE)
_SAID: Final = re.compile(r'\b(?:t|parts)\("([^"]+)"')
_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/[ \t]*|//[^\n]*)$\n?", re.MULTILINE)
_INDENT: Final = re.compile(r"^[ \t]+", re.MULTILINE)
_OTHER: Final = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


class Packed(NamedTuple):
    """The two classic scripts, which share one scope; `later` needs the definitions of `first`."""

    first: str
    later: str


def pack_modules(
    sources: Mapping[str, str],
    entry: str,
    later_at: str,
    catalogue: Catalogue | None = None,
    names: Mapping[str, str] | None = None,
    notices: Sequence[tuple[str, str]] = (),
) -> Packed:
    """Pack the module `entry` with its imports, and the modules it imports only when it needs them, loaded from
    `later_at`. Their words are those of `catalogue`; `names` are the languages there are, for the later modules, and
    `notices` what the server writes in English, with what that is in this language.
    """
    first: dict[str, str] = {}
    _pack(entry, sources, first, ())
    everything = dict(first)
    if LATER in sources:
        _pack(LATER, sources, everything, ())
    later = "".join(script for name, script in everything.items() if name not in first)
    said: set[str] = set(keys_of("".join(first.values())))
    words, more = (
        _words(catalogue, said, "$said", notices),
        _words(catalogue, set(keys_of(later)) - said, "$languages", names),
    )
    script = "".join(first.values()).replace(
        f'import("./{LATER}")', f'import("{later_at}").then(() => modules["{LATER}"])'
    )
    # Not a module itself: those wait until the empty page has been laid out and painted.
    start = f"Object.assign(modules.words, {more});\n" if more != "{}" else ""
    return Packed(f'"use strict";\nconst modules = {{ words: {words} }};\n{script}', start + later)


def keys_of(script: str) -> list[str]:
    """Return the keys of the words that a script says."""
    return _SAID.findall(script)


def _words(catalogue: Catalogue | None, keys: set[str], name: str, more: object) -> str:
    found: dict[str, object] = dict(catalogue.of(keys)) if catalogue else {}
    if more:
        found[name] = more
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _pack(name: str, sources: Mapping[str, str], packed: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"modules import each other in a circle: {' → '.join((*importers, name))}")
    if name in packed:
        return
    source = _INDENT.sub("", _COMMENT.sub("", sources[name]))
    for _, imported in _IMPORT.findall(source):
        _pack(imported, sources, packed, (*importers, name))
    names = _EXPORT.findall(source)
    for listed in _EXPORT_LIST.findall(source):
        names += listed.split(", ")
    body = _IMPORT.sub(r'const { \1 } = modules["\2"];', source)
    body = _EXPORT_LIST.sub("", _EXPORT.sub("", body))
    strange = _OTHER.search(body)
    if strange:
        raise ValueError(f"{name}: {strange[0]!r} is not understood here; write it as the other modules do")
    packed[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();\n'
