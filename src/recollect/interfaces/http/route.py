"""A row of the table that the server, the description and the tests are all made from."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from recollect import collection
from recollect.clock import from_micros, to_micros
from recollect.errors import InvalidValue
from recollect.interfaces.http.reply import Ask, Reply, Watch
from recollect.interfaces.http.schemas import TEXT, Schema, listed, maybe, obj, text, whole
from recollect.session import LIST_MAX
from recollect.store.key_protocol import Scope

Handler = Callable[[Ask], Reply | Watch]
Reader = Callable[[Ask, Sequence[str]], Reply]

SPACE = "/v1/spaces/{space}"
CURSOR_CHARS_MAX = 2000
FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999


class Repeat(Enum):
    """What an Idempotency-Key does."""

    PLAIN = "plain"  # nothing: it is not read
    APPEND = "append"  # it becomes the append key, and is kept with the record
    ONCE = "once"  # a retry does nothing, for a while, and is told what the first one made


class Reach(Enum):
    """Whose keys open a route."""

    SPACE = "space"  # those of the space in the path
    OWN = "own"  # any; it answers with what the key may see
    STORE = "store"  # those of all spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path: what it takes, what it answers, and who may ask."""

    method: str
    path: str
    name: str  # by which clients that are generated call it
    summary: str
    handler: Handler
    scope: Scope = Scope.READ
    reach: Reach = Reach.SPACE
    query: Mapping[str, Schema] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()  # parameters that have to be given
    body: Schema | None = None
    answers: Mapping[int, Schema]
    media_type: str = "application/json"
    takes_append_key: bool = False
    again: Reader | None = None  # reads what was made by the ids of the first answer
    is_conditional: bool = False
    problems: frozenset[int] = frozenset()  # besides those that every route has

    @property
    def repeat(self) -> Repeat:
        if self.again is not None:
            return Repeat.ONCE
        return Repeat.APPEND if self.takes_append_key else Repeat.PLAIN

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))


def look(
    path: str, name: str, summary: str, handler: Handler, answer: Schema, **more: Any
) -> Route:
    """A row for something that is only read."""
    return Route(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        handler=handler,
        answers={200: answer},
        **more,
    )


LIMIT = whole(0, LIST_MAX, "How many, at most.")
CURSOR = text(CURSOR_CHARS_MAX, "What `next` said on the page before.")
PAGED: Mapping[str, Schema] = {"limit": LIMIT, "cursor": CURSOR}


def made_cursor(*parts: str | int) -> str:
    """Where a page ended, as a text that says nothing to its reader."""
    encoded = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """What a cursor was made of. InvalidValue: it was not made here."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts: list[Any] = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidValue("query.cursor is not one that a page gave") from error
    is_ours = isinstance(parts, list) and [type(each) for each in parts] == list(kinds)
    if not is_ours:
        raise InvalidValue("query.cursor is not one that a page gave")
    return parts


def moment_cursor(at: datetime, name: str) -> str:
    return made_cursor(to_micros(at), name)


def read_moment_cursor(cursor: str) -> tuple[datetime, str]:
    micros, name = read_cursor(cursor, int, str)
    if not FIRST_MICROS <= micros <= LAST_MICROS:
        raise InvalidValue("query.cursor is not one that a page gave")
    return from_micros(micros), collection.check_id(name)


def paged(name: str, items: Schema) -> Schema:
    """The schema of a page."""
    return obj({name: listed(items), "next": maybe(TEXT)})


def page(name: str, items: list[Any], following: str | None) -> Reply:
    """A page of a list, and where the next one begins."""
    return Reply(content={name: items, "next": following})
