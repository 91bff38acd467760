"""A session in one file: out, in, and nothing taken on trust."""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from digging import Outside, new_game, play, trusted_world, world

from narratoria.errors import JournalError
from narratoria.play.history import redo, undo
from narratoria.session import Session
from narratoria.session.assets import AssetStore
from narratoria.store import record_batches as chunks
from narratoria.store.default_store import default_store
from narratoria.store.fold import fold
from narratoria.store.imported_journal import inert
from narratoria.store.portable import export_session, import_session, replacing
from narratoria.store.retention import prune, select
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store
from narratoria.store.transcript import to_html, to_markdown


async def exported(store: Store, folder: Path) -> tuple[str, Path, dict]:
    registry = Outside(folder).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1", "dig 2", "break 3", "dig 4")
    await undo(journal, registry)
    await journal.close()
    target = folder / "game.narratoria"
    export_session(store, journal.session.id, target)
    return journal.session.id, target, world(store.restore(journal.session.id))


async def test_a_session_travels_whole(store: Store, tmp_path: Path) -> None:
    session_id, target, before = await exported(store, tmp_path)
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    meta = import_session(elsewhere, target)
    assert meta.id == session_id
    assert trusted_world(elsewhere, meta.id, before) == before
    assert list(elsewhere.read(meta.id)) == [inert(one) for one in store.read(session_id)]
    for digest in elsewhere.asset_hashes():
        content = elsewhere.assets.path_of(digest).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
    again = tmp_path / "again.narratoria"
    export_session(elsewhere, meta.id, again)
    with zipfile.ZipFile(target) as one, zipfile.ZipFile(again) as two:
        records = [inert(record) for record in chunks.from_lines(one.read("journal.ndjson"))]
        assert chunks.to_lines(records) == two.read("journal.ndjson")
    second = import_session(elsewhere, target)
    assert second.id != session_id, "an id that is taken is not overwritten"
    opened = elsewhere.open(meta.id)
    await play(opened, Outside(tmp_path).registry(), "dig 9")
    await opened.close()
    assert elsewhere.restore(meta.id).state["last"] == 9
    elsewhere.close()


async def test_a_branch_is_exported_with_the_past_it_shares(store: Store, tmp_path: Path) -> None:
    session_id, _, _ = await exported(store, tmp_path)
    branch = store.branch(session_id, 1)
    target = tmp_path / "branch.narratoria"
    export_session(store, branch.id, target)
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    meta = import_session(elsewhere, target)
    before = world(store.restore(branch.id))
    assert trusted_world(elsewhere, meta.id, before) == before
    elsewhere.close()


def rewritten(target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The same file with its entries changed."""
    with zipfile.ZipFile(target) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    changed = target.with_name("changed.narratoria")
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return changed


def first_asset(entries: dict[str, bytes]) -> str:
    return next(name for name in entries if name.startswith("assets/"))


def manifest(entries: dict[str, bytes], **fields: object) -> None:
    entries["session.json"] = json.dumps({**json.loads(entries["session.json"]), **fields}).encode()


def session(entries: dict[str, bytes], **fields: object) -> None:
    manifest(entries, session={**json.loads(entries["session.json"])["session"], **fields})


def journal(entries: dict[str, bytes], old: bytes, new: bytes) -> None:
    """Another journal, of which the manifest speaks truly."""
    changed = re.sub(old, new, entries["journal.ndjson"])
    assert changed != entries["journal.ndjson"]
    entries["journal.ndjson"] = changed
    manifest(entries, journalSha256=hashlib.sha256(changed).hexdigest())


BAD: dict[str, tuple[Callable[[dict[str, bytes]], None], str]] = {
    "a path outside": (lambda e: e.update({"../../evil": b"x"}), "which no session has"),
    "an absolute path": (lambda e: e.update({"/etc/evil": b"x"}), "which no session has"),
    "a changed asset": (lambda e: e.update({first_asset(e): b"other"}), "does not have that hash"),
    "a missing asset": (lambda e: e.pop(first_asset(e)) and None, "is missing"),
    "a changed journal": (
        lambda e: e.update({"journal.ndjson": e["journal.ndjson"].replace(b"dig 2", b"dig 7")}),
        "was changed",
    ),
    "a shortened journal": (lambda e: e.update({"journal.ndjson": e["journal.ndjson"][:-40]}), "journal"),
    "no journal": (lambda e: e.pop("journal.ndjson") and None, "no journal.ndjson"),
    "a newer format": (lambda e: manifest(e, format=7), "format 7"),
    "a year beyond all clocks": (lambda e: session(e, updated=1e18), "not a time"),
    "a time before all clocks": (lambda e: session(e, created=-1e18), "not a time"),
    "a record of no time": (lambda e: journal(e, rb'"ts":[0-9.]+', b'"ts":1e300'), "not a time"),
    "a folder for a story": (lambda e: session(e, story="../../evil"), "not the id of a story"),
    "a root for a story": (lambda e: session(e, story="/evil"), "not the id of a story"),
    "a folder in the journal": (
        lambda e: journal(e, rb'"story":"digging"', b'"story":"./evil"'),
        "not the id of a story",
    ),
    "a turn below zero": (lambda e: journal(e, rb'"turn":2\b', b'"turn":-2'), "not the number of a turn"),
    "a turn beyond counting": (
        lambda e: journal(e, rb'"turn":2\b', b'"turn":' + b"9" * 18),
        "not the number",
    ),
    "an undo of no turn": (
        lambda e: journal(e, rb'("type":"turn_undone","turn"):\d+', rb"\1:77"),
        "turn_undone of turn 77 is out of order",
    ),
    "a broken manifest": (lambda e: e.update({"session.json": b"{"}), "session.json"),
}


@pytest.mark.parametrize("what", BAD)
async def test_a_file_that_is_not_sound_is_refused_whole(tmp_path: Path, what: str) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    _, target, _ = await exported(store, tmp_path)
    change, reason = BAD[what]
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    with pytest.raises(JournalError, match=reason):
        import_session(elsewhere, rewritten(target, change))
    assert elsewhere.list() == []
    assert not (tmp_path / "evil").exists()
    store.close()
    elsewhere.close()


async def test_a_file_does_not_choose_where_anything_is_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "home" / "sessions.db")
    _, target, _ = await exported(store, tmp_path)

    def climb(entries: dict[str, bytes]) -> None:
        session = {
            **json.loads(entries["session.json"])["session"],
            "id": "../../climbed",
        }
        manifest(entries, session=session)

    meta = import_session(store, rewritten(target, climb))
    assert "/" not in meta.id
    await store.open(meta.id).close()
    assert not list(tmp_path.rglob("climbed*")) and not (tmp_path.parent / "climbed.lock").exists()
    strange = store.create(Session("../outside", assets=store.assets))
    assert not list(tmp_path.rglob("outside*"))
    await strange.close()
    store.delete("../outside")
    assert len(list((tmp_path / "home" / "locks").iterdir())) == 2
    store.close()


async def test_a_zip_bomb_is_stopped_while_it_unpacks(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    _, target, _ = await exported(store, tmp_path)
    bomb = rewritten(target, lambda entries: entries.update({"journal.ndjson": b" " * 50_000_000}))
    assert bomb.stat().st_size < 200_000
    with pytest.raises(JournalError, match="more than is allowed"):
        import_session(store, bomb, limit=5_000_000)
    store.close()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"x" * 5000])
def test_a_file_that_is_no_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "game.narratoria"
    path.write_bytes(content)
    store = SqliteStore(tmp_path / "sessions.db")
    with pytest.raises(JournalError, match="nothing was imported"):
        import_session(store, path)
    store.close()


async def test_a_transcript_reads_like_the_story_and_runs_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1", "<script>alert(1)</script> *bold*", "dig 2")
    await undo(journal)
    await journal.close()
    view = fold(store.read(journal.session.id))
    markdown = to_markdown(view)
    assert markdown.startswith("# Digging\n\n> dig 1\n\nYou dig 1.")
    assert "\\<script\\>" in markdown and "\\*bold\\*" in markdown
    assert "dig 2" not in markdown, "what was undone is not told"
    page = to_html(view, store.assets)
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert "*bold*</blockquote>" in page, "what a player says is shown as it was said"
    assert "default-src 'none'" in page
    store.close()


def test_narration_is_markdown_on_the_page_too(tmp_path: Path) -> None:
    from narratoria.prose import LONGEST
    from narratoria.store.session_views import SessionView, TurnView

    told = "You *wait*, and <b>wait</b>.\n\n- a\n- b"
    turns = [
        TurnView(turn=number, outcome="completed", narrative=text)
        for number, text in enumerate([told, "*\n\n" * LONGEST], 1)
    ]
    page = to_html(SessionView(title="T", turns=turns), AssetStore(tmp_path)).replace(' dir="auto"', "")
    assert "<p>You <em>wait</em>, and &lt;b&gt;wait&lt;/b&gt;.</p>\n<ul>\n<li>a</li>" in page
    assert page.count("<p>*</p>") == LONGEST, "what is too long is told as it was written"


def test_pictures_are_part_of_the_page(tmp_path: Path) -> None:
    from narratoria.events import AssetStored
    from narratoria.store.session_views import SessionView, TurnView

    assets = AssetStore(tmp_path)
    digest = assets.add_bytes(b"\x89PNG not really")
    picture = AssetStored(
        call="c",
        asset_id="view",
        kind="image",
        media_type="image/png",
        hash=digest,
        size=1,
        metadata={"alt": 'a "sea"'},
    )
    page = to_html(
        SessionView(title="T", turns=[TurnView(turn=1, outcome="completed", assets=[picture])]), assets
    )
    assert '<img alt="a &quot;sea&quot;" src="data:image/png;base64,iVBORyBub3QgcmVhbGx5">' in page


def test_a_book_is_sound_xml_with_its_pictures_and_runs_nothing(tmp_path: Path) -> None:
    from narratoria.events import AssetStored
    from narratoria.store.epub import to_epub
    from narratoria.store.session_views import SessionView, TurnView

    assets = AssetStore(tmp_path)
    picture = AssetStored(
        call="c", asset_id="view", kind="image", media_type="image/svg+xml; charset=utf-8",
        hash=assets.add_bytes(b"<svg/>"), size=1, metadata={"alt": "<a> \x07 & \u00a0sea"},
    )  # fmt: skip
    told, said = "*{}*\n\n---\n\na\\\nb\u00a0\x00", "<script>x</script>"
    turns = [
        TurnView(turn=number, outcome="completed", prompt=said, narrative=told.format(number))
        for number in range(60)
    ]
    turns[30].assets = [picture]
    turns[59].undone = True
    with zipfile.ZipFile(io.BytesIO(to_epub(SessionView(title="A <b> & c", turns=turns), assets))) as book:
        assert book.infolist()[0].filename == "mimetype"
        assert book.infolist()[0].compress_type == zipfile.ZIP_STORED
        pages = [name for name in book.namelist() if name.endswith((".xhtml", ".opf", ".xml"))]
        texts = {name: ElementTree.fromstring(book.read(name)) for name in pages}
        items = texts["book.opf"].findall(".//{*}manifest/{*}item")
        assert {one.get("href") for one in items} | {"mimetype", "book.opf", "META-INF/container.xml"} == {
            *book.namelist()
        }
        links = [link.get("href") for link in texts["nav.xhtml"].iter("{http://www.w3.org/1999/xhtml}a")]
        assert links == ["chapter-1.xhtml", "chapter-2.xhtml", "chapter-3.xhtml"]
        (image,) = texts["chapter-2.xhtml"].iter("{http://www.w3.org/1999/xhtml}img")
        assert book.read(image.get("src") or "") == b"<svg/>"
        assert not any(list(one.iter("{http://www.w3.org/1999/xhtml}script")) for one in texts.values())
        assert "59" not in "".join(texts["chapter-3.xhtml"].itertext()), "what was undone is not told"


async def test_pruning_collects_what_no_session_refers_to(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    old, new = new_game(store), new_game(store)
    await play(old, registry, "dig 1", "dig 2")
    await play(new, registry, "dig 2", "dig 3")
    for journal in (old, new):
        await journal.close()
    later = new.session.clock() + 40 * 86_400
    assert [meta.id for meta in select(store, keep=1)] == [old.session.id]
    assert select(store, older_than=50, now=later) == []
    assert len(select(store, older_than=30, now=later)) == 2
    held = set(store.assets)
    trial = prune(store, select(store, keep=1), now=later, dry_run=True)
    assert (len(trial.sessions), trial.assets) == (1, 1)
    assert set(store.assets) == held and len(store.list()) == 2
    done = prune(store, select(store, keep=1), now=later)
    assert (done.assets, done.bytes) == (1, len("hole 1"))
    assert store.asset_hashes() == set(store.assets)
    assert [meta.id for meta in store.list()] == [new.session.id]
    fresh = store.assets.add_bytes(b"of a turn that is not recorded yet")
    assert prune(store).assets == 0 and fresh in store.assets


async def test_assets_of_another_store_in_the_same_folder_are_spared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.delenv("NARRATORIA_STORE", raising=False)
    kept: dict[Path, set[str]] = {}
    for number, path in enumerate([home / "sessions.db", tmp_path / "a.db", tmp_path / "b.db"]):
        if number:
            monkeypatch.setenv("NARRATORIA_STORE", str(path))
        store = default_store(home)
        journal = new_game(store)
        await play(journal, Outside(tmp_path).registry(), f"dig {number}")
        await journal.close()
        kept[path] = store.asset_hashes()
        store.close()
    later = time.time() + 7_200
    for path, own in kept.items():
        monkeypatch.setenv("NARRATORIA_STORE", str(path))
        store = default_store(home)
        done = prune(store, now=later)
        assert (done.assets, done.shared) == (0, 2)
        assert done.others == sorted(kept.keys() - {path})
        assert own <= set(store.assets)
        store.close()
    for other in (tmp_path / "a.db", tmp_path / "b.db"):
        other.unlink()
    monkeypatch.delenv("NARRATORIA_STORE")
    store = default_store(home)
    assert prune(store, now=later).assets == 2
    assert set(store.assets) == kept[home / "sessions.db"]
    store.close()


async def test_what_is_lost_is_said_and_the_rest_travels(store: Store, tmp_path: Path) -> None:
    session_id, target, before = await exported(store, tmp_path)
    damaged, gone, whole = sorted(store.asset_hashes(session_id))[:3]
    store.assets.path_of(damaged).write_text("something else")
    store.assets.path_of(gone).unlink()
    # PostgreSQL has the content of the other still.
    lost = [damaged, gone] if isinstance(store, SqliteStore) else [damaged]
    said = export_session(store, session_id, target)
    assert (sorted(said.missing), whole in said.assets) == (lost, True)
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    meta = import_session(elsewhere, target)
    assert trusted_world(elsewhere, meta.id, before) == before
    assert set(elsewhere.assets) == set(said.assets)
    assert elsewhere.asset_hashes(meta.id) >= set(lost), "what is lost is still referred to"
    elsewhere.close()


async def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    target = tmp_path / "old.narratoria"
    target.write_text("the old one")
    with pytest.raises(JournalError):
        export_session(store, "nobody", target)
    with pytest.raises(RuntimeError), replacing(target) as file:
        file.write(b"half of")
        raise RuntimeError
    assert target.read_text() == "the old one"
    assert not list(tmp_path.glob("*.part"))
    store.close()


def test_an_export_neither_writes_to_nor_follows_what_somebody_put_in_its_way(tmp_path: Path) -> None:
    target, victim = tmp_path / "mine.narratoria", tmp_path / "victim"
    victim.write_text("somebody else's")
    (tmp_path / "mine.narratoria.part").symlink_to(victim)
    with replacing(target) as file:
        file.write(b"mine")
    assert victim.read_text() == "somebody else's"
    assert not target.is_symlink() and target.read_bytes() == b"mine"
    assert target.stat().st_mode & 0o777 == 0o600


async def test_pruning_spares_the_session_that_is_being_played(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    old, played, new = new_game(store), new_game(store), new_game(store)
    await play(old, registry, "dig 1")
    await play(played, registry, "dig 2")
    await old.close()
    await new.close()
    done = prune(store, store.list())
    assert {one.id for one in done.sessions} == {old.session.id, new.session.id}
    assert [one.id for one in done.busy] == [played.session.id]
    assert [one.id for one in store.list()] == [played.session.id]
    await played.close()


async def test_a_session_counts_the_turns_that_stand(store: Store, tmp_path: Path) -> None:
    registry = Outside(tmp_path).registry()
    journal = new_game(store)
    await play(journal, registry, "dig 1", "dig 2")
    await undo(journal, registry)
    assert store.meta(journal.session.id).turns == 1
    await redo(journal)
    assert store.meta(journal.session.id).turns == 2
    await undo(journal, registry)
    await play(journal, registry, "dig 3")
    assert store.branch(journal.session.id, 3).turns == 2
    await journal.close()


@pytest.mark.parametrize("address", ["mysql://me:secret@host/games", "sqlite:///games.db"])
def test_a_store_of_an_unknown_kind_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_STORE", address)
    with pytest.raises(JournalError, match="no store of the kind") as refusal:
        default_store(tmp_path)
    assert "secret" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []
