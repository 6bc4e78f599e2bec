"""What a conversation was told already, so that it is not told again at every prompt.

A small file for each conversation. Losing it costs a repetition.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

IDS_MAX = 500
FILE_BYTES_MAX = 200_000


class Shown:
    """The ids of what stood in the blocks of one conversation."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None else folder / f"{name}.json"

    def ids(self) -> list[str]:
        """In the order in which they were told; none where that cannot be read."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                told = json.loads(file.read(FILE_BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return []
        return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []

    def keep(self, ids: Iterable[str]) -> None:
        """Remember these, and no others."""
        if self._path is None:
            return
        kept = list(dict.fromkeys(ids))[-IDS_MAX:]
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside = self._path.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(kept), encoding="utf-8")
            aside.replace(self._path)

    def forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
