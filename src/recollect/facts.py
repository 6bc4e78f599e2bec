"""Facts for callers: add, read, search, edit, delete; one short method per verb.

What people add or edit is redacted like everything that is stored as memory, and stays theirs: no
extraction changes it. What was learned may have to wait until a person accepts it, by the setting
`review`; a fact from a tool that reads like a command always does. Nobody is told of it until then.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recollect import collection
from recollect.errors import InvalidValue, NotFound, NotWaiting, TooLarge
from recollect.runtime import Runtime
from recollect.session import LIST_MAX, page_size
from recollect.stemming import search_terms
from recollect.types.facts import (
    UNCHANGED,
    ChangedFact,
    Fact,
    FactChange,
    FactEdit,
    FactQuery,
    Proposal,
    Reader,
    Remembered,
    Review,
    ReviewQuery,
    Source,
    Trust,
    Unchanged,
    When,
    kind_of,
)

if TYPE_CHECKING:
    from recollect.redaction import Redactor
    from recollect.store.protocol import Store
    from recollect.types.facts import MetadataValue

TAGS_MAX = 32
TAG_CHARS_MAX = 100
SOURCES_MAX = 1000
QUOTE_CHARS_MAX = 2000
DECIDED_AT_ONCE = 200  # facts in one transaction


class Facts:
    """A space's facts. `as_of` reads them as they were believed at a time."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        space: str,
        changed: Callable[[str, str], None],
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._space = space
        self._changed = changed  # renders the pages of a space that a fact, by its id, was on

    def add(
        self,
        fact: Fact | str,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Fact:
        """Store a fact, or a statement; what it is stored as comes back.

        With an id of its own it is kept as it is, and replaces what had that id, since when that
        held if it does not say. Without one it is stored once: the same statement again gains its
        sources.
        """
        match fact:
            case Fact() if tags or metadata:
                raise InvalidValue("a Fact brings its own tags and metadata")
            case Fact():
                given = fact
            case str():
                given = Fact(fact, tags=_tags(tags), metadata=metadata or {})
            case _:
                raise InvalidValue(f"a fact is a statement or a Fact, not {type(fact).__name__}")
        checked = self._checked(given)
        now = self._runtime.now()
        stored = self._store.facts.add(self._space, checked, now, self._runtime.ids.new)
        if checked.id:  # it may have replaced one that is on a page
            self._changed(self._space, checked.id)
        return stored

    def _remember(self, text: str) -> Remembered:
        """Store what a person says on purpose; it replaces what was known on the same topic.

        Where the rules understand it, it gets its kind, its topic and its dates: "Ben moved to Faro
        in May" is about Ben.
        """
        from recollect.extraction.stated import understood

        now, content = self._runtime.now(), self._content(text)
        found, given = understood(content, now), Fact(content)
        if found is not None:
            dated = found.metadata.get("date")  # of a move or a meeting, as the rules read it
            day = datetime.fromisoformat(dated).replace(tzinfo=UTC) if dated else None
            given = dataclasses.replace(
                given,
                content=found.content or content,
                tags=found.tags,
                metadata=found.metadata,
                topic=found.topic,
                valid_to=found.valid_to,
                about=found.about,
                happened_from=found.happened_from or day,
                happened_to=found.happened_to,
            )
        checked = self._checked(given)
        made = self._store.facts.remember(self._space, checked, now, self._runtime.ids.new)
        for each in made.replaced:
            self._changed(self._space, each.id)
        return made

    def get(self, fact_id: str) -> Fact | None:
        return self._store.facts.get(self._space, collection.check_id(fact_id))

    def update(
        self,
        fact_id: str,
        content: str | Unchanged = UNCHANGED,
        *,
        tags: Sequence[str] | Unchanged = UNCHANGED,
        metadata: Mapping[str, Any] | Unchanged = UNCHANGED,
        valid_to: datetime | str | Unchanged | None = UNCHANGED,
        trust: Trust | Unchanged = UNCHANGED,
    ) -> ChangedFact:
        """Change what a fact says; it is somebody's own from then on. NotFound: there is none.

        `.told` of what comes back are those who were told what it said before. One that waits for
        review is accepted with these words. `trust` says whose word it is from then on, where
        somebody else than a person edits it.
        """
        fact_id = collection.check_id(fact_id)
        edit = FactEdit(
            content=content if isinstance(content, Unchanged) else self._content(content),
            tags=tags if isinstance(tags, Unchanged) else self._redacted_tags(tags),
            metadata=metadata if isinstance(metadata, Unchanged) else self._metadata(metadata),
            valid_to=valid_to
            if isinstance(valid_to, Unchanged)
            else collection.read_time(valid_to),
            trust=trust if isinstance(trust, Unchanged) else Trust(trust),
        )
        stored = self._store.facts.update(self._space, fact_id, edit, self._runtime.now())
        if stored is None:
            raise _not_found(fact_id)
        self._changed(self._space, fact_id)
        values = {each.name: getattr(stored, each.name) for each in dataclasses.fields(stored)}
        return ChangedFact(**values, told=tuple(self.told(fact_id)))

    def delete(self, fact_id: str) -> builtins.list[Reader]:
        """Delete a fact; what was said does not bring it back. NotFound: there is none.

        Returns who was told it. Its history stays; to have nothing left of it, forget the session
        it comes from.
        """
        fact_id = collection.check_id(fact_id)
        if not self._store.facts.delete(self._space, fact_id, self._runtime.now()):
            raise _not_found(fact_id)
        self._changed(self._space, fact_id)
        return self.told(fact_id)

    def list(
        self,
        limit: int = 50,
        before: Fact | None = None,
        *,
        tag: str | None = None,
        session: str | None = None,
        as_of: datetime | str | None = None,
        every: bool = False,
    ) -> builtins.list[Fact]:
        """A page of facts, newest first; `before` is the last one of the page before.

        `every` lists what is superseded, over, not valid yet or waits for review as well.
        """
        at, when = self._at(as_of)
        query = FactQuery(
            at=at,
            when=when,
            every=bool(every),
            tag=None if tag is None else collection.check_id(tag),
            session_id=None if session is None else collection.check_id(session),
            before=before,
        )
        return self._store.facts.list(self._space, query, page_size(limit))

    def search(
        self, query: str, limit: int = 10, *, as_of: datetime | str | None = None
    ) -> builtins.list[Fact]:
        """Facts with any of a text's words, the best first. Any text is a legal query."""
        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {type(query).__name__}")
        terms, (at, when) = search_terms(query), self._at(as_of)
        return self._store.facts.search(self._space, terms, at, page_size(limit), when=when)

    def search_metadata(
        self,
        key: str,
        value: MetadataValue,
        limit: int | None = None,
        before: Fact | None = None,
        *,
        as_of: datetime | str | None = None,
    ) -> builtins.list[Fact]:
        """Facts whose metadata has this value under this very key; a dot in it is a dot.

        Newest first: all of them or, with a `limit`, a page; `before` is the last one of the page
        before.
        """
        if not isinstance(value, str | int | float | bool | None):
            raise InvalidValue(f"a value is text, a number, true, false or none: {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidValue(f"a number in metadata is finite: {value!r}")
        if isinstance(value, str):
            value = collection.check_id(value)
        key, (at, when) = collection.check_id(key), self._at(as_of)
        size = LIST_MAX if limit is None else page_size(limit)
        found: builtins.list[Fact] = []
        while True:
            page = self._store.facts.search_metadata(
                self._space, key, value, at, size, when, before
            )
            found += page
            if limit is not None or len(page) < size:
                return found
            before = page[-1]

    def waiting(
        self,
        limit: int = 50,
        before: Fact | None = None,
        *,
        kind: str | None = None,
        project: str | None = None,
        session: str | None = None,
        person: str | None = None,
    ) -> builtins.list[Proposal]:
        """A page of the facts that wait for a person, newest first, each with what it would end.

        `kind` is a tag, such as preference; `person` anybody or anything that a statement names.
        """
        query = _waiting(kind, project, session, person)
        query = dataclasses.replace(query, before=before)
        return self._store.facts.waiting(self._space, query, self._runtime.now(), page_size(limit))

    def accept(
        self,
        fact_ids: str | Sequence[str] = (),
        *,
        kind: str | None = None,
        project: str | None = None,
        session: str | None = None,
        person: str | None = None,
        everything: bool = False,
    ) -> builtins.list[Fact]:
        """Accept facts that wait: those named, those of a kind, project, session or person, or all.

        They are told from then on, and end what they replace. To accept one in other words, update
        it. NotFound, NotWaiting: one that is named is not there, or nobody has to decide about it.
        """
        wanted = _waiting(kind, project, session, person)
        return self._decide(self._store.facts.accept, fact_ids, wanted, everything)

    def reject(
        self,
        fact_ids: str | Sequence[str] = (),
        *,
        kind: str | None = None,
        project: str | None = None,
        session: str | None = None,
        person: str | None = None,
        everything: bool = False,
    ) -> builtins.list[Fact]:
        """Delete facts that wait, chosen as for accept; no session brings these statements back.

        NotFound, NotWaiting: one that is named is not there, or nobody has to decide about it.
        """
        wanted = _waiting(kind, project, session, person)
        return self._decide(self._store.facts.reject, fact_ids, wanted, everything)

    def _decide(
        self,
        decide: Callable[[str, Sequence[Fact], datetime], builtins.list[Fact]],
        fact_ids: str | Sequence[str],
        wanted: ReviewQuery,
        everything: bool,
    ) -> builtins.list[Fact]:
        named = (fact_ids,) if isinstance(fact_ids, str) else tuple(fact_ids)
        if bool(named) + bool(everything) + (wanted != ReviewQuery()) != 1:
            raise InvalidValue(
                "say which facts are meant: some ids; kind, project, session or person; or"
                " everything"
            )
        chosen = map(self._proposed, named) if named else self._all_waiting(wanted)
        done: builtins.list[Fact] = []
        facts = builtins.list(chosen)
        for start in range(0, len(facts), DECIDED_AT_ONCE):
            part = facts[start : start + DECIDED_AT_ONCE]
            done += decide(self._space, part, self._runtime.now())
        if done:
            self._changed(self._space, done[0].id)
        if named and len(done) < len(set(named)):
            raise NotWaiting("a fact has just been changed: read it again")
        return done

    def _all_waiting(self, wanted: ReviewQuery) -> Iterator[Fact]:
        while True:
            page = self._store.facts.waiting(self._space, wanted, self._runtime.now(), LIST_MAX)
            yield from (each.fact for each in page)
            if len(page) < LIST_MAX:
                return
            wanted = dataclasses.replace(wanted, before=page[-1].fact)

    def count(self, as_of: datetime | str | None = None) -> int:
        """How many facts hold."""
        return self._store.facts.count(self._space, *self._at(as_of))

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a space without facts still has this

    def history(self, fact_id: str) -> builtins.list[FactChange]:
        """What has happened to a fact, oldest first; also of one that was deleted."""
        return self._store.facts.history(self._space, collection.check_id(fact_id))

    def told(self, fact_id: str) -> builtins.list[Reader]:
        """Who was told a fact, in which session, when and how often; the last one first.

        Of what was told lately: see `contexts_kept` and `contexts_days`. NotFound: there never was
        such a fact.
        """
        self._runtime.told.flush()
        readers = self._store.contexts.readers(self._space, collection.check_id(fact_id))
        if not readers and not self.history(fact_id):
            raise _not_found(fact_id)
        return readers

    def _proposed(self, fact_id: str) -> Fact:
        """The fact that waits under this id."""
        fact = self.get(fact_id)
        if fact is None:
            raise _not_found(fact_id)
        if not fact.waits:
            raise NotWaiting(
                f"fact {fact.id!r} does not wait for review: edit or delete it instead"
            )
        return fact

    def _at(self, as_of: datetime | str | None) -> tuple[datetime, When]:
        then = collection.read_time(as_of)
        return (self._runtime.now(), When.NOW) if then is None else (then, When.THEN)

    def _checked(self, fact: Fact) -> Fact:
        """A fact as it may be stored: within its limits, and redacted."""
        redactor = self._redactor()
        topic, content = collection.check_label(fact.topic, "a topic"), self._content(fact.content)
        if not isinstance(fact.trust, str) or fact.trust not in set(Trust):
            raise InvalidValue(f"trust is one of {', '.join(Trust)}: {fact.trust!r}")
        return dataclasses.replace(
            fact,
            id=collection.check_label(fact.id or None, "a fact's id") or "",
            content=content,
            review=self._review(content, fact),
            tags=self._redacted_tags(fact.tags),
            metadata=self._metadata(fact.metadata),
            trust=Trust(fact.trust),
            topic=None if topic is None else redactor.redact_name(topic),
            sources=tuple(
                dataclasses.replace(source, quote=redactor.redact(source.quote))
                for source in _sources(fact)
            ),
            created_at=collection.read_time(fact.created_at),
            valid_from=collection.read_time(fact.valid_from),
            valid_to=collection.read_time(fact.valid_to),
            about=self._redacted_tags(fact.about),
            kind=kind_of(fact.tags),
            happened_from=collection.read_time(fact.happened_from),
            happened_to=collection.read_time(fact.happened_to),
        )

    def _review(self, content: str, fact: Fact) -> Review | None:
        """Whether it waits for a person: not what a person says."""
        if fact.trust is Trust.USER:
            return None
        from recollect.quarantine import review_of

        return review_of(self._runtime.settings.review, content, Trust(fact.trust), fact.tags)

    def _redactor(self) -> Redactor:
        return self._runtime.redactor().keyed(self._space)

    def _content(self, content: object) -> str:
        text = _text(content, "a fact", self._runtime.settings.fact_chars_max)
        return self._redactor().redact(text)

    def _redacted_tags(self, tags: object) -> tuple[str, ...]:
        redactor = self._redactor()
        return tuple(redactor.redact_name(tag) for tag in _tags(tags))

    def _metadata(self, metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
        given = json.loads(collection.encode_metadata(metadata) or "{}")
        redacted: Mapping[str, Any] = self._redactor().redact_json(given)
        return redacted


def _waiting(
    kind: str | None, project: str | None, session: str | None, person: str | None
) -> ReviewQuery:
    return ReviewQuery(
        kind=collection.check_label(kind, "a kind"),
        project=collection.check_label(project, "a project"),
        session_id=None if session is None else collection.check_id(session),
        person=collection.check_label(person, "a person"),
    )


def _not_found(fact_id: str) -> NotFound:
    return NotFound(f"this space has no fact {fact_id!r}")


def _text(text: object, what: str, chars_max: int) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue(f"{what} is text that is not empty, not {text!r}")
    if len(text) > chars_max:
        raise TooLarge(
            f"{what} has at most {chars_max:,} characters, and this has {len(text):,}: split it, "
            "keep longer texts as documents, or raise fact_chars_max"
        )
    return collection.storable(text)


def _tags(tags: object) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Sequence) or len(tags) > TAGS_MAX:
        raise InvalidValue(f"tags are a list of at most {TAGS_MAX} texts: {tags!r}")
    return tuple(dict.fromkeys(_text(tag, "a tag", TAG_CHARS_MAX) for tag in tags))


def _is_source(given: object) -> bool:
    return isinstance(given, Source) and isinstance(given.quote, str)


def _sources(fact: Fact) -> tuple[Source, ...]:
    """The sources that were given; a bare session id is a source without a place."""
    sources = fact.sources
    if not isinstance(sources, Sequence) or not all(map(_is_source, sources)):
        raise InvalidValue("sources are a list of Source(session_id=…, seq=…, seq_to=…)")
    if len(sources) > SOURCES_MAX:
        raise TooLarge(f"a fact has at most {SOURCES_MAX:,} sources")
    sources = tuple(sources)
    if fact.source is not None and fact.source not in {each.session_id for each in sources}:
        sources += (Source(session_id=fact.source, seq=0, seq_to=0),)
    for source in sources:
        collection.check_id(source.session_id)
        first = collection.check_seq(source.seq)
        if collection.check_seq(source.seq_to) < first:
            raise InvalidValue(f"a source is a range of records: {source!r}")
    return tuple(
        dataclasses.replace(source, quote=collection.storable(source.quote[:QUOTE_CHARS_MAX]))
        for source in sources
    )
