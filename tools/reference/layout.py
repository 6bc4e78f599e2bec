"""What every generated page has: its notice, and how text is put into tables and kept on lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTICE = "<!-- Written by tools/generate_docs.py (make docs); edit that, not this. -->"


def page(title: str, *parts: str) -> str:
    """A whole page, its parts separated by a blank line."""
    return "\n\n".join([f"# {title}", NOTICE, *(part.rstrip() for part in parts if part)]) + "\n"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; none of its cells can end it."""
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def fenced(text: str) -> str:
    """Not marked as Python: the examples of the documents are run, and this is none."""
    return f"```text\n{text.rstrip()}\n```"


def first_paragraph(documentation: str | None) -> str:
    """The first thing a docstring says, on one line."""
    return " ".join((documentation or "").strip().partition("\n\n")[0].split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
