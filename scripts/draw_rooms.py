"""Draws the rooms of the package into docs/architecture.md, from the imports of its modules.

`python scripts/draw_rooms.py` writes the picture; `--check` fails where it is out of date. `ROOMS` is the order of the
rooms: each imports only from those above it in this list. tests/test_layers.py holds the code to it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: drawn by scripts/draw_rooms.py -->", "<!-- end of rooms -->"

ROOMS: Mapping[str, str] = {
    "sdk": "the kit for tools in Python: one file that imports nothing of ours",
    "errors": "the exceptions, and the codes of failures",
    "extras": "the optional parts, and the command that installs each",
    "bounds": "limits on documents from outside",
    "toml_lines": "the lines of keys in a TOML file",
    "typed_values": "values of types, from any thread",
    "events": "the event types",
    "state": "the state tree: merging and looking up",
    "spelling": "the specifications' own names",
    "strict_json": "JSON without duplicate keys",
    "json_lines": "the lines of keys in JSON",
    "unicode_text": "text that JSON and a journal can carry",
    "prose": "Markdown as safe HTML",
    "telemetry": "OpenTelemetry: the names and the making of spans and metrics",
    "tools": "the definition of a tool: context, retry, deadline, schema, contract",
    "session": "the world: drafts, memory, assets, resources",
    "kinds": "factories that return a Tool: function, process, composition, other machines, MCP servers, OpenAPI",
    "run": "the pipeline and plans",
    "store": "the journal, SQLite, PostgreSQL, import and salvage",
    "skills": "Agent Skills: SKILL.md folders, their scripts as tools, their settings, and skills of our own",
    "agent": "prompts, models and the agent loop",
    "narrator": "the narrators, which make a plan of a prompt",
    "lore": "the memory of a story",
    "factcheck": "checks a narration against the state",
    "story_check": "checks a story's rules against its tools and its state",
    "play": "stories, games, turns, undo",
    "evals": "scores a narrator",
    "authoring": "playtests, and cassettes for tests",
    "conformance": "checks a tool against the protocol",
    "wire_schemas": "the contracts as files",
    "testing": "fakes for tests of your own",
    "pytest_plugin": "the conformance rules as tests",
    "web": "the page and its API",
    "mcp_server": "our tools for MCP hosts, over standard input and output or HTTP",
    "cli": "the command line",
}
# The floors of the larger rooms, the lowest first: a module imports from its own floor and from those below it.
# A folder stands for its modules, but for those that are named themselves.
FLOORS: Mapping[str, Mapping[str, str]] = {
    "tools": {
        "schemas and types of values": "schema value_constraints value_types",
        "time": "cancellation deadline backoff backoff_kinds retry",
        "the tool": "handler_types context read_only node_resources tool_result tool",
        "preconditions and effects": "contract",
    },
    "session": {
        "records and operations": "record attempt_note draft_operations asset_records dispatcher media private_files "
        "slices",
        "parts of a session": "grants memory memory_draft assets resources stopped_clock approvals",
        "drafts": "draft_assets draft",
        "the session": "session",
    },
    "kinds": {
        "shared by kinds": "process.marks catalogue_updates composed_names foreign_names line_faults "
        "outside_effect redaction sandbox shares",
        "manifests": "environment manifest from_manifest load",
        "the protocol of tools": "ndjson conversation",
        "in this process": "function plain_function shared_arguments composed_results composed_times compose",
        "processes": "placement process tool_files kept_files browser builtin_tools",
        "other machines": "remote",
        "MCP and HTTP": "foreign_tool mcp openapi foreign_sources",
    },
    "run": {
        "plans": "not_json plan_references plan_problems plan graph",
        "threads and loops": "background_loop threads cores",
        "one call": "attempt_rollback handlers outcomes call_record records middleware approval admission call_span "
        "retry_decision effect_application executor",
        "catalogues": "registry tool_folder resolve",
        "whole plans": "lint plan_run plan_executor",
    },
    "store": {
        "records of a session": "store timeline restoration session_views fold record_batches checksums mending "
        "transcript epub transcripts retention recorded_call story_search",
        "the journal": "writer journal_store journal replay",
        "files": "imported_snapshot imported_journal portable secret_keeping",
        "SQL": "sqlite_database file_lease sql_rows sql_reading sql_versions sql_writing sql_store sqlite "
        "postgres_keeper postgres_listener postgres_players s3_signing bucket shared_assets postgres",
        "on top of a store": "default_store moving salvage",
    },
    "agent": {
        "prompts": "prompt",
        "models": "adapters planning",
        "the model to use": "chosen_model model_servers",
    },
    "narrator": {
        "shared by narrators": "protocol roster english embedding",
        "around a narrator": "invocation lazy_narrator withheld_tools chain template",
        "the rules": "rules shared_prompt",
        "a model": "llm",
        "by meaning": "local",
        "rules by meaning": "paraphrase",
    },
    "play": {
        "words of no language": "last_resort",
        "the folder of a story": "story_watch story_texts story_approvals story_keys story_panel story_file "
        "story_skills stage story given_state",
        "the library": "story_library session_story game_sources",
        "undo": "compensation resource_undo undo_outcomes killed_writes history narration_edits",
        "the player's lore": "lore_index game_lore story_lore lore_file recalls",
        "one turn": "offering recollection disabled_skills earlier_plans turn_types turn_narrative turn_speech turn "
        "waiting_turn resume",
        "a call again": "call_again call_command",
        "narrators for a story": "casting",
        "the game": "session_past game",
    },
    "web": {
        "languages": "catalogues",
        "documents and texts": "documents asset_pages cards covers narration_html turn_pages undo_report "
        "skill_forms model_documents memory_documents player_documents",
        "requests and answers": "refusals asset_responses packing tracing stream_limit repeated_records server_tasks",
        "who may come in": "sign_ins callers access connections listening browser_launch shared_token openid accounts "
        "openid_pages player_limits",
        "open games": "feed library first_data open_game search call_views game_moves turn_taking games plan_entries "
        "panel_view followers metrics shared_games",
        "typefaces": "fonts font_cutting",
        "the API and the page": "request_reading open_questions json_responses openapi page offline static_files "
        "session_files model_api memory_edits memory_api player_api api_operations api forwarding permissions",
        "the server": "app server shared_server",
    },
    "mcp_server": {
        "what is offered": "annotations client_connection offered_prompts offered_skills offered_resources catalogue "
        "results",
        "one client": "notices subscriptions exchange client_approval",
        "calls": "list_watch turns calls",
        "the server": "tool_server http_server stdio_server",
    },
    "cli": {
        "input and output": "output stdin_lines line_editor sixel pictures signals completion exporting skeletons",
        "options of several commands": "env_option sandbox_option engine_option narrators_option approval_options "
        "source_options player_options skills_option session_options request_options",
        "views": "plan_progress narration_view asset_lines state_view turn_account play_tables "
        "interrupts terminal_commands check_story",
        "commands": "store_move call check doctor mcp model new plans schema skills tools narrate play replay_command "
        "eval_command session_call session_moves sessions stories playtest_command dev_command serve_tokens serve",
    },
}
NOT_ROOMS = {"__init__", "__main__"}


def room_of(name: str) -> str:
    """The room of a dotted module name: `narratoria.store.journal` is in `store`."""
    return name.split(".")[1]


def floor_of(name: str) -> int | None:
    """The floor of a module in its room: None for a room without floors and for the room's own `__init__`."""
    _, room, *inside = name.split(".")
    if room not in FLOORS or not inside:
        return None
    floors = [floor.split() for floor in FLOORS[room].values()]
    for length in range(len(inside), 0, -1):
        unit = ".".join(inside[:length])
        for number, units in enumerate(floors):
            if unit in units:
                return number
    raise KeyError(f"{name} has no floor; put it into FLOORS of scripts/draw_rooms.py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that a module imports when it runs; those for the type checker alone do not count."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(id(child) for body in node.body for child in ast.walk(body))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("narratoria."))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "narratoria":
                yield from (f"narratoria.{alias.name}" for alias in node.names if alias.name in ROOMS)
            elif node.module.startswith("narratoria."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the package by its dotted name."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] == "stories" or inside.parts[:2] == ("skills", "core"):
            continue  # scripts of their own, which the package does not import
        parts = [*inside.parts[:-1], *([] if path.stem == "__init__" else [path.stem])]
        if parts and parts[0] not in NOT_ROOMS:
            yield ".".join(["narratoria", *parts]), path


def edges(package: Path) -> dict[str, set[str]]:
    """Room → the other rooms it imports from."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, path in modules(package):
        for target in imports(parsed(path)):
            if room_of(target) != room_of(name) and room_of(target) in ROOMS:
                found[room_of(name)].add(room_of(target))
    return found


def reduced(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Without the edges that a longer way implies."""

    def reach(room: str) -> set[str]:
        seen: set[str] = set()
        todo = [*graph[room]]
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo.extend(graph[one])
        return seen

    return {
        room: {one for one in below if not any(one in reach(other) for other in below if other != one)}
        for room, below in graph.items()
    }


def drawing(package: Path) -> str:
    """The picture as Mermaid, and the rooms as a table."""
    whole = edges(package)
    graph = reduced(whole)
    lines = ["```mermaid", "flowchart BT"]
    lines += [f'  {room}["{room}"]' for room in ROOMS]
    lines += [f"  {room} --> {below}" for room in ROOMS for below in ROOMS if below in graph[room]]
    lines += ["```", "", "| room | what is in it | imports from |", "|---|---|---|"]
    for room, what in ROOMS.items():
        lines.append(
            f"| `{room}` | {what} | {', '.join(one for one in ROOMS if one in whole[room]) or 'none'} |"
        )
    lines += [
        "",
        "Inside the larger rooms, the lowest floor first:",
        "",
        "| room | floor | modules |",
        "|---|---|---|",
    ]
    for room, floors in FLOORS.items():
        for what, units in floors.items():
            lines.append(f"| `{room}` | {what} | {', '.join(f'`{one}`' for one in units.split())} |")
    return "\n".join(lines)


def page_with(text: str, picture: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{picture}\n{END}{after}"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    wanted = page_with(text, drawing(ROOT / "src" / "narratoria"))
    if "--check" in sys.argv[1:]:
        if wanted == text:
            return 0
        print(f"{PAGE} is out of date; run: python scripts/draw_rooms.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
