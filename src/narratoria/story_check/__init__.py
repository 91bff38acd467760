"""Checks of a story's rules against its tools and its state, before anybody plays it.

`check_rules` gets a `RuleBook` and returns problems, each with its file and line. What certainly goes wrong is an
error; what is only suspicious, because a tool may do more than can be read in it, is a warning.
"""

from __future__ import annotations

from narratoria.errors import StoryProblem
from narratoria.story_check.answered_choices import choice_problems, offer_problems
from narratoria.story_check.called_tools import call_problems
from narratoria.story_check.dead_rules import dead_rule_problems
from narratoria.story_check.impossible_conditions import impossible_problems
from narratoria.story_check.reached_endings import ending_problems, shape_problems
from narratoria.story_check.read_state import state_problems
from narratoria.story_check.rule_book import RuleBook
from narratoria.story_check.unread_state import unread_problems

__all__ = ["RuleBook", "check_rules"]


def check_rules(book: RuleBook, *, whole: bool = True) -> list[StoryProblem]:
    """Return the problems of a story's rules, errors first, each group in the order of the file.

    Where not the whole file could be read, only errors: what seems never to be written may be in the rest.
    """
    of_state = [*state_problems(book), *shape_problems(book)]
    found = [*call_problems(book), *of_state]
    if not whole:
        return [one for one in found if one.severity == "error"]
    if not any(one.severity == "error" for one in of_state):  # an operator misspelt makes others seem wrong
        found += [*impossible_problems(book), *dead_rule_problems(book), *ending_problems(book)]
    found += [*choice_problems(book), *offer_problems(book), *unread_problems(book)]
    return sorted(found, key=lambda one: (one.severity != "error", one.file, one.line or 0))
