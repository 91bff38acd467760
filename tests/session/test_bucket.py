"""Assets of a shared store in a bucket: kept, fetched, checked, collected, and what happens when the bucket is away."""

from __future__ import annotations

import hashlib
import logging
import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from buckets import SECRET, Moto, SmallStore
from digging import Outside, new_game, play

from narratoria.errors import JournalError
from narratoria.store import bucket as buckets
from narratoria.store.bucket import Bucket, ObjectMissing, StoreAway, bucket_of_environment
from narratoria.store.fold import fold
from narratoria.store.moving import move_store
from narratoria.store.postgres import PostgresStore
from narratoria.store.retention import SETTLING, prune
from narratoria.store.s3_signing import NO_BODY, Keys, query_string, signed
from narratoria.store.salvage.verification import verify
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import JournalDamaged


@pytest.fixture
def small() -> Iterator[SmallStore]:
    with closing(SmallStore()) as server:
        yield server


def test_a_signature_is_that_of_the_published_example() -> None:
    """The examples of "Signature Calculations for the Authorization Header" in Amazon's S3 reference."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    then = datetime(2013, 5, 24, tzinfo=UTC)
    query = query_string({"prefix": "J", "max-keys": "2"})
    headers = signed(keys, "GET", "examplebucket.s3.amazonaws.com", "/", query, NO_BODY, then)
    assert headers["authorization"].endswith(
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )
    assert "wJalr" not in repr(keys)


def test_a_bucket_that_misbehaves_is_said_and_its_secret_is_not(
    small: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(buckets, "SILENT_SECONDS", 0.1)
    content = b"a picture" * 1000
    digest, file = hashlib.sha256(content).hexdigest(), tmp_path / "picture"
    file.write_bytes(content)
    said: list[str] = []
    with closing(small.bucket()) as bucket, (tmp_path / "copy").open("w+b") as copy:
        bucket.put("a/b", file, digest)
        assert bucket.fetch("a/b", digest, copy) == len(content)
        copy.flush()
        assert (tmp_path / "copy").read_bytes() == content
        for mood, error in {
            "away": StoreAway, "slow": StoreAway, "half": StoreAway, "refuse": JournalError, "altered": JournalDamaged,
        }.items():  # fmt: skip
            small.mood = mood
            with pytest.raises(error) as raised:
                bucket.fetch("a/b", digest, copy)
            said.append(str(raised.value))
        small.mood = "well"
        with pytest.raises(ObjectMissing):
            bucket.fetch("a/c", digest, copy)
    small.close()
    with closing(small.bucket()) as bucket, pytest.raises(StoreAway, match="no connection") as raised:
        bucket.check()
    said.append(str(raised.value))
    assert "503 SlowDown" in said[0] and "half way" in said[2] and "403 AccessDenied" in said[3]
    assert "AWS_ACCESS_KEY_ID" in said[3] and "damaged" in said[4]
    assert SECRET not in " ".join(said) + caplog.text + repr(vars(bucket))


@pytest.mark.postgres
async def test_a_bucket_that_is_away_costs_nothing_and_is_collected_later(
    small: SmallStore, postgres_database: str, tmp_path: Path
) -> None:
    registry = Outside(tmp_path).registry()
    store = PostgresStore(postgres_database, assets=tmp_path / "a", bucket=small.bucket())
    journal = new_game(store)
    small.mood = "away"
    store.patience = 0.0
    [result] = await play(journal, registry, "dig 1")
    assert result.unsaved is not None and "503 SlowDown" in result.unsaved and SECRET not in result.unsaved
    assert store.meta(journal.session.id).turns == 0, "no record refers to what is not kept"
    small.mood = "well"
    assert [one.unsaved for one in await play(journal, registry, "dig 2")] == [None]
    await journal.close()
    (digest, other) = sorted(store.asset_hashes())
    assert len(small.objects) == 2 and all(SECRET not in one for one in small.asked)
    with closing(PostgresStore(postgres_database, assets=tmp_path / "b", bucket=small.bucket())) as second:
        assert [turn.prompt for turn in fold(second.read(journal.session.id)).told] == ["dig 1", "dig 2"]
        small.mood = "half"
        with pytest.raises(StoreAway):
            second.assets.path_of(digest)
        small.mood = "altered"
        assert second.assets.is_whole(digest) is False
        small.mood = "well"
        assert [one.sound for one in verify(second, second.list())] == [True]
        assert oct(second.assets.path_of(digest).stat().st_mode & 0o777) == "0o600"
        assert not [*(tmp_path / "b" / "incoming").iterdir()]
    with (
        closing(PostgresStore(postgres_database, assets=tmp_path / "c")) as unaware,
        pytest.raises(JournalError, match="set NARRATORIA_ASSETS"),
    ):
        unaware.assets.path_of(digest)
    # Collection: what a server left half way goes after an hour, what no session refers to at once, on any server.
    store.contents.bring([store.assets.add_bytes(b"left half way")])
    assert len(small.objects) == 3
    later = time.time() + 2 * SETTLING
    with closing(PostgresStore(postgres_database, assets=tmp_path / "d", bucket=small.bucket())) as third:
        assert prune(third).assets == 0 and len(small.objects) == 3
        assert prune(third, now=later).assets == 0 and len(small.objects) == 2
        store.contents.discard(other)  # somebody refers to it again
        assert other in third.assets and len(small.objects) == 2
        assert prune(third, third.list(), now=later).assets == 2 and not small.objects
    store.close()


def test_a_bucket_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("NARRATORIA_ASSETS", raising=False)
    assert bucket_of_environment() is None
    monkeypatch.setenv("NARRATORIA_ASSETS", "s3://tales/of/the/north")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    with pytest.raises(JournalError, match="without keys; set AWS_ACCESS_KEY_ID"):
        bucket_of_environment()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    found = bucket_of_environment()
    assert isinstance(found, Bucket)
    with closing(found):
        assert found.shown == "s3://tales/of/the/north/ at tales.s3.eu-central-1.amazonaws.com"
    for wrong in ("s3://A", f"s3://id:{SECRET}@tales", "file:///tales"):
        monkeypatch.setenv("NARRATORIA_ASSETS", wrong)
        with pytest.raises(JournalError) as refused:
            bucket_of_environment()
        assert SECRET not in str(refused.value)
    monkeypatch.setenv("NARRATORIA_ASSETS", "s3://tales")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"https://id:{SECRET}@store.example")
    with pytest.raises(JournalError, match="no address of a store") as refused:
        bucket_of_environment()
    assert SECRET not in str(refused.value)


@pytest.mark.slow
def test_a_real_store_takes_our_signatures_and_refuses_others(s3_server: Moto, tmp_path: Path) -> None:
    with closing(s3_server.bucket(s3_server.make_bucket(), "the north/über alles")) as bucket:
        size = 32 * 1024 * 1024
        file, copy = tmp_path / "large", tmp_path / "copy"
        file.write_bytes(os.urandom(size))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        tracemalloc.start()
        bucket.put("ab/large", file, digest)
        with copy.open("w+b") as there:
            assert bucket.fetch("ab/large", digest, there) == size
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024, "contents stream"
        tracemalloc.stop()
        assert copy.read_bytes() == file.read_bytes()
        empty = tmp_path / "empty"
        empty.touch()
        bucket.put("cd/empty", empty, NO_BODY)
        assert [one.name for one in bucket.list("")] == ["ab/large", "cd/empty"]
        assert [one.name for one in bucket.list("cd/")] == ["cd/empty"]
        assert abs(next(bucket.list("")).put - time.time()) < 60
        bucket.delete("ab/large")
        bucket.delete("ab/large")
        with copy.open("w+b") as there, pytest.raises(ObjectMissing):
            bucket.fetch("ab/large", digest, there)
    name = bucket.shown.split("/")[2]
    stranger = Bucket(name, Keys(s3_server.keys.id, SECRET), endpoint=s3_server.endpoint)
    with closing(stranger), pytest.raises(JournalError, match="403 SignatureDoesNotMatch"):
        stranger.check()
    missing = s3_server.bucket("no-such")
    with closing(missing), pytest.raises(JournalError, match=r"NoSuchBucket\); make the bucket"):
        missing.check()


@pytest.mark.slow
@pytest.mark.postgres
async def test_a_store_is_moved_into_a_bucket_and_back(
    s3_server: Moto, postgres_database: str, tmp_path: Path
) -> None:
    with closing(SqliteStore(tmp_path / "old.db", assets=tmp_path / "old")) as old:
        journal = new_game(old)
        await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
        await journal.close()
        bucket = s3_server.bucket(s3_server.make_bucket())
        with closing(PostgresStore(postgres_database, assets=tmp_path / "new", bucket=bucket)) as new:
            assert sum(one.assets for one in move_store(old, new)) == 2
            assert new.query("SELECT count(*) FROM contents") == [(0,)]
            assert len([*bucket.list("")]) == 2
            with closing(SqliteStore(tmp_path / "back.db", assets=tmp_path / "back")) as back:
                assert sum(one.assets for one in move_store(new, back)) == 2
