"""Everyday requests from all walks of life: what a prompt may mean when no rule of a story is meant.

A clause that lies nearer to one of these than to any rule is refused. Those that a story's own rules serve are left
out for that story, by likeness of meaning, so nothing here narrows what a story can offer.
"""

from __future__ import annotations

from typing import Final

REQUESTS: Final[tuple[str, ...]] = tuple(
    line.strip()
    for line in """
    Cook dinner from a recipe
    Order food from a restaurant
    Eat a meal
    Drink a glass of wine
    Book a train ticket
    Reserve a hotel
    Plan a holiday trip
    Drive the car to town
    Fix the engine
    Ride a horse
    Sail the boat
    Fly the plane
    Pay a bill
    Transfer money to an account
    Check my bank balance
    Exchange money between currencies
    Buy stocks and shares
    Apply for a loan
    Answer a question about history
    Answer a question about geography
    Answer a question about science
    Solve a mathematical problem
    Define a word
    Translate a sentence
    Who wrote this book?
    How far away is the moon?
    When was she born?
    Tell me a joke
    Tell a story
    Write a poem
    Compose a song
    Sing a song
    Dance with me
    Play an instrument
    Play a game of cards
    Draw a picture
    Paint a portrait
    Take a photograph
    Watch a film
    Read a novel
    Sports results
    Go for a run
    Exercise at the gym
    Swim in the lake
    Go fishing
    Work in the garden
    Water the plants
    Feed the animals
    Take care of a pet
    Clean the windows
    Do the laundry
    Iron a shirt
    Sew a dress
    Repair the furniture
    Build a house
    Paint the walls
    Dig a hole
    Chop wood
    Get dressed
    Brush my teeth
    Take a shower
    Put on make-up
    See a doctor
    Take some medicine
    Give medical advice
    Do homework
    Study for an exam
    Teach a lesson
    Learn a language
    Go to school
    Call a friend on the phone
    Write a letter
    Send an email
    Post on social media
    Download a program
    Restart the computer
    Write computer code
    Search the internet
    Set an alarm
    Make an appointment
    Add a note to the calendar
    File taxes
    Sign a contract
    Vote in the election
    Get married
    Raise a child
    Celebrate a birthday
    Give a present
    Say a prayer
    Meditate
    Tell me your name
    How are you?
    What do you think about life?
    I feel sad
    I love you
    Give me advice
    Thank you
    Fight a monster
    Cast a spell
    Travel through a portal
    Hunt a wild animal
    Rob a bank
    Arrest a criminal
    Launch a rocket
    Command an army
    Trade goods at the market
    Climb a tree
    Jump over the fence
    Hide behind something
    Throw a ball
    Break something into pieces
    Laugh out loud
    Wait and do nothing
    Weather forecast
    Turn on a device
    Listen to music
    Make a shopping list
    What time is it?
    Measure the length of something
    Count the objects
    Compare prices
    Sell the old furniture
    Invent a machine
    Perform an experiment
    Mix chemicals in a laboratory
    Recite a speech
    Bake bread
    Brew a potion
    Mine for ore
    Forge a blade
    Explain how it works
    """.strip().splitlines()
)
