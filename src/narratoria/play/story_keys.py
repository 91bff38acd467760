"""The keys of `story.toml`, as types: the contract `story-toml` is made from them, and the reader knows no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from narratoria.events import JsonObject
from narratoria.narrator.roster import USUAL
from narratoria.tools.node_resources import Resources
from narratoria.tools.schema.tables import Table
from narratoria.tools.tool import Approval

Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]  # one that is not blank


class OpeningTable(Table, frozen=True, kw_only=True):
    """The text and choices before the first prompt."""

    narrative: Text
    choices: list[Text] = msgspec.field(default_factory=list)


class CoverTable(Table, frozen=True, kw_only=True):
    """The picture of a story: a file in its folder, or a tool that draws one; not both."""

    picture: str = ""
    alt: str = ""
    tool: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)


class FactTable(Table, frozen=True, kw_only=True):
    """A line of a panel, shown while the state is as `when` says."""

    label: Text
    when: JsonObject


class PanelTable(Table, frozen=True, kw_only=True):
    """A part of the panel beside the story: what of the state it shows, and under which label."""

    kind: Literal["place", "things", "facts", "moments", "endings"]
    label: Text
    path: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    facts: list[FactTable] = msgspec.field(default_factory=list)
    endings: dict[str, Text] = msgspec.field(default_factory=dict)
    empty: str = ""


class StoryTable(Table, frozen=True, kw_only=True):
    """The keys of a story in `story.toml`."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")] | msgspec.UnsetType = msgspec.UNSET
    title: Text
    author: str = ""
    premise: Text
    note: str = ""
    go_on: str = ""
    language: Annotated[str, Meta(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    narrator: list[str] = msgspec.field(default_factory=lambda: list(USUAL))
    permissions: list[Text] = msgspec.field(default_factory=list)
    approval: Approval | dict[str, Approval] = msgspec.field(default_factory=dict)
    opening: OpeningTable
    cover: CoverTable = msgspec.field(default_factory=CoverTable)
    state: JsonObject = msgspec.field(default_factory=dict)
    panel: list[PanelTable] = msgspec.field(default_factory=list)
    refusal: str | list[Text] = msgspec.field(default_factory=list)
    free_tools: list[Text] = msgspec.field(default_factory=list)
    resources: dict[str, Resources] = msgspec.field(default_factory=dict)
    openapi: str | dict[str, JsonObject] = msgspec.field(default_factory=dict)
    mcp: str | dict[str, JsonObject] = msgspec.field(default_factory=dict)
    skills: list[Text] | dict[str, JsonObject] = msgspec.field(default_factory=list)


def _keys(table: type[Table]) -> tuple[str, ...]:
    return tuple(one.encode_name for one in msgspec.structs.fields(table))


KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "": _keys(StoryTable),
    "opening": _keys(OpeningTable),
    "cover": _keys(CoverTable),
}
"""The known keys by the name of their table; "" is the file itself."""
