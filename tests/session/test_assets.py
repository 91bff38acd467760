"""Assets: what is accepted is copied under its hash and outlives the original; the rest is refused by name."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from narratoria.errors import AssetRefused
from narratoria.events import Asset, AssetDenied, AssetStored, Notice
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.assets import AssetStore, is_media_type

CONTENT = b"\x89PNG\r\n\x1a\n and so on"
DONE = '{"version":"0","type":"done","ok":true}'
PATCH = '{"version":"0","type":"state_patch","patch":{"drawn":true}}'


def asset(path: Path | str, **changes: Any) -> Asset:
    fields = {"asset_id": "map", "kind": "image", "media_type": "image/png", "path": str(path), **changes}
    return Asset(version="0", **fields)


@pytest.fixture
def store(tmp_path: Path) -> AssetStore:
    return AssetStore(tmp_path / "store", cap=1000)


def leftovers(store: AssetStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file() and path.name not in set(store)]


# --- accepted ----------------------------------------------------------------------------------------------


def test_the_copy_lies_under_its_hash_and_survives_the_original(tmp_path: Path, store: AssetStore) -> None:
    file = tmp_path / "map.png"
    file.write_bytes(CONTENT)
    stored = store.accept("call", asset(file, metadata={"alt": "A map"}))
    assert stored.hash == hashlib.sha256(CONTENT).hexdigest()
    assert (stored.size, stored.name, stored.metadata) == (len(CONTENT), "map.png", {"alt": "A map"})
    file.write_bytes(b"something else")
    file.unlink()
    assert store.path_of(stored.hash).read_bytes() == CONTENT
    assert stored.hash in store and list(store) == [stored.hash]


def test_the_same_content_is_kept_once(tmp_path: Path, store: AssetStore) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(CONTENT)
        store.accept("call", asset(tmp_path / name))
    assert len(list(store)) == 1 and leftovers(store) == []
    assert store.add_bytes(CONTENT) == list(store)[0]  # noqa: RUF015


def test_a_link_to_a_file_and_an_empty_file_are_fine(tmp_path: Path, store: AssetStore) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert store.accept("call", asset(tmp_path / "link", kind="text", media_type="text/plain")).size == 0


def test_a_relative_path_is_resolved_from_the_working_directory(
    tmp_path: Path, store: AssetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """000 §4.3: an absolute path, or one resolvable from the runtime's working directory."""
    (tmp_path / "map.png").write_bytes(CONTENT)
    monkeypatch.chdir(tmp_path)
    assert store.accept("call", asset("map.png")).size == len(CONTENT)
    monkeypatch.chdir("/")
    with pytest.raises(AssetRefused, match=r"map\.png does not exist"):
        store.accept("call", asset("map.png"))


def test_a_file_of_exactly_the_cap_is_accepted(tmp_path: Path, store: AssetStore) -> None:
    (tmp_path / "full").write_bytes(b"x" * store.cap)
    assert store.accept("call", asset(tmp_path / "full", media_type="text/plain")).size == store.cap


# --- what the file is --------------------------------------------------------------------------------------

PNG, JPEG, GIF = b"\x89PNG\r\n\x1a\n....", b"\xff\xd8\xff\xe0....", b"GIF89a...."
AGREE = [
    ("image/png", PNG),
    ("image/jpeg", JPEG),
    ("image/gif", GIF),
    ("image/webp", b"RIFF....WEBPVP8 "),
    ("image/svg+xml", b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>'),
    ("image/svg+xml; charset=utf-8", b"  <svg/>"),
    ("audio/wav", b"RIFF....WAVEfmt "),
    ("audio/x-wav", b"RIFF....WAVEfmt "),
    ("audio/mpeg", b"ID3\x04"),
    ("audio/mpeg", b"\xff\xfb\x90\x00"),
    ("audio/ogg", b"OggS\x00"),
    ("video/ogg", b"OggS\x00"),
    ("video/mp4", b"\x00\x00\x00\x18ftypisom"),
    ("audio/mp4", b"\x00\x00\x00\x18ftypM4A "),
    ("video/webm", b"\x1aE\xdf\xa3"),
    ("application/pdf", b"%PDF-1.7"),
    ("application/json", b' {"a": 1}'),
    ("application/geo+json", b"[]"),
    ("text/plain", "Grüße".encode()),
    ("text/plain", b""),
    ("text/plain", b"%PDF- is how such files begin"),
    ("IMAGE/PNG", PNG),
    ("model/gltf-binary", b"glTF\x00"),
    ("application/octet-stream", PNG),
]
DISAGREE = [
    ("image/png", JPEG, "is image/jpeg, not image/png"),
    ("image/jpeg", b"words", "does not begin like image/jpeg"),
    ("image/png; charset=x", b"words", "does not begin like image/png"),
    ("image/png", b"", "is empty, which no image/png is"),
    ("video/x-unheard-of", b"", "is empty"),
    ("image/svg+xml", b"<html><script>", "does not begin like image/svg"),
    ("audio/mpeg", b"RIFF....WAVEfmt ", "is audio/wav, not audio/mpeg"),
    ("text/plain", b"a\x00b", "is binary, not text/plain"),
    ("application/json", b"<html>", "does not begin like application/json"),
]


@pytest.mark.parametrize(("media_type", "content"), AGREE)
def test_content_that_agrees_with_its_media_type_is_accepted(
    tmp_path: Path, store: AssetStore, media_type: str, content: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert store.accept("call", asset(tmp_path / "file", media_type=media_type)).size == len(content)


@pytest.mark.parametrize(("media_type", "content", "says"), DISAGREE)
def test_content_that_contradicts_its_media_type_is_refused_and_said_so(
    tmp_path: Path, store: AssetStore, media_type: str, content: bytes, says: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(AssetRefused, match=re.escape(says)):
        store.accept("call", asset(tmp_path / "file", media_type=media_type))
    assert list(store) == [] and leftovers(store) == []


@pytest.mark.parametrize("path", ["/proc/self/status", "/sys/kernel/notes", "/proc/self/../self/environ"])
def test_files_of_the_system_are_refused(store: AssetStore, path: str) -> None:
    with pytest.raises(AssetRefused, match="the system's"):
        store.accept("call", asset(path, media_type="application/octet-stream"))


def test_a_link_to_a_file_of_the_system_is_refused(tmp_path: Path, store: AssetStore) -> None:
    (tmp_path / "mine").symlink_to("/proc/self/environ")
    with pytest.raises(AssetRefused, match="the system's"):
        store.accept("call", asset(tmp_path / "mine", media_type="application/octet-stream"))


def test_a_link_that_comes_and_goes_is_kept_or_refused_and_leaks_nothing(
    tmp_path: Path, store: AssetStore
) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    link, over = tmp_path / "link", threading.Event()

    def flicker() -> None:
        while not over.is_set():
            link.symlink_to(tmp_path / "file")
            link.unlink()

    before = sorted(Path("/dev/fd").iterdir())
    thread = threading.Thread(target=flicker)
    thread.start()
    kept = refused = 0
    try:
        until = time.monotonic() + 20  # on a busy machine one of the two may not come for seconds
        while time.monotonic() < until and not (kept and refused and kept + refused >= 100):
            try:
                store.accept("call", asset(link))
                kept += 1
            except AssetRefused:
                refused += 1
    finally:
        over.set()
        thread.join()
    assert kept and refused
    assert sorted(Path("/dev/fd").iterdir()) == before
    assert not leftovers(store)


def test_a_link_that_pointed_to_the_system_when_it_was_followed_is_refused(
    tmp_path: Path, store: AssetStore
) -> None:
    """It leads through /proc/self/fd, so that what is opened and what the path says afterwards differ."""
    (tmp_path / "harmless").write_bytes(b"harmless")
    descriptor = os.open("/proc/self/environ", os.O_RDONLY)
    try:
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{descriptor}")
        with pytest.raises(AssetRefused, match="the system's"):
            store.accept("call", asset(tmp_path / "link", media_type="application/octet-stream"))
        copy = os.open(tmp_path / "harmless", os.O_RDONLY)
        os.dup2(copy, descriptor)
        os.close(copy)
        assert store.accept("call", asset(tmp_path / "link", media_type="text/plain")).size == 8
    finally:
        os.close(descriptor)


def test_a_store_without_room_refuses_the_asset(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    limited = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from narratoria.errors import AssetRefused\n"
        "from narratoria.events import Asset\n"
        "from narratoria.session.assets import AssetStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = AssetStore(Path(sys.argv[1]) / 'store')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "event = Asset(version='0', asset_id='a', kind='text', media_type='text/plain', path=sys.argv[1] + '/file')\n"
        "try:\n"
        "    store.accept('call', event)\n"
        "except AssetRefused as refusal:\n"
        "    print(refusal)\n"
        "print([path for path in store.root.rglob('*') if path.is_file()])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", limited, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "assets cannot be kept in" in told.stdout and told.stdout.endswith("[]\n")


def test_a_path_too_long_to_read_is_cut_in_the_message(store: AssetStore) -> None:
    with pytest.raises(AssetRefused) as caught:
        store.accept("call", asset("/" + "a" * 6000))
    assert len(str(caught.value)) < 400 and "6,001 characters" in str(caught.value)


# --- refused -----------------------------------------------------------------------------------------------


def directory(path: Path) -> None:
    path.mkdir()


def symlink_loop(path: Path) -> None:
    path.symlink_to(path)


def dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def too_large(path: Path) -> None:
    path.write_bytes(b"x" * 1001)


def missing(path: Path) -> None:
    pass


BAD_FILES: list[tuple[Callable[[Path], object], str]] = [
    (missing, "does not exist; write the file before"),
    (directory, "is a directory"),
    (os.mkfifo, "is not a regular file"),
    (symlink_loop, "symbolic links"),
    (dangling_link, "does not exist"),
    (too_large, "1,001 bytes, more than the cap of 1,000"),
]


@pytest.mark.parametrize(("make", "says"), BAD_FILES, ids=lambda case: getattr(case, "__name__", None))
def test_a_bad_file_is_refused_with_its_reason(
    tmp_path: Path, store: AssetStore, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / "thing")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(AssetRefused) as refusal:
        store.accept("call", asset(tmp_path / "thing"))
    assert says in str(refusal.value) and "'map'" in str(refusal.value)
    assert list(store) == [] and leftovers(store) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/mem", "a\0b", "", "/dev/null/x"])
def test_devices_and_impossible_paths_are_refused(store: AssetStore, path: str) -> None:
    with pytest.raises(AssetRefused):
        store.accept("call", asset(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; the tool below drops its rights")
def test_an_unreadable_file_is_refused(tmp_path: Path, store: AssetStore) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    (tmp_path / "secret").chmod(0)
    with pytest.raises(AssetRefused, match="not readable by the runtime"):
        store.accept("call", asset(tmp_path / "secret"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read the file")
def test_an_unreadable_file_is_refused_to_a_runtime_without_rights(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    secret.chmod(0)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setuid(65534)
        try:
            AssetStore(cap=1000).accept("call", asset(secret))
            said = b"accepted"
        except AssetRefused as refusal:
            said = str(refusal).encode()
        os.write(writes, said)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    # Folders of the test may already be closed to others; either way it is a matter of rights.
    assert b"not readable by the runtime" in said


@pytest.mark.parametrize(
    "text", ["png", "image/", "/png", "image png", "", "image/p ng", "nonsense/png", "image/png;"]
)
def test_what_is_no_media_type_is_refused(tmp_path: Path, store: AssetStore, text: str) -> None:
    (tmp_path / "map.png").write_bytes(CONTENT)
    assert not is_media_type(text)
    with pytest.raises(AssetRefused, match="is not a media type"):
        store.accept("call", asset(tmp_path / "map.png", media_type=text))


@pytest.mark.parametrize(
    "text", ["image/png", "image/svg+xml", "text/plain; charset=utf-8", "model/gltf-binary"]
)
def test_what_is_a_media_type_is_accepted(text: str) -> None:
    assert is_media_type(text)


def test_an_empty_id_is_refused(tmp_path: Path, store: AssetStore) -> None:
    (tmp_path / "map.png").write_bytes(CONTENT)
    with pytest.raises(AssetRefused, match="assetId is empty"):
        store.accept("call", asset(tmp_path / "map.png", asset_id=" "))


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "0" * 64, "Z" * 64])
def test_only_hashes_that_are_kept_are_found(store: AssetStore, digest: str) -> None:
    with pytest.raises(KeyError):
        store.path_of(digest)
    assert digest not in store


# --- in a call ---------------------------------------------------------------------------------------------


class Heard:
    """A subscriber that keeps what it is told."""

    full = False

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.events.append(record.event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def call(folder: Path, *assets: Asset, cap: int = 1000) -> tuple[Any, Session, Heard]:
    """A real process that announces these assets, patches the state and ends well."""
    lines = [*(msgspec.json.encode(one).decode() for one in assets), PATCH, DONE]
    tool = folder / "announcer"
    tool.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    tool.chmod(0o755)
    session, heard = Session(assets=AssetStore(folder / "store", cap=cap)), Heard()
    session.attach(heard)
    return (
        await ToolRegistry().executor.execute(process_tool(tool), {}, session=session, call=Call()),
        session,
        heard,
    )


@pytest.mark.parametrize(("make", "says"), BAD_FILES, ids=lambda case: getattr(case, "__name__", None))
async def test_refusing_an_asset_is_said_and_does_not_fail_the_call(
    tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / "thing")
    result, session, heard = await call(tmp_path, asset(tmp_path / "thing"))
    assert result.success, result.message
    assert session.snapshot() == {"drawn": True}
    (denied,) = heard.of(AssetDenied)
    assert says in denied.reason and denied.asset_id == "map"
    assert says in heard.of(Notice)[0].message
    assert heard.of(AssetStored) == [] and session.asset_records == {}


async def test_a_repeated_id_is_refused_and_the_first_stands(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(CONTENT + name.encode())
    result, _, heard = await call(
        tmp_path, asset(tmp_path / "one"), asset(tmp_path / "two"), asset(tmp_path / "two", asset_id="other")
    )
    assert result.success
    assert [(one.asset_id, one.name) for one in heard.of(AssetStored)] == [("map", "one"), ("other", "two")]
    assert "already used in the same invocation" in heard.of(AssetDenied)[0].reason


async def test_a_bad_media_type_is_refused_in_a_call(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one")
    result, _, heard = await call(tmp_path, asset(tmp_path / "one", media_type="picture"))
    assert result.success
    assert "'picture' is not a media type" in heard.of(AssetDenied)[0].reason


async def test_an_accepted_asset_belongs_to_the_session_after_its_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "map.png"
    file.write_bytes(CONTENT)
    result, session, _ = await call(tmp_path, asset(file))
    assert result.success
    file.unlink()
    (stored,) = session.asset_records.values()
    assert session.assets.path_of(stored.hash).read_bytes() == CONTENT


def test_calls_side_by_side_sign_a_folder_at_the_same_time(tmp_path: Path) -> None:
    for number in range(20):
        store = AssetStore(tmp_path / str(number), user=tmp_path / "sessions.db")
        begin = threading.Barrier(8)

        def add(content: bytes, store: AssetStore = store, begin: threading.Barrier = begin) -> str:
            begin.wait()
            return store.add_bytes(content)

        with ThreadPoolExecutor(8) as pool:
            digests = [*pool.map(add, (bytes([one]) for one in range(8)))]
        assert all(digest in store for digest in digests)
        assert [one.name for one in store.root.glob("incoming/*")] == []


def test_a_copy_that_is_finished_while_old_ones_are_removed_is_no_obstacle(store: AssetStore) -> None:
    incoming = store.root / "incoming"
    (incoming / "import-old").mkdir(parents=True)
    (incoming / "old").touch()
    (incoming / "gone").symlink_to(incoming / "finished")  # listed, and not there when it is looked at
    store.sweep(time.time() + 60)
    assert [one.name for one in incoming.iterdir()] == ["gone"]
