"""Narration as HTML that is safe to insert: CommonMark by markdown-it-py, an allow-list by nh3.

The text of a story comes from models, tools and players. Raw HTML in it is shown as text, a link as its words, a
picture as its description. The result is a list of blocks, each one element, so that a page rewrites only the blocks
that changed while a text grows. Time is bounded: a text that is too long or too deep is shown as it was written.
"""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

logger = logging.getLogger("narratoria")

LONGEST: Final = 100_000  # characters of a narration, and ...
LONGEST_PART: Final = 8_000  # ... of what stands between two blank lines
MOST_TAGS: Final = 20_000  # of a narration: a browser, too, takes its time over each
MOST_TOKENS: Final = 2_000  # of a part
DEEPEST: Final = 20  # quotes in lists in quotes: the parser gives up there, and would drop the rest
REMEMBERED_PARTS: Final = 1024  # a text that grows is rendered again and again; all but its end is known
HEADING: Final = "h2"  # whatever its own level: above it stands the title of the page

_BLANK: Final = re.compile(r"\n(?:[ \t]*\n)+")
_ITEM: Final = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)", re.MULTILINE)
_FENCE: Final = re.compile(r"^ {0,3}(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<rest>[^\n]*)$", re.MULTILINE)

# What a parser raises when somebody has found a text it cannot read. The story goes on.
_FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_WORDED: Final = ("p", "blockquote", "ul", "ol", HEADING)  # a block that runs as its own first letters run
_sanitise: Final = nh3.Cleaner(
    tags={*_WORDED, "li", "em", "strong", "code", "pre", "hr", "br"},
    clean_content_tags=set(),
    attributes={"ol": {"start"}},
    tag_attribute_values={tag: {"dir": {"auto"}} for tag in _WORDED},
    link_rel=None,
).clean


def render(text: str) -> list[str] | None:
    """Return the blocks of a narration, each one element; None for a text too long or too deep to render."""
    if len(text) > LONGEST:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = [block for part in _parts(text) for block in _render_part(part)]
    return blocks if sum(block.count("<") for block in blocks) <= MOST_TAGS else None


def plain(text: str) -> str:
    """One block that shows a text as it was written."""
    return _sanitise(f'<p dir="auto">{html.escape(text.strip(), quote=False).replace(chr(10), "<br>")}</p>')


def _parts(text: str) -> Iterator[str]:
    """Cut at blank lines, but not within a list or a fence: as a text grows, only the last parts change."""
    start = at = 0
    fence, listing = "", False
    for blank in [*_BLANK.finditer(text), None]:
        piece = text[at : blank.start() if blank else len(text)]
        goes_on = fence or (listing and (piece[:1] in (" ", "\t") or _ITEM.match(piece)))
        if not goes_on:
            yield text[start:at]
            start, listing = at, False
        fence = _fence_after(fence, piece)
        listing = listing or _ITEM.search(piece) is not None
        at = blank.end() if blank else len(text)
    yield text[start:]


def _fence_after(fence: str, piece: str) -> str:
    """The mark of the fence that is open after `piece`, or nothing."""
    for line in _FENCE.finditer(piece):
        mark = line["mark"]
        if not fence:
            fence = mark
        elif mark.startswith(fence) and not line["rest"].strip():
            fence = ""
    return fence


@lru_cache(REMEMBERED_PARTS)
def _render_part(source: str) -> tuple[str, ...]:
    if not source.strip():
        return ()
    if len(source) > LONGEST_PART:
        return (plain(source),)
    try:
        tokens = _parser.parse(source)
        if _too_much(tokens):
            return (plain(source),)
        return tuple(_render_block(block) for block in _blocks(tokens))
    except _FAULTS:
        logger.exception("a text could not be rendered; it is shown as it was written")
        return (plain(source),)


def _render_block(tokens: Sequence[Token]) -> str:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = HEADING
    if tokens[0].nesting > 0:
        tokens[0].attrSet("dir", "auto")
    return _sanitise(_parser.renderer.render(tokens, _parser.options, {})).strip()


def _too_much(tokens: Sequence[Token]) -> bool:
    inline = [child for token in tokens for child in token.children or ()]
    return (
        len(tokens) + len(inline) > MOST_TOKENS
        or any(token.level >= DEEPEST - 1 for token in tokens)
        or any(token.level >= DEEPEST for token in inline)
    )


def _blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start : index + 1]
            start = index + 1


def _described(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render a picture as its description: a text must not make the page fetch anything."""
    return html.escape(renderer.renderInlineAsText(tokens[index].children, options, env), quote=False)


def _make_parser() -> MarkdownIt:
    """CommonMark, less what means something else in a story.

    An indented paragraph is not code, a line of dashes under a paragraph parts two scenes, `[a]: b` is said by
    somebody; and a line ends where it ends, as in a poem.
    """
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": DEEPEST})
    parser.disable(["html_block", "html_inline", "code", "lheading", "reference"])
    parser.add_render_rule("image", _described)
    return parser


_parser: Final = _make_parser()
