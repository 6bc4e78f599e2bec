"""Writes a kept result into its parts of docs/benchmarks.md: `python -m bench.document step1`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
RESULTS = Path(__file__).with_name("results")
PEERS = "side by side"

Row = dict[str, Any]  # a line of the kept result


def main() -> None:
    name = sys.argv[1]
    result = _kept(name)
    lines: list[Row] = result["lines"]
    earlier = _earlier_groups(name)
    own = [line for line in lines if not line["group"].startswith(PEERS)]
    again = [line for line in own if line["group"] in earlier]
    peers = [line for line in lines if line["group"].startswith(PEERS)]
    parts: dict[str, Iterable[str]] = {
        "machine": [_machine(result["context"])],
        "run": _own_table([line for line in own if line["group"] not in earlier]),
        "missed": _missed(lines),
    }
    if again:
        parts["again"] = _own_table(again)
    if peers:
        parts["peers"] = _peer_table(peers)
    text = DOCUMENT.read_text(encoding="utf-8")
    for part, body in parts.items():
        text = _replaced(text, f"{name} {part}", body)
    DOCUMENT.write_text(text, encoding="utf-8")


def _kept(name: str) -> Row:
    result: Row = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return result


def _earlier_groups(name: str) -> set[str]:
    """What the steps before this one measured already."""
    steps = sorted(file.stem for file in RESULTS.glob("step*.json"))
    return {line["group"] for step in steps if step < name for line in _kept(step)["lines"]}


def _replaced(text: str, name: str, lines: Iterable[str]) -> str:
    """Put lines between the two comments that name a part of the document."""
    part = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    body = "\n".join(lines)
    replaced, count = part.subn(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)
    assert count == 1, f"docs/benchmarks.md has no part {name!r}"
    return replaced


def _machine(context: Row) -> str:
    return (
        f"Python {context['python']}, SQLite {context['sqlite']}, {context['cores']} cores shared "
        f"with other work (load {context['load']} at the start), everything at its defaults."
    )


def _own_table(lines: list[Row]) -> Iterator[str]:
    yield "| what | measured | limit | ratio | target | |"
    yield "|---|---:|---:|---:|---:|---|"
    group = None
    for line in lines:
        if line["group"] != group:
            group = line["group"]
            yield f"| **{group}** | | | | | |"
        said = [line["verdict"]] if line["verdict"] != "–" else []
        said += [line["note"]] if line.get("note") else []
        cells = (
            line["name"],
            _number(line, "measured"),
            _number(line, "limit"),
            _ratio(line),
            _target(line),
            "; ".join(said),
        )
        yield f"| {' | '.join(cells)} |"


def _peer_table(lines: list[Row]) -> Iterator[str]:
    yield "| | append, CPU | append, wall | 20 newest, CPU | syncs per append, journal |"
    yield "|---|---:|---:|---:|---|"
    figures: dict[str, dict[str, Row]] = {}
    for line in lines:
        title, _, what = line["name"].partition(": ")
        figures.setdefault(title, {})[what] = line
    for title, found in figures.items():
        if "" in found:
            yield f"| {title} | {found['']['note']} | | | |"
            continue
        columns = ("append, CPU", "append, wall", "20 newest, CPU")
        cells = [
            f"{_number(found[what], 'measured')} {_ratio(found[what])}".strip() for what in columns
        ]
        yield f"| {title} | {' | '.join(cells)} | {found['append, CPU']['note']} |"


def _missed(lines: list[Row]) -> list[str]:
    missed = [line for line in lines if line["verdict"] == "missed"]
    if not missed:
        return ["Every target was reached in this run."]
    return [
        f"* Missed: {each['name']}, {_ratio(each) or _number(each, 'measured')}"
        f" (target {_target(each)})"
        for each in missed
    ]


def _ratio(line: Row) -> str:
    return f"{line['figure']:.2f} ×" if line["is_ratio"] and "figure" in line else ""


def _target(line: Row) -> str:
    if "target" not in line:
        return ""
    return f"≤ {line['target']:.2f} ×" if line["is_ratio"] else f"≤ {_number(line, 'target')}"


def _number(line: Row, field: str) -> str:
    if field not in line:
        return ""
    value = line[field]
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {line.get('unit', '')}".strip()


if __name__ == "__main__":
    main()
