"""Prompts made of sections that bring their tools.

`placeholders` fills text, `section` has the sections, `prompt` puts them together and renders them, `overrides`
changes their words from outside, `disclosure` shows long sections only when they are asked for.
"""
# 002, "Section-first".

from narratoria.agent.prompt.disclosure import OPEN_SECTIONS, OpenSections
from narratoria.agent.prompt.overrides import PromptOverrides
from narratoria.agent.prompt.prompt import BoundPrompt, Prompt, RenderedPrompt
from narratoria.agent.prompt.section import MarkdownSection, Section, SectionVisibility

__all__ = [
    "OPEN_SECTIONS",
    "BoundPrompt",
    "MarkdownSection",
    "OpenSections",
    "Prompt",
    "PromptOverrides",
    "RenderedPrompt",
    "Section",
    "SectionVisibility",
]
