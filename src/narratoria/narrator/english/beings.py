"""Words for somebody rather than something: what people are called by their work or kin, and animals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.words import stem_set

# Everyday English, of no story in particular. Words that as often name a thing or a deed (count, crane,
# page, seal, vet) are left out.
PEOPLE: Final = stem_set("""
    person people man woman men women boy girl child children kid baby infant toddler teen teenager adult elder
    gentleman lady lord guy fellow stranger neighbour neighbor friend enemy foe rival ally companion partner guest
    visitor hostess traveller traveler passenger customer client patron patient tenant owner resident citizen
    villager peasant townsman foreigner pilgrim refugee orphan widow widower bride groom
    mother father mum mom dad parent son daughter brother sister sibling twin uncle aunt cousin nephew niece
    grandmother grandfather grandma grandpa granny husband wife fiance
    king queen prince princess emperor empress duke duchess countess baron baroness earl noble nobleman knight
    squire herald jester courtier steward butler maid servant valet footman nanny governess
    guard guardsman guardian watchman sentry sentinel soldier warrior fighter archer captain commander colonel
    sergeant lieutenant corporal admiral officer constable policeman policewoman sheriff marshal ranger scout spy
    detective inspector agent assassin thief burglar robber bandit brigand outlaw pirate smuggler prisoner captive
    hostage criminal murderer suspect witness victim gladiator mercenary hunter huntsman executioner jailer gaoler
    warden turnkey knave rogue villain hero heroine champion
    wizard witch warlock sorcerer sorceress mage magician enchantress druid shaman seer oracle prophet alchemist
    necromancer bard minstrel monk nun friar priest priestess abbot abbess bishop pope rabbi imam vicar parson
    cleric acolyte hermit saint sage
    innkeeper barkeeper bartender barkeep barmaid barman waiter waitress chef baker butcher brewer miller farmer
    shepherd shepherdess gardener forester woodcutter lumberjack miner fisherman ferryman boatman sailor mariner
    bosun boatswain helmsman skipper navigator pilot driver coachman groundskeeper gamekeeper stablehand
    blacksmith smith locksmith goldsmith silversmith armourer armorer carpenter mason potter weaver tailor
    seamstress cobbler tanner tinker plumber electrician mechanic engineer builder painter sculptor artist
    craftsman apprentice clerk merchant trader vendor seller shopkeeper storekeeper shopper peddler pedlar grocer
    barber hairdresser florist pharmacist apothecary herbalist healer doctor nurse surgeon medic physician midwife
    dentist veterinarian therapist
    teacher tutor professor student pupil scholar scientist researcher librarian archivist historian curator
    author writer poet journalist reporter editor actor actress dancer singer musician violinist pianist drummer
    judge lawyer attorney notary mayor governor minister president senator ambassador envoy diplomat messenger
    courier postman mailman postmaster stationmaster conductor porter doorman caretaker janitor
    housekeeper keeper lighthousekeeper manager boss director secretary receptionist assistant worker labourer
    employee colleague technician astronaut cosmonaut firefighter fireman lifeguard referee trainer
    beggar tramp drunkard urchin nomad barbarian cannibal
    npc character member player opponent attacker intruder
    ghost spirit spectre phantom wraith ghoul zombie skeleton vampire werewolf mummy demon devil imp angel god
    goddess deity genie djinn fairy faerie elf dwarf gnome halfling hobbit orc goblin hobgoblin troll ogre giant
    giantess cyclops minotaur centaur satyr nymph dryad mermaid siren leprechaun kobold golem android monster
    creature beast fiend
""")
ANIMALS: Final = stem_set("""
    animal pet dog hound puppy pup cat kitten tomcat horse mare stallion foal pony donkey mule ox oxen
    cow calf bull sheep ewe lamb goat kid pig sow piglet boar hen rooster cockerel chick chicken duck duckling
    goose geese gander turkey swan peacock pigeon dove raven crow magpie jackdaw owl eagle hawk falcon vulture
    parrot budgie canary sparrow robin finch gull seagull pelican penguin ostrich stork heron bird
    mouse mice rat squirrel rabbit bunny hare hedgehog badger fox vixen wolf bear cub deer stag fawn elk moose
    reindeer bison buffalo otter beaver weasel ferret stoat hamster gerbil guinea-pig
    lion lioness tiger tigress leopard panther cheetah lynx puma jaguar hyena jackal elephant rhino rhinoceros
    hippo hippopotamus giraffe zebra antelope gazelle camel llama alpaca monkey ape gorilla chimpanzee baboon
    lemur kangaroo koala wombat panda sloth
    snake viper cobra python lizard gecko iguana chameleon tortoise turtle crocodile alligator frog toad newt
    salamander dragon wyvern griffin gryphon unicorn phoenix basilisk hydra pegasus kraken serpent
    dolphin whale shark walrus octopus squid crab lobster eel spider scorpion
""")

SHIPS: Final = stem_set(
    "ship boat vessel craft sloop galleon schooner frigate brig cutter yacht ferry trawler"
)  # "she"


def names_somebody(words: Sequence[str]) -> bool:
    """Whether stems name a person: "old woman", "captain of the guard"; not "guard post", not "king's crown"."""
    return bool(words) and _head(words) in PEOPLE


def names_animal(words: Sequence[str]) -> bool:
    return bool(words) and _head(words) in ANIMALS


def _head(words: Sequence[str]) -> str:
    """The noun of a name: before "of", and without a number behind it."""
    named = list(words[: words.index("of")] if "of" in words[1:] else words)
    while len(named) > 1 and (named[-1].isdecimal() or len(named[-1]) == 1):
        named.pop()
    return named[-1]
