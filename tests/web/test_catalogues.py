"""The words of the page: every language has every one of them, and a browser gets its own."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import httpx
import pytest
from script_texts import texts_of
from starlette.datastructures import Headers

from conftest import RunningServer
from narratoria.web import catalogues
from narratoria.web.catalogues import Catalogue, CatalogueInvalid, Catalogues, shipped
from narratoria.web.packing import keys_of
from narratoria.web.static_files import ROOT

WEB = Path(catalogues.__file__).parent
SOURCE = WEB.parent
BY_TEXT = (catalogues.PROBLEM, catalogues.NOTICE)
IN_FILES = re.compile(r"\{\{([a-z]+\.[\w.]+)\}\}")
IN_PYTHON = re.compile(r'"((?:refusal|problem|page)\.\w+)"')
PLURALS = {"en": {"one", "other"}, "de": {"one", "other"}}


def used() -> set[str]:
    """The keys in the page's own files and in the server's code."""
    found = {key for path in (ROOT / "js").glob("*.js") for key in keys_of(path.read_text())}
    for path in ROOT.glob("*.*"):
        found |= set(IN_FILES.findall(path.read_text()))
    for path in WEB.glob("*.py"):
        text = path.read_text()
        found |= set(IN_PYTHON.findall(text)) | set(IN_FILES.findall(text))
    return found


# Two words, a word with a capital letter, a word that goes on: what only a sentence has.
PROSE = re.compile(
    r"[A-Za-z’]{2,}[,.:;]? [A-Za-z’]{2,}|^[A-Z][a-z]{2,}(?:…|\.|:)?$|[A-Za-z]+…|^[a-z]{2,}[.:] ?$"
)
SHOWN = re.compile(
    r"""(?:\btext|\blabel|\btitle|\bplaceholder|\balt|"aria-label"|"aria-valuetext"|"aria-description"): $"""
)
NAMES = re.compile(  # of classes, elements, keys and the like, which nobody reads
    r"""(?:class: [^,{]*|"class", |className = |\bd: |key [!=]== |querySelector(?:All)?\(|closest(?:\?\.)?\(|"""
    r"""matches\(|matchMedia\(|postMessage\(|cookie = |preserveAspectRatio: |source === |"menu-item" : |"""
    r"""(?:FIELDS|ELSEWHERE) = )$"""
)
SAME_IN_ALL = {"Narratoria", "env:VARIABLE", "••••••••"}


def test_no_words_stand_in_a_script_or_a_document() -> None:
    left = []
    for path in sorted((ROOT / "js").glob("*.js")):
        script = path.read_text()
        assert 'toLocaleString("en")' not in script, path.name
        assert not re.search(r"(?<![\w.])(?:t|parts)\((?!\"[a-z]+\.\w+\"|key\b)", script), (
            f"{path.name}: write keys out"
        )
        for line, before, text in texts_of(script):
            shown = SHOWN.search(before) and re.search("[A-Za-z]{2}", text)
            said = PROSE.search(text) and not NAMES.search(before)
            if (shown or said) and text not in SAME_IN_ALL and "://" not in text:
                left.append(f"{path.name}:{line}: {text!r}")
    for path in (ROOT / "index.html", ROOT / "offline.html"):
        body = re.sub(r"<(?:!--.*?--|[^>]*)>|\{\{[\w.]+\}\}", "", path.read_text())
        words = set(re.findall("[A-Za-z]{2,}", body)) - {"Narratoria", "narratoria", "play"}
        left += [f"{path.name}: {word}" for word in sorted(words)]
    assert not left, "put these into the catalogue:\n" + "\n".join(left)


def test_styles_name_no_side_but_where_a_line_begins_and_ends() -> None:
    sided = re.compile(
        r"(?:margin|padding|border)-(?:left|right)|(?<=[{;\s])(?:left|right):|(?:text-align|float): (?:left|right)"
    )
    found = [
        f"{path.name}:{number}: {line.strip()[:80]}"
        for path in sorted((ROOT / "css").glob("*.css"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if sided.search(line)
    ]
    assert not found, "say it by inline-start and inline-end:\n" + "\n".join(found)


def test_the_reader_of_scripts_finds_every_text() -> None:
    script = r"""
    /* "not this" */ const a = h("p", { text: `One ${b ? "two" : `three ${c}`} four` }); // nor "this"
    const d = /"no"/.test('five'), e = { f: "six \" seven" };
    """
    texts = [text.text for text in texts_of(script)]
    assert texts == ["p", "One \0 four", "two", "three \0", "five", 'six \\" seven']


def values_of(text: object) -> set[str]:
    texts = text.values() if isinstance(text, dict) else [text]
    return {name for one in texts for name in re.findall(r"\{(\w+)\}", str(one))}


def said_by_the_server() -> set[str]:
    """The strings in our code, with a hole for each value."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values]
                found.add("".join(parts))
    return found


def test_a_message_of_the_server_is_found_by_the_words_that_the_code_has() -> None:
    said = said_by_the_server()
    texts = {key: text for key, text in shipped()["en"].words.items() if key.startswith(BY_TEXT)}
    assert not {key for key, text in texts.items() if re.sub(r"\{\w+\}", "{}", str(text)) not in said}
    german = shipped()["de"]
    told = shipped().translated("there is no checkpoint 'a; b'; there are: 'c'", german)
    assert told == "Es gibt keinen Augenblick 'a; b'; es gibt: 'c'"
    assert shipped().translated("something else", german) == "something else"


def test_every_key_is_in_every_language_and_none_is_unused() -> None:
    keys = used() | {key for key in shipped()["en"].words if key.startswith(BY_TEXT)}
    assert "en" in shipped()
    assert len(shipped()) > 1
    for catalogue in shipped().values():
        assert not keys - catalogue.words.keys(), f"{catalogue.language} lacks these"
        assert not catalogue.words.keys() - keys, f"nothing says these of {catalogue.language}"


def test_a_text_has_the_same_values_and_the_right_plurals_in_every_language() -> None:
    english = shipped()["en"].words
    for catalogue in shipped().values():
        for key, text in catalogue.words.items():
            assert values_of(text) == values_of(english[key]), f"{catalogue.language}: {key}"
            assert isinstance(text, dict) == isinstance(english[key], dict), f"{catalogue.language}: {key}"
            if isinstance(text, dict):
                assert text.keys() == PLURALS[catalogue.language], f"{catalogue.language}: {key}"
            marks = [str(one).count("`") for one in (text, english[key])]
            assert marks[0] == marks[1], f"{catalogue.language}: {key}: the same things to type"


@pytest.mark.parametrize(
    ("accepted", "cookie", "chosen"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "", "de"),
        ("fr, en;q=0.5, de;q=0.8", "", "de"),
        ("fr;q=1, *;q=0.1", "", "en"),
        ("de;q=0, en", "", "en"),
        ("", "", "en"),
        ("en-GB", "narratoria-8400=x; narratoria-language=de", "de"),
        ("de", "narratoria-language=xx", "de"),
        ("de;q=zero" + ",x" * 5_000, "", "de"),
    ],
)
def test_a_browser_gets_the_language_set_there_or_the_first_it_accepts(
    accepted: str, cookie: str, chosen: str
) -> None:
    headers = Headers({"accept-language": accepted, "cookie": cookie})
    assert shipped().chosen(headers).language == chosen


def test_a_variety_stands_in_for_its_language(tmp_path: Path) -> None:
    (tmp_path / "pt-BR.json").write_text(json.dumps({"$name": "Português"}))
    known = Catalogues(catalogues.ROOT, tmp_path)
    assert known.chosen(Headers({"accept-language": "pt-PT, de"})).language == "pt-BR"


def test_a_catalogue_is_bounded_and_says_how_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "he.json"
    path.write_text(json.dumps({"$name": "עברית", "$direction": "rtl", "a.b": "{x} <&"}))
    catalogue = Catalogue.read(path)
    assert catalogue.document('<html lang="en"><p>') == '<html lang="he" dir="rtl"><p>'
    assert catalogue.file_name("later.js") == "later.he.js"
    assert catalogue.say("a.b", x=1) == "1 <&"
    path.write_text(json.dumps({"$name": "x" * catalogues.MOST_BYTES}))
    with pytest.raises(CatalogueInvalid, match="at most"):
        Catalogue.read(path)


def test_the_page_comes_in_the_language_of_the_browser_and_in_no_other(server: RunningServer) -> None:
    wanted = {"Accept-Language": "de", "Accept": "text/html"}
    with server.client() as client:
        page, english = client.get("/", headers=wanted), client.get("/")
        assert '<html lang="de">' in page.text
        assert '<html lang="en">' in english.text
        assert "Accept-Language" in page.headers["vary"]
        assert page.headers["content-security-policy"] != english.headers["content-security-policy"]
        assert "/static/later.de.js" in page.text
        later = client.get("/static/later.de.js").text
        assert "Wie der Browser" in later
        assert "As the browser" not in later
        assert client.get("/static/later.xx.js").status_code == 404
        assert client.get("/static/app.de.webmanifest").json()["lang"] == "de"
        worker = client.get("/service-worker.js", headers={"Cookie": "narratoria-language=de"})
        assert "/static/offline.de.html" in worker.text
        assert "Narratoria läuft nicht" in client.get("/static/offline.de.html").text
        session = server.new_session()
        refused = client.post(f"/sessions/{session}/undo", json={}, headers=wanted)
        assert refused.json()["message"].startswith("Es gibt nichts zurückzunehmen")
    refused = httpx.get(server.origin, headers=wanted)
    assert "Wer ist da?" in refused.text
    assert '<html lang="de">' in refused.text
