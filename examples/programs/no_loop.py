"""A script without an event loop: a plain function as a tool, called and planned with, and no `async` in sight.

Run it with `python examples/programs/no_loop.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from narratoria import PlanDocument, PlanExecutor, Session, ToolContext, ToolRegistry, run_sync, tool


@tool
def count_words(
    text: Annotated[str, "the text itself"], into: Path | None = None, *, context: ToolContext
) -> int:
    """Count the words of a text, and write the number into a file if one is given."""
    words = len(text.split())
    if into is not None:
        into.write_text(f"{words}\n")
    context.patch({"counted": {"words": words}})
    return words


PLAN = """
{"requestId": "two-texts", "tools": [
  {"toolId": "first", "toolPath": "count_words", "input": {"text": "one two three"}},
  {"toolId": "second", "toolPath": "count_words", "input": {"text": "four five", "into": "words.txt"}}
]}
"""


def main() -> None:
    registry, session = ToolRegistry([count_words]), Session()
    print(registry.execute_sync(count_words, {"text": "a rope and a bell"}, session=session).value)
    trace = run_sync(PlanExecutor(registry, session).execute(PlanDocument.from_json(PLAN)))
    print(trace.success, [call.tool_id for call in trace.tool_results], Path("words.txt").read_text())
    wrong = registry.execute_sync(count_words, {"texts": 5}, session=session)
    print(wrong.message)


if __name__ == "__main__":
    main()
