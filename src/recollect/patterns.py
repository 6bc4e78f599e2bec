"""Regular expressions that are compiled on first use, so that importing them is cheap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class LazyPattern:
    """Stands for a compiled pattern, and has its methods from the first use on."""

    match: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    finditer: Callable[[str], Iterator[re.Match[str]]]
    findall: Callable[[str], list[str]]
    split: Callable[[str], list[Any]]
    fullmatch: Callable[..., re.Match[str] | None]
    sub: Callable[..., str]

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Only asked for what is not there yet: the methods, once."""
        if name not in LazyPattern.__annotations__:
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for each in LazyPattern.__annotations__:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)
