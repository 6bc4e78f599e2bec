"""The reference of the errors: the tree, who can mend each, and whether a retry helps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect import errors
from recollect.errors import Mender, RecollectError
from tools.reference.layout import fenced, first_paragraph, page, table

PREFACE = """\
Everything that Recollect raises on purpose is a `RecollectError`, from `recollect.errors`. The
class says who can mend it and whether a retry helps; nobody has to read a message for that:
`error.mended_by` and `error.retry_helps`. With `--json` a command says both, and so does an answer
over [HTTP](http.md).

| mended by | means |
|---|---|
| caller | the call is wrong, or does not go with what is there: change it |
| operator | somebody has to look after the store, the settings or the model |
| time | nothing is wrong; it will pass |
"""


def render() -> str:
    rows = [
        (
            f"`{error.__name__}`",
            error.mended_by.value,
            _retry(error),
            first_paragraph(error.__doc__),
        )
        for error in _below(RecollectError)
    ]
    assert {row[1] for row in rows} <= {mender.value for mender in Mender}
    return page(
        "Errors",
        PREFACE,
        "## The tree",
        fenced(_drawn()),
        "## Every error",
        table(("error", "mended by", "retry helps", "what it says"), rows),
    )


def _below(error: type[RecollectError]) -> Iterator[type[RecollectError]]:
    """An error and those below it; one with two parents is told of once, under the first."""
    yield error
    for each in error.__subclasses__():
        if each.__module__ == errors.__name__ and each.__bases__[0] is error:
            yield from _below(each)


def _drawn() -> str:
    """The tree as the module draws it; a test of the module holds it to the classes."""
    lines = (errors.__doc__ or "").splitlines()
    drawn = [line for line in lines if re.match(r"    (?:RecollectError|[│ ]*[├└]──)", line)]
    return "\n".join(line.removeprefix("    ") for line in drawn)


def _retry(error: type[RecollectError]) -> str:
    return "yes" if error.retry_helps else "no"
