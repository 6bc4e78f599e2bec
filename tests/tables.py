"""Tests that are a table: one test for all rows, which tells every row that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def every_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each row in turn; written as `pytest.mark.parametrize` is.

    A row as a test of its own costs several times what most rows take. Use `parametrize` where a
    row needs fixtures of its own, or marks.
    """
    named = [names] if isinstance(names, str) else list(names)
    table = tuple(rows)
    assert table, "a table without rows tests nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            failed: list[BaseException] = []
            for row in table:
                values = [row] if isinstance(names, str) else row
                try:
                    test(**given, **dict(zip(named, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"row: {', '.join(map(repr, values))}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows fail", failed)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in named]
        vars(run)["__signature__"] = signature.replace(parameters=kept)
        return run

    return decorate
