"""Progressive disclosure: long sections are shown by their summary until the model asks to see them."""

from __future__ import annotations

from dataclasses import dataclass

from narratoria.errors import ToolValidationError, VisibilityExpansionRequired
from narratoria.tools.tool import Tool, ToolContext, ToolResult

OPEN_SECTIONS = "open_sections"


@dataclass(frozen=True)
class OpenSections:
    """Params of the tool that opens sections: the keys the summaries name, and a `reason` for the log."""

    section_keys: tuple[str, ...]
    reason: str = ""


def open_sections_tool(summarised: tuple[str, ...]) -> Tool[OpenSections, None]:
    """Return the tool by which a model asks for the full text. Its call raises, and the prompt is rendered again."""

    async def open_sections(params: OpenSections, *, context: ToolContext) -> ToolResult[None]:
        unknown = [key for key in params.section_keys if key not in summarised]
        if unknown or not params.section_keys:
            named = ", ".join(map(repr, unknown)) or "no section"
            raise ToolValidationError(f"{named} cannot be opened; summarised are {', '.join(summarised)}")
        keys = tuple(dict.fromkeys(params.section_keys))
        raise VisibilityExpansionRequired(
            f"sections to be shown in full: {', '.join(keys)}", section_keys=keys, reason=params.reason
        )

    return Tool[OpenSections, None](
        name=OPEN_SECTIONS,
        description="Show summarised sections of the instructions in full, by their keys, with their tools.",
        handler=open_sections,
        accepts_overrides=False,
    )


def invitation(path: str) -> str:
    return f'(Summary. Call `{OPEN_SECTIONS}` with section_keys ["{path}"] to read it in full.)'
