"""Families of deeds: which English verbs may be said for one another, and which are something else.

Likeness of meaning puts *sell* beside *buy* and *paint* beside *wash*. Where both a clause's verb and a tool's
are known here and share no family, they are different deeds. A verb that is in no family speaks neither for
nor against. Nothing here is about any story.

These are for matching tools, where a family is one voice among many; `deeds.py` has those of a story's rules, and tells
why they are not these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from narratoria.narrator.english.words import stem, word_set

_FAMILIES: Final = (
    # cleaning, cooking, eating
    "wash scrub rinse scour clean wipe polish mop sweep vacuum dust tidy launder hose bathe shower",
    "cut chop slice dice mince shred cube halve quarter carve trim peel grate julienne snip saw prune slit",
    "heat preheat warm boil cook bake roast fry toast grill simmer reheat melt thaw",
    "cool chill freeze refrigerate",
    "eat drink taste swallow consume bite lick chew sip devour nibble gulp",
    "season flavour flavor spice sprinkle salt pepper garnish add mix stir blend",
    "serve dish plate feed offer present",
    "feed nourish",
    "pour fill refill load top fuel refuel",
    "empty drain unload",
    # talking
    "call contact phone telephone hail radio ring raise reach dial text message email write tell say speak talk "
    "inform notify announce broadcast shout whisper signal greet address transmit page relay warn",
    "ask question interview interrogate consult query quiz talk speak chat tell",
    "remind nudge dun chase prompt notify warn prod alert",
    "invite summon fetch call",
    "promise swear vow",
    "accuse blame charge suspect denounce",
    "praise thank compliment flatter",
    "insult mock taunt tease",
    "bribe pay tip",
    "persuade convince beg plead negotiate bargain haggle",
    "teach instruct train explain",
    "translate interpret",
    "sing hum chant recite whistle",
    "pray worship",
    "laugh cry weep smile grin",
    # seeing
    "look see examine inspect study watch view observe check scan survey read search investigate probe analyse "
    "analyze review peer glance peek stare test measure scrutinise scrutinize sound monitor consult assess",
    "search seek hunt find locate look rummage explore track trace sweep scan comb",
    "show display list report tell reveal print present summarise summarize describe review view check read give see",
    "listen hear eavesdrop",
    "smell sniff",
    "touch feel poke prod stroke pat pet",
    "compare match contrast",
    "count calculate compute add tally total reckon measure weigh estimate",
    "learn study memorise memorize practise practice",
    "guess decide judge conclude",
    # mending and breaking
    "repair fix mend restore patch service overhaul rebuild maintain see",
    "break smash destroy damage wreck sabotage ruin crush shatter demolish sink scuttle vandalise scratch dent",
    "attack hit strike stab fight kill shoot punch kick slash assault slay bomb ambush beat fire",
    "burn torch incinerate char",
    "cure heal treat bandage nurse",
    "improve upgrade renovate decorate enhance",
    "tear rip shred",
    # light, power, motion of things
    "light ignite burn kindle lit illuminate",
    "extinguish douse quench snuff smother",
    "start begin launch activate enable run boot power set trigger operate switch play",
    "stop end halt quit deactivate disable cease pause abort cancel",
    "cancel scrap undo revoke reverse revert rescind retract annul abort void",
    "open unlock unseal unfasten unbolt uncover lift unwrap release unlatch",
    "close shut lock seal bolt fasten latch secure bar",
    "push shove press nudge",
    "pull drag tug haul tow",
    "raise lift hoist elevate increase boost bump brighten sharpen heighten amplify strengthen intensify crank",
    "lower reduce decrease drop dim cut darken soften weaken lessen diminish",
    "adjust set change tune alter dial regulate turn",
    "turn rotate spin twist swing",
    "steer turn set navigate head veer swing come",
    "throw hurl toss fling lob chuck pitch",
    "shake rattle",
    "tie bind attach fasten connect plug hook join link chain moor dock",
    "untie detach disconnect unplug release undock unhook",
    "paint colour color dye draw sketch decorate varnish",
    "sharpen grind hone",
    "dig excavate bury",
    "plant sow grow",
    "water irrigate spray",
    # moving oneself
    "go walk move travel head run climb enter exit leave float fly drive ride descend swim sail jump return crawl "
    "step proceed ascend approach cross march hike visit come follow wander stroll dash rush sneak creep",
    "flee escape retreat evade dodge hide",
    "hide conceal bury stash",
    "jump leap hop vault",
    "dance waltz",
    "sit stand kneel lie",
    "sleep rest nap relax wait doze camp pause lie sit",
    "wake rouse awaken",
    # taking and giving
    "take grab fetch pick collect carry bag pocket seize secure gather retrieve snatch keep acquire get lift",
    "steal rob loot pilfer",
    "drop discard dump leave abandon ditch lay",
    "discard dump trash scrap dispose junk bin",
    "delete remove erase clear wipe purge strike",
    "put place set lay position install insert mount load",
    "store save stash keep archive file",
    "give hand offer deliver pass donate lend present",
    "send deliver ship mail post dispatch transmit forward message email submit",
    "wear don dress",
    "undress strip",
    "use apply employ wield",
    "combine mix merge join blend",
    "split divide separate share",
    "buy purchase order shop acquire get",
    "sell trade auction flog",
    "trade exchange swap barter",
    "hire employ recruit rent lease charter",
    "dismiss sack fire demote",
    "promote reward award",
    "pay settle spend reimburse transfer clear",
    "transfer move shift send deposit wire put pay",
    "withdraw deduct",
    "refund reimburse repay",
    "record log note book enter register file jot write document spend pay buy",
    "write compose draft author pen type",
    "sign approve authorise authorize endorse confirm accept",
    "reject decline refuse deny veto",
    "borrow lend loan",
    "invest speculate",
    "schedule plan book reserve arrange postpone move",
    # making and knowing
    "make build create construct assemble craft produce prepare forge generate invent brew",
    "sew knit stitch weave",
    "play perform stream hear listen put",
    "photograph film record snap shoot",
    "print copy scan duplicate",
    "download upload install",
    "cast conjure enchant speak",
    "guard protect defend shield",
    "arrest capture catch imprison detain trap",
    "release free liberate",
    "marry kiss hug embrace love",
    "vote elect",
    "measure weigh time gauge",
    "sound ring chime toll blow",
    "name rename call label tag mark",
)
_PHRASAL: Final = {
    "throw in": "add", "toss in": "add", "drop in": "add", "stir in": "add",
    "throw away": "discard", "throw out": "discard", "get rid": "discard", "pick up": "take", "look for": "search",
    "look up": "search", "write down": "record", "note down": "record", "patch up": "repair", "see to": "repair",
    "put out": "extinguish", "blow out": "extinguish", "turn off": "stop", "switch off": "stop",
    "shut off": "stop", "turn on": "start", "switch on": "start", "power up": "start", "shut down": "stop",
    "power down": "stop", "cool down": "cool", "call off": "cancel", "wash up": "wash", "dish up": "serve",
    "plate up": "serve", "put down": "drop", "set down": "drop", "hand over": "give", "give back": "give",
    "tidy up": "clean", "clean up": "clean", "warm up": "heat", "heat up": "heat", "blow up": "destroy",
    "tear down": "destroy", "knock down": "destroy", "set up": "schedule", "take off": "undress",
    "put on": "wear", "come round": "steer", "come about": "steer", "let go": "drop", "sum up": "summarise",
    "tick off": "complete", "cross off": "delete", "cut off": "stop", "turn up": "increase",
    "turn down": "lower", "bump up": "increase", "crank up": "increase", "dial up": "increase",
    "dial down": "lower", "bring down": "lower",
    "lie down": "rest", "sit down": "rest", "wake up": "wake", "get in": "contact",
    "check out": "examine", "go over": "examine", "pull up": "show", "bring up": "show", "look over": "examine",
}  # fmt: skip
# These say too little by themselves, or too many things: "make a call", "press him on it", "swing at it".
_LIGHT: Final = word_set(
    "make get give have do go let use keep run need want put set try help come bring add work handle manage "
    "change see turn pull push press swing spin twist roll catch count wake charge draw pass strike throw grind hit "
    "check leave"
)


def _index() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_FAMILIES):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


_BY_STEM: Final = _index()
_NONE: Final[frozenset[int]] = frozenset()


def families(verb: str, particle: str = "") -> frozenset[int]:
    """The families a verb belongs to; none where it is unknown."""
    whole = stem(_PHRASAL.get(f"{verb} {particle}") or verb)
    if whole not in _BY_STEM and whole.startswith("re"):
        whole = whole.removeprefix("re").removeprefix("-")  # to reopen is to open
    return _BY_STEM.get(whole, _NONE)


def families_of(words: Iterable[str]) -> frozenset[int]:
    return frozenset().union(*(_BY_STEM.get(stem(word), _NONE) for word in words))


def says_enough(verb: str, particle: str = "") -> bool:
    """Whether a verb tells what is done by itself."""
    return f"{verb} {particle}" in _PHRASAL or verb not in _LIGHT
