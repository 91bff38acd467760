"""Files made to harm: opening what they hold runs nothing, and what is refused leaves nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from digging import Outside, new_game, play
from tests import warm_start
from vault import Script, journalled_rollback, open_turn, packed, pending_undo, write_vault

from narratoria.errors import JournalError
from narratoria.play.game import Game
from narratoria.play.history import preview_undo, undo
from narratoria.play.story import Story
from narratoria.store.default_store import default_store
from narratoria.store.fold import fold
from narratoria.store.portable import export_session, import_session
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SessionMeta, Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    write_vault(tmp_path)
    return tmp_path


def taken_in(store: Store, content: bytes) -> SessionMeta:
    return import_session(store, io.BytesIO(content))


def opened(store: Store, session_id: str, home: Path) -> Game:
    story = Story.load(home / "stories" / "vault")
    return Game(story, store.open(session_id).session, narrators=["rules", "template"])


def test_a_file_that_lacks_its_first_bytes_is_refused_and_leaves_nothing(home: Path) -> None:
    store = default_store(home)
    whole = open_turn()
    for missing in (1, 7, 40):
        with pytest.raises(JournalError, match=r"is not a whole \.narratoria file"):
            taken_in(store, whole[:2] + whole[2 + missing :])
    assert store.list() == []
    store.close()


# --- nothing runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [open_turn, pending_undo, journalled_rollback])
async def test_opening_what_a_file_holds_runs_nothing(home: Path, make: Callable[[], bytes]) -> None:
    store = default_store(home)
    game = opened(store, taken_in(store, make()).id, home)
    assert await game.resume() is None
    assert not (home / "ran").exists()
    assert game.session.permissions == {"look"}, "what the story grants, of what the file claims"
    assert game.where_we_are().choices == ["Look"]
    store.close()


async def test_an_open_turn_is_closed_and_can_be_asked_for_again(home: Path) -> None:
    store = default_store(home)
    meta = taken_in(store, open_turn())
    turns = fold(store.read(meta.id)).turns
    assert [(one.turn, one.outcome) for one in turns] == [(0, "completed"), (1, "cancelled")]
    assert "not finished" in turns[1].notices[0].message
    game = opened(store, meta.id, home)
    await game.resume()
    await game.prompt("open vault")
    assert not (home / "ran").exists(), "the story does not grant what the tool needs"
    assert (await game.prompt("look")).outcome == "completed"
    assert (home / "ran").read_text().count("\n") == 1
    store.close()


async def test_a_pending_undo_is_cancelled_and_can_be_asked_for_again(home: Path) -> None:
    store = default_store(home)
    game = opened(store, taken_in(store, pending_undo()).id, home)
    journal = game.session.journal
    assert journal.timeline.undoing is None and journal.timeline.last == 1
    await game.resume()
    assert journal.timeline.last == 1
    undone = await undo(journal, game.registry)
    assert undone.turn == 1 and "imported file" in undone.irreversible[0]
    assert not (home / "ran").exists()
    store.close()


async def test_a_rollback_of_a_file_is_listed_and_runs_only_when_asked_for(home: Path) -> None:
    store = default_store(home)
    game = opened(store, taken_in(store, journalled_rollback()).id, home)
    game.session.grant("danger")  # by the player, here and now
    journal = game.session.journal
    preview = await preview_undo(journal, game.registry)
    assert preview.compensated == [] and preview.imported
    assert "imported file" in preview.irreversible[0]
    asked = await preview_undo(journal, game.registry, imported=True)
    assert asked.compensated == ["open was done"]
    assert '{"who":"the file"}' in asked.asked_by_a_file[0]
    undone = await undo(journal, game.registry, imported=True)
    assert undone.compensated == ["open was done"]
    assert '"operation":"undo"' in (home / "ran").read_text().replace(" ", "")
    store.close()


async def test_undo_redo_and_branch_bring_no_permission_back(home: Path) -> None:
    from narratoria.play.history import redo

    store = default_store(home)
    meta = taken_in(store, Script(permissions=[]).rollback(1).rollback(2, "evil:two").file())
    branch = store.branch(meta.id, 1)
    game = opened(store, meta.id, home)
    journal = game.session.journal
    for move in (undo, undo, redo, redo):
        await move(journal)
        assert game.session.permissions == set()
    game.session.grant("danger")
    game.session.revoke("danger")
    await journal.close()
    store.delete(meta.id)
    other = opened(store, branch.id, home)
    assert other.session.permissions == set()
    preview = await preview_undo(other.session.journal, other.registry)
    assert preview.compensated == [] and preview.imported, "marked in the branch as well"
    store.close()


async def test_what_is_revoked_here_is_gone_though_a_file_claims_it(home: Path) -> None:
    store = default_store(home)
    meta = taken_in(store, Script().file())
    game = opened(store, meta.id, home)
    assert game.session.permissions == {"look"}
    game.session.revoke("look")
    assert game.session.permissions == set()
    await game.session.journal.close()
    game = opened(store, meta.id, home)
    assert game.session.permissions == set()
    store.close()


async def test_a_session_of_ones_own_goes_on_where_it_was(home: Path, tmp_path: Path) -> None:
    store, other = default_store(home), SqliteStore(tmp_path / "other" / "sessions.db")
    story = Story.load(home / "stories" / "vault")
    from narratoria.session import Session

    session = Session(state=story.state, permissions=story.permissions, assets=store.assets)
    journal = store.create(session, story=story.id, title=story.title)
    game = Game(story, session, narrators=["rules", "template"])
    game.begin()
    await game.prompt("look")
    await journal.close()
    export_session(store, session.id, tmp_path / "own.narratoria")
    again = opened(other, import_session(other, tmp_path / "own.narratoria").id, home)
    assert again.session.permissions == {"look"} and again.session.state["door"] == "looked"
    assert again.where_we_are().choices == session.choices
    assert (await again.prompt("look")).outcome == "completed"
    undone = await undo(again.session.journal, again.registry)
    assert undone.compensated == ["look was done"], "what was done here is taken back as ever"
    assert "imported file" in (await undo(again.session.journal, again.registry)).irreversible[0]
    store.close()
    other.close()


def test_the_command_line_runs_nothing_either(home: Path) -> None:
    for make in (open_turn, pending_undo, journalled_rollback):
        file = home / "gift.narratoria"
        file.write_bytes(make())
        made = narratoria("sessions", "import", file, "--json")
        session = json.loads(made.stdout)["id"]
        shown = narratoria("play", "--session", session, "--json", "--narrator", "rules")
        assert json.loads(shown.stdout.splitlines()[0])["choices"] == ["Look"]
        narratoria("sessions", "show", session)
        narratoria("replay", session)
        refused = narratoria("replay", session, "--verify", code=None)
        assert "asked for by the imported file: open" in refused.stderr
        assert "nothing was run" in refused.stderr
        assert not (home / "ran").exists()
    undone = narratoria("sessions", "undo", session, "--yes")
    assert "imported file" in undone.stderr and "--imported" in undone.stderr
    assert not (home / "ran").exists()


def narratoria(*arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    ended = warm_start.run(*arguments, env=os.environ, timeout=60)
    assert code is None or ended.returncode == code, ended.stderr
    return ended


# --- whole or not at all -----------------------------------------------------------------------------------


def reordered() -> bytes:
    script = Script().rollback(1)
    random.Random(7).shuffle(script.lines)
    return script.file()


def backwards() -> bytes:
    script = Script().rollback(1)
    script.lines.reverse()
    return script.file()


def renumbered() -> bytes:
    """The lines shuffled, and numbered anew."""
    script = Script().rollback(1)
    random.Random(7).shuffle(script.lines)
    script.lines = [
        json.dumps({**json.loads(line), "seq": seq}).encode() for seq, line in enumerate(script.lines, 1)
    ]
    return script.file()


def with_a_gap() -> bytes:
    script = Script().rollback(1)
    del script.lines[7]
    return script.file()


def without_a_beginning() -> bytes:
    script = Script().rollback(1)
    del script.lines[0]
    return script.file()


def deep(levels: int) -> bytes:
    script = Script()
    script.lines[0] = script.lines[0].replace(b'{"door": "shut"}', b'{"a":' * levels + b"1" + b"}" * levels)
    return script.file()


def many_values() -> bytes:
    script = Script().begin(1, "look")
    lists = b"[" + b"[]," * 14_000_000 + b"[]]"
    return _with_line(script, b'{"type":"call_emitted","call":"c","event":{"version":"0","type":"log",'
                      b'"level":"info","message":"","fields":{"a":' + lists + b"}}}")  # fmt: skip


def many_lines_of_values() -> bytes:
    """Each line is small enough; all of them are one turn."""
    script = Script().begin(1, "look")
    for _ in range(40):
        lists = b"[" + b"[]," * 900_000 + b"[]]"
        _with_line(script, b'{"type":"call_emitted","call":"c","event":{"version":"0","type":"log",'
                   b'"level":"info","message":"","fields":{"a":' + lists + b"}}}")  # fmt: skip
    return script.file()


def _with_line(script: Script, event: bytes) -> bytes:
    seq = str(len(script.lines) + 1).encode()
    script.lines.append(b'{"seq":' + seq + b',"ts":1,"turn":1,"event":' + event + b"}")
    return script.file() if len(script.lines) < 8 else b""


def a_long_line() -> bytes:
    return packed(b'{"seq":1,"ts":1,"turn":null,"event":"' + b"x" * (65 * 1024**2), 1)


def not_utf_8() -> bytes:
    script = Script()
    script.lines[1] = script.lines[1].replace(b'"prompt": ""', b'"prompt": "\xff\xfe"')
    return script.file()


def not_utf_8_where_nobody_looks() -> bytes:
    script = Script()
    script.lines[1] = script.lines[1].replace(b'"prompt": ""', b'"prompt": "", "other": "\xff"')
    return script.file()


def a_key_twice(place: bytes, twice: bytes) -> bytes:
    script = Script()
    assert place in script.lines[1]
    script.lines[1] = script.lines[1].replace(place, twice)
    return script.file()


def a_key_twice_in_the_manifest() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(Script().file())) as given, zipfile.ZipFile(made, "w") as copy:
        for name in given.namelist():
            content = given.read(name)
            copy.writestr(
                name, content.replace(b"{", b'{"records": 7, ', 1) if name == "session.json" else content
            )
    return made.getvalue()


def a_turn_twice() -> bytes:
    return Script().rollback(1).rollback(1, "evil:again").file()


def an_end_without_a_beginning() -> bytes:
    return Script().end(4).file()


def a_number_no_machine_counts_to() -> bytes:
    script = Script()
    return script.add("call_started", call="evil:" + "9" * 4200, tool="open").file()


def a_gap_behind_which_nobody_can_play(**numbers: int) -> bytes:
    """A snapshot whose numbers no store can hold: it was taken in, and the first turn could not be saved."""
    return Script().lose(1, **numbers).file()


def a_line_break_in_a_media_type() -> bytes:
    return an_asset(b"x", mediaType='text/plain; name="a\r\nSet-Cookie: b=c"')


def an_asset(content: bytes, *, spoken_of: bool = True, **fields: object) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    script = Script()
    told = {
        "call": "c", "assetId": "a", "kind": "text", "mediaType": "text/plain", "hash": digest,
        "size": len(content), **fields,
    }  # fmt: skip
    if spoken_of:
        script.add("asset_stored", **told)
    return script.file({digest: content})


def bombs(last: bytes) -> bytes:
    """Assets that unpack to far more than they take, and a journal that is refused at its end."""
    contents = {hashlib.sha256(one).hexdigest(): one for one in (bytes([n]) * 20_000_000 for n in range(5))}
    script = Script()
    for digest in contents:
        script.add(
            "asset_stored",
            call="c",
            assetId=digest,
            kind="k",
            mediaType="text/plain",
            hash=digest,
            size=20_000_000,
        )
    script.lines.append(last)
    return script.file(contents)


@pytest.mark.parametrize("outcome", ["x" * 3_000_000, "\x1b[2J\x1b]0;mine\x07"])
def test_what_a_refusal_quotes_of_a_file_is_short_and_safe_on_a_terminal(home: Path, outcome: str) -> None:
    script = Script().begin(1, "look").add("turn_committed", turn=1, outcome=outcome)
    store = default_store(home)
    with pytest.raises(JournalError, match=r"Invalid enum value .*outcome") as refused:
        taken_in(store, script.file())
    assert len(str(refused.value)) < 500 and str(refused.value).isprintable()
    store.close()


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "reordered": (reordered, "beginning|out of order"),
    "backwards": (backwards, "beginning"),
    "renumbered": (renumbered, "beginning|out of order"),
    "with a gap": (with_a_gap, "record 8 is missing"),
    "without a beginning": (without_a_beginning, "beginning"),
    "a state 900 deep": (lambda: deep(900), "nested deeper"),
    "a state 100,000 deep": (lambda: deep(100_000), "nested deeper"),
    "millions of values": (many_values, "values"),
    "many lines of values": (many_lines_of_values, "values"),
    "a line that does not end": (a_long_line, "too long"),
    "not UTF-8": (not_utf_8, "not UTF-8"),
    "not UTF-8 where nobody looks": (not_utf_8_where_nobody_looks, "not UTF-8"),
    "a key twice": (lambda: a_key_twice(b'"prompt": ""', b'"prompt": "", "prompt": "x"'), "line 2: .*appears twice"),
    "a key twice where nobody looks": (
        lambda: a_key_twice(b'"prompt": ""', b'"prompt": "", "other": {"a": 1, "a": 2}'), "appears twice"),
    "a key twice in the manifest": (a_key_twice_in_the_manifest, "session.json: .*appears twice"),
    "a turn twice": (a_turn_twice, "out of order"),
    "an end without a beginning": (an_end_without_a_beginning, "out of order"),
    "nothing at all": (lambda: packed(b"", 0), "no records"),
    "a line break in a media type": (a_line_break_in_a_media_type, "not a media type"),
    "an asset larger than it says": (lambda: an_asset(b"x" * 5000, size=5), "more than is allowed"),
    "an asset of no record": (lambda: an_asset(b"x" * 5000, spoken_of=False), "no record speaks of"),
    "bombs and a bad last line": (lambda: bombs(b"{"), "line 11"),
    "bombs and a bad end": (lambda: bombs(json.dumps({
        "seq": 11, "ts": 1, "turn": None, "event": {"type": "turn_undone", "turn": 9}}).encode()), "out of order"),
    "bombs and an unsound game": (lambda: bombs(json.dumps({
        "seq": 11, "ts": 1, "turn": None,
        "event": {"type": "committed", "call": "c", "changes": [3]}}).encode()), "not in the journal"),
    "more turns than can be counted": (
        lambda: a_gap_behind_which_nobody_can_play(turn_count=(1 << 63) - 1), "out of range"),
    "fewer turns than none": (lambda: a_gap_behind_which_nobody_can_play(turn_count=-1), "out of range"),
    "more calls than can be counted": (
        lambda: a_gap_behind_which_nobody_can_play(calls=1 << 60), "out of range"),
    "a snapshot of no record": (lambda: a_gap_behind_which_nobody_can_play(seq=1 << 60), "out of range"),
    "a plan without a name": (lambda: Script().begin(1, "x").add("plan_made", plan={}, attempt=1).file(), "requestId"),
}  # fmt: skip
LARGE = ("many lines of values", "bombs and a bad last line")  # seconds each


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.slow if what in LARGE else ()) for what in REFUSED],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, what: str) -> None:
    make, reason = REFUSED[what]
    content = make()
    store = SqliteStore(tmp_path / "sessions.db")
    with pytest.raises(JournalError, match=reason) as refusal:
        taken_in(store, content)
    assert "nothing was imported" in str(refusal.value) and len(str(refusal.value)) < 2000
    assert store.list() == [] and store.query("SELECT count(*) FROM sessions") == [(0,)]
    assert store.query("SELECT count(*) FROM batches") == [(0,)]
    left = [path for path in (tmp_path / "assets").rglob("*") if path.is_file()]
    assert left == [], "not one asset was put into the store"
    store.close()


def test_a_number_no_machine_counts_to_does_no_harm(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    try:
        taken_in(store, a_number_no_machine_counts_to())
    except JournalError:
        assert store.list() == []
    store.close()


@pytest.mark.parametrize(("packing", "named"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")])
def test_a_packing_that_no_limit_holds_for_is_refused(tmp_path: Path, packing: int, named: str) -> None:
    content = packed(b"\0" * 32_000_000, 1, packing=packing)
    assert len(content) < 10_000
    store = SqliteStore(tmp_path / "sessions.db")
    tracemalloc.start()
    with pytest.raises(JournalError, match=f"session.json is packed by {named}; .*nothing was imported"):
        taken_in(store, content)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
    assert store.list() == []
    store.close()


@pytest.mark.parametrize("make", [many_values, pytest.param(many_lines_of_values, marks=pytest.mark.slow)])
def test_a_small_file_costs_little_memory(tmp_path: Path, make: Callable[[], bytes]) -> None:
    file = tmp_path / "bomb.narratoria"
    file.write_bytes(make())
    assert file.stat().st_size < 300_000
    ended = subprocess.run(
        [sys.executable, "-m", "narratoria", "sessions", "import", str(file)],
        capture_output=True,
        timeout=120,
        env={"NARRATORIA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29)),
    )
    assert ended.returncode == 1 and b"values" in ended.stderr, ended.stderr[-500:]


def test_an_import_is_given_up_also_while_it_is_folded(tmp_path: Path) -> None:
    """All its records are in the database by then, and are removed again."""
    content = Script().rollback(1).rollback(2).rollback(3).file()
    other = SqliteStore(tmp_path / "a" / "sessions.db")
    last = import_session(other, io.BytesIO(content)).last_seq
    other.close()
    store = SqliteStore(tmp_path / "b" / "sessions.db")

    def folding() -> bool:
        rows = store.query("SELECT last_seq FROM sessions WHERE hidden = 1")
        return bool(rows) and rows[0][0] == last

    with pytest.raises(JournalError, match="given up; nothing was imported"):
        import_session(store, io.BytesIO(content), given_up=folding)
    assert store.query("SELECT count(*) FROM sessions") == [(0,)]
    assert not store.list()
    store.close()


@pytest.mark.parametrize("asked", [1, 10, 60])
def test_an_import_that_is_given_up_leaves_nothing(tmp_path: Path, asked: int) -> None:
    times = iter(range(asked + 1000))
    store = SqliteStore(tmp_path / "sessions.db")
    script = Script().rollback(1).rollback(2).rollback(3)
    content = io.BytesIO(script.file())
    with pytest.raises(JournalError, match="given up; nothing was imported"):
        import_session(store, content, given_up=lambda: next(times) >= asked)
    assert store.list() == [] and store.query("SELECT count(*) FROM batches") == [(0,)]
    session_id = import_session(store, content).id
    with pytest.raises(JournalError, match="given up"):
        export_session(store, session_id, tmp_path / "out.narratoria", given_up=lambda: True)
    assert not list(tmp_path.glob("out*"))
    store.close()


async def test_an_import_that_is_cut_short_shows_no_session(tmp_path: Path) -> None:
    """The session is shown only once its assets are in their places."""
    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1")
    await journal.close()
    export_session(store, journal.session.id, tmp_path / "game.narratoria")
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    seen: list[int] = []
    take = elsewhere.assets.take

    def looked(copy: Path, digest: str) -> None:
        seen.append(len(elsewhere.list()))
        take(copy, digest)

    elsewhere.assets.take = looked  # type: ignore[method-assign]
    import_session(elsewhere, tmp_path / "game.narratoria")
    assert seen == [0] and len(elsewhere.list()) == 1
    assert list((tmp_path / "elsewhere" / "assets" / "incoming").iterdir()) == []
    store.close()
    elsewhere.close()


def test_a_state_as_deep_as_tools_may_make_it_travels(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    meta = taken_in(store, deep(190))
    assert store.restore(meta.id).snapshot()
    store.close()


@pytest.mark.parametrize("fault", ["the last record", "an asset"])
def test_a_file_that_is_refused_late_leaves_the_database_as_small_as_it_was(
    tmp_path: Path, fault: str
) -> None:
    script = Script()
    for turn in range(1, 41):
        script.begin(turn, "look").add("narration", text=random.Random(turn).randbytes(100_000).hex())
        script.end(turn)
    assets = {}
    if fault == "an asset":
        content, digest = b"another", hashlib.sha256(b"one").hexdigest()
        stored = {"hash": digest, "mediaType": "text/plain", "size": 7, "assetId": "a", "kind": "text"}
        script.begin(41, "look").add("asset_stored", call="c", **stored).end(41)
        assets[digest] = content
    else:
        script.add("turn_committed", turn=41)
    store = SqliteStore(tmp_path / "sessions.db")
    taken_in(store, open_turn())
    with pytest.raises(JournalError, match="nothing was imported"):
        taken_in(store, script.file(assets))
    store.close()
    assert (tmp_path / "sessions.db").stat().st_size < 1_000_000
    assert list((tmp_path / "assets").rglob("*.*")) == []


@pytest.mark.parametrize("in_manifest", [True, False])
def test_titles_of_a_file_are_one_line_in_their_own_order(tmp_path: Path, in_manifest: bool) -> None:
    odd = "A \u202egift\u2066\n\x1b[2J of \u200e\ufeffפרח 👩\u200d🚀"
    plain = "A gift [2J of פרח 👩\u200d🚀"
    script = Script()
    started = json.loads(script.lines[0])
    started["event"]["title"] = odd
    script.lines[0] = json.dumps(started).encode()
    script.add("checkpoint", name=odd, turn=0)
    about = {"id": "evil", "story": "vault", "created": 1.0, "updated": 1.0}
    store = SqliteStore(tmp_path / "sessions.db")
    meta = taken_in(store, script.file(session=about | ({"title": odd} if in_manifest else {})))
    assert store.meta(meta.id).title == plain
    view = fold(store.read(meta.id))
    assert (view.title, [*view.checkpoints]) == (plain, [plain])
    store.rename(meta.id, f"\u2067{odd}")
    assert store.meta(meta.id).title == plain
    store.close()
