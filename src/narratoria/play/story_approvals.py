"""The approvals of a story: which of its tools ask a person first, by `approval` in `story.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from narratoria.run.middleware import ToolCall
from narratoria.tools.tool import Approval

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """Rules by the names of tools; `server.*` is for all tools of a server, and `default` for those whose manifest has
    no rule. It is the policy of the story's registry.
    """

    rules: Mapping[str, Approval] = field(default_factory=dict)

    def __call__(self, call: ToolCall) -> bool | str | None:
        tool = call.tool
        server, dot, _ = tool.name.partition(".")
        rule = self.rules.get(tool.name) or (self.rules.get(f"{server}.*") if dot else None)
        if rule is None and tool.approval is None:
            rule = self.rules.get(DEFAULT)
        if rule is None:
            return None
        return tool.asks(rule) or False
