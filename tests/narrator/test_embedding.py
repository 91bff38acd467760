"""Sentences to vectors: what the model must give, and what the cache must save."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import DIMENSIONS, CachedEmbedder, MiniLM, ModelMissing
from narratoria.narrator.embedding.vectors import Vectors, np


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


class NeverAsked:
    def embed(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError(f"embedded again: {texts}")

    def knows_word(self, word: str) -> bool:
        return True


def test_vectors_have_unit_length(model: MiniLM) -> None:
    vectors = model.embed(["light the lantern", "", "a" * 5000])
    assert vectors.shape == (3, DIMENSIONS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_paraphrase_is_nearer_than_another_topic(model: MiniLM) -> None:
    lamp, torch, taxes = model.embed(["light the lamp", "set the torch ablaze", "file the tax return"])
    assert lamp @ torch > lamp @ taxes + 0.2


def test_the_arithmetic_stays_what_was_compared_with_the_published_model(model: MiniLM) -> None:
    # When this pass agreed with sentence-transformers 6.2 to 3e-7 per component, this pair had this likeness.
    first, second = model.embed(["That is a happy person", "That is a very happy dog"])
    assert float(first @ second) == pytest.approx(0.657271, abs=1e-4)


def test_a_batch_gives_what_each_text_gives_alone(model: MiniLM) -> None:
    texts = ["go", "take the silver cup from the stone chest and run", "Nina Simone", "go"]
    together = model.embed(texts)
    alone = np.concatenate([model.embed([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)


def test_tokens_are_counted_beyond_the_models_limit(model: MiniLM) -> None:
    assert model.count_tokens("word " * 2000) == 2000


def test_the_cache_spares_the_model_after_a_restart(model: MiniLM, tmp_path: Path) -> None:
    texts = ["open the door", "a tool that lights things"]
    first = CachedEmbedder(model, tmp_path).embed(texts)
    again = CachedEmbedder(NeverAsked(), tmp_path).embed(texts)
    assert np.array_equal(first, again)


def test_the_cache_does_not_keep_what_players_type(model: MiniLM, tmp_path: Path) -> None:
    CachedEmbedder(model, tmp_path).embed(["my secret"], keep=False)
    with pytest.raises(AssertionError, match="my secret"):
        CachedEmbedder(NeverAsked(), tmp_path).embed(["my secret"])


def test_a_damaged_row_of_the_cache_is_embedded_anew(model: MiniLM, tmp_path: Path) -> None:
    cache = CachedEmbedder(model, tmp_path)
    good = cache.embed(["door"])
    [file] = tmp_path.iterdir()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE vectors SET value = x'00'")
    database.close()
    assert np.allclose(CachedEmbedder(model, tmp_path).embed(["door"]), good)


@pytest.mark.parametrize("damage", ["garbage", "cut off", "emptied", "another table", "a bad journal"])
def test_a_damaged_cache_is_made_anew(model: MiniLM, tmp_path: Path, damage: str) -> None:
    texts = [f"door {number}" for number in range(30)]
    good = CachedEmbedder(model, tmp_path).embed(texts)
    [file] = tmp_path.iterdir()
    _spoil(file, damage)
    assert np.allclose(CachedEmbedder(model, tmp_path).embed(texts), good, atol=1e-5)
    assert np.allclose(CachedEmbedder(NeverAsked(), tmp_path).embed(texts), good, atol=1e-5)


def test_a_cache_damaged_while_it_is_in_use_is_made_anew(model: MiniLM, tmp_path: Path) -> None:
    cache = CachedEmbedder(model, tmp_path)
    cache.embed(["door"])
    [file] = tmp_path.iterdir()
    file.write_bytes(b"garbage" * 1000)
    cache.embed(["window"])
    CachedEmbedder(NeverAsked(), tmp_path).embed(["window"])


def _spoil(file: Path, damage: str) -> None:
    match damage:
        case "garbage":
            file.write_text("garbage\n")
        case "cut off":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        case "emptied":
            file.write_bytes(b"")
        case "another table":
            file.unlink()
            with closing(sqlite3.connect(file)) as database, database:
                database.execute("CREATE TABLE vectors (name TEXT)")
        case _:
            file.write_bytes(file.read_bytes()[:-4096])
            Path(f"{file}-journal").write_bytes(b"garbage" * 100)


@pytest.mark.parametrize(
    "obstacle", ["a file as the folder", "a folder as the file", "no folder can be made"]
)
def test_where_no_cache_can_be_kept_it_is_done_without(model: MiniLM, tmp_path: Path, obstacle: str) -> None:
    folder = tmp_path / "cache"
    if obstacle == "a folder as the file":
        (folder / f"minilm-{DIMENSIONS}.sqlite").mkdir(parents=True)
    elif obstacle == "a file as the folder":
        folder.write_text("no folder")
    else:
        folder = Path("/proc/nowhere/cache")
    cache = CachedEmbedder(model, folder)
    assert np.array_equal(cache.embed(["door"]), cache.embed(["door"]))
    assert cache.tuned().embed(["door"]).shape == (1, DIMENSIONS)


def test_a_cache_somebody_else_holds_is_not_waited_for_and_not_thrown_away(
    model: MiniLM, tmp_path: Path
) -> None:
    CachedEmbedder(model, tmp_path).embed(["door"])
    [file] = tmp_path.iterdir()
    with closing(sqlite3.connect(file)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        CachedEmbedder(model, tmp_path).embed(["window"])
        holder.rollback()
    CachedEmbedder(NeverAsked(), tmp_path).embed(["door"])


def test_a_folder_without_weights_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((_folder() / "tokenizer.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not a header at all")
    with pytest.raises(ModelMissing, match="install"):
        MiniLM(tmp_path)


def _folder() -> Path:
    from narratoria.narrator.embedding.minilm import find_model

    return find_model()


def test_start_up_is_quick_offline_and_without_torch() -> None:
    program = (
        "import sys, socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from narratoria.narrator.embedding.minilm import MiniLM\n"
        "MiniLM().embed(['warm'])\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
        "import os; assert 'OPENBLAS_NUM_THREADS' not in os.environ\n"
        "import time; print(time.process_time())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert float(done.stdout) < 1.5


def test_ten_clauses_are_embedded_within_the_budget_of_a_prompt(model: MiniLM) -> None:
    model.embed(["warm"])
    start = time.process_time()
    model.embed([f"take the lantern number {n}" for n in range(10)])
    assert time.process_time() - start < 0.5  # 0.04 on an idle machine; the bound only catches a lost order
