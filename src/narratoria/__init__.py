"""Narratoria: a narrator plans, tools in any language act, and every turn is a transaction.

The rooms of the package, from the bottom up; each imports only from those above it in this list:

sdk          the kit for tools in Python: one file, the standard library alone
errors, extras                    exceptions, the optional parts
bounds, toml_lines                limits on documents, the lines of keys in TOML
typed_values                      values of types, from any thread
events, state                     the event types, the state tree
spelling, strict_json             the specifications' own names, JSON without duplicate keys
json_lines                        the lines of keys in JSON
unicode_text, prose               text that JSON and a journal can carry, Markdown as safe HTML
telemetry    OpenTelemetry spans and metrics, made where the program uses it
tools        the definition of a tool, its context, retry, deadline, schema and contract
session      the world: state, drafts, memory, assets, resources
kinds        factories that return a Tool: function, composition, process, mcp, openapi
run          the pipeline, the registry, plans and their checks
store        the journal, SQLite, PostgreSQL, export, import, salvage, replay
skills       Agent Skills: folders with a SKILL.md, and skills of our own
agent        prompts, adapters to language models, the agent loop, the planning tools
narrator     the narrators, which make a plan of a prompt: rules, paraphrase, local, llm, and the chain of them
lore         the story's memory
factcheck    holds a narration to the state
story_check  checks a story's rules against its tools and its state
play         stories, games, turns, undo
evals        scores a narrator on sets of prompts
authoring, conformance, wire_schemas, testing, pytest_plugin    for authors of tools and stories, and for their tests
web          the page and its server
mcp_server   our tools for MCP hosts
cli          the command line

docs/architecture.md has the picture. Importing the package loads nothing of it: each public name is loaded when it is
first asked for.
"""

import sys
from typing import TYPE_CHECKING, Any, Final

if sys.platform == "win32":  # before anything of ours asks for `fcntl`, process groups or signals
    _SENTENCE = "Narratoria runs on Linux and macOS; on Windows run `wsl --install` and use it inside WSL."
    _PROGRAM = sys.argv[0].replace("\\", "/").rpartition("/")[2]
    if sys.orig_argv[1:3] == ["-m", "narratoria"] or _PROGRAM.startswith("narratoria"):
        raise SystemExit(_SENTENCE)
    raise ImportError(_SENTENCE)

if TYPE_CHECKING:
    from narratoria.errors import NarratoriaError, PlanRejected
    from narratoria.kinds.compose import Branch, conditional, parallel, sequence
    from narratoria.kinds.function import function_tool, tool
    from narratoria.kinds.mcp.mcp_tools import McpServers, mcp_tools
    from narratoria.kinds.openapi.openapi_tools import OpenApiTools, openapi_tools
    from narratoria.kinds.process.process_tool import process_tool
    from narratoria.play.turn import take_turn
    from narratoria.play.turn_types import TurnResult
    from narratoria.play.waiting_turn import take_turn_sync
    from narratoria.run.background_loop import run_sync
    from narratoria.run.executor import ToolExecutor
    from narratoria.run.middleware import Around, Proceed, ToolCall
    from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument, PlannedCall
    from narratoria.run.plan_executor import PlanExecutor
    from narratoria.run.registry import ToolRegistry
    from narratoria.session import Session
    from narratoria.session.approvals import ApprovalAnswer, ApprovalRequest
    from narratoria.tools.retry import RetryPolicies, RetryPolicy
    from narratoria.tools.tool import Tool, ToolContext, ToolError, ToolExample, ToolResult

__version__ = "0.2.0"

# Where each public name is. A program that only asks for the version, or for one tool, does not pay for a narrator.
_PUBLIC: Final = {
    "narratoria.errors": "NarratoriaError PlanRejected",
    "narratoria.kinds.compose": "Branch conditional parallel sequence",
    "narratoria.kinds.function": "function_tool tool",
    "narratoria.kinds.mcp.mcp_tools": "McpServers mcp_tools",
    "narratoria.kinds.openapi.openapi_tools": "OpenApiTools openapi_tools",
    "narratoria.kinds.process.process_tool": "process_tool",
    "narratoria.run.middleware": "Around Proceed ToolCall",
    "narratoria.run.background_loop": "run_sync",
    "narratoria.run.executor": "ToolExecutor",
    "narratoria.run.plan": "CallResult ExecutionResult PlanDocument PlannedCall",
    "narratoria.run.plan_executor": "PlanExecutor",
    "narratoria.run.registry": "ToolRegistry",
    "narratoria.session": "Session",
    "narratoria.session.approvals": "ApprovalAnswer ApprovalRequest",
    "narratoria.tools.retry": "RetryPolicies RetryPolicy",
    "narratoria.tools.tool": "Tool ToolContext ToolError ToolExample ToolResult",
    "narratoria.play.turn": "take_turn",
    "narratoria.play.turn_types": "TurnResult",
    "narratoria.play.waiting_turn": "take_turn_sync",
}
_HOME: Final = {name: module for module, names in _PUBLIC.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use; for a name of the specifications, say which one to use here."""
    from importlib import import_module

    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    advice = _elsewhere(name)
    raise AttributeError(advice or f"module 'narratoria' has no attribute {name!r}")


def _elsewhere(name: str) -> str | None:
    from narratoria.spelling import ELSEWHERE

    if name not in ELSEWHERE:
        return None
    return f"narratoria has no {name}; what the specifications call so is {ELSEWHERE[name]}"


class _NamesElsewhere:
    """Gives the advice of `__getattr__` for `from narratoria import …` too.

    For a name that a package does not have, Python looks for a module of that name: this finder, the last to be
    asked, raises the advice.
    """

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        package, _, name = fullname.partition(".")
        if package == __name__ and (advice := _elsewhere(name)) is not None:
            raise ImportError(advice, name=fullname)


sys.meta_path.append(_NamesElsewhere)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ApprovalAnswer",
    "ApprovalRequest",
    "Around",
    "Branch",
    "CallResult",
    "ExecutionResult",
    "McpServers",
    "NarratoriaError",
    "OpenApiTools",
    "PlanDocument",
    "PlanExecutor",
    "PlanRejected",
    "PlannedCall",
    "Proceed",
    "RetryPolicies",
    "RetryPolicy",
    "Session",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolExample",
    "ToolExecutor",
    "ToolRegistry",
    "ToolResult",
    "TurnResult",
    "__version__",
    "conditional",
    "function_tool",
    "mcp_tools",
    "openapi_tools",
    "parallel",
    "process_tool",
    "run_sync",
    "sequence",
    "take_turn",
    "take_turn_sync",
    "tool",
]
