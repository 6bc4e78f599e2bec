"""Writes a kept result into docs/benchmarks.md: `python -m bench.document step1`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
RESULTS = Path(__file__).with_name("results")
PEERS = "side by side"

Row = dict[str, Any]  # a line of the kept result


def main() -> None:
    result = json.loads((RESULTS / f"{sys.argv[1]}.json").read_text(encoding="utf-8"))
    lines: list[Row] = result["lines"]
    own = [line for line in lines if not line["group"].startswith(PEERS)]
    peers = [line for line in lines if line["group"].startswith(PEERS)]
    text = DOCUMENT.read_text(encoding="utf-8")
    text = _replaced(text, "machine", [_machine(result["context"])])
    text = _replaced(text, "run", _own_table(own))
    text = _replaced(text, "peers", _peer_table(peers))
    text = _replaced(text, "missed", _missed(lines))
    DOCUMENT.write_text(text, encoding="utf-8")


def _replaced(text: str, name: str, lines: Iterator[str] | list[str]) -> str:
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
        return ["Every target of this step was reached in this run."]
    return [f"* Missed: {each['name']}, {_ratio(each)} (target {_target(each)})" for each in missed]


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
