"""The types of importing: how far a file has been read, and what was imported before.

An imported item is known by a digest, per space and source, for as long as the space exists: a copy
of it in another file is not stored again, and what was forgotten does not return with its log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from recollect.types.records import NewRecord, Record

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a file has been read. `head` is of its first bytes, and of those before the offset.

    Another file, or one that was written anew, has another one.
    """

    source: str
    place: str  # the file, as the machine that reads it names it
    offset: int = 0
    line: int = 0
    head: str = ""
    head_bytes: int = 0
    memo: str = "{}"  # what the reader must know of the lines before, as JSON


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record on its way in, with the digest that it is known by."""

    item: str
    record: NewRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What a batch came to: the records that are new, and how many were known."""

    records: Sequence[Record]
    known: int


def digest(item_id: str) -> str:
    """By what an item is known: nothing of it can be read from that."""
    return blake2b(item_id.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
