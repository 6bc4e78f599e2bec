"""What goes on behind a command, as lines on standard error: for people, or JSON for programs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from recollect.interfaces.cli.output import harmless, json_line, moment, one_line

PACKAGE = "recollect"


@contextmanager
def logged(level: int, *, as_json: bool) -> Iterator[None]:
    """Log what Recollect says from this level on, and what its drivers warn of."""
    own = logging.getLogger(PACKAGE)
    level_before = own.level
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines() if as_json else _Lines())
    own.setLevel(level)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        own.setLevel(level_before)


class _Lines(logging.Formatter):
    """A line each; only a traceback takes more. No word of it can move the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{moment(_time(record))}  {record.levelname.lower():<7}  "
        line += one_line(record.getMessage())
        if record.exc_info:
            line += f"\n{harmless(self.formatException(record.exc_info))}"
        return line


class _JsonLines(logging.Formatter):
    """An object on a line each."""

    def format(self, record: logging.LogRecord) -> str:
        return json_line(
            {
                "at": _time(record),
                "level": record.levelname.lower(),
                "logger": record.name,
                "message": record.getMessage(),
                "traceback": self.formatException(record.exc_info) if record.exc_info else None,
            }
        )


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
