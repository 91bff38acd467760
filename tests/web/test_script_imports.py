"""The page's scripts import what they call of each other: a name that a merge loses is a script error for players."""

from __future__ import annotations

import re
from pathlib import Path

import narratoria.web

SCRIPTS = {
    path.name: path.read_text("utf-8")
    for path in (Path(narratoria.web.__file__).parent / "static" / "js").glob("*.js")
}
EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"(?:import|const) \{([^}]*)\} (?:from|=)")


def test_every_function_of_another_script_is_imported_where_it_is_called() -> None:
    owners = {name: script for script, text in SCRIPTS.items() for name in EXPORTED.findall(text)}
    assert len(owners) > 100
    missing = []
    for script, text in SCRIPTS.items():
        imported = {name.strip() for names in IMPORTED.findall(text) for name in names.split(",")}
        code = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'", "", text, flags=re.DOTALL)
        for name in {*re.findall(r"(?<![\w.#$])(\w+)\(", code)} & owners.keys() - imported:
            own = (
                rf"function {name}\b|(?:const|let) {name} = (?:async )?(?:\(|\w+ =>)|^\s+{name}\([^)]*\) \{{"
            )
            if owners[name] != script and not re.search(own, code, re.MULTILINE):
                missing.append(f"{script} calls {name}() of {owners[name]} and does not import it")
    assert not missing, missing
