"""The way to language models.

`protocol` says what an adapter is, `openai_compatible` has one for every server that speaks OpenAI's chat
completions (extra `llm`), `evaluation` is the agent loop over any of them, `answers` reads what models write.
"""

from narratoria.agent.adapters.adapter import (
    Adapter,
    ContextOverflow,
    FormatRefused,
    ModelBusy,
    ModelCall,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    ModelTimedOut,
    ModelUnreachable,
    ModelUsage,
    Price,
    ReplyTooLarge,
)
from narratoria.agent.adapters.agent_loop import CallMade, Evaluation, evaluate

__all__ = [
    "Adapter",
    "CallMade",
    "ContextOverflow",
    "Evaluation",
    "FormatRefused",
    "ModelBusy",
    "ModelCall",
    "ModelFailed",
    "ModelRefused",
    "ModelReply",
    "ModelRequest",
    "ModelTimedOut",
    "ModelUnreachable",
    "ModelUsage",
    "Price",
    "ReplyTooLarge",
    "evaluate",
]
