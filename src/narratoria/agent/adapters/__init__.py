"""Adapters to language models.

`adapter` defines the protocol, `openai_compatible` has an adapter for every server that speaks OpenAI's chat
completions (extra `llm`), `agent_loop` is the agent loop over any of them, `answers` reads what models write.
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
