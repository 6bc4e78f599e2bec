"""Answers and verdicts as JSON Lines: added as they come, and read again by the next run.

A line has its `kind`, the `key` of what was asked, and what it came to. A last line that was cut
off in the middle is left out and written over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recollect.errors import InvalidValue

ANSWER, VERDICT = "answer", "verdict"


class AnswerFile:
    """The answers and verdicts of one file, by what was asked. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.answers: dict[str, str] = {}
        self.verdicts: dict[str, str] = {}
        self._whole_bytes = 0
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InvalidValue(f"{path} cannot be read: {error.strerror}") from error
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break
            self._take(line, number)
            self._whole_bytes += len(line)

    def _take(self, line: bytes, number: int) -> None:
        try:
            found = json.loads(line)
            named = {ANSWER: self.answers, VERDICT: self.verdicts}[found["kind"]]
            named[str(found["key"])] = str(found[found["kind"]])
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidValue(
                f"line {number:,} of {self._path} is not an answer or verdict of this benchmark;"
                " name another --output"
            ) from error

    def __enter__(self) -> Self:
        try:
            self._file = self._path.open("ab")
            self._file.truncate(self._whole_bytes)
        except OSError as error:
            raise InvalidValue(f"{self._path} cannot be written: {error.strerror}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add_answer(self, key: str, answer: str, about: Mapping[str, Any]) -> None:
        self._add(ANSWER, key, answer, about)
        self.answers[key] = answer

    def add_verdict(self, key: str, verdict: str, about: Mapping[str, Any]) -> None:
        self._add(VERDICT, key, verdict, about)
        self.verdicts[key] = verdict

    def _add(self, kind: str, key: str, said: str, about: Mapping[str, Any]) -> None:
        line = json.dumps({"kind": kind, "key": key, **about, kind: said}, ensure_ascii=False)
        with self._lock:
            self._file.write(line.encode("utf-8", "replace") + b"\n")
            self._file.flush()
