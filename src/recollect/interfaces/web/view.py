"""A row of the table of pages: who may see it, what it is asked, and what it answers.

A view knows nothing of HTTP. It is asked with what the path, the parameters and the form said, all
of it text, and answers with a page, a place to go on to, or something that goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from recollect.errors import InvalidValue
from recollect.interfaces.http.operations import Guarded
from recollect.interfaces.views import places_left
from recollect.memory import Memory
from recollect.space import Space
from recollect.types.access import ApiKey, Scope
from recollect.types.facts import Receipt

HOME = "/ui"
SPACE = f"{HOME}/s/{{space}}"
PAGE = 50
DIGITS_MAX = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of somebody who has signed in."""

    memory: Memory
    space: Space  # of the path; the default one where the path names none
    key: ApiKey
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]
    is_fragment: bool  # only the part of the page that changes is wanted

    @property
    def now(self) -> datetime:
        return self.memory.clock.now()

    def may(self, scope: Scope) -> bool:
        return self.key.scope.includes(scope)

    def wanted(self, name: str) -> str | None:
        """A parameter, if it was given and says something."""
        return self.query.get(name, "").strip() or None

    def at(self, *parts: str, **query: str) -> str:
        """Where a page of this space is; parts and parameters may be any text."""
        place = "/".join(quote(each, safe="") for each in ("s", self.space.name, *parts))
        return f"{HOME}/{place}" + (f"?{urlencode(query)}" if query else "")

    def number(self, name: str, otherwise: int, *, least: int = 0, most: int = 1000) -> int:
        """A parameter that is a number within bounds. InvalidValue: it is none."""
        given = self.query.get(name)
        if given is None or not given.strip():
            return otherwise
        is_number = given.isascii() and given.isdigit() and len(given) <= DIGITS_MAX
        if not is_number or not least <= int(given) <= most:
            raise InvalidValue(f"{name} is a number from {least} to {most}")
        return int(given)

    def moment(self, name: str) -> datetime | None:
        """A parameter that is a time; none: it was not given. InvalidValue: it is no time."""
        return read_moment(self.query.get(name, ""))

    def field(self, name: str) -> str:
        """A field of the form. InvalidValue: the form does not have it."""
        if name not in self.form:
            raise InvalidValue(f"the form lacks {name!r}")
        # A browser ends lines as HTTP wants it; memory ends them as texts do.
        return self.form[name].replace("\r\n", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A template and what it says; `fragment` is the part of it that is renewed by itself."""

    template: str
    fragment: str | None = None
    status: int = 200
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """It was done: go on there, where `said` is told once."""

    to: str
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What changes in a space, for as long as somebody looks whose key opens it."""

    space: str
    key_id: str


Answer = WebPage | Moved | Live
Handler = Callable[[Asked], Answer]


class PageView(Guarded):
    """A page, or a form that is sent; templates link to it by its name."""


def read_moment(given: str) -> datetime | None:
    """A time as people write it, in UTC unless it says otherwise. InvalidValue: it is none."""
    if not given.strip():
        return None
    try:
        at = datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise InvalidValue("a time is written as 2026-01-31 or 2026-01-31T12:00") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def shown(path: str, name: str, handler: Handler, **more: Any) -> PageView:
    """A row for a page that is looked at."""
    return PageView(method="GET", path=path, name=name, handler=handler, **more)


def done(path: str, name: str, handler: Handler, scope: Scope, **more: Any) -> PageView:
    """A row for a form that is sent."""
    return PageView(method="POST", path=path, name=name, handler=handler, scope=scope, **more)


_COUNTED = (
    ("records", "record"),
    ("facts", "fact"),
    ("sources", "source"),
    ("extractions", "extraction"),
    ("summaries", "summary"),
    ("documents", "document"),
    ("versions", "version"),
    ("items", "item"),
)


def receipt_words(receipt: Receipt) -> str:
    """What is gone; what there was none of is not mentioned."""
    counted = [(getattr(receipt, field), one) for field, one in _COUNTED]
    gone = ", ".join(f"{count:,} {_many(count, one)}" for count, one in counted if count)
    words = f"Forgotten for good: {gone or 'nothing was left of it'}.{_not_done(receipt)}"
    if receipt.may_remain:
        words += f" Has the same words: {', '.join(receipt.may_remain)}."
    return words


def _not_done(receipt: Receipt) -> str:
    if receipt.left:
        return f" Left, and may still say it: {', '.join(places_left(receipt))}."
    return "" if receipt.is_complete else " Somebody reads the files just now: run doctor later."


def _many(count: int, one: str) -> str:
    if count == 1:
        return one
    return f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
