"""Draw docs/benchmarks.md and its pictures from build/bench.json, which `make bench` writes.

python bench/page.py [--from build/bench.json] [--into docs]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from _measure import Curve, Row

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 260, 70, 44, 34, 20
INTRODUCTION = """\
# Benchmarks

`make bench` measures all of this and writes `build/bench.json`; `python bench/page.py` draws this page from it. Ours
and what it is compared with take turns. A figure is the median of the rounds; the middle half of them stands in
brackets. Peers run in environments of their own, in the releases of `bench/peers/pinned.txt`.

Measured {day} on {cores} cores ({processor}), {system}, Python {python}: **{met} of {targets} targets are met.**
"""
# Why a target is missed, where that is known; shown only while it is.
REASONS = {
    "10,000 calls, chains: bare asyncio scheduler": "by the profile a quarter of a call's time is its attempt with a "
    "draft of the state, a quarter its result and its two records; the bare scheduler has none of these",
    "wall time against xargs -P2": "xargs starts a program and waits for it; ours also feeds it, reads its events, "
    "entrusts it to the guardian and watches it, 0.2 ms in all",
    "a call against a bare Ray task that runs the same program": "a call is a task with a streaming answer, so that "
    "events come while the tool works, and such a task takes Ray longer than one that returns",
    "CPU per prompt, 95th percentile": "a prompt that is refused is compared with calls to offer: 147 ms of CPU "
    "on the set `held-out`, where a plan takes 42 ms, and 66 ms at the 95th percentile",
    "two servers against one, by the clock": "the servers, the database and the players share two cores; "
    "the line below counts CPU time",
}
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.line{fill:none;stroke:#b5502b;stroke-width:2.5}"
    ".dot{fill:#b5502b}.grid{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}}"
)


def picture(curve: Curve) -> str:
    """An SVG of the curve: sizes on a scale of powers of ten, costs from zero."""
    most = max(cost for _, cost in curve.points) * 1.25
    logs = [math.log10(size) for size, _ in curve.points]
    spread = max(logs[-1] - logs[0], 1e-9)

    def place(size: float, cost: float) -> tuple[float, float]:
        across = LEFT + (math.log10(size) - logs[0]) / spread * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - cost / most * (HEIGHT - BOTTOM - TOP)

    places = [place(*point) for point in curve.points]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{curve.name}">',
        f'<style>{STYLE}</style><text x="{LEFT}" y="18">{curve.name}, by {curve.size}</text>',
    ]
    for step in range(5):
        cost = most * step / 4
        y = place(curve.points[0][0], cost)[1]
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{cost:.3g}{curve.unit}</text>')
    parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    for (x, y), (size, cost) in zip(places, curve.points, strict=True):
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(f'<text x="{x:.1f}" y="{y - 10:.1f}" text-anchor="middle">{cost:.3g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 20}" text-anchor="middle">{size:,.0f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def rows_of(section: dict[str, Any]) -> list[str]:
    lines = ["| | Measured | Target | | Peer |", "| --- | ---: | ---: | --- | --- |"]
    for row in (Row(**{**one, "spread": one["spread"] and tuple(one["spread"])}) for one in section["rows"]):
        name = f"{row.name} ({row.note})" if row.note else row.name
        cells = [name.replace("|", "\\|"), row.shown, row.bound, row.verdict, row.peer]
        lines.append(f"| {' | '.join(cells)} |")
    missed = [row["name"] for row in section["rows"] if not Row(**row).met]
    known = dict.fromkeys(name if name in REASONS else name.partition(": ")[2] for name in missed)
    reasons = [f"- {name}: {REASONS[name]}." for name in known if name in REASONS]
    return [*lines, "", "Missed, because:", "", *reasons] if reasons else lines


def page(found: dict[str, Any], into: Path) -> None:
    machine, judged = (
        found["machine"],
        [r for s in found["sections"] for r in s["rows"] if r["target"] is not None],
    )
    met = sum(Row(**row).met for row in judged)
    text = INTRODUCTION.format(
        day=found["measured"][:10],
        met=met,
        targets=len(judged),
        **{**machine, "system": machine["system"].split()[0]},
    )
    lines = text.splitlines()
    for section in found["sections"]:
        title = section["title"].partition(" (")[0]
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", *rows_of(section)]
        for number, one in enumerate(section["curves"], 1):
            curve = Curve(**{**one, "points": tuple(map(tuple, one["points"]))})
            (into / f"benchmark-{number}.svg").write_text(picture(curve))
            lines += ["", f"![{curve.name}](benchmark-{number}.svg)"]
    (into / "benchmarks.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, default=ROOT / "build" / "bench.json")
    parser.add_argument("--into", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    page(json.loads(options.source.read_text()), options.into)


if __name__ == "__main__":
    main()
