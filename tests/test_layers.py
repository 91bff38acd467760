"""The rooms keep their order: a module imports only from its own room and from those below it."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import narratoria

PACKAGE = Path(narratoria.__file__).parent
ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("draw_rooms", ROOT / "scripts" / "draw_rooms.py")
draw_rooms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(draw_rooms)

ORDER = {room: place for place, room in enumerate(draw_rooms.ROOMS)}
MODULES = dict(draw_rooms.modules(PACKAGE))


def parsed(name: str) -> ast.Module:
    return draw_rooms.parsed(MODULES[name])


@cache
def imports(name: str) -> set[str]:
    """The modules of ours that a module imports when it runs, each by the longest name that is a module."""
    found = set()
    for target in draw_rooms.imports(parsed(name)):
        while target not in MODULES and target.count(".") > 1:
            target = target.rpartition(".")[0]
        if target in MODULES:
            found.add(target)
    return found - {name}


def test_every_module_has_a_room():
    strangers = {draw_rooms.room_of(name) for name in MODULES} - ORDER.keys()
    assert not strangers, (
        f"say in scripts/draw_rooms.py and in narratoria/__init__.py where these belong: {strangers}"
    )


def test_the_package_names_its_rooms_in_their_order():
    listed = narratoria.__doc__.partition("in this list:")[2].partition("docs/architecture.md")[0]
    heads = [line.partition("  ")[0] for line in listed.splitlines()]  # the names, before the first gap
    assert [name.strip() for head in heads for name in head.split(",") if name] == [*ORDER]


def upward_imports() -> Iterator[str]:
    for name in MODULES:
        room = draw_rooms.room_of(name)
        for target in imports(name):
            below = draw_rooms.room_of(target)
            if ORDER[below] > ORDER[room]:
                yield f"{name} imports {target}, whose room is above its own"
            if room == below:
                own, other = draw_rooms.floor_of(name), draw_rooms.floor_of(target)
                if own is not None and other is not None and other > own:
                    yield f"{name} imports {target}, which is above it"


def test_imports_go_downwards():
    assert [*upward_imports()] == []


def test_every_module_of_a_room_with_floors_has_one():
    for name in MODULES:
        draw_rooms.floor_of(name)  # raises, and says where to put it


def test_every_name_among_the_floors_is_a_module_once():
    for room, floors in draw_rooms.FLOORS.items():
        listed = [unit for units in floors.values() for unit in units.split()]
        assert len(listed) == len({*listed})
        assert {f"narratoria.{room}.{unit}" for unit in listed} <= MODULES.keys()


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: imports(name) for name in MODULES}
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            circle = [*path[path.index(name) :], name]
            packages = {one for one in circle if MODULES[one].name == "__init__.py"}
            assert packages, f"modules import each other: {' -> '.join(circle)}"
            return
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, [*path, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])


def test_no_two_modules_share_a_name():
    seen: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            seen.setdefault(path.stem, []).append(name)
    assert {stem: names for stem, names in seen.items() if len(names) > 1 and stem != "__main__"} == {}


# Private names of others that are read all the same, each in one place that says why.
PRIVATE = {
    ("narratoria.kinds.environment", "_data"),  # of os.environ: a fifth of the cost of a launch
    (
        "narratoria.kinds.process.ending",
        "_exit",
    ),  # os._exit: an orderly exit waits for the thread that is stuck
    # An interpreter that is not taken apart at the exit of a fork still has to do what it would do before.
    ("narratoria.kinds.process.fork_server", "_exit"),
    ("narratoria.kinds.process.fork_server", "_run_exitfuncs"),
    ("narratoria.kinds.process.fork_server", "_shutdown"),
    (
        "narratoria.kinds.process.guardian",
        "_exit",
    ),  # os._exit: a child after fork must not run its parent's handlers
    ("narratoria.mcp_server.client_connection", "_connection"),  # the SDK has no public way
    ("narratoria.store.portable", "_Hash"),  # the type of hashlib's objects, for the type checker only
}


def made_by(tree: ast.AST) -> set[str]:
    """The names that a class makes: its methods, its fields, and attributes of `self`."""
    made = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Attribute) and is_itself(node.value):
            made.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr"):
            made.update(one.value for one in node.args[1:2] if isinstance(one, ast.Constant))
    return made


def is_itself(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_reads(tree: ast.Module) -> set[str]:
    """Private names that are read of another module or of an object of another class.

    A table of a class's own methods behind it (`Fold._plan`) is part of the class; `_replace` and `_fields` are of
    named tuples.
    """
    classes = {one.name: made_by(one) for one in tree.body if isinstance(one, ast.ClassDef)}

    def visit(node: ast.AST, own: set[str]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom):
                yield from (one.name for one in child.names)
            elif isinstance(child, ast.Call) and ast.unparse(child.func) in ("getattr", "setattr", "hasattr"):
                read = {one.value for one in child.args[1:2] if isinstance(one, ast.Constant)}
                yield from set() if is_itself(child.args[0]) else read - own
            elif isinstance(child, ast.Attribute) and not is_itself(child.value):
                known = classes.get(child.value.id, own) if isinstance(child.value, ast.Name) else own
                yield from {child.attr} - known
            yield from visit(child, own | made_by(child) if isinstance(child, ast.ClassDef) else own)

    found = visit(tree, {"_replace", "_fields"})
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def test_a_read_of_a_private_attribute_is_told_by_class():
    source = "class A:\n  def __init__(self): self._a = 1\nclass B:\n  def b(self, a): return a._a"
    assert private_reads(ast.parse(source)) == {"_a"}
    assert private_reads(ast.parse("class A:\n  _a = 1\n  def b(self, other): return other._a")) == set()


def test_nothing_reads_a_private_attribute_of_another_object():
    found = {(name, one) for name in MODULES for one in private_reads(parsed(name))}
    assert found - PRIVATE == set()


def test_every_room_says_what_it_is_in_a_line():
    for name in MODULES:
        first = (ast.get_docstring(parsed(name)) or "").partition("\n")[0]
        assert len(first) > 10, f"{name} has no docstring"


def test_the_picture_of_the_rooms_is_drawn_from_the_imports():
    page = ROOT / "docs" / "architecture.md"
    text = page.read_text(encoding="utf-8")
    assert draw_rooms.page_with(text, draw_rooms.drawing(PACKAGE)) == text, (
        "run: python scripts/draw_rooms.py"
    )


NARRATION = ("narrator", "factcheck", "lore", "evals", "play.casting", "play.recollection")
MOST_LINES = 11_695  # of them together; the aim is 11,500, and this may only shrink


def test_the_narrators_and_what_came_from_them_grow_no_further():
    rooms = tuple(f"narratoria.{room}" for room in NARRATION)
    counted = {
        name: path.read_text(encoding="utf-8").count("\n")
        for name, path in MODULES.items()
        if name.startswith(rooms)
    }
    assert sum(counted.values()) <= MOST_LINES, "take out what no set of evals/ pays for"


READS_ENGLISH = tuple(
    f"narratoria.{room}"
    for room in (
        "narrator.english",
        "narrator.rules",
        "narrator.paraphrase",
        "narrator.local",
        "narrator.template",
        "factcheck",
        "lore",
    )
)
CORE = [name for name in MODULES if draw_rooms.room_of(name) in ("tools", "session", "kinds", "run", "store")]


def led_to(name: str) -> set[str]:
    """The modules that are imported with a module."""
    waiting, found = [name], set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports(module)
    return found


def test_the_core_leads_to_nothing_that_reads_english():
    core = ["narratoria.play.turn", "narratoria.play.offering", *CORE]
    reached = {name: {one for one in led_to(name) if one.startswith(READS_ENGLISH)} for name in core}
    assert {name: found for name, found in reached.items() if found} == {}


@pytest.mark.parametrize("statement", ["import narratoria", "import narratoria; narratoria.__version__"])
def test_importing_the_package_loads_none_of_its_rooms(statement):
    show = f"import sys; {statement}; print(*(m for m in sys.modules if m.startswith('narratoria')))"
    loaded = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == ["narratoria"]


def test_a_call_loads_no_narrator():
    show = (
        "import sys; from narratoria import Session, ToolRegistry, process_tool, tool; "
        "print(*(m for m in sys.modules if m.startswith(('narratoria.narrator', 'narratoria.web', 'numpy'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_the_public_names_are_what_they_were():
    expected = """
        ApprovalAnswer ApprovalRequest Around Branch CallResult ExecutionResult McpServers mcp_tools NarratoriaError
        OpenApiTools openapi_tools
        PlanDocument PlanExecutor PlanRejected
        PlannedCall Proceed RetryPolicies RetryPolicy Session Tool ToolCall ToolContext ToolError ToolExample
        ToolExecutor ToolRegistry ToolResult TurnResult __version__ conditional function_tool parallel
        process_tool run_sync sequence take_turn take_turn_sync tool
    """
    assert sorted(narratoria.__all__) == sorted(expected.split())
    for name in narratoria.__all__:
        assert getattr(narratoria, name) is not None


def test_the_installed_package_carries_its_data():
    assert importlib.util.find_spec("narratoria.web") is not None
    for needed in ("py.typed", "cli/templates", "web/static"):
        assert (PACKAGE / needed).exists(), needed


def test_the_way_of_a_prompt_names_modules_and_functions_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    way = text.partition("## The way of a prompt")[2].partition("\n## ")[0]
    files = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    files |= {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.js")}
    named = re.findall(r"`([\w/]+\.(?:py|js))`", way)
    assert len(named) > 30
    assert [one for one in named if not any(f"/{file}".endswith(f"/{one}") for file in files)] == []
    source = "\n".join(path.read_text(encoding="utf-8") for path in MODULES.values())
    called = re.findall(r"`([A-Z]\w+)\.(\w+)`|`(_\w+)`", way)
    missing = [one for one in called if f"def {one[1] or one[2]}(" not in source]
    assert missing == []
