"""The one tree of errors. A class says who can mend it and whether a retry helps.

    RecollectError
    ├── UsageError                 the caller mends the call
    │   ├── InvalidValue           a key, name, time, number or message that cannot be stored
    │   │   ├── InvalidMessage     a message dict we cannot read
    │   │   ├── TooLarge           over a size limit; split it or raise the setting
    │   │   └── InvalidPath        a path no document can have
    │   ├── InvalidSetting         a setting out of bounds, unknown, or an unreadable file
    │   ├── InvalidUrl             a store address we do not understand
    │   ├── AppendKeyReused        one idempotency key, two different contents
    │   ├── AmbiguousKey           a stable key several agents use, and no agent given
    │   ├── NotFound               no such fact, session, record or document in this space
    │   │   └── Gone               it was there, and was deleted or forgotten since
    │   ├── NotWaiting             nobody has to decide about the fact, or not any more
    │   ├── StaleVersion           somebody else has changed the document meanwhile
    │   ├── DocumentExists         something stands where something was to be put
    │   ├── DocumentReferenced     others refer to it, or stand below it
    │   ├── NotAllowed             outside what this holder may see or change
    │   ├── UnusableDirectory      nothing can be published to it, or loaded from it
    │   ├── UnloadedEdits          people changed published files: load them first
    │   ├── MassDeletion           most published files are gone: say that it is meant
    │   ├── InvalidArchive         not an archive of ours, cut short, or changed: nothing was loaded
    │   ├── NotEmpty               something is already where something else was to be put
    │   ├── StoreClosed            use after close()
    │   └── StoreForked            use after fork(); open the store again in the child
    ├── PermanentFailure           processing failed and would fail again: the job is parked
    ├── Postponed                  nothing is wrong with the job; it waits, and nothing is counted
    │   └── SpendCapReached        the tokens or calls of a day or a run are used up
    ├── ModelError                 a language model is at fault
    │   ├── ModelUnavailable       refused, reset, slow, overloaded, rate limited; retry later
    │   ├── ModelDenied            the key is wrong or may not do this: everything waits
    │   ├── ModelRejected          this request will never be answered: the job is parked
    │   ├── PromptTooLong          more than the model's window holds; send less
    │   ├── InvalidOutput          an answer we cannot use; retry, then the job is parked
    │   │   └── OutputCut          an answer that reached the limit of its tokens
    │   └── CallCancelled          the caller no longer waits for the answer
    ├── TurnFailed                 an agent's turn is parked, or the agent was ended
    ├── AnswerPending              an agent has not answered in time; it may still
    └── StoreError                 the operator mends the store
        ├── MissingExtra           an optional dependency is not installed
        ├── NotAStore              the file or schema belongs to something else
        ├── SchemaTooNew           written by a newer Recollect
        ├── StoreCorrupt           the file is damaged; restore a backup
        ├── StoreDenied            no permission, or read only
        ├── StoreFull              no room; free some, then retry
        ├── SwapUnsupported        the file system cannot exchange two directories at once
        ├── StoreBusy              locked for longer than the busy timeout; retry
        ├── StoreUnavailable       cannot be reached right now; retry
        └── OutcomeUnknown         the connection broke at commit; retry with an idempotency key

The worker and the interfaces decide from the type, never from a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar


class Mender(Enum):
    """Who can correct the cause of an error."""

    CALLER = "caller"
    OPERATOR = "operator"
    TIME = "time"


class RecollectError(Exception):
    """Root of every error that Recollect raises on purpose."""

    mended_by: ClassVar[Mender] = Mender.CALLER
    retry_helps: ClassVar[bool] = False


class UsageError(RecollectError):
    """The call was wrong; nothing was stored."""


class InvalidValue(UsageError, ValueError):
    """A value that cannot be stored as it is."""


class InvalidMessage(InvalidValue):
    """A message that has no readable role or content."""


class TooLarge(InvalidValue):
    """Something exceeds a size limit."""


class InvalidSetting(UsageError, ValueError):
    """A setting is unknown, out of bounds or of the wrong type."""


class InvalidUrl(UsageError, ValueError):
    """A store address that names no store we know."""


class AppendKeyReused(UsageError):
    """An idempotency key was used before for other content."""


class AmbiguousKey(UsageError):
    """A stable key is used by several agents and the call names none."""


class StoreClosed(UsageError):
    """The store was closed."""


class StoreForked(UsageError):
    """The store was opened before a fork and used in the child, or was in use when it forked."""


class NotFound(UsageError, LookupError):
    """There is no such thing in this space."""


class Gone(NotFound):
    """It was there, and was deleted or forgotten since."""


class NotWaiting(UsageError):
    """A fact that was to be accepted or rejected does not wait for review."""


class InvalidPath(InvalidValue):
    """A path that names no possible document."""


class StaleVersion(UsageError):
    """The document has a newer version than the one that was to be changed."""

    def __init__(self, message: str, *, current: int) -> None:
        super().__init__(message)
        self.current = current


class DocumentExists(UsageError):
    """There is a document already."""


class DocumentReferenced(UsageError):
    """Other documents refer to it or stand below it."""


class NotAllowed(UsageError, PermissionError):
    """This holder may not see or change that part of the tree."""


class UnusableDirectory(UsageError):
    """A link, not a directory, or a directory with what was not published there."""


class UnloadedEdits(UsageError):
    """A published directory has edits that are not in the tree yet; `files` says where."""

    def __init__(self, message: str, *, files: Sequence[str]) -> None:
        super().__init__(message)
        self.files = tuple(files)


class MassDeletion(UsageError):
    """A load would delete all or most of what was published; nothing was loaded."""


class InvalidArchive(UsageError):
    """A file that is not a Recollect archive, or was changed since; nothing of it was loaded."""


class NotEmpty(UsageError):
    """A space, a store or a file is already there; nothing was written over it."""


class PermanentFailure(RecollectError):
    """What a processor raises when trying again would not help."""

    mended_by = Mender.OPERATOR


class Postponed(RecollectError):
    """A job waits for its time or for somebody; it did not fail."""

    mended_by = Mender.TIME
    retry_helps = True

    def __init__(self, message: str, *, delay_seconds: float) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class SpendCapReached(Postponed):
    """The tokens or calls that a space may use in a day, or a run, are used up."""

    mended_by = Mender.OPERATOR


class ModelError(RecollectError):
    """A language model, or the way to it, is at fault.

    `tries_begun`: how many tries it had taken on before they failed; they may be billed.
    """

    mended_by = Mender.OPERATOR
    tries_begun: int = 0


class ModelUnavailable(ModelError):
    """The provider cannot answer now. `retry_after_seconds`: it said when to come back."""

    mended_by = Mender.TIME
    retry_helps = True

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ModelDenied(ModelError, Postponed):
    """The provider does not accept the key, or the key may not use the model: everything waits."""

    mended_by = Mender.OPERATOR


class ModelRejected(ModelError, PermanentFailure):
    """The provider understood the request and will never answer it."""


class PromptTooLong(ModelError):
    """The prompt is longer than the model's window."""


class InvalidOutput(ModelError):
    """The model answered, and the answer cannot be used; nothing of it was stored."""

    retry_helps = True


class OutputCut(InvalidOutput):
    """The answer was cut off at the limit of its tokens; nothing of it was carried out.

    `text` is what was said until then.
    """

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class CallCancelled(ModelError):
    """The answer was given up half-way, because nobody waits for it any more."""


class TurnFailed(RecollectError):
    """An agent's turn failed too often or for good, and is parked; or the agent was ended."""

    mended_by = Mender.OPERATOR


class AnswerPending(RecollectError, TimeoutError):
    """An agent has not answered in the time that was given. It may still."""

    mended_by = Mender.TIME
    retry_helps = True


class StoreError(RecollectError):
    """The database behind the store is at fault."""

    mended_by = Mender.OPERATOR


class MissingExtra(StoreError, ImportError):
    """An optional dependency is needed."""


class NotAStore(StoreError):
    """The file or schema exists and is not a Recollect store."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version of Recollect."""


class StoreCorrupt(StoreError):
    """The database file is damaged."""


class StoreDenied(StoreError):
    """The store may not be read or written by this user."""


class StoreFull(StoreError):
    """There is no room left; what was acknowledged before is safe."""

    retry_helps = True


class SwapUnsupported(StoreError):
    """The system or the file system cannot exchange two directories in one step."""


class StoreBusy(StoreError):
    """Another process held the lock for longer than the busy timeout."""

    mended_by = Mender.TIME
    retry_helps = True


class StoreUnavailable(StoreError):
    """The database cannot be reached right now; nothing was stored."""

    mended_by = Mender.TIME
    retry_helps = True


class OutcomeUnknown(StoreError):
    """The connection broke while committing: the write may or may not be stored."""

    mended_by = Mender.TIME
    retry_helps = True
