"""The package keeps its layers: a module imports only from its own layer and those below."""

import ast
import importlib.util
from pathlib import Path

import pytest

import narratoria

PACKAGE = Path(narratoria.__file__).parent
LAYERS = [
    {"bounds", "errors", "events", "state", "strict_json", "cores", "spelling"},
    {
        "retry", "deadline", "schema", "value_types", "context", "tool", "contract", "plan", "plan_problems",
        "references", "prose",
    },
    {"session", "registry"},
    {"executor", "handlers", "outcomes", "threads", "tools"},
    {"plan_executor", "trace"},
    {
        "prompt", "adapters", "narrator", "planning", "skills", "story", "turn", "game", "history", "resume", "lint",
        "compensation", "resource_undo", "undo_outcomes", "graph", "replay", "cassette", "conformance", "contracts",
        "offering",
        "factcheck", "lore", "evals",
    },
    {"web", "cli", "testing", "__main__"},
]  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path != PACKAGE / "__init__.py" and "stories" not in path.relative_to(PACKAGE).parts
)


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.Module):
    """Imports that happen at run time; those for the type checker alone do not count."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(id(child) for body in node.body for child in ast.walk(body))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "narratoria":
                yield from (f"narratoria.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_every_module_has_a_layer():
    unknown = {part_of(path) for path in MODULES} - LEVEL.keys()
    assert not unknown, (
        f"say in tests/test_layers.py and in narratoria/__init__.py where these belong: {unknown}"
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path):
    own = LEVEL[part_of(path)]
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] != "narratoria" or len(parts) == 1 or parts[1] == "__version__":
            continue
        assert LEVEL[parts[1]] <= own, f"{path.name} imports {name}, which is above it"


READS_ENGLISH = (
    "narrator.english",
    "narrator.rules",
    "narrator.paraphrase",
    "narrator.local",
    "factcheck",
    "lore",
)


@pytest.mark.parametrize("name", ["turn", "offering", "executor", "plan_executor", "session"])
def test_the_core_imports_nothing_that_reads_english(name):
    waiting, found = [f"narratoria.{name}"], set()
    while waiting:
        module = waiting.pop()
        place = PACKAGE.joinpath(*module.split(".")[1:])
        path = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if module in found or module == "narratoria" or not path.is_file():
            continue
        found.add(module)
        waiting += [
            one for one in imports(ast.parse(path.read_text(encoding="utf-8"))) if "narratoria" in one
        ]
    reached = {one for one in found if one.removeprefix("narratoria.").startswith(READS_ENGLISH)}
    assert not reached, f"{name} leads to {sorted(reached)}"


def test_the_public_names_are_what_they_were():
    expected = """
        Branch CallResult ExecutionResult NarratoriaError PlanDocument PlanExecutor PlanRejected
        PlannedCall RetryPolicies RetryPolicy Session Tool ToolContext ToolError ToolExample
        ToolExecutor ToolRegistry ToolResult TurnResult __version__ conditional function_tool parallel
        process_tool sequence take_turn tool
    """
    assert sorted(narratoria.__all__) == sorted(expected.split())
    for name in narratoria.__all__:
        assert getattr(narratoria, name) is not None


def test_the_installed_package_carries_its_data():
    assert importlib.util.find_spec("narratoria.web") is not None
    for needed in ("py.typed", "cli/templates", "web/static"):
        assert (PACKAGE / needed).exists(), needed
