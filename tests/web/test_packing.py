"""The modules of the page become two scripts that mean the same."""

from __future__ import annotations

import pytest

from conftest import RunningServer
from narratoria.web.packing import pack_modules
from narratoria.web.static_files import ROOT


def test_what_is_imported_comes_first_and_once() -> None:
    sources = {
        "main.js": 'import { a } from "./a.js";\nimport { b } from "./b.js";\na(b);\n',
        "a.js": 'import { b } from "./b.js";\nexport function a(x) { return x + b; }\n',
        "b.js": "const secret = 1;\nexport const b = secret;\n",
    }
    packed, later = pack_modules(sources, "main.js", "/later.js")
    assert later == ""
    assert [line for line in packed.split("\n") if line.startswith("modules")] == [
        'modules["b.js"] = (() => {',
        'modules["a.js"] = (() => {',
        'modules["main.js"] = (() => {',
    ]
    assert 'const { b } = modules["b.js"];' in packed
    assert "return { a };" in packed
    assert "import" not in packed
    assert "export" not in packed


def test_modules_in_a_circle_are_refused() -> None:
    sources = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}
    with pytest.raises(ValueError, match=r"a\.js → b\.js → a\.js"):
        pack_modules(sources, "a.js", "/later.js")


@pytest.mark.parametrize(
    "line", ['import * as x from "./b.js";', "export default 3;", 'export { a } from "./b.js";']
)
def test_what_is_not_understood_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"a\.js: .* is not understood"):
        pack_modules({"a.js": line, "b.js": ""}, "a.js", "/later.js")


def test_what_is_asked_for_later_is_apart_and_shares_what_is_there() -> None:
    sources = {
        "main.js": 'import { b } from "./b.js";\nconst more = () => import("./later.js");\n',
        "later.js": 'import { b } from "./b.js";\nimport { c } from "./c.js";\nexport const d = b + c;\n',
        "b.js": "export const b = 1;\n",
        "c.js": "export const c = 2;\n",
    }
    first, later = pack_modules(sources, "main.js", "/static/later.js")
    assert 'import("/static/later.js").then(() => modules["later.js"])' in first
    assert 'modules["c.js"] =' not in first
    assert [line for line in later.split("\n") if line.startswith("modules")] == [
        'modules["c.js"] = (() => {',
        'modules["later.js"] = (() => {',
    ]


def test_every_module_of_the_page_is_in_one_of_its_scripts(server: RunningServer) -> None:
    with server.client() as client:
        first, later = client.get("/").text, client.get("/static/later.js").text
    for path in (ROOT / "js").glob("*.js"):
        found = [f'modules["{path.name}"] = ' in script for script in (first, later)]
        assert sum(found) == (path.name != "early.js"), path.name
