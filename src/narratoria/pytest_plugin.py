"""A pytest plugin: the conformance rules as tests.

    pytest --narratoria-tool=tools/lamp --narratoria-tool=tools/bell

or, in the configuration, `narratoria_tools = tools/lamp tools/bell`. Each rule of each tool is a test. In a test of
your own, `narratoria.testing.conformance("tools/lamp")` raises `AssertionError` with what is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from narratoria.conformance import Judgement


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting that name tools."""
    group = parser.getgroup("narratoria")
    group.addoption(
        "--narratoria-tool",
        action="append",
        default=[],
        metavar="PATH",
        help="Check this tool, rule by rule.",
    )
    parser.addini("narratoria_tools", "Tools to check, rule by rule.", type="paths", default=[])


class ToolFile(pytest.File):
    """A tool under check."""

    @cached_property
    def judgements(self) -> Mapping[str, Judgement]:
        """The verdicts by the name of the rule. The tool is run when the first is asked for."""
        from narratoria.conformance import check_tool

        return {one.rule.name: one for one in check_tool(self.path).judgements}

    def collect(self) -> Iterator[RuleItem]:
        from narratoria.conformance import RULES

        for rule in RULES:
            yield RuleItem.from_parent(self, name=rule.name)


class RuleItem(pytest.Item):
    """A rule of a tool."""

    def runtest(self) -> None:
        assert isinstance(self.parent, ToolFile)  # noqa: S101 - made there
        found = self.parent.judgements[self.name]
        if found.verdict == "not exercised":
            pytest.skip(found.detail)
        if found.verdict == "fail" and found.rule.level == "SHOULD":
            pytest.xfail(found.detail)  # advice
        if found.verdict == "fail":
            pytest.fail(found.detail, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[Any]) -> None:
    """Add the rules of the tools that were named to the tests that were collected."""
    named = [Path(one).absolute() for one in config.getoption("--narratoria-tool")]
    for path in [*named, *config.getini("narratoria_tools")]:
        if not path.is_file():
            raise pytest.UsageError(f"there is no tool at {path}")
        items.extend(ToolFile.from_parent(session, path=path).collect())
