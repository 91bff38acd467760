"""Types that msgspec does not know: paths, unions of dataclasses, other libraries' constraints, pydantic models."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import annotated_types
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from narratoria import ToolContext, ToolRegistry, ToolResult, function_tool, tool
from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import dump, parser_for, schema_for

T = TypeVar("T")


def problems(type_: Any, arguments: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ArgumentsInvalid) as refusal:
        parser_for(type_)(arguments)
    return refusal.value.problems


@dataclass(frozen=True)
class Cat:
    lives: int


@dataclass(frozen=True)
class Dog:
    lives: int
    barks: bool

    def __post_init__(self) -> None:
        if self.lives > 1:
            raise ValueError("a dog has one life")


@dataclass(frozen=True)
class Box(Generic[T]):
    inside: T
    label: Annotated[str, annotated_types.MinLen(1)] = "box"


@dataclass(frozen=True)
class House:
    """A house."""

    pets: list[Cat | Dog] = field(default_factory=list, metadata={"description": "All of them."})
    root: Path = Path("/srv")
    boxes: dict[str, Box[Path]] = field(default_factory=dict)
    next: House | Cat | None = None


class Size(pydantic.BaseModel):
    width: int = pydantic.Field(ge=1, alias="w")

    @pydantic.field_validator("width")
    @classmethod
    def check(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


@pydantic.dataclasses.dataclass(frozen=True)
class Span:
    low: int
    high: Annotated[int, pydantic.Field(le=9)]


def test_values_are_of_the_types_that_were_declared() -> None:
    made = parser_for(House)(
        {
            "pets": [{"lives": 9}, {"lives": 1, "barks": True}],
            "boxes": {"a": {"inside": "x/y"}},
            "next": {"root": "z", "next": {"lives": 7}},
        }
    )
    assert made == House(
        [Cat(9), Dog(1, True)], boxes={"a": Box(Path("x/y"))}, next=House(root=Path("z"), next=Cat(7))
    )
    assert type(made) is House and type(made.boxes["a"]) is Box and type(made.pets[1]) is Dog
    assert parser_for(House)(dump(made)) == made
    assert parser_for(House)({"root": Path("as/itself")}).root == Path("as/itself")


def test_the_schema_has_descriptions_defaults_and_references() -> None:
    schema = schema_for(House)
    assert schema["description"] == "A house."
    assert schema["properties"]["root"] == {"type": "string", "format": "path", "default": "/srv"}
    assert schema["properties"]["pets"] == {
        "type": "array",
        "description": "All of them.",
        "items": {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
    }
    assert schema["properties"]["next"] == {
        "anyOf": [{"$ref": "#/$defs/House"}, {"$ref": "#/$defs/Cat"}, {"type": "null"}],
        "default": None,
    }
    assert schema["$defs"]["House"]["additionalProperties"] is False
    assert "stand-in" not in str(schema)


def test_a_refusal_names_the_path_also_inside_stand_ins() -> None:
    assert problems(House, {"pets": [{"lives": 9}, {"lives": 1, "barks": "loud"}]}) == (
        "pets[1]: fits none of 2 alternatives: pets[1].barks: unknown key; known: lives / "
        'pets[1].barks: expected boolean, got "loud"',
    )
    assert problems(House, {"boxes": {"a": {"inside": 5, "label": ""}}, "rooms": 1, "root": 1}) == (
        "boxes.a.inside: expected string, got 5",
        'boxes.a.label: expected at least 1 characters, got ""',
        "root: expected string, got 1",
        "rooms: unknown key; known: pets, root, boxes, next",
    )
    # rules that no schema has
    assert problems(House, {"next": {"pets": [{"lives": 2, "barks": True}]}}) == (
        "next.pets[0]: a dog has one life",
    )
    assert problems(House, {"pets": [{"lives": 9.0}]}) == ("pets[0].lives: expected int, got 9.0",)


def test_constraints_of_other_libraries_are_kept() -> None:
    @dataclass(frozen=True)
    class Bounds:
        count: Annotated[int, annotated_types.Interval(gt=0, le=9)]
        name: Annotated[str | None, pydantic.Field(max_length=3, description="Its name.")] = None
        kinds: Annotated[list[Annotated[str, "a kind"]], annotated_types.Len(1)] = field(
            default_factory=lambda: ["x"]
        )
        at: Annotated[datetime.datetime, annotated_types.Timezone(None)] | None = None
        word: Annotated[str, pydantic.StringConstraints(pattern="^[a-z]+$")] = "a"

    schema = schema_for(Bounds)["properties"]
    assert schema["count"] == {"type": "integer", "exclusiveMinimum": 0, "maximum": 9}
    assert schema["name"] == {
        "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}],
        "description": "Its name.",
        "default": None,
    }
    assert schema["kinds"]["items"] == {"type": "string", "description": "a kind"}
    assert parser_for(Bounds)({"count": 9}) == Bounds(9)
    assert problems(Bounds, {"count": 0, "name": "long", "kinds": [], "word": "A"}) == (
        "count: expected more than 0, got 0",
        'name: expected at most 3 characters, got "long"',
        "kinds: expected at least 1 items, got []",
        'word: expected text matching ^[a-z]+$, got "A"',
    )


class Free(NamedTuple):
    at: Path
    many: Annotated[int, annotated_types.Ge(1)] = 1


class Loose(TypedDict, total=False):
    at: Path


class Tagged(msgspec.Struct, tag=True, rename="camel"):
    the_path: Path
    many: Annotated[int, annotated_types.Ge(1)] = 1


def test_named_tuples_typed_dicts_and_structs_may_hold_them_too() -> None:
    params = make_dataclass("Params", [("free", Free), ("loose", Loose), ("tagged", Tagged | Cat)])
    made = parser_for(params)(
        {"free": ["a"], "loose": {"at": "b"}, "tagged": {"type": "Tagged", "thePath": "c", "many": 2}}
    )
    assert made.free == Free(Path("a")) and type(made.free) is Free
    assert made.loose == {"at": Path("b")}
    assert made.tagged == Tagged(Path("c"), 2)
    assert problems(params, {"free": ["a", 0], "loose": {"to": "b"}, "tagged": {"lives": 1}}) == (
        "free[1]: expected 1 or more, got 0",
        "loose.to: unknown key; known: at",
    )


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[str, annotated_types.Predicate(str.islower)], "a JSON Schema has no such rule"),
        (Annotated[str, annotated_types.Gt(3)], "gt=3 says nothing of str"),
        (Annotated[datetime.date, annotated_types.Ge(datetime.date(2020, 1, 1))], "ge="),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=3)], "max_digits=3"),
        (Annotated[str, pydantic.Field(alias="other")], "Field(alias=…)"),
        (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], "arguments are never changed"),
        (Annotated[str, pydantic.AfterValidator(str.upper)], "a JSON Schema has no such rule"),
        (Annotated[Cat | Dog, annotated_types.MinLen(1)], "min_length=1 says nothing of"),
        (dict[Path, int], "keys are text in JSON"),
        (list[complex], "complex"),
    ],
)
def test_what_cannot_be_expressed_is_refused_with_tool_and_field(hint: Any, words: str) -> None:
    inner = make_dataclass("Inner", [("path", Path), ("rule", hint)])

    def plain(rule: Any) -> None: ...

    plain.__annotations__["rule"] = hint
    handler_of = make_dataclass("Params", [("inner", list[inner])])  # type: ignore[valid-type]
    for make, field_name in (
        (lambda: function_tool(plain, name="lamp", description="A lamp."), ".rule"),
        (lambda: schema_for(inner, name="lamp"), "Inner.rule"),
        (lambda: schema_for(handler_of, name="lamp"), "inner"),
    ):
        with pytest.raises(ToolValidationError) as refusal:
            make()
        said = str(refusal.value)
        assert said.startswith("tool 'lamp': ") and field_name.lower() in said.lower() and words in said, said


async def test_a_pydantic_model_is_a_params_type() -> None:
    @tool(description="Measure.")
    async def measure(params: Size, *, context: ToolContext) -> ToolResult[Size]:
        assert type(params) is Size
        return ToolResult.ok(params)

    registry = ToolRegistry([measure])
    result = await registry.execute(measure, {"w": 4})
    assert result.value == Size(w=4) and result.render() == '{"w":4}'
    assert (await registry.execute(measure, Size(w=6))).value == Size(w=6)
    for arguments, words in (
        ({"w": 0}, "w: expected 1 or more, got 0"),
        ({"w": "4"}, 'w: expected int, got "4"'),
        ({"w": 4, "x": 1}, "x: unknown key; known: w"),
        ({"w": 3}, "w: value error, must be even"),
    ):
        refused = await registry.execute(measure, arguments)
        assert refused.error is not None and refused.error.suggestions == (words,)


def test_pydantic_types_may_be_nested() -> None:
    params = make_dataclass("Params", [("sizes", list[Size]), ("span", Span | None, None)])
    made = parser_for(params)({"sizes": [{"w": 2}], "span": {"low": 1, "high": 3}})
    assert made.sizes == [Size(w=2)] and made.span == Span(1, 3)
    assert problems(params, {"sizes": [{"w": 2}, {"w": 3}]}) == ("sizes[1].w: value error, must be even",)
    assert problems(params, {"sizes": [{"w": 2, "h": 1}], "span": {"low": 1, "high": 10}}) == (
        "sizes[0].h: unknown key; known: w",
        "span.high: expected 9 or less, got 10",
    )


async def test_a_plain_function_takes_all_of_them() -> None:
    @tool
    def collect(
        into: Annotated[Path, "a folder"],
        pets: list[Cat | Dog],
        size: Size,
        days: int = pydantic.Field(3, ge=1, description="How long."),
        count: int = pydantic.Field(ge=0),
    ) -> str:
        """Collect things."""
        return f"{into!r} {pets} {size.width} {days} {count}"

    assert collect.parameters["properties"]["days"] == {
        "type": "integer", "minimum": 1, "description": "How long.", "default": 3
    }  # fmt: skip
    assert collect.parameters["properties"]["into"]["description"] == "a folder"
    assert collect.parameters["required"] == ["into", "pets", "size", "count"]
    result = await ToolRegistry([collect]).execute(
        collect, {"into": "a", "pets": [{"lives": 3}], "size": {"w": 2}, "count": 0}
    )
    assert result.value == f"{Path('a')!r} [Cat(lives=3)] 2 3 0", result


def test_classes_of_one_name_are_told_apart() -> None:
    def another() -> Any:
        @dataclass(frozen=True)
        class Cat:
            whiskers: Path

        return Cat

    wild = another()
    boxes = Box[Annotated[int, annotated_types.Ge(1)]] | Box[Annotated[str, annotated_types.MinLen(2)]]
    params: Any = make_dataclass("Params", [("one", Cat | wild | another()), ("box", boxes)])
    made = parser_for(params)({"one": {"whiskers": "x"}, "box": {"inside": "ab"}})
    assert made.one == wild(Path("x")) and made.box == Box("ab")
    assert not any("description" in one for one in schema_for(params)["$defs"].values())
    assert parser_for(params)({"one": {"lives": 9}, "box": {"inside": 1}}).one == Cat(9)


def test_the_order_of_a_union_decides_where_both_fit() -> None:
    for hint, type_ in ((Path | str, Path), (str | Path, str)):
        params = make_dataclass("Params", [("at", hint)])
        assert isinstance(parser_for(params)({"at": "x"}).at, type_)


def test_neither_pydantic_nor_annotated_types_is_imported_for_tools_without_them() -> None:
    program = """
import sys
from narratoria import tool
from pathlib import Path
@tool
def look(at: Path | int) -> None:
    "Look."
print([name for name in ("pydantic", "annotated_types") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
