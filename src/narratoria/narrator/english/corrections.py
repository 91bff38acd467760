"""A prompt as it was meant to be typed: second thoughts ("go down, no wait, up" asks for up), and one apostrophe.

`amends` takes back for the local narrator, among tokens. A story's rules need a way of their own: they read the
letters the player typed, which tokens do not keep; a word by itself ("up") is a whole request to them; and what is
taken back with nothing in its place is a wish to wait, which a story may answer.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Keyboards and phones have many, players leave it out, and "dont" without it would ask for the deed.
_APOSTROPHE: Final = re.compile(r"(?<=\w)[’‘‛`´ʹʻʼʽˈ′＇](?=\w)")
_LEFT_OUT: Final = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|could|would|should|have|has|had|must|need|might|ca|wo|sha|ai)n(?=t\b)"
    r"|i(?=(?:m|ve)\b)|(?:you|they)(?=(?:re|ve)\b)|(?:that|what|there|where|who|how)(?=s\b))",
    re.IGNORECASE,
)
_AFTERTHOUGHT: Final = re.compile(
    r"\s*[,.;:!…—–-]+\s*(?:(?:oh|er|um),?\s+)?"
    r"(?:no,?\s+wait|wait,?\s+no|no,?\s+(?:i\s+mean|rather|make\s+that|scratch\s+that)|(?:scratch|strike)\s+that|or\s+rather|"
    r"i\s+mean|make\s+that|on\s+second\s+thoughts?)\b[\s,.;:!…—–-]*",
    re.IGNORECASE,
)
# "Can't I go up?" asks what "can I go up?" asks; nothing is ruled out by it.
_DOUBTING: Final = re.compile(
    r"^(\s*(?:(?:but|and|so|oh|well|hey)\s*,?\s+)?)"
    r"(can|could|would|should|did|do|does|is|are|was|were|have|has|had|wo)n?'t\s+(?=(?:i|we|you|he|she|it|they|there|the|that|this)\b.*\?)",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(r"[,.;:!\n]+|\b(?:and\s+then|then|and)\b", re.IGNORECASE)
_THING: Final = re.compile(r"\b(?:the|a|an|my|that|this|to|into|onto|with|at)\b", re.IGNORECASE)
_TAKEN_BACK: Final = "wait"  # "take the oil, no wait": what is asked for is to do nothing yet
_MOST: Final = 4
_LONGEST: Final = 1_000
_SPEECH: Final = re.compile(r"[\"“”«»]")


def with_apostrophes(text: str) -> str:
    """With one kind of apostrophe, and with those that were left out: "dont" is "don't"."""
    return _LEFT_OUT.sub(lambda match: match[0] + "'", _APOSTROPHE.sub("'", text))


def corrected(prompt: str) -> str:
    """The prompt with what the player took back left out; the deed before a correction lends it its verb."""
    seen = "".join(
        char for char in prompt if unicodedata.category(char) != "Cf"
    )  # no invisible marks inside words
    prompt = with_apostrophes(unicodedata.normalize("NFC", seen))
    prompt = _DOUBTING.sub(_undoubted, prompt)
    if len(prompt) > _LONGEST:  # a text, not a request
        return prompt
    for _ in range(_MOST):
        match = _AFTERTHOUGHT.search(prompt)
        if match is None or not match.start() or _SPEECH.search(prompt):
            return prompt
        joints = [joint.end() for joint in _JOINT.finditer(prompt, 0, match.start())]
        start = joints[-1] if joints else 0
        wrong, right = prompt[start : match.start()].strip(), prompt[match.end() :].strip()
        thing = _THING.search(wrong)
        if right and thing is not None and thing.start() and _THING.match(right):
            right = wrong[: thing.start()] + right
        prompt = f"{prompt[:start].rstrip()} {right or _TAKEN_BACK}".strip()
    return prompt


def _undoubted(match: re.Match[str]) -> str:
    return f"{match[1]}{'will' if match[2].lower() == 'wo' else match[2]} "
