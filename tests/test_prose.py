"""Narration becomes HTML that is safe, in blocks, and in bounded time."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narratoria.prose import DEEPEST, LONGEST, LONGEST_PART, MOST_TAGS, MOST_TOKENS, plain, render

TAGS = {"p", "h2", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br"}


class Elements(HTMLParser):
    """What a browser would find: tags, attributes, how many elements stand side by side, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.roots = 0
        self.depth = 0
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        self.roots += self.depth == 0
        self.depth += tag not in ("hr", "br")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("It is **bare**, and *lit*.", ["<p>It is <strong>bare</strong>, and <em>lit</em>.</p>"]),
        ("# One\n\n###### Six", ["<h2>One</h2>", "<h2>Six</h2>"]),
        ("Roses are\nred", ["<p>Roses are<br>\nred</p>"]),
        ("He left.\n---\nMorning.", ["<p>He left.</p>", "<hr>", "<p>Morning.</p>"]),
        ("    indented", ["<p>indented</p>"]),
        ("[a]: b", ["<p>[a]: b</p>"]),
        ("snake_case_name, 2 * 3 * 4", ["<p>snake_case_name, 2 * 3 * 4</p>"]),
        ("> a\n> b", ["<blockquote>\n<p>a<br>\nb</p>\n</blockquote>"]),
        ("- a\n- b", ["<ul>\n<li>a</li>\n<li>b</li>\n</ul>"]),
        ("3. a\n\n4. b\n\nc", ['<ol start="3">\n<li>\n<p>a</p>\n</li>\n<li>\n<p>b</p>\n</li>\n</ol>', "<p>c</p>"]),
        ("```sh\na\n\n\nb\n```\n\nc", ["<pre><code>a\n\n\nb\n</code></pre>", "<p>c</p>"]),
        ("~~~\na\n\n```\n\n~~~\n\nc", ["<pre><code>a\n\n```\n\n</code></pre>", "<p>c</p>"]),
        ("a\r\n\r\nb", ["<p>a</p>", "<p>b</p>"]),
        ("日本**語**です\n\nשלום *עולם* 🎭", ["<p>日本<strong>語</strong>です</p>", "<p>שלום <em>עולם</em> 🎭</p>"]),
        ("\n \n\n", []),
    ],
)  # fmt: skip
def test_markdown_as_a_story_means_it(text: str, blocks: list[str]) -> None:
    rendered = render(text)
    assert rendered is not None
    assert [block.replace(' dir="auto"', "") for block in rendered] == blocks
    assert all(' dir="auto"' in block for block in rendered if not re.match("<(hr|pre)", block))


def test_links_and_pictures_are_words() -> None:
    text = (
        '[the quay](https://a.example "t"), ![a *map*](m.png), <https://b.example>, [x](javascript:alert(1))'
    )
    assert render(text) == ['<p dir="auto">the quay, a map, https://b.example, [x](javascript:alert(1))</p>']


def test_html_is_text() -> None:
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)>\n\n<div>\n\n<!-- c -->\n\n&lt;b&gt;"
    blocks = render(text)
    assert blocks is not None
    assert all(Elements(block).tags == {"p"} for block in blocks)
    assert "".join(Elements(block).text for block in blocks) == text.replace("\n\n", "").replace(
        "&lt;b&gt;", "<b>"
    )


SIGNS = [
    *"ab*_`~>-+#=![]()<>&\"'\\:/|1. \t\n\r\0שあ😀",
    "**",
    "\n\n",
    "```",
    "~~~",
    "<a href=",
    "&#",
    "](",
    "- ",
    "1. ",
]
MARKUP = st.lists(st.sampled_from(SIGNS), max_size=60).map("".join)


@given(MARKUP)
@settings(max_examples=500, deadline=None)
def test_whatever_is_told_each_block_is_one_element_of_the_allowed_kinds(text: str) -> None:
    for block in render(text) or ():
        found = Elements(block)
        assert found.roots == 1 and found.depth == 0, block
        assert found.tags <= TAGS
        assert all(name == "start" or (name, value) == ("dir", "auto") for name, value in found.attributes)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30).map(" ".join), st.integers(0, 40))
@settings(deadline=None)
def test_no_word_is_lost_however_deep_it_stands(words: str, depth: int) -> None:
    for mark in ("> ", "- ", "1. "):
        blocks = render(mark * depth + words)
        assert blocks is not None
        assert "".join(Elements(block).text for block in blocks).strip().endswith(words)


def test_a_text_that_grows_changes_only_at_its_end() -> None:
    text = (
        "# Night\n\nThe **lamp** is lit.\n\n1. one\n\n2. two\n\n```\ncode\n\nmore\n```\n\nYou *wait* here.\n"
    )
    whole = render(text)
    assert whole is not None
    before: list[str] = []
    for end in range(1, len(text) + 1):
        blocks = render(text[:end])
        assert blocks is not None
        settled = max(0, len(before) - 2)
        assert blocks[:settled] == before[:settled], text[:end]
        before = blocks
    assert before == whole


def test_beyond_reason_a_text_is_shown_as_it_was_written() -> None:
    assert render("*a*" * LONGEST) is None
    assert len(render("*a*\n\n" * (MOST_TAGS // 4)) or ()) == MOST_TAGS // 4
    assert render("*a*\n\n" * (MOST_TAGS // 4 + 1)) is None
    crowded = "*_" * (LONGEST_PART // 2)
    assert render(crowded) == [plain(crowded)]
    assert len(crowded) < 5 * MOST_TOKENS
    long = "*a* <b>\n" * LONGEST_PART
    assert render(long[:LONGEST]) == [plain(long[:LONGEST])]
    assert Elements(plain("*a* <b>\nc")).tags == {"p", "br"}
    assert html.unescape(plain("*a* <b>")) == '<p dir="auto">*a* <b></p>'
    deep = "*a **b " * DEEPEST + "c** d*" * DEEPEST
    assert render(deep) == [plain(deep)]


HOSTILE = [
    "**a ",
    "_b ",
    "![",
    "[\n",
    "[a](",
    "*_",
    "**a**",
    "- a\n",
    "> ",
    "`a",
    "<",
    "&",
    "- ",
    "\n>",
    "~~~\n",
    "a\n\n",
]


@pytest.mark.parametrize(
    "unit",
    [pytest.param(unit, marks=pytest.mark.slow if number % 3 else ()) for number, unit in enumerate(HOSTILE)],
)
def test_hostile_text_takes_bounded_time(unit: str) -> None:
    """Half of the longest text that is rendered: about 0.7 s of a quiet core at worst, and this machine may be busy."""
    part = (unit * LONGEST_PART)[: LONGEST_PART - 10]
    text = "\n\n".join(f"{number}{part}" for number in range(LONGEST // LONGEST_PART // 2))
    start = time.process_time()
    render(text)
    render((unit * LONGEST)[:LONGEST])
    assert time.process_time() - start < 5
