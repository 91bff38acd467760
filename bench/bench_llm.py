"""What the LLM narrator costs on our side of the wire: the prompt, the answer, the receipts. No model is asked.

Run in a virtual environment: `python bench/bench_llm.py`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from _measure import Row, report

from narratoria.agent.adapters.answers import TextOf
from narratoria.factcheck.receipts import audit
from narratoria.narrator.llm.plan_reply import plan_of, reply_schema
from narratoria.narrator.llm.prompting import Prompting
from narratoria.narrator.protocol import NarratorRequest, PastTurn, ToolCard
from narratoria.session import Session

WORDS = "The lamp is lit and the oak door is still shut. You carry the lantern up the stair. "
ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
TOOLS = [ToolCard(f"tool{index}", "Does something to an item of the story.", ITEM) for index in range(30)]


def milliseconds(work: Callable[[], object], times: int = 50) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - start))
    return statistics.median(taken)


def main() -> None:
    rooms = {
        f"room{index}": {"door": {"open": False}, "things": ["chair", "table"]} for index in range(5_000)
    }
    session = Session(state={"lamp": {"lit": True}, "inventory": {"lantern": {}}, "rooms": rooms})
    request = NarratorRequest(
        "light the lamp and go up",
        state=session.state,
        history=[PastTurn(f"prompt {index}", WORDS * 5) for index in range(10_000)],
        tools=TOOLS,
        memories=[WORDS] * 20,
        premise=WORDS,
    )
    prompting = Prompting()
    calls = [{"tool": f"tool{index}", "input": {"item": "lamp"}} for index in range(4)]
    answer = json.dumps({"narrative": WORDS * 5, "calls": calls, "order": "one_by_one"})
    small = {"lamp": {"lit": True}, "oak_door": {"open": False}, "inventory": {"lantern": {}}}

    def stream() -> None:
        reader = TextOf("narrative")
        for at in range(0, len(answer), 4):
            reader.feed(answer[at : at + 4])

    report(
        "the LLM narrator, without the model",
        [
            Row("a prompt at 10,000 turns", milliseconds(lambda: prompting.messages(request)), 5, unit=" ms"),
            Row("the schema of 30 tools", milliseconds(lambda: reply_schema(TOOLS)), None, unit=" ms"),
            Row("an answer to a plan", milliseconds(lambda: plan_of(answer, request)), None, unit=" ms"),
            Row("its narrative from the stream", milliseconds(stream), None, unit=" ms"),
            Row("receipts, small world", milliseconds(lambda: audit(WORDS * 5, small)), None, unit=" ms"),
        ],
    )


if __name__ == "__main__":
    main()
