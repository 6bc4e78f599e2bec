"""Write the kept results as tables into bench/results/README.md: `python -m bench.document`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
HEAD = """# Results of the benchmarks

Each table is one run, kept as JSON beside this page; `python -m bench.document` writes it.
What the figures mean, and a selection of them: [docs/benchmarks.md](../../docs/benchmarks.md).
"""

Row = dict[str, Any]  # a line of the kept result


def main() -> None:
    files = sorted(RESULTS.glob("step*.json"))
    page = [HEAD, *(line for file in files for line in _section(file))]
    (RESULTS / "README.md").write_text("\n".join(page), encoding="utf-8")


def _section(file: Path) -> Iterator[str]:
    result: Row = json.loads(file.read_text(encoding="utf-8"))
    context = result["context"]
    yield f"## {file.stem}\n"
    yield (
        f"Python {context['python']}, SQLite {context['sqlite']}, {context['cores']} cores shared "
        f"with other work (load {context['load']} at the start), default settings.\n"
    )
    yield "| what | measured | limit | ratio | target | |"
    yield "|---|---:|---:|---:|---:|---|"
    group = None
    for line in result["lines"]:
        if line["group"] != group:
            group = line["group"]
            yield f"| **{group}** | | | | | |"
        notes = [line["verdict"]] if line["verdict"] != "–" else []
        notes += [line["note"]] if line.get("note") else []
        ratio = f"{line['figure']:.2f} ×" if line["is_ratio"] and "figure" in line else ""
        cells = (line["name"], _number(line, "measured"), _number(line, "limit"), ratio)
        yield f"| {' | '.join((*cells, _target(line), '; '.join(notes)))} |"
    yield ""


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
