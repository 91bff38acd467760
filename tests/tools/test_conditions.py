"""One condition language for manifests, rules and lore."""

from typing import Any

import pytest

from narratoria.state import MISSING
from narratoria.tools.contract import matches
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.expectations import OPERATORS, WORDS, ConditionError

STATE: dict[str, Any] = {"place": "cellar", "lamp": {"oil": 3, "lit": True}, "bag": ["rope"], "empty": {}}


@pytest.mark.parametrize(
    ("table", "holds"),
    [
        ({}, True),
        ({"place": "cellar"}, True),
        ({"lamp": {"oil": 3}}, True),
        ({"lamp.oil": 3}, True),
        ({"lamp": {"oil": {"at_least": 3}, "lit": True}}, True),
        ({"lamp": {"oil": {"$gte": 4}}}, False),
        ({"lamp": {"oil": {"more_than": 3}}}, False),
        ({"lamp": {"oil": {"less_than": 4, "not": 2}}}, True),
        ({"door": False}, True),
        ({"door": {"locked": False}}, True),
        ({"lamp": {"lit": False}}, False),
        ({"door": {"missing": True}}, True),
        ({"door": {"exists": False}}, True),
        ({"bag": {"contains": "rope"}}, True),
        ({"empty": {}}, True),
        ({"lamp": {"equals": {"oil": 3, "lit": True}}}, True),
        ({"place": {"$matches": "^cell"}}, True),
        ({"any": [{"place": "attic"}, {"lamp": {"lit": True}}]}, True),
        ({"any": [{"place": "attic"}, {"place": "hall"}]}, False),
        ({"none": [{"place": "attic"}]}, True),
        ({"none": [{"place": "cellar"}]}, False),
        ({"place": "cellar", "any": [{"none": [{"door": {"exists": True}}]}]}, True),
        ({"place": {"not": {"in": ["attic", "hall"]}}}, True),
    ],
)
def test_a_condition_holds_of_a_state(table: dict[str, Any], holds: bool) -> None:
    assert condition(table).holds(STATE) is holds


def test_words_and_signs_are_one_set_of_operators() -> None:
    assert {*WORDS.values()} == {*OPERATORS} - {
        "$ne",
        "$matches",
    }  # `not` takes a plain value too, and `matches` light lamps
    operands = {
        "$in": [3],
        "$notIn": [3],
        "$exists": True,
        "$missing": True,
        "$contains": "3",
        "$matches": "3",
    }
    for word, sign in WORDS.items():
        operand = operands.get(sign, 3)
        for value in (MISSING, None, 2, 3, 4, "3", [3]):
            assert matches(value, {word: operand}) is matches(value, {sign: operand}), (word, value)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([], "expected a table"),
        (
            {"lamp": {"oil": {"at_least": 1, "at_mots": 3}}},
            "lamp.oil: 'at_mots' .* did you mean 'at_most'",
        ),
        ({"lamp": {"oil": {"at_least": True}}}, "lamp.oil.at_least: expected a number, got True"),
        ({"lamp": {"exists": "yes"}}, "lamp.exists: expected true or false, got 'yes'"),
        ({"place": {"in": "cellar"}}, "place.in: expected a list, got 'cellar'"),
        ({"place": {"$near": 3}}, r"place.\$near: unknown operator"),
        ({"any": {"place": "attic"}}, "any: expected a list of tables"),
        ({"any": [{"place": "attic"}, 3]}, r"any\[1\]: expected a table"),
        ({"any": [{"bag": {"$in": 1}}]}, r"any\[0\].bag.\$in: expected a list"),
    ],
)
def test_a_condition_that_cannot_be_read_names_its_key(table: Any, reason: str) -> None:
    with pytest.raises(ConditionError, match=reason):
        condition(table)


def test_a_condition_and_another_both_hold() -> None:
    rule = condition({"any": [{"place": "cellar"}, {"place": "attic"}]})
    case = condition({"any": [{"lamp": {"lit": True}}, {"lamp": {"oil": 0}}]})
    assert (rule & case).holds(STATE)
    assert not (rule & case).holds({"place": "hall", "lamp": {"lit": True}})
    assert not (rule & case).holds({"place": "attic", "lamp": {"oil": 2}})
    assert Condition() & rule == rule


def test_what_is_asked_of_the_words_of_a_player_is_open_until_they_speak() -> None:
    asks = condition({"said": {"thing": "rope"}, "place": "cellar"})
    assert asks.may_hold(STATE) and not asks.holds(STATE)
    assert asks.holds({**STATE, "said": {"thing": "rope"}})
    assert not asks.may_hold({"place": "attic"})
