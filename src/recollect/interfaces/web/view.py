"""The table of pages: a row has a view's path, its scope, its template and its function.

A view knows nothing of HTTP. It is given the path, the parameters and the form, all as text. A page
returns the values for its template, a form a message on what was done; the row has the rest. Either
may also return another page, a redirect, or a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from recollect.errors import InvalidValue
from recollect.interfaces.http.operations import Guarded, cursor_behind, read_mark
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
        given = self.query.get(name, "")
        return read_number(given, name, least=least, most=most) if given.strip() else otherwise

    def moment(self, name: str) -> datetime | None:
        """A parameter that is a time; none: it was not given. InvalidValue: it is no time."""
        return read_moment(self.query.get(name, ""))

    def field(self, name: str) -> str:
        """A field of the form. InvalidValue: the form does not have it."""
        if name not in self.form:
            raise InvalidValue(f"the form lacks {name!r}")
        # A browser ends lines as HTTP wants it; memory ends them as texts do.
        return self.form[name].replace("\r\n", "\n")

    def tags(self) -> list[str]:
        """The field of tags, with commas between."""
        return [tag.strip() for tag in self.field("tags").split(",") if tag.strip()]

    def page(self, name: str, listed: Callable[..., Any], kind: Any, size: int = PAGE) -> Any:
        """A page of a list as a template has it: what is on it, and where the next one begins."""
        cursor = self.wanted("cursor")
        found = listed(size, read_mark(cursor, kind, self.space.name))
        following = cursor_behind(found[-1]) if len(found) == size else None
        return {name: found, "cursor": cursor or "", "following": following}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A template and what it says."""

    template: str
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


Handler = Callable[[Asked], Any]


@dataclass(frozen=True, kw_only=True)
class PageView(Guarded):
    """A page, or a form that is sent; templates link to it by its name."""

    to: str = ""  # the page to go on to when a form is done
    said: str | Callable[[Any], str] = ""  # what is told there, or made of what was done
    back: str = ""  # the page that a form stands on: shown again with what was typed wrongly


def shown(path: str, name: str, handler: Handler, **more: Any) -> PageView:
    """A row for a page that is looked at; its template has its name."""
    return PageView(method="GET", path=path, name=name, handler=handler, **more)


def done(path: str, name: str, scope: Scope, handler: Handler, **more: Any) -> PageView:
    """A row for a form that is sent."""
    return PageView(method="POST", path=path, name=name, scope=scope, handler=handler, **more)


def read_number(given: str, name: str, *, least: int = 0, most: int = 10**DIGITS_MAX) -> int:
    """A number within bounds. InvalidValue: it is none."""
    is_number = given.isascii() and given.isdigit() and len(given) <= DIGITS_MAX
    if not is_number or not least <= int(given) <= most:
        raise InvalidValue(f"{name} is a number from {least:,} to {most:,} (got {given[:20]!r})")
    return int(given)


def read_moment(given: str) -> datetime | None:
    """A time as people write it, in UTC unless it says otherwise. InvalidValue: it is none."""
    if not given.strip():
        return None
    try:
        at = datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise InvalidValue("a time is written as 2026-01-31 or 2026-01-31T12:00") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


_COUNTED = "records facts sources extractions summaries documents versions items"


def receipt_words(receipt: Receipt) -> str:
    """What is gone; what there was none of is not mentioned."""
    counted = ((getattr(receipt, name), name) for name in _COUNTED.split())
    gone = ", ".join(f"{count:,} {_of(name, count)}" for count, name in counted if count)
    words = f"Forgotten for good: {gone or 'nothing was left of it'}."
    if receipt.left:
        words += f" Left, and may still say it: {', '.join(places_left(receipt))}."
    elif not receipt.is_complete:
        words += " Somebody reads the files just now: run doctor later."
    if receipt.may_remain:
        words += f" Has the same words: {', '.join(receipt.may_remain)}."
    if receipt.told:
        words += f" Was told to {'; '.join(each.words for each in receipt.told)}."
    return words


def _of(name: str, count: int) -> str:
    return name if count != 1 else "summary" if name == "summaries" else name[:-1]
