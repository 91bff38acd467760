"""The modules of the page become one script that means the same."""

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
    packed = pack_modules(sources, "main.js")
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
        pack_modules(sources, "a.js")


@pytest.mark.parametrize(
    "line", ['import * as x from "./b.js";', "export default 3;", 'export { a } from "./b.js";']
)
def test_what_is_not_understood_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"a\.js: .* is not understood"):
        pack_modules({"a.js": line, "b.js": ""}, "a.js")


def test_every_module_of_the_page_is_in_the_document(server: RunningServer) -> None:
    with server.client() as client:
        script = client.get("/").text
    for path in (ROOT / "js").glob("*.js"):
        assert (f'modules["{path.name}"] = ' in script) == (path.name != "early.js"), path.name
