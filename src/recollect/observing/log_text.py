"""Errors as a log may tell them: by their class, and by their words where those are our own.

What a provider answers, what a model writes and what a host's code raises may quote what somebody
said. Their words stay where they belong: with the job, the turn or the caller, behind the store's
walls. A log has the class, and where it came from.
"""

from __future__ import annotations

import traceback

from recollect.errors import (
    InvalidOutput,
    InvalidSetting,
    MissingExtra,
    ModelError,
    NotAStore,
    OutcomeUnknown,
    SchemaTooNew,
    SpendCapReached,
    StoreBusy,
    StoreClosed,
    StoreDenied,
    StoreForked,
    StoreFull,
    StoreUnavailable,
    UnusableDirectory,
)

# What is wrong with a store or a setting is said in words of ours, or of a database's about itself.
OWN_WORDS = (
    *(StoreBusy, StoreClosed, StoreDenied, StoreForked, StoreFull, StoreUnavailable),
    *(NotAStore, SchemaTooNew, OutcomeUnknown, MissingExtra, InvalidSetting),
    *(SpendCapReached, UnusableDirectory),
)
FRAMES = 5  # the innermost ones of a trail


def loggable(error: BaseException) -> str:
    """An error without a word that may be somebody else's."""
    name = type(error).__name__
    match error:
        case InvalidOutput():  # it says what the model wrote
            return name
        case ModelError():  # who answered and how; after the colon, in the provider's words
            return f"{name}: {str(error).partition(': ')[0]}"
        case _ if isinstance(error, OWN_WORDS):
            return f"{name}: {error}"
        case _:
            return name


def trail(error: BaseException) -> str:
    """The same and where it came from, for what nobody expected."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = " < ".join(f"{each.name}:{each.lineno}" for each in reversed(frames))
    return f"{loggable(error)} in {places}" if places else loggable(error)
