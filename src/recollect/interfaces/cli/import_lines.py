"""What an import came to, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from recollect.importers.items import ImportReport
from recollect.interfaces.cli.output import counted, one_line

PLACES_SHOWN = 5
_UNITS = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"))


def report_lines(report: ImportReport, *, is_dry: bool) -> Iterator[str]:
    """The report as people read it."""
    yield _files(report)
    yield _new(report, is_dry=is_dry)
    if report.known:
        yield f"Known already: {report.known:,}."
    if report.left_out:
        yield f"Left out on purpose: {_listed(report.left_out)}."
    if report.odd:
        odd = Counter({": ".join(filter(None, each)): count for each, count in report.odd.items()})
        yield f"Not understood: {_listed(odd)}."
    for each in report.odd_places[:PLACES_SHOWN]:
        line = "" if each.odd.line is None else f", line {each.odd.line:,}"
        yield f"  {one_line(each.place)}{line}: {one_line(each.odd.detail or each.odd.trouble)}"
    if len(report.odd_places) > PLACES_SHOWN:
        yield "  … more with --json"


def report_shape(report: ImportReport) -> dict[str, Any]:
    """The report for programs."""
    return {
        "source": report.source,
        "files": report.files,
        "files_unchanged": report.files_unchanged,
        "bytes_read": report.bytes_read,
        "records": report.records,
        "known": report.known,
        "facts": report.facts,
        "facts_changed": report.facts_changed,
        "documents": report.documents,
        "sessions": sorted(report.sessions),
        "forms": dict(report.forms),
        "left_out": dict(report.left_out),
        "not_understood": [
            {"trouble": trouble, "detail": detail, "count": count}
            for (trouble, detail), count in sorted(report.odd.items())
        ],
        "places": [
            {
                "place": each.place,
                "line": each.odd.line,
                "trouble": each.odd.trouble.value,
                "detail": each.odd.detail,
            }
            for each in report.odd_places
        ],
    }


def _files(report: ImportReport) -> str:
    if not report.files and not report.odd:
        return f"Found no file with a name that {report.source} gives its files."
    unchanged = f", {report.files_unchanged:,} unchanged" if report.files_unchanged else ""
    forms = ", ".join(map(one_line, sorted(report.forms)))
    read = f"Read {counted(report.files, 'file')} ({_size(report.bytes_read)}{unchanged})"
    return f"{read}: {forms}." if forms else f"{read}."


def _new(report: ImportReport, *, is_dry: bool) -> str:
    parts = []
    if report.records or not (report.facts or report.facts_changed or report.documents):
        sessions = counted(len(report.sessions), "session")
        parts.append(f"{counted(report.records, 'new record')} in {sessions}")
    if report.facts:
        parts.append(counted(report.facts, "new fact"))
    if report.facts_changed:
        parts.append(counted(report.facts_changed, "changed fact"))
    if report.documents:
        parts.append(counted(report.documents, "new or changed document"))
    words = ", ".join(parts)
    return f"Would bring {words}." if is_dry else f"Brought {words}."


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{one_line(name)} {count:,}" for name, count in counts.most_common())


def _size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return counted(count, "byte")
