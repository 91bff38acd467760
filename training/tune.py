"""Tune the upper layers of all-MiniLM-L6-v2 to bring a request near the tool it means: `narrator/tuning.npz`.

    pip install torch && python training/tune.py

`requests/*.txt` holds catalogues of tools, what people say for each, and what none of them serves. The lower half of
the model is left as it is; what is learnt is a product of two narrow matrices for each weight of the upper half: the
result is small, and the plain model stays at hand for everything else. A fifth of the catalogues is kept aside to
measure. Takes about ten minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, gelu, layer_norm, linear, normalize

from narratoria.narrator.embedding.minilm import DIMENSIONS, TUNING, find_model, read_safetensors
from narratoria.narrator.english.words import split_name

FIRST, LAYERS, HEADS, RANK = 3, 6, 12, 16
EPOCHS, RATE, BATCH = 4, 1e-3, 2
WEIGHTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
Deltas = dict[str, torch.Tensor]


@dataclass
class Catalogue:
    tools: list[str] = field(default_factory=list)  # "name: description"
    requests: list[str] = field(default_factory=list)
    meant: list[int] = field(default_factory=list)  # index of the tool each request means, -1 for none


def read(folder: Path) -> Iterator[Catalogue]:
    """`==` opens a catalogue, `@ name | description` a tool, `+` what means it, `!` what means none; `|` divides."""
    catalogue = Catalogue()
    for file in sorted(folder.glob("*.txt")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            mark, rest = line[:1], line[1:].strip()
            if line.startswith("=="):
                if catalogue.tools:
                    yield catalogue
                catalogue = Catalogue()
            elif mark == "@":
                name, _, description = rest.partition("|")
                catalogue.tools.append(f"{' '.join(split_name(name.strip()))}: {description.strip()}")
            elif mark in ("+", "!"):
                said = [text.strip() for text in rest.split("|") if text.strip()]
                catalogue.requests += said
                catalogue.meant += [len(catalogue.tools) - 1 if mark == "+" else -1] * len(said)
            elif line.strip():
                raise SystemExit(f"{file}, line {number}: a line begins with ==, @, + or !")
    if catalogue.tools:
        yield catalogue


class Model:
    """The model in torch. The lower layers are run once per text; the upper ones take the deltas."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        tensors = read_safetensors(folder / "model.safetensors")
        self.weights = {name: torch.from_numpy(np.array(value)) for name, value in tensors.items()}

    @torch.no_grad()
    def lower(self, text: str) -> torch.Tensor:
        ids = torch.tensor([self.tokenizer.encode(text).ids])
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        places = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._norm(words + places + kind, "embeddings.LayerNorm")
        for index in range(FIRST):
            hidden = self._layer(hidden, torch.zeros(1, 1, 1, 1), index, {})
        return hidden[0]

    def upper(self, rows: list[torch.Tensor], deltas: Deltas) -> torch.Tensor:
        width = max(len(row) for row in rows)
        hidden = torch.stack([torch.cat([row, row.new_zeros(width - len(row), DIMENSIONS)]) for row in rows])
        mask = torch.tensor([[1.0] * len(row) + [0.0] * (width - len(row)) for row in rows])
        for index in range(FIRST, LAYERS):
            hidden = self._layer(hidden, ((1 - mask) * -1e9)[:, None, None, :], index, deltas)
        pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return normalize(pooled, dim=1)

    def _layer(self, hidden: torch.Tensor, bias: torch.Tensor, index: int, deltas: Deltas) -> torch.Tensor:
        prefix = f"encoder.layer.{index}."
        count, width, _ = hidden.shape

        def dense(values: torch.Tensor, name: str) -> torch.Tensor:
            full = prefix + WEIGHTS[name]
            result = linear(values, self.weights[f"{full}.weight"], self.weights[f"{full}.bias"])
            if (key := f"{index}.{name}") + ".down" in deltas:
                result = result + values @ deltas[f"{key}.down"] @ deltas[f"{key}.up"]
            return result

        query, key, value = (
            dense(hidden, name).view(count, width, HEADS, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(DIMENSIONS // HEADS) + bias
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(count, width, DIMENSIONS)
        hidden = self._norm(dense(mixed, "out") + hidden, f"{prefix}attention.output.LayerNorm")
        raised = dense(gelu(dense(hidden, "wide")), "narrow")
        return self._norm(raised + hidden, f"{prefix}output.LayerNorm")

    def _norm(self, values: torch.Tensor, name: str) -> torch.Tensor:
        return layer_norm(
            values, (DIMENSIONS,), self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-12
        )


def new_deltas(model: Model) -> Deltas:
    deltas: Deltas = {}
    for index in range(FIRST, LAYERS):
        for name, path in WEIGHTS.items():
            wide, narrow = model.weights[f"encoder.layer.{index}.{path}.weight"].T.shape
            deltas[f"{index}.{name}.down"] = (torch.randn(wide, RANK) / math.sqrt(wide)).requires_grad_()
            deltas[f"{index}.{name}.up"] = torch.zeros(RANK, narrow).requires_grad_()
    return deltas


Prepared = tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]


def likeness(model: Model, prepared: Prepared, deltas: Deltas) -> torch.Tensor:
    tools, requests, _ = prepared
    vectors = model.upper(tools + requests, deltas)
    return vectors[len(tools) :] @ vectors[: len(tools)].T


def train(model: Model, catalogues: list[Prepared], aside: list[Prepared]) -> Deltas:
    deltas = new_deltas(model)
    scale, none = torch.tensor(15.0, requires_grad=True), torch.tensor(0.35, requires_grad=True)
    optimizer = torch.optim.AdamW(
        [
            {"params": list(deltas.values()), "lr": RATE},
            {"params": [scale], "lr": 0.05, "weight_decay": 0.0},
            {"params": [none], "lr": 0.003, "weight_decay": 0.0},
        ]
    )
    steps = max(1, EPOCHS * len(catalogues) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: max(0.05, 1 - step / steps) * min(1, (step + 1) / 20)
    )
    for epoch in range(EPOCHS):
        random.shuffle(catalogues)
        for start in range(0, len(catalogues), BATCH):
            loss = torch.tensor(0.0)
            for prepared in catalogues[start : start + BATCH]:
                likes, meant = likeness(model, prepared, deltas), prepared[2]
                scores = torch.cat([scale * likes, (scale * none).expand(len(meant), 1)], dim=1)
                labels = torch.where(meant < 0, torch.tensor(likes.shape[1]), meant)
                loss = loss + cross_entropy(scores, labels, label_smoothing=0.03)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(list(deltas.values()), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        print(f"epoch {epoch + 1}: {measure(model, aside, deltas, float(none))}", flush=True)
    return deltas


@torch.no_grad()
def measure(model: Model, catalogues: list[Prepared], deltas: Deltas, none: float) -> str:
    first = right = served = refused = unserved = 0
    for prepared in catalogues:
        best, which = likeness(model, prepared, deltas).max(1)
        meant = prepared[2]
        first += int(((which == meant) & (meant >= 0)).sum())
        right += int(((which == meant) & (meant >= 0) & (best > none)).sum())
        refused += int(((meant < 0) & (best <= none)).sum())
        served, unserved = served + int((meant >= 0).sum()), unserved + int((meant < 0).sum())
    return f"nearest {first / served:.1%}, found {right / served:.1%}, refused {refused / unserved:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=TUNING)
    out = parser.parse_args().out
    torch.manual_seed(0)
    random.seed(0)
    model = Model(find_model())
    prepared = [
        ([model.lower(t) for t in c.tools], [model.lower(r) for r in c.requests], torch.tensor(c.meant))
        for c in read(Path(__file__).parent / "requests")
    ]
    random.shuffle(prepared)
    aside = prepared[: len(prepared) // 5]
    print(f"{len(prepared)} catalogues; the plain model: {measure(model, aside, {}, 0.3)}", flush=True)
    deltas = train(model, prepared[len(aside) :], aside)
    np.savez(out, **{name: value.detach().numpy().astype(np.float16) for name, value in deltas.items()})


if __name__ == "__main__":
    main()
