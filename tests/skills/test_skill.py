"""Reading a SKILL.md: what is a skill, and the verdict of the reference validator, skills-ref, beside ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import skills_ref.validator

from narratoria.skills.skill import MOST_REFERENCES, SkillInvalid, read_skill
from narratoria.skills.skill_library import CORE

GOOD = "name: dice\ndescription: Rolls dice.\n"


def skill(folder: Path, text: str | bytes, name: str = "dice", file: str = "SKILL.md") -> Path:
    root = folder / name
    root.mkdir(parents=True, exist_ok=True)
    (root / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def test_a_skill_is_read_whole(tmp_path: Path) -> None:
    root = skill(
        tmp_path,
        "---\nname: dice\ndescription: >\n  Rolls dice.\n  Use it for chance.\nlicense: MIT\n"
        "compatibility: Needs Python\nmetadata:\n  version: 1.0\n  ours: yes\nallowed-tools: Read Bash(git:*)\n---\n"
        "\n# Dice\n\nRoll seldom.\n",
    )
    (root / "references").mkdir()
    (root / "references" / "odds.md").write_text("Two dice: seven.")
    (root / "references" / "out").symlink_to("/etc/passwd")
    found = read_skill(root)
    assert found.name == "dice"
    assert found.description == "Rolls dice. Use it for chance."
    assert found.body == "# Dice\n\nRoll seldom."
    assert (found.license, found.compatibility) == ("MIT", "Needs Python")
    assert found.metadata == {"version": "1.0", "ours": "yes"}
    assert found.allowed_tools == ("Read", "Bash(git:*)")
    assert found.references == ("references/odds.md",)
    assert found.read_reference("references/odds.md") == "Two dice: seven."
    with pytest.raises(SkillInvalid, match=r"no reference '../../x'; known: references/odds\.md"):
        found.read_reference("../../x")


def test_pages_are_bounded_and_a_folder_that_is_a_link_has_none(tmp_path: Path) -> None:
    root = skill(tmp_path, front(GOOD))
    (root / "references").symlink_to("/")
    assert read_skill(root).references == ()
    (root / "references").unlink()
    (root / "references" / "deep").mkdir(parents=True)
    for number in range(MOST_REFERENCES + 10):
        (root / "references" / "deep" / f"{number:04}.md").write_text("")
    (root / "references" / ".hidden").write_text("")
    (root / "references" / "deep" / "loop").symlink_to(root / "references")
    found = read_skill(root).references
    assert len(found) == MOST_REFERENCES and found[0] == "references/deep/0000.md"


def test_every_problem_is_named_with_what_to_do(tmp_path: Path) -> None:
    root = skill(tmp_path, "---\nname: Dice--x\nversion: 2\n---\n")
    with pytest.raises(SkillInvalid) as refused:
        read_skill(root)
    said = str(refused.value)
    for part in ("key 'version': unknown", "has capitals", "hyphens stand alone", "the folder is 'dice'"):
        assert part in said
    assert "key 'description' is missing" in said


def test_a_colon_in_a_description_is_told_with_its_line(tmp_path: Path) -> None:
    root = skill(tmp_path, "---\nname: dice\ndescription: Use when: never\n---\n")
    with pytest.raises(SkillInvalid, match=r"line 3: .*put the value in quotes"):
        read_skill(root)


def front(text: str) -> str:
    return f"---\n{text}---\nBody.\n"


CASES: dict[str, str | bytes] = {
    "good": front(GOOD),
    "crlf": front(GOOD).replace("\n", "\r\n"),
    "quoted": front("name: 'dice'\ndescription: \"It's: dice\"\n"),
    "comment": front(f"# a remark\n{GOOD}"),
    "literal": front("name: dice\ndescription: |\n  One.\n  Two.\n"),
    "many lines": front("name: dice\ndescription: one\n  two\n"),
    "metadata": front(f"{GOOD}metadata:\n  author: somebody\n  version: 1.0\n"),
    "deep metadata": front(f"{GOOD}metadata:\n  a:\n    b: c\n  d:\n    - e\n"),
    "tools": front(f"{GOOD}allowed-tools: Read Write\n"),
    "tools as a list": front(f"{GOOD}allowed-tools:\n  - Read\n  - Write\n"),
    "license list": front(f"{GOOD}license:\n  - MIT\n"),
    "no body": f"---\n{GOOD}---",
    "yes": front("name: dice\ndescription: yes\n"),
    "no front matter": "# Dice\n",
    "empty": "",
    "not closed": f"---\n{GOOD}",
    "byte order mark": b"\xef\xbb\xbf" + front(GOOD).encode(),
    "no name": front("description: Rolls.\n"),
    "no description": front("name: dice\n"),
    "empty name": front("name:\ndescription: Rolls.\n"),
    "empty description": front("name: dice\ndescription:\n"),
    "blank description": front("name: dice\ndescription: '   '\n"),
    "name is a list": front("name:\n  - dice\ndescription: Rolls.\n"),
    "another name": front("name: dices\ndescription: Rolls.\n"),
    "capitals": front("name: Dice\ndescription: Rolls.\n"),
    "underscore": front("name: di_ce\ndescription: Rolls.\n"),
    "space": front("name: di ce\ndescription: Rolls.\n"),
    "long description": front(f"name: dice\ndescription: {'x' * 1025}\n"),
    "longest description": front(f"name: dice\ndescription: {'x' * 1024}\n"),
    "compatibility": front(f"{GOOD}compatibility: {'x' * 500}\n"),
    "long compatibility": front(f"{GOOD}compatibility: {'x' * 501}\n"),
    "compatibility is a list": front(f"{GOOD}compatibility:\n  - x\n"),
    "empty compatibility": front(f"{GOOD}compatibility:\n"),
    "unknown key": front(f"{GOOD}version: 1\n"),
    "flow list": front(f"{GOOD}allowed-tools: [Read, Write]\n"),
    "flow object": front(f"{GOOD}metadata: {{a: b}}\n"),
    "anchor": front("name: &a dice\ndescription: *a\n"),
    "tag": front("name: !!str dice\ndescription: Rolls.\n"),
    "twice": front(f"{GOOD}name: dice\n"),
    "twice below": front(f"{GOOD}metadata:\n  a: b\n  a: c\n"),
    "colon": front("name: dice\ndescription: Use when: x\n"),
    "tab": front("name: dice\n\tdescription: x\n"),
    "at sign": front("name: dice\ndescription: @x\n"),
    "a list": front("- dice\n"),
    "a text": front("dice\n"),
    "nothing between": "---\n---\nBody.",
    "number for a key": front(f"{GOOD}1: x\n"),
    "indented": front("  name: dice\n  description: Rolls.\n"),
    "lowercase file": front(GOOD),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reference_validator_says_the_same(tmp_path: Path, case: str) -> None:
    root = skill(tmp_path, CASES[case], file="skill.md" if case == "lowercase file" else "SKILL.md")
    theirs = skills_ref.validator.validate(root)
    try:
        read_skill(root)
        ours: tuple[str, ...] = ()
    except SkillInvalid as error:
        ours = error.problems
    assert bool(ours) == bool(theirs), (ours, theirs)


@pytest.mark.parametrize(
    "line", ['description: "bad \\uD800 half"', 'description: x\nmetadata:\n  k: "\\uDFFF"']
)
def test_half_a_character_is_refused_at_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(SkillInvalid, match=r"line [35]: half a character"):
        read_skill(skill(tmp_path, front(f"name: dice\n{line}\n")))


@pytest.mark.parametrize(
    "name", ["a", "a-b", "-a", "a-", "a--b", "é", "Ä", "骰子", "a.b", "x" * 64, "x" * 65, "1", "ﬁ", "²"]
)
def test_the_reference_validator_says_the_same_of_names(tmp_path: Path, name: str) -> None:
    root = skill(tmp_path, front(f'name: "{name}"\ndescription: Rolls.\n'), name=name)
    try:
        read_skill(root)
        ours: tuple[str, ...] = ()
    except SkillInvalid as error:
        ours = error.problems
    assert bool(ours) == bool(skills_ref.validator.validate(root)), ours


def test_a_folder_without_a_skill_is_refused_by_both(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkillInvalid, match=r"has no SKILL\.md"):
        read_skill(tmp_path / "empty")
    assert skills_ref.validator.validate(tmp_path / "empty")


def test_what_is_no_text_or_too_deep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillInvalid, match=r"not UTF-8 \(byte 4\)"):
        read_skill(skill(tmp_path, b"---\n\xff\n---\n"))
    deep = "".join(f"{' ' * level}a{level}:\n" for level in range(300))
    with pytest.raises(SkillInvalid):
        read_skill(skill(tmp_path, front(deep)))
    if os.geteuid():
        root = skill(tmp_path, front(GOOD))
        (root / "SKILL.md").chmod(0)
        with pytest.raises(SkillInvalid, match="cannot be read"):
            read_skill(root)


@pytest.mark.parametrize("name", sorted(path.name for path in CORE.iterdir()))
def test_our_own_skills_are_valid_for_both(name: str) -> None:
    assert skills_ref.validator.validate(CORE / name) == []
    assert read_skill(CORE / name).name == name
