"""A backoff, an effect or a precondition of a module of its own needs one line of ours: its place in a table."""

import json
import subprocess
import sys
import textwrap

import pytest

from narratoria.tools.backoff import Backoff
from narratoria.tools.contract.effects import Effect
from narratoria.tools.contract.preconditions import Precondition

BACKOFF = """
    from __future__ import annotations
    import random
    from narratoria.tools import backoff
    from narratoria.tools.backoff import Backoff, Seconds

    class Fibonacci(Backoff, tag="fibonacci", frozen=True):
        '''A wait that grows as the Fibonacci numbers do.'''
        unit: Seconds
        inside: backoff.AnyBackoff | None = None

        def delay(self, attempt: int, rng: random.Random | None = None) -> float:
            one, two = 1, 1
            for _ in range(attempt - 1):
                one, two = two, one + two
            return self.unit * one
"""
USE_BACKOFF = """
    import narratoria.tools.backoff as table
    table.BACKOFFS += ("author_kind:Fibonacci",)
    from narratoria.errors import ToolValidationError
    from narratoria.kinds.manifest import parse_manifest
    from narratoria.tools.retry import policy_from_data

    read = {"type": "fibonacci", "unit": 0.5, "inside": {"type": "fibonacci", "unit": 1}}
    for backoff in (read, {"type": "jittered", "base": read, "jitter": 0}):
        policy = policy_from_data({"maxRetries": 5, "backoff": backoff})
        print([policy.backoff.delay(n) for n in (1, 2, 3, 4, 5)])
    retry = {"maxRetries": 5, "backoff": {"type": "fibonacci", "unit": 500}}
    try:
        parse_manifest({"name": "a", "description": "A.", "retry": retry}, where="a.tool.json")
    except ToolValidationError as error:
        print(error)
"""

EFFECT = """
    from dataclasses import dataclass
    from narratoria.tools.contract.effects import Effect
    from narratoria.tools.contract.keys import TEXT

    @dataclass(frozen=True, kw_only=True)
    class PushEffect(Effect):
        '''Adds a value to the end of a list of the state.'''
        type = "push"
        keys = {"list": TEXT}
        required_keys = ("list",)
        list: str

        def consequence(self):
            return f"push to {self.list!r}"

        def writes(self):
            return [f"the state {self.list!r}"]

        async def perform(self, a_call):
            before = a_call.context.session.state.get(self.list, [])
            a_call.context.session.add_state_change(self.list, "set", [*before, "x"])
"""
USE_EFFECT = """
    import asyncio, json
    import narratoria.tools.contract.contract_data as table
    table.EFFECTS += ("author_kind:PushEffect",)
    from narratoria import Session, Tool, ToolRegistry, ToolResult
    from narratoria.mcp_server.annotations import annotations_of
    from narratoria.run.lint import lint_plan
    from narratoria.run.resolve import ToolResolver
    from narratoria.tools.contract import effects_from_data

    async def work(params, *, context):
        return ToolResult.ok(None)

    tool = Tool("work", "Works.", work, parameters={"type": "object"},
                effects=effects_from_data([{"type": "push", "list": "log"}]))
    registry, session = ToolRegistry([tool]), Session()
    asyncio.run(registry.execute("work", {}, session=session))
    print(session.state)
    calls = [{"toolId": one, "toolPath": "work", "input": {}, "async": True} for one in ("a", "b")]
    plan = json.dumps({"requestId": "p", "parallel": True, "tools": calls})
    print(lint_plan(plan, ToolResolver(registry, [])).conflicts)
    print(annotations_of(tool))
"""

PRECONDITION = """
    from dataclasses import dataclass
    from narratoria.tools.contract.keys import TEXT
    from narratoria.tools.contract.preconditions import Precondition

    @dataclass(frozen=True, kw_only=True)
    class HeldPrecondition(Precondition):
        '''A thing is in the inventory.'''
        type = "held"
        keys = {"thing": TEXT}
        required_keys = ("thing",)
        thing: str

        def requirement(self):
            return f"you must hold {self.thing!r}"

        def holds(self, context):
            return self.thing in context.session.state.get("inventory", [])
"""
USE_PRECONDITION = """
    import asyncio
    import narratoria.tools.contract.contract_data as table
    table.PRECONDITIONS += ("author_kind:HeldPrecondition",)
    from narratoria import Session, Tool, ToolRegistry, ToolResult
    from narratoria.kinds.manifest import parse_manifest
    from narratoria.tools.contract import preconditions_from_data

    async def work(params, *, context):
        return ToolResult.ok(None)

    data = [{"type": "held", "thing": "key"}]
    parse_manifest({"name": "a", "description": "A.", "preconditions": data}, where="a.tool.json")
    tool = Tool("work", "Works.", work, parameters={"type": "object"},
                preconditions=preconditions_from_data(data))
    for state in ({}, {"inventory": ["key"]}):
        result = asyncio.run(ToolRegistry([tool]).execute("work", {}, session=Session(state=state)))
        print(result.success)
"""


def run(tmp_path, module: str, use: str) -> list[str]:
    (tmp_path / "author_kind.py").write_text(textwrap.dedent(module))
    (tmp_path / "use.py").write_text(textwrap.dedent(use))
    done = subprocess.run([sys.executable, tmp_path / "use.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_backoff_is_a_module_and_a_line(tmp_path):
    lines = run(tmp_path, BACKOFF, USE_BACKOFF)
    assert lines[:2] == ["[0.5, 0.5, 1.0, 1.5, 2.5]"] * 2
    assert "backoff.unit: 500" in lines[2] and "for 500 ms write 0.5" in lines[2]


def test_an_effect_is_a_module_and_a_line_and_lint_and_hints_know_it(tmp_path):
    lines = run(tmp_path, EFFECT, USE_EFFECT)
    assert lines[0] == "{'log': ['x']}"
    assert lines[1] == "[\"a, b may run at the same time and all set the state 'log'\"]"
    hints = json.loads(lines[2].replace("'", '"').replace("False", "false").replace("True", "true"))
    assert hints == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    }


def test_a_precondition_is_a_module_and_a_line(tmp_path):
    assert run(tmp_path, PRECONDITION, USE_PRECONDITION) == ["False", "True"]


DUPLICATES = """
    import narratoria.tools.backoff as backoffs
    import narratoria.tools.contract.contract_data as table
    backoffs.BACKOFFS += ("author_kind:Fibonacci",)
    table.EFFECTS += ("author_kind:PushEffect",)
    table.PRECONDITIONS += ("author_kind:HeldPrecondition",)
    from narratoria.errors import ToolValidationError

    for read in (backoffs.any_backoff, table.effects_schema, table.preconditions_schema):
        try:
            read()
        except ToolValidationError as error:
            print(error)
"""


def test_two_of_one_name_are_refused_by_name(tmp_path):
    own = [textwrap.dedent(one) for one in (BACKOFF, EFFECT, PRECONDITION)]
    module = "\n".join(own)
    for name, taken in (("fibonacci", "linear"), ("push", "memory"), ("held", "state")):
        module = module.replace(f'"{name}"', f'"{taken}"')
    assert run(tmp_path, module, DUPLICATES) == [
        "backoff: LinearBackoff and Fibonacci both have the tag 'linear'; rename one",
        "effects: MemoryEffect and PushEffect both have the type 'memory'; rename one",
        "preconditions: StatePrecondition and HeldPrecondition both have the type 'state'; rename one",
    ]


def test_what_a_kind_lacks_is_named():
    with pytest.raises(TypeError, match="Smell has no type"):
        type("Smell", (Effect,), {})
    with pytest.raises(TypeError, match="Near has no type"):
        type("Near", (Precondition,), {})
    with pytest.raises(NotImplementedError, match=r"Smell has no consequence\(\)"):
        type("Smell", (Effect,), {"type": "smell"})()
    with pytest.raises(NotImplementedError, match=r"Near has no holds\(\)"):
        type("Near", (Precondition,), {"type": "near"})(description="near").holds(None)
    with pytest.raises(NotImplementedError, match=r"Backoff has no delay\(\)"):
        Backoff().delay(1)


@pytest.mark.parametrize(
    ("module", "table"),
    [
        ("backoff", "BACKOFFS"),
        ("contract.contract_data", "EFFECTS"),
        ("contract.contract_data", "PRECONDITIONS"),
    ],
)
def test_each_line_of_a_table_names_a_class_that_is_there(module, table):
    from importlib import import_module
    from pkgutil import resolve_name

    for place in getattr(import_module(f"narratoria.tools.{module}"), table):
        assert isinstance(resolve_name(place), type), place
