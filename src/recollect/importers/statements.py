"""Facts of another memory on their way in: each under an id of its own, and again if it changed.

What was deleted here does not come back, and what somebody edited or superseded here stays as it
is, whatever the other memory says now.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect import collection
from recollect.errors import InvalidValue, NotFound, TooLarge
from recollect.facts import Facts
from recollect.importers.items import Odd, Statement, Trouble
from recollect.importing import digest
from recollect.knowledge import Fact
from recollect.redaction import Redactor

CHANGED_HERE = "changed here since"


@dataclass(slots=True, kw_only=True)
class Taken:
    """What came of some statements. `items` are known from now on."""

    items: list[str] = field(default_factory=list)
    added: int = 0
    changed: int = 0
    known: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    odd: list[Odd] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """From a source into the facts of a space.

    `known` says what has come in before: statements, and how each of them read. In a dry run what
    would come in is stored in `instead`, and the facts stay as they are.
    """

    source: str
    facts: Facts
    instead: Facts | None
    redactor: Callable[[], Redactor]
    known: Callable[[Sequence[str]], frozenset[str]]
    now: datetime

    def take(self, statements: Sequence[Statement]) -> Taken:
        by_item = {digest(each.id): each for each in statements}
        came = self.known(list(by_item))
        readings = {item: self._reading(item, by_item[item]) for item in came}
        known = self.known(list(readings.values()))
        taken = Taken(items=list(by_item), known=len(statements) - len(by_item))
        for item, each in by_item.items():
            try:
                if item not in came:
                    self._add(item, each, taken)
                elif readings[item] in known:
                    taken.known += 1
                else:
                    taken.items.append(readings[item])
                    self._follow(item, each, readings[item], taken)
            except NotFound:  # deleted this very moment
                taken.known += 1
            except InvalidValue as error:
                is_large = isinstance(error, TooLarge)
                trouble = Trouble.TOO_LARGE if is_large else Trouble.BROKEN
                taken.odd.append(Odd(trouble=trouble, detail="a fact"))
        return taken

    def _add(self, item: str, said: Statement, taken: Taken) -> None:
        self._put(item, said, self._since(said))
        if self.instead is None:
            taken.items.append(self._reading(item, said))
        taken.added += 1

    def _follow(self, item: str, said: Statement, reading: str, taken: Taken) -> None:
        """It came in before, and did not read like this."""
        fact = self.facts.get(self._id(item))
        if fact is None:  # deleted here
            taken.known += 1
            return
        since, is_same = self._since(said), self._reading_of(item, fact) == reading
        is_late = since is not None and fact.valid_from is not None and since < fact.valid_from
        if is_same and not is_late:  # whoever stored it had no time to say so
            taken.known += 1
        elif not self._is_untouched(item, fact):
            taken.left_out[CHANGED_HERE] += 1
        else:
            if is_same:
                self._put(item, said, since)
            else:
                self._reword(item, said)
            taken.changed += 1

    def _is_untouched(self, item: str, fact: Fact) -> bool:
        """Whether it is as an import left it; the first imports did not keep how it read."""
        is_known = bool(self.known([self._reading_of(item, fact)]))
        return is_known or len(self.facts.history(fact.id)) == 1

    def _put(self, item: str, said: Statement, since: datetime | None) -> None:
        (self.instead or self.facts).add(
            Fact(
                said.text,
                id=self._id(item),
                tags=said.tags,
                metadata=said.metadata,
                created_at=said.at,
                valid_from=since,
            )
        )

    def _reword(self, item: str, said: Statement) -> None:
        """It is found for earlier times as it read then."""
        if self.instead is not None:
            self._put(item, said, None)
        else:
            self.facts.update(self._id(item), said.text, tags=said.tags, metadata=said.metadata)

    def _since(self, said: Statement) -> datetime | None:
        """When it was said as it stands; a clock that goes ahead makes nothing hold later."""
        since = said.since or said.at
        return None if since is None or since > self.now else since

    def _id(self, item: str) -> str:
        return f"{self.source}-{item}"

    def _reading(self, item: str, said: Statement) -> str:
        """How a statement reads once it is stored, as a digest."""
        redactor = self.redactor()
        try:
            metadata = json.loads(collection.encode_metadata(said.metadata) or "{}")
        except InvalidValue:
            metadata = {}  # it is not stored either
        tags = [redactor.redact(tag) for tag in said.tags]
        return _digest(item, redactor.redact(said.text), tags, redactor.redact_json(metadata), None)

    def _reading_of(self, item: str, fact: Fact) -> str:
        until = None if fact.valid_to is None else fact.valid_to.isoformat()
        return _digest(item, fact.content, list(fact.tags), dict(fact.metadata), until)


def _digest(*parts: Any) -> str:
    return digest(json.dumps(parts, sort_keys=True))
