"""The error tree: drawn in the docstring as it is, and clear about who mends and when to retry."""

from __future__ import annotations

import inspect

from recollect import errors
from recollect.errors import Mender, RecollectError
from tests.tables import every_row

CLASSES = [
    cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, RecollectError)
]
BY_TIME = {"StoreBusy", "StoreUnavailable", "OutcomeUnknown", "Postponed", "ModelUnavailable"}
BY_TIME |= {"AnswerPending"}
# Trying again helps after somebody has done something, or may help by itself.
RETRYABLE = BY_TIME | {"StoreFull", "SpendCapReached", "ModelDenied", "InvalidOutput", "OutputCut"}


def drawn_tree() -> dict[str, str]:
    """The parent of each class in the docstring's drawing."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        words = line.lstrip(" │├└─").split()
        if not words or (not any(mark in line for mark in "├└") and words != ["RecollectError"]):
            continue
        depth = len(line) - len(line.lstrip(" │├└─"))
        while path and path[-1][0] >= depth:
            path.pop()
        if path:
            parents[words[0]] = path[-1][1]
        path.append((depth, words[0]))
    return parents


def test_the_tree_that_is_drawn_is_the_tree_of_classes() -> None:
    assert drawn_tree() == {
        cls.__name__: cls.__bases__[0].__name__ for cls in CLASSES if cls is not RecollectError
    }


def test_the_drawing_says_something_about_every_class() -> None:
    drawing = [line for line in (errors.__doc__ or "").splitlines() if "─" in line]
    assert len(drawing) == len(CLASSES) - 1
    assert all(len(line.lstrip(" │├└─").split(maxsplit=1)) == 2 for line in drawing)


@every_row("cls", CLASSES)
def test_every_error_says_who_mends_it_and_whether_a_retry_helps(
    cls: type[RecollectError],
) -> None:
    assert isinstance(cls.mended_by, Mender)
    assert cls.retry_helps is (cls.__name__ in RETRYABLE)
    assert cls.__doc__


@every_row("cls", CLASSES)
def test_the_side_of_the_tree_says_who_mends(cls: type[RecollectError]) -> None:
    if cls is RecollectError or issubclass(cls, errors.UsageError):
        assert cls.mended_by is Mender.CALLER
    elif cls.__name__ in BY_TIME:
        assert cls.mended_by is Mender.TIME
    else:
        assert cls.mended_by is Mender.OPERATOR


def test_wrong_values_are_value_errors_too() -> None:
    for cls in (errors.InvalidValue, errors.InvalidSetting, errors.InvalidUrl):
        assert issubclass(cls, ValueError)
    assert issubclass(errors.MissingExtra, ImportError)
    assert issubclass(errors.NotFound, LookupError)


def test_what_postpones_everything_is_told_from_what_parks_a_job() -> None:
    assert issubclass(errors.ModelDenied, errors.Postponed)
    assert issubclass(errors.ModelRejected, errors.PermanentFailure)
    assert not issubclass(errors.InvalidOutput, errors.PermanentFailure | errors.Postponed)


def test_what_is_wrong_with_a_document_says_so_by_its_type() -> None:
    assert issubclass(errors.InvalidPath, ValueError)
    assert issubclass(errors.NotAllowed, PermissionError)
    assert errors.StaleVersion("read it again", current=7).current == 7
