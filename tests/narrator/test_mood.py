"""Orders, questions about a action, what is ruled out, and what takes a action back."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.mood import Mood, mood
from narratoria.narrator.english.opposites import undoes
from narratoria.narrator.english.tokens import tokenize


def of(prompt: str) -> Mood:
    return mood([token.low for token in tokenize(prompt)], asks=prompt.endswith("?"))


@pytest.mark.parametrize(
    "prompt",
    [
        "light the lamp",
        "I light the lamp",
        "can you light the lamp?",
        "could you pay INV-3?",
        "would you mind lighting the lamp?",
        "do you mind closing the gate?",
        "can I open the chest?",
        "could Ruiz fix the antenna?",
        "shall we go up?",
        "why don't you light the lamp?",
        "why not light the lamp",
        "how about opening the gate?",
        "I was wondering if you could light the lamp",
        "can't you light the lamp?",
        "have Ruiz fix the antenna",
        "have a look at the door",
        "do the dishes",
        "do a quick sweep of the hall",
        "don't forget to light the lamp",
        "don't just look at the door, open it",
        "no, open the gate",
        "say no to the guard",
        "not only sweep the floor",
        "let me know in ten minutes",
        "when the bell rings, open the gate",
        "make sure the gate is open",
        "see to it that the lamp gets lit",
        "make sure the lamp is not off",
        "make sure he gets no more than three",
        "make sure to write that the lamp is not lit",
        "I want to write that the lamp is not lit",
        "check that the soup is not too salty",
        "I want you to light the lamp",
    ],
)
def test_what_is_asked_for_is_an_order_however_politely(prompt: str) -> None:
    assert of(prompt) is Mood.ORDER


@pytest.mark.parametrize(
    "prompt",
    [
        "should I light the lamp?",
        "have I paid INV-3?",
        "have we met the miller",
        "did we open the gate already?",
        "why did we sell the cow?",
        "has anybody swept the floor?",
        "why is the gate open?",
        "what happens if I light the lamp?",
        "what if I pull the lever",
        "what would happen if we pulled it?",
        "how do I open the chest?",
        "how can we get past the hound?",
        "I wonder if I should light the lamp",
        "I'm not sure whether to pull the lever",
        "do I have to pay the toll?",
        "is it safe to pull the lever?",
        "when did we last water the roses?",
        "I wonder whether to pull the lever",
        "who should I ask?",
        "must I go down?",
        "suppose I light the lamp",
    ],
)
def test_a_question_about_the_deed_is_no_order(prompt: str) -> None:
    assert of(prompt) is Mood.MUSING


@pytest.mark.parametrize(
    "prompt",
    [
        "is the lamp lit?",
        "I wonder what is in the chest",
        "how will the weather be?",
        "what would you call this?",
        "is it too cold outside?",
        "are the gates shut",
        "was the bill paid?",
        "does the key fit?",
        "do you have any bread?",
        "what is in the chest?",
        "where is the miller?",
        "how much is in the purse?",
        "who lit the lamp?",
        "can the gate be opened?",
        "will it hold?",
        "the lamp is lit?",
    ],
)
def test_a_question_about_how_things_are_is_told_from_both(prompt: str) -> None:
    assert of(prompt) is Mood.QUESTION


@pytest.mark.parametrize(
    "prompt",
    [
        "don't light the lamp",
        "I do not open the door",
        "under no circumstances open the gate",
        "on no account touch the lens",
        "by no means light it",
        "neither light the lamp nor ring the bell",
        "no more soup",
        "hold off on lighting the lamp",
        "refrain from ringing the bell",
        "rather than opening the gate",
        "except ringing the bell",
        "let's not go down",
        "please make sure not to wake the hound",
        "you must never pull that lever",
        "nobody opens the gate",
        "leave the hound alone",
        "leave out the salt",
        "never mind the bell",
        "can you not light the lamp?",
        "I would rather not climb",
        "make sure the lamp isn't lit",
        "see to it that the gate doesn't get opened",
        "ensure nobody rings the bell",
        "take care that the gate is not opened",
        "make certain that he never gets paid",
        "there's no reason to ring the bell",
        "no point in lighting it",
        "I want to make sure the gate isn't opened",
        "I'd prefer that the lamp not be lit",
        "I insist that you don't ring the bell",
        "I want the gate not opened",
        "pay neither the baker nor the smith",
        "no salt, please",
        "open no doors",
        "touch nothing",
    ],
)
def test_what_is_ruled_out_is_seen(prompt: str) -> None:
    assert of(prompt) is Mood.RULED_OUT


@pytest.mark.parametrize(
    ("prompt", "actions"),
    [
        ("put the lamp out", {"light"}),
        ("put out the torch", {"light", "ignite"}),
        ("blow out the candle", {"light"}),
        ("snuff the lamp", {"light"}),
        ("turn the oven off", {"preheat", "heat", "set"}),
        ("switch off the pump", {"start"}),
        ("turn the fan off at once", {"turn", "on"}),
        ("please cancel the alarm", {"sound", "raise"}),
        ("undo that", {"transfer"}),
        ("call off the search", {"search"}),
        ("unlock the gate", {"lock"}),
        ("close the gate", {"open"}),
        ("open the hatch", {"seal", "close"}),
        ("damage the pump", {"repair", "fix"}),
        ("stop sweeping the hall", {"sweep"}),
        ("could you put the fire out", {"kindle"}),
        ("take off the coat", {"wear"}),
        ("unclamp the hose", {"clamp"}),
        ("defuel the truck", {"refuel", "fill"}),
        ("siphon oil from the lamp", {"refill"}),
        ("starve the hound", {"feed"}),
        ("deny the plane landing", {"clear", "land"}),
    ],
)
def test_a_clause_that_takes_a_deed_back_undoes_it(prompt: str, actions: set[str]) -> None:
    assert undoes([token.low for token in tokenize(prompt)], actions)


@pytest.mark.parametrize(
    ("prompt", "actions"),
    [
        ("light the lamp", {"light"}),
        ("turn the oven off", {"turn", "off"}),
        ("turn off the lamp", {"switch", "on", "off"}),
        ("put out the lamp", {"extinguish", "douse"}),
        ("cancel the order", {"cancel"}),
        ("open the gate", {"open", "close"}),
        ("put the cup on the table", {"put", "place"}),
        ("pick out a card", {"pick"}),
        ("look out of the window", {"look"}),
        ("turn on the lamp", {"light"}),
        ("take the cup out of the chest", {"take"}),
        ("reopen the gate", {"open"}),
        ("pour water into the tub", {"fill", "pour"}),
        ("restart the pump", {"start"}),
        ("remove the cup from the chest", {"take", "remove"}),
        ("pump the water out of the tub", {"drain", "out"}),
        ("put the cup into the chest", {"put"}),
        ("blow up the balloon", {"inflate"}),
        ("shoot the hound", {"attack"}),
        ("shoot a film of the fair", {"photograph"}),
        ("shoot Ada an email", {"send"}),
        ("kill the lights", {"switch", "on", "off"}),
        ("kill the engine", {"stop"}),
        ("lift the bridge", {"raise", "bridge"}),
        ("remove the object", {"erase", "object"}),
    ],
)
def test_a_deed_is_not_undone_by_itself_or_by_what_has_nothing_against_it(
    prompt: str, actions: set[str]
) -> None:
    assert not undoes([token.low for token in tokenize(prompt)], actions)
