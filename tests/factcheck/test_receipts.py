"""What a narration claims, and where it comes from."""

from __future__ import annotations

import time
from typing import Any

import pytest

from narratoria import Session
from narratoria.events import StatePatch, TurnRedone, TurnStarted, TurnUndone
from narratoria.factcheck.patch_ledger import Ledger
from narratoria.factcheck.receipts import audit, audit_summaries, claims, contradictions, judged
from narratoria.run.plan import CallResult, ExecutionResult

STATE: dict[str, Any] = {
    "inventory": {"lantern": {"lit": False}, "coins": 0, "rings": 3, "knife": False},
    "beacon": {"lit": True},
    "doors": {"oak_door": {"open": False, "locked": True}, "iron_door": {"open": True}},
    "gate": "shut",
    "lamp": {"oil": 3, "lit": False, "status": "polished"},
    "things": {"rope": {"location": "cellar"}, "map": {"held": True}},
    "rooms": {"cellar": {"items": ["shovel"]}},
    "hatch_open": True,
    "marit": {"name": "Marit Aune", "alive": True},
    "chest": {"locked": True},
}


@pytest.mark.parametrize(
    ("narration", "path"),
    [
        ("You hold the lantern high.", "inventory.lantern"),
        ("You are carrying your lantern.", "inventory.lantern"),
        ("You have the map.", "things.map.held"),
        ("You have no rope.", "things.rope.location"),
        ("You don't have any coins.", "inventory.coins"),
        ("The oak door is locked.", "doors.oak_door.locked"),
        ("The oak door is still shut.", "doors.oak_door.open"),
        ("Behind you the iron door stands open.", "doors.iron_door.open"),
        ("The gate is closed.", "gate"),
        ("The lamp isn't lit.", "lamp.lit"),
        ("The lamp is polished.", "lamp.status"),
        ("The hatch is open.", "hatch_open"),
        ("Marit is alive.", "marit.alive"),
        ("Your lantern is dark.", "inventory.lantern.lit"),
        ("The iron door stands wide open.", "doors.iron_door.open"),
        ("The gate has been shut.", "gate"),
        ("The lamp has gone out.", "lamp.lit"),
        ("With your lantern in hand, you walk on.", "inventory.lantern"),
        ("You carry a handful of rings.", "inventory.rings"),
        ("Beacon lit.", "beacon.lit"),
        ("Iron door open again!", "doors.iron_door.open"),
        ("Gate shut; the wind drops.", "gate"),
    ],
)
def test_a_true_claim_names_the_fact_it_rests_on(narration: str, path: str) -> None:
    assert [(one.verdict, one.path) for one in audit(narration, STATE)] == [("held", path)]


@pytest.mark.parametrize(
    ("narration", "path"),
    [
        ("You hold a silver sword.", ""),
        ("You pick up the rope.", "things.rope.location"),
        ("You have the rope coiled over your shoulder.", "things.rope.location"),
        ("You carry the shovel.", "rooms.cellar.items.0"),
        ("You take the shovel.", "rooms.cellar.items.0"),
        ("You take the rope and go down.", "things.rope.location"),
        ("You are not carrying the lantern.", "inventory.lantern"),
        ("You’re no longer carrying the lantern.", "inventory.lantern"),
        ("You push the oak door open and step through.", "doors.oak_door.open"),
        ("You walk up and force the chest open.", "chest.locked"),
        ("You swing the iron door shut.", "doors.iron_door.open"),
        ("You do not have the lantern.", "inventory.lantern"),
        ("You have the coins.", "inventory.coins"),
        ("The oak door is open.", "doors.oak_door.open"),
        ("The iron door swings shut.", "doors.iron_door.open"),
        ("The gate stands open.", "gate"),
        ("The lamp is burning.", "lamp.lit"),
        ("The lamp is not dark.", "lamp.lit"),
        ("The hatch is now closed.", "hatch_open"),
        ("Marit is dead.", "marit.alive"),
        ("The chest is open.", "chest.locked"),
        ("Your lantern is lit.", "inventory.lantern.lit"),
        ("The oak door stands wide open.", "doors.oak_door.open"),
        ("You open the oak door and step through.", "doors.oak_door.open"),
        ("You cross the hall and open the oak door.", "doors.oak_door.open"),
        ("The oak door opens.", "doors.oak_door.open"),
        ("The oak door creaks open.", "doors.oak_door.open"),
        ("The lantern glows.", "inventory.lantern.lit"),
        ("The lamp burns low.", "lamp.lit"),
        ("You light the lamp.", "lamp.lit"),
        ("The iron door has been shut.", "doors.iron_door.open"),
        ("You blow out the beacon.", "beacon.lit"),
        ("The beacon has gone out.", "beacon.lit"),
        ("The beacon gutters out.", "beacon.lit"),
        ("With your rope in hand, you climb down.", "things.rope.location"),
    ],
)
def test_a_false_claim_is_flagged_with_the_fact_that_denies_it(narration: str, path: str) -> None:
    [receipt] = [one for one in audit(narration, STATE) if one.verdict == "contradicted"]
    assert receipt.path == path
    assert receipt.claim.text in receipt.objection


@pytest.mark.parametrize(
    "narration",
    [
        "",
        '“The lamp is lit,” says Marit. "You have the rope."',
        "If the lamp is lit, the ship will see it.",
        "Is the gate open?",
        "You wish you had the rope. You could carry the rope.",
        "It is as though the gate is open.",
        "You have a bad feeling about this, and no time.",
        "You have a visitor. You have a headache, and you own a house by the sea.",
        "You hold your breath. You have a right to be here.",
        "The lamp is out of reach. The sea is grey, the night is long.",
        "The tower is locked. The kitchen is empty.",
        "\x00" * 100,
        "The " * 50_000,
        "is is is is is the the you have you have " * 2_000,
        "You can open the oak door, or go back and light the lamp.",
        "You do not open the oak door.",
        "You try to light the lamp.",
        "The lamp does not glow.",
        "Nobody has opened the oak door.",
        "No lamp is lit.",
        "The oak door opens onto the yard.",
        "Marit, your sister, opens her eyes.",
        "You draw your cloak about you.",
        "You raise your voice.",
        "You have two choices.",
        "You have three days.",
        "The keeper hands you a cup of tea.",
        "You light a match.",
        "You once lit the lamp.",
        "In the lantern glow the stairs look steeper.",
        "You take the stairs, and the boy by the arm. You take the left passage.",
        "You take the shovel down, look at it, and put it back.",
        "You can take the rope. You do not take the shovel.",
        "The tower is yours now. The choice is yours.",
        "You cannot push the oak door open. You push the oak door, and it does not move.",
        "With the matter in hand, you go on. Your fate is in your hands.",
        "You hold a cup of rain. You carry a length of rope.",
        "Every gate open. Neither lamp lit. No gate open.",
        "In those days the lamp lit. You found the gate open.",
    ],
    ids=range(39),
)
def test_what_is_not_asserted_or_not_known_is_left_alone(narration: str) -> None:
    started = time.perf_counter()
    assert contradictions(audit(narration, STATE)) == []
    assert time.perf_counter() - started < 2


def test_without_an_inventory_nobody_can_say_what_is_carried() -> None:
    assert audit("You hold a silver sword.", {"place": "cellar"}) == []


@pytest.mark.parametrize(
    "narration",
    [
        "You hold the flame to the wood.",
        "You hold a finger against the glass.",
        "You hold the door open.",
        "You are holding the line steady.",
    ],
)
def test_to_hold_a_thing_to_another_is_not_to_have_it(narration: str) -> None:
    assert contradictions(audit(narration, {"inventory": {"torch": {"lit": True}}})) == []


def test_a_list_of_all_things_is_no_inventory_where_it_says_where_each_of_them_is() -> None:
    state = {"inventory": ["torch"], "items": {"silver_key": {"location": "hall"}}}
    [receipt] = audit("You take the silver key.", state)
    assert (receipt.verdict, receipt.path) == ("contradicted", "items.silver_key.location")


def test_a_door_whose_state_is_the_word_locked_is_not_pushed_open() -> None:
    assert contradictions(audit("You push the iron door open.", {"doors": {"iron_door": "locked"}})) != []


def test_what_the_state_knows_to_be_elsewhere_cannot_be_held_to_anything() -> None:
    assert contradictions(audit("You hold the knife to the rope.", STATE)) != []


def test_what_was_true_when_it_was_said_holds_though_the_calls_changed_it() -> None:
    told = "The chest is locked. You turn the key."
    before = judged(told, STATE)
    after = {**STATE, "chest": {"locked": False}}
    assert contradictions(audit(told, after)) != []
    assert contradictions(audit(told, after, before=before)) == []


def test_a_claim_is_traced_to_the_patch_of_this_turn() -> None:
    def call(tool_id: str, ok: bool, patch: dict[str, Any]) -> CallResult:
        event = StatePatch(version="0", patch=patch)
        return CallResult(tool_id=tool_id, ok=ok, state="completed" if ok else "failed", events=[event])

    trace = ExecutionResult(
        plan_id="p",
        success=True,
        tool_results=[
            call("first", True, {"lamp": {"lit": True}}),
            call("failed", False, {"lamp": {"lit": True}}),
            call("other", True, {"gate": "open"}),
        ],
    )
    [receipt] = audit("The lamp is lit.", {"lamp": {"lit": True}}, trace=trace)
    assert receipt.source is not None
    assert receipt.source.call == "first"


def test_the_ledger_knows_the_turn_and_forgets_what_is_undone() -> None:
    session, ledger = Session(), Ledger()
    session.attach(ledger)
    session.turn = 1
    session.patch({"lamp": {"lit": True, "oil": 1}})
    session.turn = 2
    session.patch({"lamp": {"oil": 0}})
    session.patch({"gate": {"open": True}})
    for told, turn in (("The lamp is lit.", 1), ("The gate is open.", 2)):
        [receipt] = audit(told, session.state, ledger=ledger)
        assert receipt.source is not None
        assert receipt.source.turn == turn
    assert ledger.source(("lamp", "oil")) == ledger.source(("lamp", "oil"))
    session.record(TurnUndone(turn=2))
    undone = ledger.source(("lamp", "oil"))
    assert undone is not None
    assert undone.turn == 1
    assert ledger.source(("gate", "open")) is None
    session.record(TurnRedone(turn=2))
    redone = ledger.source(("lamp", "oil"))
    assert redone is not None
    assert redone.turn == 2


def test_what_was_so_between_two_calls_is_traced_to_the_call_that_made_it_so() -> None:
    def call(tool_id: str, opened: bool) -> CallResult:
        event = StatePatch(version="0", patch={"door": {"open": opened}})
        return CallResult(tool_id=tool_id, ok=True, state="completed", events=[event])

    state = {"door": {"open": False}}
    trace = ExecutionResult(plan_id="p", success=True, tool_results=[call("open", True), call("shut", False)])
    told = "The door is open. The door is closed again."
    first, second = audit_summaries(told, state, traces=[trace])
    assert (first.verdict, first.value, first.source and first.source.call) == ("held", True, "open")
    assert (second.verdict, second.value, second.source and second.source.call) == ("held", False, "shut")
    [late] = audit_summaries("The door is open.", state)
    assert late.verdict == "contradicted", "that was in the turn before"


def test_what_was_so_before_the_turn_is_not_traced_to_the_patch_that_changed_it() -> None:
    session, ledger = Session(), Ledger()
    session.attach(ledger)
    for turn, locked in ((1, True), (2, False)):
        session.record(TurnStarted(turn=turn, prompt="turn the key"))
        session.turn = turn
        before = judged("The door is locked.", session.state)
        session.patch({"door": {"locked": locked}})
    [receipt] = audit("The door is locked.", session.state, before=before, ledger=ledger)
    assert (receipt.verdict, receipt.value) == ("held", True)
    assert receipt.source is not None
    assert receipt.source.turn == 1


def test_claims_are_few_however_long_the_text() -> None:
    assert len(claims("The lamp is lit. " * 1_000)) == 24


def test_a_large_world_is_judged_quickly() -> None:
    world = {"rooms": {f"room{index}": {"door": {"open": False}, "n": index} for index in range(20_000)}}
    started = time.process_time()
    audit("The lamp is lit. The door is open.", {"lamp": {"lit": False}, **world})
    assert time.process_time() - started < 1


# --- where the player is -----------------------------------------------------------------------------------

CELLAR: dict[str, Any] = {
    "place": {"id": "cellar", "title": "in the cellar"},
    "rooms": {name: {} for name in ("cellar", "kitchen", "tower", "attic", "garden")},
}
ROOMS: dict[str, Any] = {
    "player": {"location": "vestry"},
    "rooms": {"vestry": {}, "nave": {}, "manor": {"rooms": {"hall": {}, "solar": {}}}},
}


@pytest.mark.parametrize(
    ("narration", "state", "path"),
    [
        ("You stand in the tower.", CELLAR, "place.id"),
        ("You’re standing in the old stone tower, out of breath.", CELLAR, "place.id"),
        ("You are in the kitchen.", CELLAR, "place.id"),
        ("You are back in the garden.", CELLAR, "place.id"),
        ("The stair ends. You step into the attic.", CELLAR, "place.id"),
        ("You open a hatch and climb up into the attic.", CELLAR, "place.id"),
        ("You enter the kitchen.", CELLAR, "place.id"),
        ("You are no longer in the cellar.", CELLAR, "place.id"),
        ("You stand in the tower looking out.", CELLAR, "place.id"),
        ("You stand in the tower.", {"location": "crypt", "places": ["crypt", "tower"]}, "location"),
        ("You kneel in the nave.", ROOMS, "player.location"),
        ("You wait in the hall.", ROOMS, "player.location"),
        ("You find yourself in the Gut.", {"place": "landing", "visited": {"gut": True}}, "place"),
        (
            "You stand in the lantern room.",
            {"place": "the watch room", "visited": {"lantern": True}},
            "place",
        ),
    ],
    ids=range(14),
)
def test_a_place_the_player_is_not_in_is_flagged(narration: str, state: dict[str, Any], path: str) -> None:
    [receipt] = [one for one in audit(narration, state) if one.verdict == "contradicted"]
    assert receipt.path == path
    assert "but in the state" in receipt.objection


@pytest.mark.parametrize(
    ("narration", "state"),
    [
        ("You stand in the cellar.", CELLAR),
        ("You step down into the cold cellar and wait.", CELLAR),
        ("You stand in the tower. Then you climb down into the cellar.", CELLAR),
        ("You kneel in the vestry.", ROOMS),
        ("You stand in the watch room.", {"place": "the watch room", "visited": {"lantern": True}}),
        ("You stand in the room.", {"place": "the watch room"}),
    ],
    ids=range(6),
)
def test_a_place_the_player_is_in_holds(narration: str, state: dict[str, Any]) -> None:
    assert [one.verdict for one in audit(narration, state)] == ["held"]


@pytest.mark.parametrize(
    ("narration", "state"),
    [
        ("You stand in the tower.", {}),
        ("You stand in the tower.", {"place": {"id": "kitchen"}}),  # a tower may have one
        ("You stand in the doorway. You are in the dark, in a hurry.", CELLAR),
        ("You are in the kitchen.", {"place": "r7"}),
        ("You wait in the manor.", {**ROOMS, "player": {"location": "solar"}}),
        ("You wait in the solar.", {**ROOMS, "player": {"location": "manor"}}),
        ("You stand at the foot of the tower.", CELLAR),
        ("You are on the kitchen side of the door.", CELLAR),
        ("Above you in the kitchen somebody drops a pan.", CELLAR),
        ("She finds you in the garden.", CELLAR),
        ("You could be in the kitchen by now. You want to go up into the attic.", CELLAR),
        ("“You are in the kitchen,” says Marit.", CELLAR),
        ("In the picture you stand in the garden.", CELLAR),
        ("You stand in the attic a moment, and then go down.", CELLAR),
        ("Marit turns and goes into the kitchen.", CELLAR),
        ("You hear Marit go into the kitchen.", CELLAR),
        ("You cannot go into the kitchen. You try to enter the attic.", CELLAR),
        ("You lie in the bed.", {"place": "bedroom", "things": {"cat": {"location": "bed"}}}),
        ("You are in the storeroom.", {"place": "store"}),
        ("You stand in the cellar. You leave.", {"place": "attic"}),
        ("You are in the kitchen.", {"place": 7, "location": None, "room": {"id": ""}}),
        ("You stand in the garden.", {"place": "the yard behind the kitchen"}),
        ("You are in the north.", {"place": "fen", "exits": {"north": {"to": "fell", "locked": True}}}),
    ],
    ids=range(23),
)
def test_a_place_nobody_is_sure_of_is_left_alone(narration: str, state: dict[str, Any]) -> None:
    assert contradictions(audit(narration, state)) == []


def test_where_the_player_was_before_the_calls_holds_too() -> None:
    told = "You stand in the cellar. The key turns."
    assert contradictions(audit(told, {**CELLAR, "place": "attic"})) != []
    assert contradictions(audit(told, {**CELLAR, "place": "attic"}, before=judged(told, CELLAR))) == []


def test_a_place_is_traced_to_the_patch_that_moved_the_player() -> None:
    session, ledger = Session(state={"place": {"id": "attic"}}), Ledger()
    session.attach(ledger)
    session.turn = 3
    session.patch({"place": {"id": "cellar"}})
    [receipt] = audit("You stand in the cellar.", session.state, ledger=ledger)
    assert receipt.source is not None
    assert (receipt.verdict, receipt.source.turn) == ("held", 3)


def test_a_claim_that_one_sentence_makes_twice_is_one_complaint() -> None:
    found = contradictions(
        audit("You pocket the silver key. The gate is open.", {"inventory": {}, "gate": {"open": False}})
    )
    assert len(found) == len(set(found)) == 2
