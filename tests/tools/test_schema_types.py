"""One Python type means one thing, wherever it stands, and its schema says what."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

import annotated_types
import jsonschema_rs
import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import dump, parser_for, schema_for


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Point:
    x: int
    at: datetime.date | None = None


class Circle(msgspec.Struct, tag="circle", frozen=True):
    radius: int
    since: datetime.datetime | None = None


class Square(msgspec.Struct, tag="square", frozen=True):
    side: decimal.Decimal


class Pair(NamedTuple):
    when: datetime.time
    much: int = 1


class Row(msgspec.Struct, array_like=True):
    when: datetime.date
    much: int = 1


class Options(TypedDict, total=False):
    wait: datetime.timedelta


@dataclass(frozen=True)
class Cat:
    lives: int
    home: Path | None = None


@dataclass(frozen=True)
class Dog:
    lives: int
    barks: bool
    pups: tuple[Cat | Dog, ...] = ()


@dataclass(frozen=True)
class Cage:
    v: Cat | Dog
    depth: Annotated[int, annotated_types.Ge(0)] = 0


class Nest(msgspec.Struct, frozen=True, rename="upper"):
    eggs: Annotated[int, annotated_types.Interval(ge=0, le=3)]
    where: Path = Path("tree")


class Bowl(pydantic.BaseModel):
    """A bowl."""

    model_config = pydantic.ConfigDict(frozen=True)
    size: int = pydantic.Field(ge=1)
    since: datetime.date | None = None
    inner: Bowl | None = None


Count = NewType("Count", int)
Local = Annotated[datetime.datetime, msgspec.Meta(tz=False)]
LocalTime = Annotated[datetime.time, msgspec.Meta(tz=False)]

TYPES: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "str": str, "None": None, "Any": Any,
    "Decimal": decimal.Decimal, "date": datetime.date, "datetime": datetime.datetime, "time": datetime.time,
    "timedelta": datetime.timedelta, "UUID": uuid.UUID, "bytes": bytes, "bytearray": bytearray,
    "local": Local, "local time": LocalTime, "aware": Annotated[datetime.datetime, msgspec.Meta(tz=True)],
    "Enum": Colour, "IntEnum": Level, "Flag": Access, "Literal": Literal["x", 3, None], "NewType": Count,
    "ge": Annotated[int, msgspec.Meta(ge=0, lt=10)], "gt": Annotated[float, msgspec.Meta(gt=0)],
    "length": Annotated[str, msgspec.Meta(min_length=1, max_length=3)],
    "pattern": Annotated[str, msgspec.Meta(pattern="^a+$")],
    "multiple": Annotated[int, msgspec.Meta(multiple_of=5)],
    "set": set[int], "dates": frozenset[datetime.date], "bare set": set, "tuple": tuple[int, datetime.date],
    "tuples": tuple[datetime.time, ...], "list": list[decimal.Decimal],
    "dict[int]": dict[int, str], "dict[date]": dict[datetime.date, uuid.UUID], "dict[UUID]": dict[uuid.UUID, int],
    "dict[Enum]": dict[Colour, int], "dict[IntEnum]": dict[Level, int], "dict[Literal]": dict[Literal["p", "q"], int],
    "dict[str]": dict[str, datetime.timedelta], "dict[length]": dict[Annotated[str, msgspec.Meta(min_length=2)], int],
    "union": int | datetime.date | None | list[decimal.Decimal] | dict[int, uuid.UUID],
    "number": int | float, "dataclass": Point, "tagged": Circle | Square | None | int,
    "NamedTuple": Pair, "array": Row, "TypedDict": Options,
    "Path": Path, "PurePath": PurePosixPath, "path or number": Path | int, "path or text": Path | str,
    "dataclasses": Cat | Dog, "dataclasses and more": Cat | Dog | int | None | list[Cat | Dog], "cage": Cage,
    "enum or text": Point | Colour | str, "untagged": Nest | Cat, "lists": list[int] | list[str],
    "dicts": dict[str, int] | dict[str, list[Path]],
    "annotated_types": Annotated[int, annotated_types.Gt(0), annotated_types.MultipleOf(3)],
    "in a union": Annotated[int | str | None, annotated_types.Le(3), annotated_types.MaxLen(2)],
    "Field": Annotated[float, pydantic.Field(gt=0.5, description="More than a half.")],
    "Field of text": Annotated[str, pydantic.Field(min_length=1, pattern="^[a-z]")],
    "Len": Annotated[list[Annotated[int, annotated_types.Ge(1)]], annotated_types.Len(1, 2)],
    "described": Annotated[int, "how many"], "model": Bowl, "models": Bowl | Cat | None,
}  # fmt: skip

VALUES: list[Any] = [
    None, True, False, 0, 1, 3, 5, -1, 2**70, 10**400, 1.0, 1.5, -0.0, 1e300, math.inf, math.nan,
    "", "x", "red", "RED", "1", "5", "01", "-1", "1.5", ".5", "5.", "+5", "NaN", "Infinity", "1e5", "1e99999",
    " 5", "1_000",
    "2020-01-01", "2020-02-30", "2020-13-01", "20200101", "2020-01-01T10:00:00", "2020-01-01T10:00:00Z",
    "2020-01-01T10:00:00+02:00", "2020-01-01 10:00:00", "2020-01-01 10:00:00Z", "2020-01-01t10:00:00z",
    "2020-01-01T10:00Z", "2020-01-01T24:00:00Z", "2020-01-01T10:00:00.1234567Z", "2020-01-01T10:00:00,5Z",
    "2020-01-01T10:00:00.25",
    "10:00:00", "10:00:00Z", "10:00:00+01:00", "10:00", "25:00:00", "10:00:00.5",
    "P1D", "PT5S", "P1Y", "P1M", "P1W", "P1DT2H", "-P1D", "+P1D", "PT1.5S", "p1d", "P", "PT", "P1DT", "P1D1W",
    "P1.5D", "PT36H",
    "PT1H1S", "P99999999999D", "12345678-1234-5678-1234-567812345678", "12345678-1234-5678-1234-56781234567A",
    "12345678123456781234567812345678", "{12345678-1234-5678-1234-567812345678}",
    "urn:uuid:12345678-1234-5678-1234-567812345678",
    "YWJj", "YWI", "YWI=", "YQ==", "a b=", "YW-_", "YQ==\n", "aaa", "aaa\n", "aaaa", "b", "p", "日本", "日本語文",
    [], [1], [1, 2], [1, 1], [1, "2020-01-01"], [1, "2020-01-01", 2], ["2020-01-01"],
    ["2020-01-01", "2020-01-01"], ["2020-01-01", 2],
    ["2020-01-01", 2, 3], ["10:00:00Z"], ["10:00:00Z", 4], ["10:00:00"], ["1.5"], [1.5], [[1, 2]], [{}], [None],
    [True], [True, 1],
    {}, {"1": "x"}, {"x": 1}, {"1": 1}, {"01": "x"}, {"-1": "x"}, {"-0": "x"}, {"1.0": "x"}, {" 1": "x"},
    {"1": 5}, {"p": 1}, {"red": 1},
    {"2020-01-01": "12345678-1234-5678-1234-567812345678"}, {"2020-01-01": 1}, {"xy": 1}, {"wait": "PT1S"},
    {"wait": 1},
    {"wait": "PT1S", "z": 1}, {"x": 1, "at": "2020-01-01"}, {"x": 1, "at": "soon"}, {"x": 1, "z": 1}, {"x": True},
    {"12345678-1234-5678-1234-567812345678": 1}, {"12345678-1234-5678-1234-56781234567A": 1},
    {"1": "12345678-1234-5678-1234-567812345678"}, {"1": "12345678123456781234567812345678"},
    {"type": "circle", "radius": 1}, {"type": "circle", "radius": 1, "since": "2020-01-01T10:00:00"},
    {"lives": 9}, {"lives": 9, "home": "/tmp"}, {"lives": 9, "home": 3}, {"lives": 9, "barks": True},
    {"lives": 9, "barks": True, "pups": [{"lives": 1, "home": "x"}, {"lives": 1, "barks": False}]},
    {"lives": 9, "barks": True, "pups": [{"lives": 1, "tail": 1}]}, {"lives": 9, "tail": 1}, {"lives": 1.5},
    {"v": {"lives": 9}}, {"v": {"lives": 9}, "depth": -1}, {"v": {"lives": 9, "barks": False}, "depth": 1},
    {"EGGS": 1}, {"EGGS": 4}, {"EGGS": 1, "WHERE": "roof"}, {"eggs": 1}, {"size": 1}, {"size": 0}, {"size": "1"},
    {"size": 2, "since": "2020-01-01", "inner": {"size": 1}}, {"size": 2, "inner": {"size": 0}},
    {"size": 2, "colour": "red"}, {"size": 2, "inner": {"size": 1, "colour": "red"}}, ["x", "y"], {"x": ["a", "b"]},
    {"type": "square", "side": "1.5"}, {"type": "square", "side": 1.5}, {"type": "cube"}, {"radius": 1},
]  # fmt: skip


def positions(type_: Any) -> dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]]:
    """Everywhere a type may stand: the parameters, the value wrapped for them, and the way back to what was parsed."""
    inner: Any = make_dataclass("Inner", [("v", type_)])
    struct = msgspec.defstruct("InStruct", [("v", type_)])
    typed_dict: Any = TypedDict("typed_dict", {"v": type_})  # type: ignore[misc]
    # Not `Optional`: typing keeps what it made, so `Optional[Path | str]` is `Optional[str | Path]` if that came first.
    maybe = None if type_ is None else type_ | None
    after: Any = make_dataclass("After", [("v", type_), ("w", int, 1)])

    def flat(value: Any) -> Any:
        return {"v": value}

    def at(*path: Any) -> Callable[[Any], Any]:
        def read(parsed: Any) -> Any:
            for step in path:
                parsed = (
                    getattr(parsed, step) if isinstance(step, str) and hasattr(parsed, step) else parsed[step]
                )
            return parsed

        return read

    return {
        "flat": (make_dataclass("Flat", [("v", type_)]), flat, at("v")),
        "beside another": (after, flat, at("v")),
        "slots": (make_dataclass("Slotted", [("v", type_)], slots=True), flat, at("v")),
        "struct": (struct, flat, at("v")),
        "optional": (make_dataclass("Maybe", [("v", maybe)]), flat, at("v")),
        "nested": (make_dataclass("Outer", [("v", inner)]), lambda v: {"v": {"v": v}}, at("v", "v")),
        "in a struct": (make_dataclass("Outer2", [("v", struct)]), lambda v: {"v": {"v": v}}, at("v", "v")),
        "in a dict": (make_dataclass("Dict", [("v", dict[str, type_])]), lambda v: {"v": {"k": v}}, at("v", "k")),
        "in a list": (make_dataclass("List", [("v", list[type_])]), lambda v: {"v": [v]}, at("v", 0)),
        "in a tuple": (make_dataclass("Tuple", [("v", tuple[type_, int])]), lambda v: {"v": [v, 1]}, at("v", 0)),
        "typed dict": (make_dataclass("Typed", [("v", typed_dict)]), lambda v: {"v": {"v": v}}, at("v", "v")),
        "in structs": (msgspec.defstruct("D", [("v", list[struct])]), lambda v: {"v": [{"v": v}]}, at("v", 0, "v")),
    }  # fmt: skip


def integral(value: Any) -> bool:
    """A whole number written as a float: an `integer` to JSON Schema, not an int to us (docs/arguments.md)."""
    if isinstance(value, dict):
        return any(map(integral, value.values()))
    if isinstance(value, list):
        return any(map(integral, value))
    return isinstance(value, float) and math.isfinite(value) and value == int(value)


def huge(value: Any) -> bool:
    """An integer that no float holds."""
    return isinstance(value, int) and abs(value) > 10**308


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if number % 3 else ()) for number, name in enumerate(TYPES)],
)
def test_a_type_takes_the_same_values_everywhere_and_its_schema_says_which(name: str) -> None:
    places = positions(TYPES[name])
    parsers = {place: parser_for(type_) for place, (type_, _, _) in places.items()}
    schemas = {
        place: jsonschema_rs.Draft202012Validator(schema_for(type_), validate_formats=True)
        for place, (type_, _, _) in places.items()
    }
    taken = 0
    for value in VALUES:
        results: dict[str, Any] = {}
        for place, (_, wrap, read) in places.items():
            try:
                results[place] = ("taken", read(parsers[place](wrap(value))))
            except ArgumentsInvalid as error:
                assert error.problems
                results[place] = "refused"
        if value is None:
            assert results.pop("optional") == ("taken", None)
        assert len({str(result) for result in results.values()}) == 1, (value, results)
        for place in results:
            valid = schemas[place].is_valid(places[place][1](value))
            if valid and (integral(value) or huge(value)):
                continue
            assert valid is (results[place] != "refused"), (place, value, schema_for(places[place][0]))
        if results["flat"] != "refused" and value not in (math.inf, VALUES[15]):  # which Any lets through
            taken += 1
            again = dump(results["flat"][1])
            assert parsers["flat"]({"v": again}).v == results["flat"][1]
    assert taken, "none of the values is of the type"


# What a value is written as, it is read from: for every type, everywhere.
WRITTEN: dict[Any, st.SearchStrategy[Any]] = {
    decimal.Decimal: st.decimals(allow_nan=False, allow_infinity=False, places=3),
    datetime.date: st.dates(),
    datetime.datetime: st.datetimes(timezones=st.just(datetime.UTC)),
    datetime.time: st.times(timezones=st.just(datetime.UTC)),
    datetime.timedelta: st.integers(0, 10**10).map(lambda seconds: datetime.timedelta(seconds=seconds)),
    uuid.UUID: st.uuids(),
    bytes: st.binary(),
    Local: st.datetimes(),
    LocalTime: st.times(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(),
    Colour: st.sampled_from(Colour),
    dict[int, str]: st.dictionaries(st.integers(), st.text()),
    dict[datetime.date, int]: st.dictionaries(st.dates(), st.integers()),
    frozenset[datetime.date]: st.frozensets(st.dates()),
    set[int]: st.sets(st.integers()),
    tuple[int, uuid.UUID]: st.tuples(st.integers(), st.uuids()),
    Circle | Square: st.builds(Circle, st.integers()) | st.builds(Square, st.decimals(-9, 9, places=2)),
}  # fmt: skip
PARSERS = {
    type_: {place: (parser_for(one), wrap, read) for place, (one, wrap, read) in positions(type_).items()}
    for type_ in WRITTEN
}


@pytest.mark.parametrize("type_", WRITTEN, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_is_read_again_everywhere(type_: Any, data: st.DataObject) -> None:
    value = data.draw(WRITTEN[type_])
    for parse, wrap, read in PARSERS[type_].values():
        assert read(parse(wrap(dump(value)))) == value
        assert read(parse(wrap(value))) == value, "a Python caller may pass the value itself"


@pytest.mark.parametrize(
    ("type_", "part"),
    [
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
    ],
)
def test_the_schema_names_the_format(type_: Any, part: Any) -> None:
    assert schema_for(make_dataclass("P", [("v", type_)]))["properties"]["v"] == part
    assert schema_for(make_dataclass("P", [("v", list[type_])]))["properties"]["v"]["items"] == part
    maybe = schema_for(make_dataclass("P", [("v", type_ | None)]))["properties"]["v"]
    assert part in maybe["anyOf"]


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (dict[float, int], "dict with float keys.*dict\\[str"),
        (dict[bool, int], "dict with bool keys"),
        (dict[tuple[int, int], int], "dict with tuple keys"),
        (dict[decimal.Decimal, int], "dict with decimal keys"),
        (list[dict[float, int]], "dict with float keys"),
        (msgspec.Raw, "use Any"),
        (set[list[int]], "hashable"),
        (set[dict[str, int]], "hashable"),
        (complex, "complex"),
    ],
)
def test_what_json_cannot_say_is_refused_when_the_tool_is_made(type_: Any, reason: str) -> None:
    with pytest.raises(ToolValidationError, match=f"tool 'lamp'.*{reason}"):
        parser_for(make_dataclass("P", [("v", type_)]), name="lamp")


@pytest.mark.parametrize(
    ("type_", "value", "problem"),
    [
        (datetime.datetime, "2020-01-01T10:00:00", "a date-time with an offset (2026-03-01T12:00:00Z), got "),
        (Local, "2020-01-01T10:00:00Z", "a date-time without an offset (2026-03-01T12:00:00), got "),
        (datetime.timedelta, "1 hour", 'a duration in days to whole seconds (P1DT2H30M), got "1 hour"'),
        (decimal.Decimal, "x", 'a decimal as text ("12.50"), got "x"'),
        (bytes, "?", 'base64 text, got "?"'),
        (float, math.nan, "number"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_told_what_is_meant(type_: Any, value: Any, problem: str) -> None:
    for place, (one, wrap, _) in positions(type_).items():
        if place not in ("optional",):
            with pytest.raises(ArgumentsInvalid) as caught:
                parser_for(one)(wrap(value))
            assert f"expected {problem}" in "; ".join(caught.value.problems)


def test_a_wrong_key_is_named() -> None:
    parse = parser_for(make_dataclass("P", [("v", dict[int, str])]))
    assert parse({"v": {"1": "x"}}).v == {1: "x"}
    with pytest.raises(ArgumentsInvalid, match='v: key "one": expected a whole number as text'):
        parse({"v": {"one": "x"}})


@pytest.mark.parametrize("type_", [str, list[str], str | None])
def test_a_pattern_of_a_type_cannot_hang_the_runtime(type_: Any) -> None:
    slow = Annotated[str, msgspec.Meta(pattern="^(a|a)*$")]
    held: Any = {str: slow, list[str]: list[slow], str | None: slow | None}[type_]  # type: ignore[index]
    parse = parser_for(make_dataclass("P", [("v", held)]))
    long = "a" * 40 + "b"
    began = time.process_time()
    with pytest.raises(ArgumentsInvalid, match="text matching"):
        parse({"v": [long] if type_ == list[str] else long})
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("key", "fitting", "wrong"),
    [
        (Annotated[int, msgspec.Meta(ge=0)], ["0", "17"], ["-1", "x", "01"]),
        (Annotated[int, msgspec.Meta(gt=0)], ["1", "17"], ["0", "-1"]),
        (Annotated[int, msgspec.Meta(ge=-2, lt=3)], ["-2", "0", "2"], ["-3", "3"]),
        (Annotated[int, msgspec.Meta(ge=0, le=100, multiple_of=10)], ["0", "100"], ["5", "110"]),
    ],
)
def test_bounds_of_number_keys_are_published(key: Any, fitting: list[str], wrong: list[str]) -> None:
    made = msgspec.defstruct("Keyed", [("d", dict[key, int])])
    validator, parse = jsonschema_rs.Draft202012Validator(schema_for(made)), parser_for(made)
    for one in fitting:
        assert validator.is_valid({"d": {one: 1}})
        assert parse({"d": {one: 1}}).d == {int(one): 1}
    for one in wrong:
        assert not validator.is_valid({"d": {one: 1}})
        with pytest.raises(ArgumentsInvalid):
            parse({"d": {one: 1}})


def test_bounds_of_number_keys_that_no_schema_can_say_are_refused() -> None:
    made = msgspec.defstruct("Keyed", [("d", dict[Annotated[int, msgspec.Meta(ge=17)], int])])
    with pytest.raises(ToolValidationError, match="ge=0, ge=1 or a range of 1,000 numbers"):
        schema_for(made)


def test_a_step_that_no_float_can_be_is_refused() -> None:
    made = msgspec.defstruct("Stepped", [("v", Annotated[float, msgspec.Meta(multiple_of=0.1)])])
    with pytest.raises(ToolValidationError, match=r"multiple_of=0\.1 has no exact float"):
        schema_for(made)
    half = msgspec.defstruct("Halves", [("v", Annotated[float, msgspec.Meta(multiple_of=0.5)])])
    assert parser_for(half)({"v": 1.5}).v == 1.5
