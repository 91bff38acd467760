"""Results and examples are what their types say, inside lists and unions too."""

import asyncio
import datetime
import sys
import time
import types
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
)

import msgspec
import pytest

from narratoria.errors import ToolValidationError
from narratoria.kinds.function import tool
from narratoria.run.registry import ToolRegistry
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolExample, ToolResult
from narratoria.tools.value_types import mismatch

T = TypeVar("T")
Id = NewType("Id", int)


@dataclass(frozen=True)
class Room:
    name: str


@dataclass(frozen=True)
class Box(Generic[T]):
    item: T


class Exit(TypedDict):
    to: str
    locked: NotRequired[bool]


class Named(Protocol):
    name: str


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, int),
        (1, float),
        (True, bool),
        (None, None),
        ("anything", Any),
        ("anything", object),
        ([1, 2], list[int]),
        ([], list[int]),
        ([1, "a"], list[int | str]),
        (None, list[int] | None),
        ({"a": [1]}, dict[str, list[int]]),
        ({"a": 1}, Mapping[str, int]),
        ((1, "a"), tuple[int, str]),
        ((1, 2, 3), tuple[int, ...]),
        ((), tuple[()]),
        ({1}, set[int]),
        ([1], Sequence[int]),
        ("lit", Literal["lit", "dark"]),
        (Room("a"), Room),
        (Room("a"), Named),
        (Box(1), Box[int]),
        (Id(1), Id),
        (5, Annotated[int, "a note"]),
        (len, Callable[..., int]),
        ({"to": "hall"}, Exit),
        ({"to": "hall", "locked": True}, Exit),
    ],
)
def test_what_fits(value, expected):
    assert mismatch(value, expected) is None


@pytest.mark.parametrize(
    ("value", "expected", "problem"),
    [
        ("text", int, "int, got str"),
        (True, int, "int, got bool"),
        (True, float, "float, got bool"),
        ("text", list[int], "list[int], got str"),
        ([1, "2"], list[int], "list[int], but [1] is str"),
        ([True], list[int], "list[int], but [0] is bool"),
        ([1, "2"], list[int] | None, "list[int] | None, but [1] is str"),
        ("text", int | list[int], "int | list[int], got str"),
        ({"a": [1, None]}, dict[str, list[int]], "dict[str, list[int]], but ['a'][1] is None"),
        ({1: 1}, dict[str, int], "dict[str, int], but [1] is int"),
        ((1,), tuple[int, str], "tuple[int, str], got a tuple of 1"),
        ("out", Literal["lit", "dark"], "Literal['lit', 'dark'], got 'out'"),
        (1, Literal[True], "Literal[True], got 1"),
        ({"name": "a"}, Room, "Room, got dict"),
        (1, Box[int], "got int"),
        ("1", Id, "got str"),
        ("5", Annotated[int, "a note"], "got str"),
        ({"locked": True}, Exit, "Exit, but ['to'] is missing"),
        ({"to": "hall", "locked": 1}, Exit, "Exit, but ['locked'] is int"),
    ],
)
def test_what_does_not_fit_is_named(value, expected, problem):
    assert problem in mismatch(value, expected)


@dataclass(frozen=True)
class Nothing:
    pass


async def listed(params: Nothing, *, context: ToolContext) -> ToolResult[list[int]]:
    return ToolResult.ok("text")


async def listed_wrongly(params: Nothing, *, context: ToolContext) -> ToolResult[list[int]]:
    return ToolResult.ok([1, "2"])


async def either(params: Nothing, *, context: ToolContext) -> ToolResult[int | None]:
    return ToolResult.ok("text")


async def union(params: Nothing, *, context: ToolContext) -> ToolResult[int] | ToolResult[Room]:
    return ToolResult.ok("text")


def awaited(params: Nothing, *, context: ToolContext) -> Awaitable[ToolResult[int]]:
    return ToolResult.ok("text")


def plain(params: Nothing, *, context: ToolContext) -> ToolResult[list[int]]:
    return ToolResult.ok("text")


@pytest.mark.parametrize("handler", [listed, listed_wrongly, either, union, awaited, plain])
async def test_a_result_of_another_type_is_a_failure_that_leaves_nothing(handler):
    one = tool(description="Lists.")(handler)
    result = await ToolRegistry([one]).execute(one.name, {})
    assert not result.success and result.error.code == "EXECUTION_FAILED"
    assert "the result's value must be" in result.message


async def test_types_written_at_the_tool_count_too():
    one = Tool[Nothing, list[int]]("listed", "Lists.", lambda params, *, context: ToolResult.ok("text"))
    assert "must be list[int], got str" in (await ToolRegistry([one]).execute("listed", {})).message


@pytest.mark.parametrize("output", ["text", [1, "2"], 5])
def test_an_example_of_another_type_is_refused(output):
    example = ToolExample("Lists.", Nothing(), output)
    with pytest.raises(ToolValidationError, match=r"examples\[0\].output: expected list\[int\]"):
        Tool[Nothing, list[int]]("listed", "Lists.", listed, examples=[example])


@dataclass
class Report:
    name: str
    counts: list[int]
    room: Room | None = None


@dataclass(slots=True)
class Unset:
    name: str


class Point(NamedTuple):
    x: int
    y: int = 0


class Cell(msgspec.Struct, Generic[T]):
    value: T
    notes: dict[str, int] = {}


@dataclass
class Shelf(Generic[T]):
    items: list[T]
    best: Box[T] | None = None
    by_name: Mapping[str, T | None] | None = None


@dataclass
class Score:
    name: str
    points: float
    note: str | None = None
    extra: Any = None


@dataclass
class Link:
    back: Any
    next: "Link | None" = None


@dataclass
class House:
    hall: Room
    place: Point
    shed: Cell[int]


@pytest.mark.parametrize(
    ("value", "expected", "wrong"),
    [
        (House(Room("a"), Point(1), Cell(1)), House, None),
        (House(Room(3), Point(1), Cell(1)), House, "House, but .hall.name is int"),  # type: ignore[arg-type]
        (House(Room("a"), Point("a"), Cell(1)), House, "House, but .place.x is str"),  # type: ignore[arg-type]
        (House(Room("a"), Point(1), Cell("a")), House, "House, but .shed.value is str"),  # type: ignore[arg-type]
        (Report("a", [1]), Report, None),
        (Report("a", "notalist"), Report, "Report, but .counts is str"),  # type: ignore[arg-type]
        (Report("a", [1, "b"]), Report, "Report, but .counts[1] is str"),  # type: ignore[list-item]
        (Report("a", [], Room(3)), Report, "Report, but .room.name is int"),  # type: ignore[arg-type]
        ([Report(None, [])], list[Report], "[0].name is None"),  # type: ignore[arg-type]
        (object.__new__(Unset), Unset, "Unset, but .name is missing"),
        (Point(1, 2), Point, None),
        (Point("a"), Point, "Point, but .x is str"),  # type: ignore[arg-type]
        (Cell([1]), Cell[list[int]], None),
        (Cell(["a"]), Cell[int], "but .value is list"),
        (Cell(1, {"a": "b"}), Cell[int], "but .notes['a'] is str"),
        (Box("a"), Box[int], "but .item is str"),
        (Box("a"), Box, None),
        (Shelf([1]), Shelf[int], None),
        (Shelf([1, "a"]), Shelf[int], "but .items[1] is str"),
        (Shelf([], Box("a")), Shelf[int], "but .best.item is str"),
        (Shelf([], None, {"a": 1}), Shelf[str], "but .by_name['a'] is int"),
        (Shelf(["a"]), Shelf, None),
        (Score("a", 1.5), Score, None),
        (Score("a", 1, None, "x"), Score, None),
        (Score("a", True), Score, "but .points is bool"),
        (Score("a", 1.0, 3), Score, "but .note is int"),  # type: ignore[arg-type]
    ],
)
def test_the_fields_of_a_result_are_checked(value: Any, expected: Any, wrong: str | None) -> None:
    found = mismatch(value, expected)
    assert (found is None) if wrong is None else (found is not None and wrong in found), found


def test_a_result_that_contains_itself_passes() -> None:
    link = Link(None)
    link.next = link
    assert mismatch(link, Link) is None


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (Report("a", "text"), ".counts is str"),  # type: ignore[arg-type]
        (Room(3), ".name is int"),  # type: ignore[arg-type]
        (object.__new__(Unset), ".name is missing"),
        (Report("a", [1], Room("b")), None),
        (Room("hall"), None),
    ],
)
async def test_a_result_is_checked_alike_whether_or_not_its_handler_waits(
    value: Any, wrong: str | None
) -> None:
    async def at_once(params: Nothing, *, context: ToolContext) -> Any:
        return ToolResult.ok(value)

    async def later(params: Nothing, *, context: ToolContext) -> Any:
        await asyncio.sleep(0)
        return ToolResult.ok(value)

    def plainly(params: Nothing, *, context: ToolContext) -> Any:
        return ToolResult.ok(value)

    effect = StateChangeEffect(state="done", value=True)
    made = type(value)
    for tool_ in (
        Tool[Nothing, made]("at_once", "Now.", at_once),  # type: ignore[valid-type]
        Tool[Nothing, made]("later", "Later.", later),  # type: ignore[valid-type]
        Tool[Nothing, made]("plainly", "Plainly.", plainly),  # type: ignore[valid-type]
        Tool[Nothing, made]("changing", "Changes.", at_once, effects=[effect]),  # type: ignore[valid-type]
    ):
        result = await ToolRegistry([tool_]).execute(tool_.name, {})
        if wrong is None:
            assert result.success, result.message
        else:
            assert not result.success and wrong in result.message, tool_.name


def test_a_class_whose_fields_name_a_later_class_is_checked_once_that_exists() -> None:
    module = types.ModuleType("later_names")
    sys.modules["later_names"] = module
    module.__dict__.update(dataclass=dataclass)
    try:
        exec("@dataclass\nclass Hall:\n    door: 'Door'\n", module.__dict__)  # noqa: S102
        assert mismatch(module.Hall(3), module.Hall) is None
        exec("@dataclass\nclass Door:\n    pass\n", module.__dict__)  # noqa: S102
        assert "but .door is int" in str(mismatch(module.Hall(3), module.Hall))
    finally:
        del sys.modules["later_names"]


Positive = Annotated[int, msgspec.Meta(ge=1)]
Code = Annotated[str, msgspec.Meta(pattern="^a+$", max_length=3)]
PositiveId = NewType("PositiveId", Positive)


class Named(TypedDict):
    a: int
    b: NotRequired[Positive]


@dataclass(frozen=True)
class Counted:
    n: Positive
    of: Annotated[list[Code] | None, msgspec.Meta(min_length=1)] = None


DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize(
    ("expected", "good", "bad", "told"),
    [
        (Positive, 1, 0, "got 0, which is not at least 1"),
        (Annotated[float, msgspec.Meta(lt=1, gt=0)], 0.5, 1.0, "which is not less than 1"),
        (Annotated[int, msgspec.Meta(le=9, multiple_of=3)], 9, 8, "which is no multiple of 3"),
        (PositiveId, 1, 0, "which is not at least 1"),
        (Positive | None, None, 0, "got int"),
        (Code, "aaa", "bbb", "which does not match"),
        (Code, "aaa", "a" * 90_000, "of the length 90,000, more than 3"),
        (list[Positive], [1, 2], [1, 0], "but [1] is 0, which"),
        (dict[str, Positive], {"a": 1}, {"a": 0}, "is 0, which"),
        (Counted, Counted(1), Counted(0), "but .n is 0, which is not at least 1"),
        (Counted, Counted(1, ["a"]), Counted(1, []), "of the length 0, less than 1"),
        (Counted, Counted(1, ["a"]), Counted(1, ["b"]), "does not match"),
        (list[Counted], [Counted(1)], [Counted(0)], "but [0].n is 0"),
        (Named, {"a": 1, "b": 1}, {"a": 1, "b": 0}, "is 0, which"),
        (Named, {"a": 1}, {"a": 1, "c": 2}, "but ['c'] is not declared"),
        (datetime.date, DAY, NOON, "got datetime"),
        (list[datetime.date], [DAY], [NOON], "but [0] is datetime"),
        (Sequence[str], ["a"], "abc", "got str"),
        (Iterable[str], ("a",), "abc", "got str"),
        (Collection[int], [1], b"abc", "got bytes"),
        (Sequence, ["a"], "abc", "got str"),
    ],
)
def test_constraints_hold_for_values_as_the_published_schema_says(expected, good, bad, told):
    assert mismatch(good, expected) is None
    found = mismatch(bad, expected)
    assert found is not None and told in found and len(found) < 500


async def test_a_result_that_breaks_a_constraint_is_a_failure():
    @tool(description="Counts.", name="count")
    async def count(params: None, *, context: ToolContext) -> ToolResult[Counted]:
        return ToolResult.ok(Counted(0))

    result = await ToolRegistry([count]).execute("count", {})
    assert not result.success and "which is not at least 1" in result.message


Nested = Annotated[str, msgspec.Meta(pattern="^(a+)+$")]


def test_a_pattern_of_a_result_takes_no_longer_than_one_of_an_argument() -> None:
    begun = time.perf_counter()
    found = mismatch("a" * 40 + "!", Nested)
    assert found is not None and "^(a+)+$" in found
    assert mismatch("a" * 40, Nested) is None
    assert time.perf_counter() - begun < 5
