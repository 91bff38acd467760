"""Writes the pages of the documentation site into build/site-src: docs/, the README, and a reference from the code.

`python scripts/make_site.py [FOLDER]`; `make docs` then builds the site with zensical, where a broken link is an error.
The reference of Python has every name that a module lists in its `__all__`, and every name that the documentation tells
a reader to import.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

import narratoria
from narratoria import spelling
from narratoria.cli import cli
from narratoria.run.graph import svg
from narratoria.run.plan import PlanDocument, PlannedCall

sys.path.insert(0, str(Path(__file__).parent))
from draw_rooms import ROOMS, ROOT, edges, reduced

REPOSITORY = "https://github.com/narratoria/narratoria/blob/main/"
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = {  # names that pages tell of in words
    "narratoria.telemetry": {"capture_content"},
    "narratoria.mcp_server.stdio_server": {"serve_stdio"},
    "narratoria.mcp_server.http_server": {"serve_http"},
}
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


# --- pages that exist ---------------------------------------------------------------------------------------------


def pages() -> Iterator[tuple[str, str]]:
    """Every written page by its place in the site."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        yield path.name, relinked(path.read_text(encoding="utf-8"), path.parent)
    for name, target in (("README", "index"), ("CHANGELOG", "changelog"), ("SECURITY", "security")):
        yield f"{target}.md", relinked((ROOT / f"{name}.md").read_text(encoding="utf-8"), ROOT)


def relinked(text: str, folder: Path) -> str:
    """The text with its links leading to pages of the site, or to the repository where there is none."""

    def target(match: re.Match[str]) -> str:
        place, hash_, part = match[1].partition("#")
        path = (folder / place).resolve()
        if path.parent == ROOT / "docs" and path.suffix in (".md", ".png"):
            return f"]({path.name}{hash_}{part})"
        inside = path.relative_to(ROOT).as_posix()
        moved = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}.get(
            inside
        )
        return f"]({moved or REPOSITORY + inside}{hash_}{part})"

    text = LINK.sub(target, text)
    return re.sub(r"^```mermaid\n.*?^```", lambda _: picture(), text, flags=re.MULTILINE | re.DOTALL)


def picture() -> str:
    """The picture of the rooms as SVG: a browser needs a script from another host to draw Mermaid."""
    graph = reduced(edges(ROOT / "src" / "narratoria"))
    calls = [
        PlannedCall(tool_id=room, tool_path=ROOMS[room], dependencies=sorted(below))
        for room, below in graph.items()
    ]
    drawn = svg(PlanDocument(request_id="rooms", tools=calls)).replace(
        "<svg ", '<svg style="max-width: none" ', 1
    )
    return f'<div style="overflow-x: auto">{drawn}</div>'


# --- Python -------------------------------------------------------------------------------------------------------


def listing_modules() -> Iterator[str]:
    """The modules that list their public names."""
    source = ROOT / "src"
    for path in sorted((source / "narratoria").rglob("*.py")):
        if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def public_names() -> dict[str, list[str]]:
    """Module → names: those that modules list, and those that README and docs import or name. A name of `narratoria`
    itself stands only there.
    """
    found = {module: set(importlib.import_module(module).__all__) for module in listing_modules()}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("narratoria"):
                    found.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
    for module, names in NAMED.items():
        found.setdefault(module, set()).update(names)
    return {
        module: sorted(
            name
            for name in names
            if not inspect.ismodule(getattr(importlib.import_module(module), name))  # another package's
            and (module == "narratoria" or not at_top(module, name))
        )
        for module, names in sorted(found.items())
    }


def at_top(module: str, name: str) -> bool:
    """Tell if a name of a module is one of `narratoria` too."""
    return name in narratoria.__all__ and getattr(narratoria, name) is getattr(
        importlib.import_module(module), name
    )


def python_page() -> str:
    parts = [
        "# Python reference\n\nEvery public name, from its docstring. Each module is loaded when it is first used.\n"
    ]
    for module, names in public_names().items():
        if names:
            parts.append(f"## `{module}`\n")
            loaded = importlib.import_module(module)
            parts.extend(entry(name, getattr(loaded, name), module) for name in names)
    return "\n".join(parts)


def entry(name: str, value: Any, module: str) -> str:
    """A name with its signature, its docstring and, for a class, its public members."""
    lines = [f"### {name}\n"]
    if (shown := signature(value)) and not is_value(value):
        lines.append(f"```python\n{name}{shown}\n```\n")
    told = written_below(module, name) if is_value(value) else ""
    if text := "\n\n".join(filter(None, (told, documentation(value)))):
        lines.append(text + "\n")
    if inspect.isclass(value):
        lines.extend(members(value))
    return "\n".join(lines)


def members(value: type) -> Iterator[str]:
    """The methods and properties of a class's own, each in an item of a list."""
    for name, member in vars(value).items():
        plain = getattr(member, "__func__", member)
        is_property = isinstance(member, property)
        if name.startswith("_") or not (is_property or inspect.isroutine(plain)):
            continue
        if (
            type(member).__module__ == spelling.__name__
        ):  # a name of the specifications: it only says what to use
            continue
        text = inspect.getdoc(member if is_property else getattr(value, name)) or ""  # inherited, too
        text = text.split("\n\n")[0].replace("\n", " ")
        shown = "" if is_property else signature(plain, wrap=False)
        yield f"- `{name}{shown}`" + (f": {text}" if text else "")
    yield ""


def signature(value: Any, *, wrap: bool = True) -> str:
    """The parameters as they are written; "" for what cannot be called."""
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        written = {
            key: kind
            for base in reversed(value.__mro__)
            for key, kind in vars(base).get("__annotations__", {}).items()
        }
        fields = value.__struct_fields__
        defaults = dict(zip(reversed(fields), reversed(value.__struct_defaults__), strict=False))
        return listed(
            [
                f"{one}: {written.get(one, 'Any')}{given(defaults.get(one, msgspec.NODEFAULT))}"
                for one in fields
            ]
        )
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown, keyword_only = [], False
    for one in found.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            shown.append("*")
        keyword_only |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        kind = "" if one.annotation is one.empty else f": {annotation(one.annotation)}"
        shown.append(f"{stars}{one.name}{kind}{given(one.default)}")
    is_class = inspect.isclass(value) or found.return_annotation is found.empty
    return listed(shown, wrap=wrap) + ("" if is_class else f" -> {annotation(found.return_annotation)}")


def listed(parameters: list[str], *, wrap: bool = True) -> str:
    """Parameters in brackets, one a line where they are many."""
    flat = f"({', '.join(parameters)})"
    return flat if not wrap or len(flat) < 90 else "(\n    " + ",\n    ".join(parameters) + ",\n)"


def annotation(kind: Any) -> str:
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)


def given(default: Any) -> str:
    """A default as it may be written, or "…" where that would say nothing."""
    if default is inspect.Parameter.empty or default is msgspec.NODEFAULT:
        return ""
    shown = repr(default)
    return f" = {'…' if shown.startswith('<') or len(shown) > 40 else shown}"


def is_value(value: Any) -> bool:
    """True for a constant or a type alias: neither a class nor a function."""
    return not inspect.isclass(value) and not inspect.isroutine(value)


def written_below(module: str, name: str) -> str:
    """The string under the assignment of a constant or a type alias, which says what it is."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and node.module and any(one.name == name for one in node.names):
            return written_below(node.module, name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            told = below.value if isinstance(below, ast.Expr) else None
            text = told.value if isinstance(told, ast.Constant) else None
            return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""


def documentation(value: Any) -> str:
    """The docstring with its indented examples as code; "" where there is none of its own."""
    if is_value(value):
        return f"Value: `{value!r}`" if len(repr(value)) < 200 else ""
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    return "" if not text or text.startswith(f"{getattr(value, '__name__', '')}(") else inspect.cleandoc(text)


# --- commands, manifests, plans -----------------------------------------------------------------------------------


def commands_page() -> str:
    parts = ["# Commands\n\nEvery command, as `--help` prints it.\n"]
    with click.Context(cli, info_name="narratoria") as context:
        parts.extend(command_help(cli, context, "narratoria", 2))
    return "\n".join(parts)


def command_help(command: click.Command, context: click.Context, name: str, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} `{name}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            inner = command.get_command(context, one)
            if inner is None:
                raise LookupError(one)
            with click.Context(inner, info_name=one, parent=context) as below:
                yield from command_help(inner, below, f"{name} {one}", min(depth + 1, 4))


def schema_page(title: str, name: str, lead: str) -> str:
    """The keys of a contract as tables, one for each object."""
    schema = json.loads((ROOT / "contracts" / name).read_text(encoding="utf-8"))
    parts = [f"# {title}\n\n{lead} As a JSON Schema: `narratoria schema {name.split('.')[0]}`.\n"]
    parts.append(keys(schema))
    for key, value in sorted(schema.get("$defs", {}).items()):
        parts.append(f"## {key}\n\n{value.get('description', '')}\n\n{keys(value)}")
    known = {f"#{key.lower()}" for key in schema.get("$defs", {})}
    return re.sub(
        r"\[(\w+)\]\((#\w+)\)", lambda link: link[0] if link[2] in known else "JSON Schema", "\n".join(parts)
    )


def keys(schema: Mapping[str, Any]) -> str:
    rows = []
    for key, value in schema.get("properties", {}).items():
        needed = "yes" if key in schema.get("required", ()) else ""
        rows.append(f"| `{key}` | {kind(value)} | {needed} | {cell(value.get('description', ''))} |")
    if not rows:
        return f"{kind(schema)}\n"
    return "\n".join(["| key | type | required | meaning |", "|---|---|---|---|", *rows, ""])


def kind(value: Any) -> str:
    """The type of a value in words."""
    if not isinstance(value, Mapping) or not value:
        return "anything"
    if "$ref" in value:
        name = str(value["$ref"]).rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    for word in ("anyOf", "oneOf"):
        if word in value:
            return " or ".join(dict.fromkeys(kind(one) for one in value[word]))
    if "enum" in value:
        return " or ".join(f"`{cell(json.dumps(one))}`" for one in value["enum"])
    if "const" in value:
        return f"`{cell(json.dumps(value['const']))}`"
    if value.get("type") == "array":
        return f"list of {kind(value.get('items', {}))}"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), Mapping):
        return f"object of {kind(value['additionalProperties'])}"
    named = value.get("type", "anything")
    return " or ".join(named) if isinstance(named, list) else str(named)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write(folder: Path) -> None:
    """Writes all pages; those of an earlier build that are gone are removed."""
    made = dict(pages())
    made["reference/python.md"] = python_page()
    made["reference/commands.md"] = commands_page()
    made["reference/manifest.md"] = schema_page(
        "Manifest keys", "tool-manifest.schema.json", "The keys of `NAME.tool.json` beside a tool."
    )
    made["reference/plans.md"] = (
        schema_page("Plan keys", "plan-json.schema.json", "The keys of a plan.")
        + "\n"
        + schema_page("Result keys", "execution-result.schema.json", "The keys of the result of a plan.")
    )
    made["reference/story.md"] = schema_page(
        "story.toml keys", "story-toml.schema.json", "The keys of a story's `story.toml`."
    )
    made["reference/narrator.md"] = schema_page(
        "narrator.toml keys", "narrator-toml.schema.json", "The keys of a story's rules, `narrator.toml`."
    )
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for picture_file in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture_file, folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site-src")
