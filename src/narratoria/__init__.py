"""Narratoria: a narrator plans, tools in any language act, and every turn is a transaction.

The package, from the bottom up; each layer imports only from those below it:

0  bounds, errors, events, state, strict_json, cores, spelling    what can go wrong, what can happen, what is
1  retry, deadline, schema, value_types, context, tool, contract, plan, plan_problems, references,
   prose                                    plain data and rules
2  session, registry                        the world, and the catalogue of tools
3  executor, handlers, outcomes, threads, tools    the pipeline, and the kinds of tool
4  plan_executor, trace                     runs plans
5  prompt, adapters, narrator, planning, skills, story, turn, game    makes plans, takes turns
6  cli, web                                 faces

Importing the package names its public parts and does nothing else.
"""

import sys
from typing import NoReturn

if sys.platform == "win32":  # before anything of ours asks for `fcntl`, process groups or signals
    _SENTENCE = "Narratoria runs on Linux and macOS; on Windows run `wsl --install` and use it inside WSL."
    _PROGRAM = sys.argv[0].replace("\\", "/").rpartition("/")[2]
    if sys.orig_argv[1:3] == ["-m", "narratoria"] or _PROGRAM.startswith("narratoria"):
        raise SystemExit(_SENTENCE)
    raise ImportError(_SENTENCE)

from narratoria.errors import NarratoriaError, PlanRejected
from narratoria.executor import ToolExecutor
from narratoria.plan import CallResult, ExecutionResult, PlanDocument, PlannedCall
from narratoria.plan_executor import PlanExecutor
from narratoria.registry import ToolRegistry
from narratoria.retry import RetryPolicies, RetryPolicy
from narratoria.session import Session
from narratoria.spelling import ELSEWHERE
from narratoria.tool import Tool, ToolContext, ToolError, ToolExample, ToolResult
from narratoria.tools.compose import Branch, conditional, parallel, sequence
from narratoria.tools.function import function_tool, tool
from narratoria.tools.process import process_tool
from narratoria.turn import TurnResult, take_turn

__version__ = "0.1.0"


def __getattr__(name: str) -> NoReturn:
    """Names that the specifications have for what is called otherwise, or lies deeper, here."""
    if name in ELSEWHERE:
        raise ImportError(f"narratoria has no {name}; what the specifications call so is {ELSEWHERE[name]}")
    raise AttributeError(f"module 'narratoria' has no attribute {name!r}")


__all__ = [
    "Branch",
    "CallResult",
    "ExecutionResult",
    "NarratoriaError",
    "PlanDocument",
    "PlanExecutor",
    "PlanRejected",
    "PlannedCall",
    "RetryPolicies",
    "RetryPolicy",
    "Session",
    "Tool",
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
    "parallel",
    "process_tool",
    "sequence",
    "take_turn",
    "tool",
]
