"""The closed classes of English and a little morphology: what the local narrator knows of the language.

Nothing here is about any story. Words of a story come from its tools and its state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


DETERMINERS: Final = word_set(
    "the a an my your his her its our their this that these those some any every each all both another no"
)
SUBJECTS: Final = word_set("i you we he she they it")
PRONOUNS: Final = word_set("it them him her that this one they these those")
PLACE_PRONOUNS: Final = word_set("there here")
QUESTION_WORDS: Final = word_set("what who whom whose where when why how which")
AUXILIARIES: Final = word_set(
    "is are was were am be been do does did can could will would shall should may might must have has had"
)
PREPOSITIONS: Final = word_set(
    "with about on at to for from in into onto of using by against through towards toward under over upon "
    "inside near behind between beside around across as regarding concerning within off out until till "
    "via per"
)
PARTICLES: Final = word_set("up down on off out in away back over around on")
FILLERS: Final = word_set(
    "please just also now quickly slowly carefully quietly gently maybe perhaps again okay ok well so "
    "really very first firstly simply immediately still too then next finally lastly hey oh kindly closer "
    "careful quick more most once long while bit little same whole else ever even only actually straight "
    "right all"
)
STOPWORDS: Final = (
    DETERMINERS
    | SUBJECTS
    | PRONOUNS
    | QUESTION_WORDS
    | AUXILIARIES
    | PREPOSITIONS
    | FILLERS
    | word_set(
        "and or but not me us am im there here if than lets let go get got make want need like 's something"
    )
)

# What may open a request without saying anything about it. Longest first when matched.
LEAD_INS: Final = tuple(
    sorted(
        (
            tuple(line.split())
            for line in (
                "i", "we", "you", "please", "could you", "can you", "would you", "will you", "can i",
                "could i", "may i", "let us", "let me", "i want to", "i would like to",
                "i would like you to", "i want you to", "i need to", "i need you to", "i try to",
                "i try and", "try to", "i am going to", "i will", "i decide to", "we should", "i should",
                "go and", "go ahead and", "time to", "it is time to", "you have", "i have", "i had",
                "we have", "now", "first", "firstly", "then", "next", "finally", "also", "and", "so",
                "just", "okay", "ok", "maybe", "perhaps", "quickly", "carefully", "slowly", "quietly",
                "kindly", "hey", "well", "lastly", "i begin to", "i start to", "i attempt to",
                "attempt to", "would you mind", "be so kind as to", "how about", "what about", "why not",
                "i can", "i also", "instead", "i must", "i have to", "we need to", "you should",
                "once more", "having", "do not just", "do not only", "do not merely", "not only", "not just",
                "do not forget to", "do not fail to", "do not hesitate to", "do not neglect to",
                "never forget to", "never fail to", "do not be afraid to", "why do not you", "why do not we",
                "do you mind", "any chance you could", "any chance you can", "i wonder if you could",
                "i was wondering if you could", "shall we", "can we", "could we", "may we", "can someone",
                "could someone", "can somebody", "could somebody", "can not you", "could not you", "be sure to",
                "make sure to", "make sure you", "whatever you do", "i would rather", "i would sooner",
                "are you able to", "would someone", "will someone", "i would love to", "i would be glad to",
                "i would be happy to", "i am happy to", "i am glad to",
                *(
                    f"it would be {fine} {so}"
                    for fine in ("nice", "good", "great", "lovely", "kind", "helpful", "best", "better", "wise")
                    for so in ("to", "of you to", "if you could", "if you would", "if we could")
                ),
                *(
                    f"i {thinks} {who}"
                    for thinks in ("think", "guess", "suppose", "believe", "reckon")
                    for who in ("we should", "i should", "you should", "we need to", "i need to", "we must",
                                "we have to", "i have to", "i will", "we had better", "i had better")
                ),
            )
        ),
        key=len,
        reverse=True,
    )
)  # fmt: skip

_VERBS: Final = word_set("""
    abandon accept accuse activate add adjust admire allow alter announce answer approach arrange
    arrest ask assemble attach attack attempt avoid bag bake bang bar bathe beat become beg begin
    bend bind bite blow boil book borrow bow break breathe brew bribe bring broadcast browse brush
    build burn bury buy calculate call calm capture carry carve cast catch cause celebrate change
    charge chase check cheer chew choose chop clap clean clear climb close collect combine come
    comfort compare complain complete compose compute condense confirm confront connect consider
    consult contact continue convert cook cool copy count cover crawl create cross crush cry cut
    dance deactivate decide declare decline decrease defend delay delete deliver demand deposit
    descend describe destroy detach dig dim dip direct disable disarm discard discover discuss
    dismiss display dive divide do dodge donate douse download drag draw dress drink drive drop dry
    dump eat edit eject email embrace empty enable end enter erase escape evaluate examine exchange
    execute exit expand expel explain explore extinguish extract face fall fasten feed feel fetch
    fight file fill film find finish fire fix flee flip float fly fold follow forget forgive freeze
    fry gather get give glance go grab greet grind grip grow guard guess hack halt hand handle hang
    harvest head heal hear heat help hide hire hit hold hug hunt hurl identify ignite ignore imagine
    improve increase inform inject insert inspect install insult interrogate interview introduce
    investigate invite iron join judge jump keep kick kill kiss kneel knit knock label land laugh
    launch lay lead lean learn leave lend let lick lie lift light list listen load locate lock log
    look loosen lower make mark march measure meet melt mend message mix mop move mow mute nail name
    need negotiate nod note notice notify observe offer open operate order pack paint park pass pat
    pause pay peek peel peer pet phone pick place plan plant play plead plug pocket point poke
    polish ponder post pour practise praise pray prepare present press prevent print probe produce
    promise propose protect prove pry pull punch purchase push put query question quit raise read
    realise rearrange reboot recall recite record recover reduce refill refuse release remember
    remind remove rent repair repeat replace reply report request rescue reserve reset rest retrieve
    return reveal review ride ring rinse roast roll rotate rub run save say scan schedule scout
    scrape scratch scream scrub search seal secure see seize select sell send separate serve set sew
    shake share sharpen shave sheathe shine shoot shout show shower shut signal sign sing sip sit
    slam slap slash sleep slice slide smash smell smile sneak solve sort speak spin spit split spray
    spread spy stab stack stand start stay steal steer step stir stop store strike study submit
    suggest summarise summarize summon surrender survey swallow sweep swim swing switch tag take
    talk tap taste teach tear tell test thank think threaten throw tickle tidy tie touch tour track
    trade train transfer translate transmit trap travel treat trim trip try turn twist type unbolt
    uncover undo unfasten unlock unpack unplug unseal unwrap update upload use vacuum vent view
    visit vote wait wake walk want warm warn wash watch wave wear weigh whisper whistle win wipe
    wish withdraw wrap write yell got went took made lit contact damage deposit dice hail halve hoist mince
    nudge patch preheat radio sabotage scour settle shred spend sprinkle cancel abort revoke ruin wreck poison
    trample drown demolish belay drain siphon
""")
VERBS: Final = _VERBS - word_set(
    "bar book bow cross file film fire iron land name order pet plan plant plug ring train"
)
# These are as often nouns; they open a clause only where what follows could be an object.
NOUNISH: Final = word_set("""
    bar book bow cross file film fire iron land name order pet plan plant plug ring train bag head
    light list lock log mark message note paint park pocket point post present record report rest
    scan seal sign store study tag test trap trip view walk watch water question copy drink face
    hand label nail pack peel place print review sleep slice spray start stop swim switch talk tour
    track trade vent wave call change charge cook cover cut display dress drive email float guard
    guess help hunt kick kiss lead lift look move need pass pause phone play query request return
    run search share shower signal smell smile spin split spread step stir swing tap taste touch
    treat turn type use visit vote wait wash whistle wish wrap answer attack blow brush burn catch
    check cheer climb count dance end exit fall feed fight fill fix hide hold jump judge kill knock
    launch measure offer pat pay raise ride roll save set shake show sort stand stack trim twist try
    whisper warm clean clear close cool dry empty open lower dim calm direct complete separate tidy
    contact damage deposit dice hail patch radio nudge
""")

_TEENS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS: Final[Mapping[str, int]] = (
    {word: value for value, word in enumerate(_TEENS.split())}
    | {word: (value + 2) * 10 for value, word in enumerate(_TENS.split())}
    | {"dozen": 12, "hundred": 100, "couple": 2}
)

_IRREGULAR: Final = {
    "lit": "light", "went": "go", "took": "take", "taken": "take", "gave": "give", "given": "give",
    "made": "make", "spoke": "speak", "told": "tell", "said": "say", "shut": "close", "left": "leave",
    "put": "put", "ran": "run", "slept": "sleep", "fought": "fight", "bought": "buy", "sent": "send",
    "read": "read", "wrote": "write", "people": "person", "men": "man", "women": "woman",
    "feet": "foot", "dying": "die", "lying": "lie", "has": "have", "is": "be", "are": "be", "was": "be",
    "were": "be", "dimmed": "dim", "spent": "spend", "paid": "pay", "done": "do", "did": "do",
    "broke": "break", "broken": "break", "torn": "tear", "fed": "feed", "swept": "sweep", "sold": "sell",
    "brought": "bring", "built": "build", "caught": "catch", "written": "write", "kept": "keep",
    "held": "hold", "hung": "hang", "shown": "show", "worn": "wear", "thrown": "throw", "drawn": "draw",
    "loaves": "loaf", "knives": "knife", "wolves": "wolf", "shelves": "shelf", "halves": "half",
    "mice": "mouse", "geese": "goose", "teeth": "tooth", "children": "child",
    "ate": "eat", "drank": "drink", "came": "come", "threw": "throw", "flew": "fly", "drove": "drive",
    "fell": "fall", "grew": "grow", "drew": "draw", "stole": "steal", "woke": "wake", "forgot": "forget",
    "eaten": "eat", "stolen": "steal", "chosen": "choose", "frozen": "freeze", "woken": "wake",
}  # fmt: skip


# Likeness of meaning does not tell a deed from its opposite; these do.
_OPPOSITES: Final = (
    ("light ignite kindle", "extinguish douse quench snuff smother"),
    ("open unseal unlock unbolt unfasten", "close shut seal lock bolt fasten"),
    ("take grab fetch collect", "drop discard dump"),
    ("start begin launch activate enable", "stop end halt quit deactivate disable cancel"),
    ("raise lift increase hoist", "lower reduce decrease"),
    ("fill load refill refuel fuel", "empty drain unload siphon"),
    ("feed", "starve"),
    ("buy purchase", "sell"),
    ("add create", "remove delete erase destroy"),
    ("give offer", "steal rob"),
    ("enter arrive", "exit depart"),
    ("attach connect tie bind plug", "detach disconnect untie release unplug"),
    ("wake", "sleep rest"),
    ("hide conceal", "show reveal"),
    ("attack fight", "defend protect"),
    ("build assemble repair fix mend restore", "break smash destroy damage sabotage wreck ruin"),
    ("accept", "refuse reject decline"),
    ("save", "discard delete"),
    ("keep retain", "drop discard dump return surrender relinquish"),
    ("push", "pull"),
    ("wear don", "undress strip"),
    ("mute silence", "unmute"),
    ("wash clean rinse scrub", "dirty soil stain smear"),
    ("heat preheat warm", "cool chill freeze"),
    ("deposit", "withdraw"),
    ("hire employ", "dismiss sack"),
    ("arm", "disarm"),
    ("tighten", "loosen"),
    ("approve", "reject veto"),
    ("clear allow permit grant", "deny forbid ban prohibit hold ground refuse"),
    ("freeze", "thaw melt"),
    ("praise thank", "insult mock"),
    ("accuse blame", "apologise apologize forgive acquit"),
)


# Deeds that harm what they are done to: never another name for a tool that does not itself do such things.
_HARMFUL: Final = word_set(
    "burn ruin wreck destroy smash poison trample drown demolish shred vandalise vandalize sabotage damage spoil "
    "punch slap stab assault "
    "murder slaughter strangle harm hurt injure maim torture bomb incinerate torch deface rip "
    "ram crash starve suffocate electrocute behead decapitate detonate explode dynamite kidnap abduct lynch massacre "
    "mutilate impale cripple hijack"
)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A rough stem: enough that inflected forms of one word meet ("eastern"/"east", "closing"/"closed")."""
    word = word.casefold()
    regular = word not in _IRREGULAR
    word = _IRREGULAR.get(word, word)
    for suffix, least in (
        ("ings", 3),
        ("ing", 3),
        ("edly", 3),
        ("ed", 3),
        ("ern", 3),
        ("ies", 2),
        ("es", 3),
        ("s", 3),
    ):
        sounds = suffix not in ("ing", "ed") or any(letter in "aeiouy" for letter in word[: -len(suffix)])
        long_enough = len(word) - len(suffix) >= least and sounds  # "shred" is no participle
        if regular and word.endswith(suffix) and long_enough and not word.endswith("ss"):
            word = word[: -len(suffix)] + ("y" if suffix == "ies" else "")
            if (
                suffix in ("ings", "ing", "ed")
                and len(word) > 3
                and word[-1] == word[-2]
                and word[-1] not in "ls"
            ):
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def stem_set(text: str) -> frozenset[str]:
    """The stems of the words in `text`."""
    return frozenset(map(stem, word_set(text)))


def is_past(word: str) -> bool:
    """Whether a word has the form of a verb in the past: "mowed", "gave"."""
    regular = word.endswith("ed") and len(word) > 4 and word not in _NO_VERB
    return regular or (word in _IRREGULAR and word not in _NOT_PAST)


_NO_VERB: Final = word_set("indeed speed breed bleed hundred naked wicked sacred")
_NOT_PAST: Final = word_set(
    "loaves knives wolves shelves halves mice geese teeth children "
    "people men women feet dying lying has is are was were shut put read left done lit did"
)


def _opposite_stems() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for left, right in _OPPOSITES:
        for one, other in ((left, right), (right, left)):
            for word in one.split():
                found.setdefault(stem(word), set()).update(stem(opposite) for opposite in other.split())
    return {word: frozenset(opposites) for word, opposites in found.items()}


def split_name(name: str) -> list[str]:
    """The words of an identifier: `iron_door`, `ironDoor`, `iron-door` → iron, door."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.casefold() for word in re.split(r"[^\w]+|_+", spaced) if word]


def content_stems(text: str) -> set[str]:
    """The stems of the words that carry meaning."""
    return {stem(word) for word in split_name(text) if word not in STOPWORDS and len(word) > 1}


def distance(first: str, second: str, limit: int) -> int:
    """Damerau-Levenshtein distance (swapped neighbours cost one), or `limit + 1` where it is more."""
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        older, before, row = before, row, [i] + [0] * len(second)
        for j, b in enumerate(second, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                row[j] = min(row[j], older[j - 2] + 1)
    return min(row[-1], limit + 1)


def nearest(word: str, vocabulary: Iterable[str], limit: int | None = None) -> str | None:
    """The word of `vocabulary` that `word` is most likely a typo of, or None."""
    limit = limit or (1 if len(word) < 7 else 2)
    best: tuple[int, bool, int, str] | None = None
    for candidate in vocabulary:
        if len(candidate) < 3 or abs(len(candidate) - len(word)) > limit:
            continue
        gap = distance(word, candidate, max(limit, 2))
        if gap == 2 and sorted(word) == sorted(candidate) and len(word) > 4:
            gap = 1  # "slvier": the letters are right, only their order is not
        rank = (gap, candidate[0] != word[0], abs(len(candidate) - len(word)), candidate)
        if gap <= limit and (best is None or rank < best):
            best = rank
    return best[3] if best else None


OPPOSITES: Final[Mapping[str, frozenset[str]]] = _opposite_stems()
HARMFUL: Final = frozenset(map(stem, _HARMFUL))
VERB_STEMS: Final = frozenset(stem(verb) for verb in VERBS | NOUNISH)
