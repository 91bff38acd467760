"""Tools from functions: handlers, and plain functions with a parameter for each argument."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, function_tool, tool
from narratoria.errors import ToolFailure, ToolValidationError
from narratoria.events import CallStarted
from narratoria.session import Record


@dataclass(frozen=True)
class Forecast:
    city: str
    days: int


@dataclass(frozen=True)
class Place:
    name: str
    height: int = 0


@tool
async def weather(city: Annotated[str, msgspec.Meta(description="Where.")], days: int = 3) -> Forecast:
    """Forecast the weather.

    For a few days."""
    return Forecast(city, days)


async def test_a_plain_function_is_a_tool() -> None:
    assert (weather.name, weather.description) == ("weather", "Forecast the weather.")
    assert weather.parameters == {
        "title": "Weather",
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    registry = ToolRegistry([weather])
    result = await registry.execute("weather", {"city": "Oslo"})
    assert result.success and result.value == Forecast("Oslo", 3)
    assert result.render() == '{"city":"Oslo","days":3}'
    refused = await registry.execute("weather", {"city": 5, "hours": 1})
    assert refused.error is not None and refused.error.code == "INVALID_ARGUMENTS"
    assert refused.error.suggestions == (
        "city: expected string, got 5",
        "hours: unknown key; known: city, days",
    )


async def test_a_plain_function_may_be_sync_take_the_context_and_return_a_result() -> None:
    @tool(name="tell-all", description="Tell things.")
    def tell(things: list[Place], /, loud: bool = False, *, context: ToolContext) -> ToolResult[int]:
        context.patch({"told": {one.name: one.height for one in things}})
        return ToolResult.ok(len(things), message="LOUD" if loud else "told")

    session = Session()
    result = await ToolRegistry([tell]).execute(
        tell, {"things": [{"name": "fell", "height": 3}], "loud": True}, session=session
    )
    assert (result.value, result.message) == (1, "LOUD")
    assert session.state["told"] == {"fell": 3}


async def test_a_plain_function_without_parameters_takes_none() -> None:
    @tool(description="Nothing to it.")
    async def nothing() -> None: ...

    registry = ToolRegistry([nothing])
    assert (await registry.execute("nothing", {})).success
    assert not (await registry.execute("nothing", {"x": 1})).success


async def test_a_plain_function_fails_by_raising() -> None:
    @tool(description="Fail.")
    async def fail(code: str) -> str:
        raise ToolFailure(code, "no luck", recoverable=False)

    result = await ToolRegistry([fail]).execute(fail, {"code": "NO_LUCK"})
    assert result.error is not None and (result.error.code, result.message) == ("NO_LUCK", "no luck")


async def test_the_value_of_a_plain_function_is_held_to_its_annotation() -> None:
    @tool(description="Count.")
    async def count(upto: int) -> int:
        return "many" if upto > 3 else upto  # type: ignore[return-value]

    registry = ToolRegistry([count])
    assert (await registry.execute(count, {"upto": 2})).value == 2
    wrong = await registry.execute(count, {"upto": 4})
    assert "the result's value must be int, got str" in wrong.message


async def test_each_call_gets_a_default_of_its_own() -> None:
    @tool(description="Collect.")
    async def collect(into: list[int] = []) -> list[int]:  # noqa: B006 - what is tested
        into.append(1)
        return into

    registry = ToolRegistry([collect])
    assert [(await registry.execute(collect, {})).value for _ in range(2)] == [[1], [1]]


async def test_methods_partials_and_objects_are_tools_too() -> None:
    class Scale:
        factor = 2

        async def scale(self, number: int) -> int:
            return number * self.factor

        async def __call__(self, number: int, *, context: ToolContext) -> int:
            return number * 100

    def power(number: int, exponent: int) -> int:
        return int(number**exponent)

    made = [
        function_tool(Scale().scale, description="Double."),
        function_tool(Scale(), name="hundred", description="Times a hundred."),
        function_tool(functools.partial(power, exponent=2), name="square", description="Square."),
    ]
    registry = ToolRegistry(made)
    assert [(await registry.execute(one, {"number": 3})).value for one in made] == [6, 300, 9]


def test_a_forgotten_context_is_refused_with_what_to_add() -> None:
    with pytest.raises(ToolValidationError) as refusal:

        @tool
        async def climb(params: Place) -> ToolResult[None]:
            """Climb."""
            return ToolResult.ok(None)

    assert "tool 'climb'" in str(refusal.value)
    assert "(params: Place, *, context: ToolContext)" in str(refusal.value)


def test_what_says_nothing_of_the_arguments_is_refused_by_name() -> None:
    def several(*names: str) -> None: ...

    def any_of(**names: str) -> None: ...

    def untyped(name, height: int) -> None: ...  # type: ignore[no-untyped-def]

    def wrong_default(name: str = 5) -> None: ...  # type: ignore[assignment]

    def unknown(name: complex) -> None: ...

    for function, words in (
        (several, "parameter 'names': *names says nothing"),
        (any_of, "parameter 'names': **names says nothing"),
        (untyped, "parameter 'name': annotate it"),
        (wrong_default, "parameter 'name': its default does not fit: expected str, got int"),
        (unknown, "name"),
    ):
        with pytest.raises(ToolValidationError) as refusal:
            function_tool(function, name="t", description="Some tool.")
        assert str(refusal.value).startswith("tool 't': ") and words in str(refusal.value)


@dataclass(frozen=True)
class Light:
    target: str
    at: Place = Place("here")


class Dig(msgspec.Struct, rename="camel"):
    how_deep: int


class Heard:
    full = False

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def push(self, record: Record) -> None:
        if isinstance(record.event, CallStarted):
            self.inputs.append(record.event.input)

    async def wait(self) -> None: ...


async def test_an_instance_of_the_params_type_is_taken_for_arguments() -> None:
    @tool(description="Light something.")
    async def light(params: Light, *, context: ToolContext) -> ToolResult[str]:
        return ToolResult.ok(f"{params.target} {params.at.name}")

    @tool(description="Dig, then light.")
    async def dig(params: Dig, *, context: ToolContext) -> ToolResult[str]:
        return await context.call(light, Light("torch", Place("hole", -params.how_deep)))

    @tool(description="Rest.")
    async def rest(params: None, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    registry, session, heard = ToolRegistry([light, dig, rest]), Session(), Heard()
    session.attach(heard)
    result = await registry.execute(dig, Dig(3), session=session)
    assert result.value == "torch hole"
    assert heard.inputs == [{"howDeep": 3}, {"target": "torch", "at": {"name": "hole", "height": -3}}]
    assert (await registry.executor.execute(rest, None)).success
    wrong = await registry.execute(light, Light(target=5))  # type: ignore[arg-type]
    assert wrong.message == "light: target: expected string, got 5"
    other = await registry.execute(light, Dig(3))  # type: ignore[misc]
    assert other.error is not None and other.error.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(("where", "said"), [("v", "parameter 'v'"), ("return", "the result")])
def test_a_type_that_is_not_known_is_refused_by_its_name(where, said):
    async def weigh(v: int) -> str:
        return str(v)

    weigh.__annotations__ = {"v": "int", "return": "str", where: "list[Decimall]"}
    with pytest.raises(
        ToolValidationError, match=rf"weigh: {said} has the type list\[Decimall\], but 'Decimall'"
    ):
        tool(description="Weighs.")(weigh)
