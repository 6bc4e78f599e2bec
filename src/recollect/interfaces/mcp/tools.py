"""The tools: each public method of `Tools` is one, described by its signature and docstring.

Index first, detail on demand: lists have first lines and ids, and `get_memory` takes every id that
a list, a source or a citation gives. No argument names a space: it is the server's. What an agent
adds counts as said by that agent, and belongs to the server's project unless it is meant for all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field

from recollect import collection
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder, is_of_consolidation
from recollect.documents.tree import Documents
from recollect.errors import InvalidPath, InvalidValue, NotAllowed, NotFound
from recollect.extraction.scope import named, place_of
from recollect.importers.homes import Homes
from recollect.interfaces.mcp.answers import (
    ANSWER_CHARS_MAX,
    CAUTION,
    FRAME_CHARS,
    SHORT_CHARS,
    AppendedMessages,
    ChangedMemory,
    CitedMark,
    FileAnswer,
    MemoryLine,
    MemoryPage,
    PromptBlock,
    SourceQuote,
    WholeMemory,
    as_data,
    as_page,
    day,
    days,
    fitting,
    page_of,
    shortened,
    visible,
)
from recollect.memory import Memory
from recollect.messages import Role
from recollect.quarantine import is_quarantined
from recollect.quoting import without_recalled
from recollect.recall.usage import named_hit
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.types.facts import UNCHANGED, Extraction, Fact, Reader, Source, Trust
from recollect.types.pages import Author, AuthorKind, Document, Node
from recollect.types.recall import EntryKind, Hit
from recollect.types.records import Record

LIST_LIMIT_MAX = 50
FOUND_MAX = 200  # how far a search can be paged
AROUND_MAX = 20
ID_CHARS_MAX = 2000
BODY_CHARS = 5000  # of a text at once
RECORD_CHARS = 300  # of a record around another
SOURCES_SHOWN = 6
PROJECT = "project"  # of a fact's metadata: where it holds

_TRUST_OF = {Role.USER: Trust.USER, Role.TOOL: Trust.TOOL}
_REFUSALS = ("Error", "No replacement was performed", "The path ")

Limit = Annotated[int, Field(ge=1, le=LIST_LIMIT_MAX, description="How many memories at most.")]
PageCursor = Annotated[
    str | None, Field(description="The next_cursor of the page before; none for the first page.")
]
Id = Annotated[
    str,
    Field(description="An id as a result gave it: a fact's id, a document's path, session:number."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a server serves: whose space, who writes, for which project."""

    space: str
    agent: str
    project: str | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMessage:
    """What one speaker said."""

    role: Literal["user", "assistant", "tool", "system"]
    content: str
    name: Annotated[str | None, Field(description="The speaker, if there are several.")] = None
    at: Annotated[str | None, Field(description="When, as in 2026-05-04T10:00:00Z.")] = None

    def given(self) -> Mapping[str, Any]:
        """The message as a provider writes it."""
        name = {} if self.name is None else {"name": self.name}
        return {"role": self.role, "content": self.content, **name}


class Tools:
    """One space of a memory, which is opened by the first call that needs it."""

    def __init__(self, opened: Callable[[], Memory], terms: Terms) -> None:
        self._opened = opened
        self._terms = terms

    # Reading.

    def search_memories(
        self,
        query: Annotated[str, Field(description="Any text: a question, names, words, a time.")],
        limit: Limit = 10,
        kinds: Annotated[
            list[Literal["fact", "document", "summary", "record"]] | None,
            Field(max_length=4, description="Only these kinds; default: all."),
        ] = None,
        cursor: PageCursor = None,
    ) -> MemoryPage:
        """Find what is remembered about any text: facts, documents, summaries of past sessions and
        what was said in them, best first. Use it before you ask the user something they may have
        told before, and when they refer to earlier work. Gives short lines with ids; get_memory has
        the rest."""
        if cursor is not None and not (cursor.isdecimal() and cursor.isascii()):
            raise _no_cursor(cursor)
        first = int(cursor[:4]) if cursor else 0
        last = min(first + limit, FOUND_MAX)
        hits = self._space.recall(query, last + 1, kinds=kinds, filters=self._of_project)
        found = [(self._line(hit), str(at)) for at, hit in enumerate(hits, start=1)]
        return page_of(found[first:last], is_more=len(found) > last and last < FOUND_MAX)

    def about(
        self,
        name: Annotated[str, Field(description="A person, a project or a thing, by any name.")],
        limit: Limit = 20,
        cursor: PageCursor = None,
    ) -> MemoryPage:
        """Everything known of a person, a project or a thing: what holds, with dates; in the note
        what held before, and in which sessions it came up. For a question use search_memories."""
        found = self._space.about(name, limit, cursor, project=self._terms.project)
        known: list[Fact | Hit] = [*found.current, *found.pages]
        lines = [(self._line(each), each.id) for each in known]
        told = page_of(lines, is_more=False)
        before = [f"{day(each.valid_to)}: {shortened(each.content)}" for each in found.earlier[:5]]
        came_up = [f"{each.session_id} on {day(each.last_at)}" for each in found.sessions[:5]]
        parts = {"Held until": before, "It came up in": came_up}
        note = " ".join(f"{title} {'; '.join(each)}." for title, each in parts.items() if each)
        return replace(told, next_cursor=found.next, note=self._redact(note))

    def get_memory(
        self,
        id: Id,  # noqa: A002 - the argument's name is the client's
        around: Annotated[
            int,
            Field(
                ge=0,
                le=AROUND_MAX,
                description="Also show so many records said before and after it.",
            ),
        ] = 0,
        offset: Annotated[
            int, Field(ge=0, description="Where in a long text to begin: its next_offset.")
        ] = 0,
    ) -> WholeMemory:
        """Read one memory whole, with where it comes from: a fact, a document, a session's summary
        or a record, by the id that another result gave. With `around` also what was said before and
        after."""
        if len(id) > ID_CHARS_MAX:
            raise InvalidValue(f"an id has at most {ID_CHARS_MAX:,} characters")
        whole, sources, place = self._found(id)
        shape = as_page if whole.kind == EntryKind.DOCUMENT else as_data
        text = shape(self._redact(whole.text))
        shown = text[offset : offset + BODY_CHARS]
        end, notes = offset + len(shown), [whole.note]
        if offset and not shown:
            raise InvalidValue(f"its text ends at {len(text):,}, before this offset")
        if end < len(text):
            notes.append(
                f"Truncated: characters {offset:,} to {end:,} of {len(text):,}; ask for the rest"
                f" with offset {end}."
            )
        quotes = [
            SourceQuote(id=_source_id(each), quote=shortened(self._redact(each.quote)))
            for each in sources[:SOURCES_SHOWN]
        ]
        if len(sources) > len(quotes):
            notes.append(f"It has {len(sources) - len(quotes):,} more sources.")
        if not offset and not self._terms.read_only:
            # What has no sources because it was said itself was said at its place.
            told = sources or ([place] if place and whole.kind != EntryKind.FACT else [])
            self._space.opened(named_hit(EntryKind(whole.kind), whole.id, told))
        records = self._records(place, around) if place and around else []
        lines = [each for each in map(self._line, records) if each.id != whole.id]
        taken = len(shown) + sum(120 + len(each.id) + len(each.quote) for each in quotes)
        kept = fitting(lines, ANSWER_CHARS_MAX - FRAME_CHARS - taken - sum(map(len, whole.tags)))
        if len(kept) < len(lines):
            notes.append("Not all that is around it fits: read those records by their ids.")
        return replace(
            whole,
            text=shown,
            sources=quotes,
            around=kept,
            next_offset=end if end < len(text) else None,
            note=" ".join(filter(None, notes)),
        )

    def list_memories(
        self,
        kind: Annotated[
            Literal["fact", "document", "summary"], Field(description="What to list.")
        ] = "fact",
        limit: Limit = 10,
        tag: Annotated[str | None, Field(description="Only facts with this tag.")] = None,
        cursor: PageCursor = None,
    ) -> MemoryPage:
        """Browse all facts or session summaries, newest first, or all documents, a page at a time.
        To find something in particular use search_memories."""
        if tag is not None and kind != "fact":
            raise InvalidValue("only facts are listed by tag")
        lines = {"fact": self._facts, "document": self._documents, "summary": self._summaries}
        found = list(islice(lines[kind](cursor, tag), limit + 1))
        return page_of(found[:limit], is_more=len(found) > limit)

    def context(
        self,
        query: Annotated[str, Field(description="What you are about to do, or the question.")],
        max_tokens: Annotated[
            int, Field(ge=50, le=2000, description="The size limit of the block.")
        ] = 800,
        speaker: Annotated[
            str | None, Field(description='The name of who asks, if it is about "me" or "my".')
        ] = None,
    ) -> PromptBlock:
        """What memory knows that helps with a task or a question, as one short block with citation
        marks. Use it once at the start of a task."""
        block = self._space.context(query, max_tokens, filters=self._of_project, speaker=speaker)
        if not block:
            return PromptBlock(text="", token_count=0, note="Nothing is remembered about this.")
        if not self._terms.read_only:
            self._space.cite(block)
        cited = [
            CitedMark(mark=each.mark, id=each.hit.id, kind=each.hit.kind.value)
            for each in block.citations
        ]
        return PromptBlock(text=block.text, token_count=block.token_count, citations=cited)

    # Changing.

    def add_memory(
        self,
        text: Annotated[
            str, Field(description="One statement that can be read on its own, names included.")
        ],
        tags: Annotated[
            list[str], Field(max_length=32, description="A few words to list it by.")
        ] = [],  # noqa: B006 - part of a schema, never changed
        scope: Annotated[
            Literal["project", "everywhere"],
            Field(description="everywhere: it is about the person or holds in every project."),
        ] = "project",
    ) -> ChangedMemory:
        """Remember one statement for later sessions and other agents: a preference, a decision and
        its reason, a correction, a fact about a person or a project, a command that works. Not for
        passwords, or what only matters now. The same statement is stored once."""
        self._check_writable()
        began = self._memory.clock.now()
        project = None if scope == "everywhere" else self._terms.project
        fact = self._add(text, tags, project)
        home = fact.metadata.get(PROJECT)
        if home is not None and project is None:  # what held in one project holds in all
            metadata = {name: each for name, each in fact.metadata.items() if name != PROJECT}
            fact = self._space.facts.update(fact.id, metadata=metadata)
        elif home is not None and home != project:
            # The same rule of two projects is two facts, as with learned ones: it is named.
            fact = self._add(f"In {named(place_of(project))}: {text}", tags, project)
        is_known = fact.created_at is not None and fact.created_at < began
        note = "It waits until a person accepts it: recollect review." if fact.waits else ""
        done = "already known" if is_known else "stored"
        return _changed(done, fact.id, fact.content, note=note)

    def append_messages(
        self,
        messages: Annotated[
            list[ConversationMessage],
            Field(min_length=1, max_length=1000, description="In the order they were said."),
        ],
        session: Annotated[
            str,
            Field(
                min_length=1,
                description="A stable name of the conversation; later messages go to the same one.",
            ),
        ],
        key: Annotated[
            str | None,
            Field(description="A name of this call: repeated with the same one it appends once."),
        ] = None,
        is_over: Annotated[
            bool, Field(description="The conversation is over, and may be learned from now.")
        ] = False,
    ) -> AppendedMessages:
        """Append messages of a conversation word by word, so that Recollect learns from it by
        itself. Use it for a transcript or a meeting; for one statement use add_memory."""
        self._check_writable()
        found = self._space.session(
            session, self._terms.agent, source="mcp", project=self._terms.project
        )
        records = found.append_many(
            [collection.Message(message=each.given(), at=each.at) for each in messages], key=key
        )
        if is_over:
            found.end()
        ids = [f"{record.session_id}:{record.seq}" for record in records]
        return AppendedMessages(
            session_id=records[0].session_id if records else "",
            count=len(records),
            first_id=ids[0] if ids else "",
            last_id=ids[-1] if ids else "",
        )

    def update_memory(
        self,
        id: Id,  # noqa: A002
        text: Annotated[str, Field(description="What it says from now on, all of it.")],
        tags: Annotated[
            list[str] | None, Field(max_length=32, description="Instead of its tags.")
        ] = None,
    ) -> ChangedMemory:
        """Replace what a fact or a document says, when it is wrong or has changed. Find its id with
        search_memories first. Its history is kept."""
        self._check_writable()
        fact = self._fact(id)
        if fact is not None:
            edited = self._space.facts.update(
                id,
                text,
                tags=UNCHANGED if tags is None else tuple(tags),
                trust=Trust.AGENT if fact.trust is Trust.USER else UNCHANGED,
            )
            return _changed("updated", edited.id, edited.content, note=_told(edited.told))
        document = self._own_documents.write(
            self._document_path(id), text, tags=tags, reason=f"updated by {self._terms.agent}"
        )
        note = f"This is version {document.version}; earlier ones are kept."
        return _changed("updated", document.path, document.body, EntryKind.DOCUMENT, note)

    def delete_memory(self, id: Id) -> ChangedMemory:  # noqa: A002
        """Delete a fact or a document for good reason: the user asks for it, or it was never true.
        What has changed is better updated."""
        self._check_writable()
        if self._fact(id) is not None:
            return _changed("deleted", id, note=_told(self._space.facts.delete(id)))
        path = self._document_path(id)
        self._own_documents.delete(path, reason=f"deleted by {self._terms.agent}")
        note = "It can be restored: recollect docs restore."
        return _changed("deleted", path, "", EntryKind.DOCUMENT, note)

    def memory(  # noqa: PLR0913 - the parameters of Anthropic's memory tool
        self,
        command: Annotated[
            Literal["view", "create", "str_replace", "insert", "delete", "rename"],
            Field(description="What to do."),
        ],
        path: Annotated[str | None, Field(description="/memories or a file below it.")] = None,
        view_range: Annotated[
            list[int] | None, Field(max_length=2, description="First and last line, for view.")
        ] = None,
        file_text: Annotated[str | None, Field(description="For create.")] = None,
        old_str: Annotated[
            str | None, Field(description="For str_replace: must occur exactly once.")
        ] = None,
        new_str: Annotated[str | None, Field(description="For str_replace.")] = None,
        insert_line: Annotated[
            int | None, Field(description="For insert: behind this line; 0 at the top.")
        ] = None,
        insert_text: Annotated[str | None, Field(description="For insert.")] = None,
        old_path: Annotated[str | None, Field(description="For rename.")] = None,
        new_path: Annotated[str | None, Field(description="For rename.")] = None,
    ) -> FileAnswer:
        """Notes of your own as text files below /memories, for what is longer than a statement:
        plans, progress, how a system works. Commands: view (a directory, or a file with
        view_range), create (file_text), str_replace (old_str, new_str), insert (insert_line,
        insert_text), delete, rename (old_path, new_path)."""
        given = {name: value for name, value in locals().items() if value is not None}
        del given["self"]
        self._check_writable()
        text = self._space.memory_tool(self._terms.agent).handle(given)
        # Notes are shown as they are, or no command could name a piece of them.
        return FileAnswer(text=visible(_cut(text)), is_refused=text.startswith(_REFUSALS))

    # What they share.

    @property
    def _memory(self) -> Memory:
        return self._opened()

    @cached_property
    def _space(self) -> Space:
        return self._memory.space(self._terms.space)

    @cached_property
    def _redact(self) -> Callable[[str], str]:
        return self._memory.runtime.redactor().keyed(self._terms.space).redact

    @property
    def _of_project(self) -> Mapping[str, Any] | None:
        """The filter for what a project may be given: its own, and what belongs to no project."""
        project = self._terms.project
        return None if project is None else {"project": [project, None]}

    @property
    def _own_documents(self) -> Documents:
        author = Author(kind=AuthorKind.AGENT, name=self._terms.agent)
        return self._space.documents.held_by(Holder(author=author))

    def _check_writable(self) -> None:
        if not self._memory.settings.is_memory_enabled(self._terms.agent):
            raise NotAllowed(f"memory is switched off for the agent {self._terms.agent!r}")

    def _add(self, text: str, tags: Sequence[str], project: str | None) -> Fact:
        metadata = {"agent": self._terms.agent}
        metadata |= {} if project is None else {PROJECT: project}
        fact = Fact(text, tags=tuple(tags), trust=Trust.AGENT, metadata=metadata)
        return self._space.facts.add(fact)

    def _fact(self, fact_id: str) -> Fact | None:
        """The fact with an id; none of those that wait for a person."""
        fact = self._space.facts.get(fact_id)
        return None if fact is None or fact.waits else fact

    def _document(self, path: str) -> Document | None:
        """The document at a path or with an id; none if no document can have that path."""
        try:
            return self._space.documents.find(path)
        except InvalidPath:
            return None

    def _document_path(self, memory_id: str) -> str:
        document = self._document(memory_id)
        if document is not None:
            return document.path
        place = _read_place(memory_id)
        if self._space.sessions.get(place.session_id if place else memory_id) is not None:
            raise InvalidValue(
                "what was said in a session stays as it was said; only facts and documents change"
            )
        raise NotFound(f"this space has no fact or document {memory_id[:200]!r}")

    # Lists: each line with the cursor behind it.

    def _facts(self, cursor: str | None, tag: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """Facts, newest first; in a project its own, and those that belong to none."""
        homes, after = Homes(self._space, self._terms.project), None
        if cursor is not None:
            created, _, fact_id = cursor.partition(" ")
            if not created or not fact_id:
                raise _no_cursor(cursor)
            at = collection.read_time(created)
            after = Fact("", id=collection.check_id(fact_id), created_at=at)
        while facts := self._space.facts.list(self._page_size, after, tag=tag):
            for fact in facts:
                if homes.project is None or homes.has(fact):
                    created = "" if fact.created_at is None else fact.created_at.isoformat()
                    yield self._line(fact), f"{created} {fact.id}"
            after = facts[-1]

    def _documents(self, cursor: str | None, _: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """Documents that say something; in a project none of consolidation, which is of all."""
        after, is_anywhere = cursor, self._terms.project is None
        while nodes := self._space.documents.tree(limit=LIST_LIMIT_MAX, after=after):
            for node in nodes:
                is_here = is_anywhere or not is_of_consolidation(read_path(node.path))
                if is_here and (node.body_chars or node.description):
                    yield self._line(node), node.path
            after = nodes[-1].path

    def _summaries(self, cursor: str | None, _: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """What sessions came to, newest first; in a project of its sessions, and those of none."""
        homes, sessions = Homes(self._space, self._terms.project), self._space.sessions
        after = None if cursor is None else sessions.extraction(cursor)
        if after is None and cursor is not None:
            raise _no_cursor(cursor)
        while found := sessions.extractions(self._page_size, after):
            for each in found:
                if homes.project is None or homes.has_session(each.session_id):
                    yield self._line(each), each.session_id
            after = found[-1]

    @property
    def _page_size(self) -> int:
        """Where most may be left out, as they are of other projects, much is read at once."""
        return LIST_LIMIT_MAX if self._terms.project is None else LIST_MAX

    def _line(self, memory: Hit | Fact | Record | Extraction | Node) -> MemoryLine:
        """A memory in short; what recall found holds no secrets any more."""
        whole, sources = _whole(memory), getattr(memory, "sources", ())
        chars = RECORD_CHARS if isinstance(memory, Record) else SHORT_CHARS
        text = whole.text if isinstance(memory, Hit) else self._redact(whole.text)
        return MemoryLine(
            id=whole.id,
            kind=whole.kind,
            text=shortened(text, chars),
            date=whole.date,
            source=_source_id(sources[0]) if sources else "",
            by=shortened(whole.by, 60),
            caution=whole.caution,
        )

    # One memory whole.

    def _found(self, memory_id: str) -> tuple[WholeMemory, Sequence[Source], Source | None]:
        """What has an id: all of it, its sources, and where it was said. NotFound: nothing has."""
        fact = self._fact(memory_id)
        if fact is not None:
            place = next((each for each in fact.sources if each.seq), None)
            return _whole(fact), fact.sources, place
        if place := _read_place(memory_id):
            for record in self._records(place, 0):
                return replace(_whole(record), by=shortened(_whole(record).by, 60)), (), place
            raise _not_found(memory_id)
        state = self._space.sessions.get(memory_id)
        if state is None:
            document = self._document(memory_id)
            if document is None:
                raise _not_found(memory_id)
            title = shortened(self._redact(document.title))
            return replace(_whole(document), title=title), document.sources, None
        if not state.remembered:
            raise _not_found(memory_id)
        extraction = self._space.sessions.extraction(memory_id)
        whole = WholeMemory(
            id=memory_id,
            kind=EntryKind.SUMMARY.value,
            text=_came_to(extraction) or "Nothing was learned from this session so far.",
            date=day(state.last_activity_at),
            title=shortened(self._redact(state.key)),
            by=Trust.AGENT.value,
            note=f"It has {state.last_seq:,} records, {memory_id}:1 and so on.",
        )
        return whole, (), Source(session_id=memory_id, seq=1, seq_to=1)

    def _records(self, place: Source, around: int) -> list[Record]:
        """The records that a source names, and so many before and after them."""
        state = self._space.sessions.get(place.session_id)
        if state is None or not state.remembered:
            return []
        after = max(0, place.seq - around - 1)
        until = min(max(place.seq_to, place.seq), place.seq + AROUND_MAX) + around
        records = self._space.sessions.records(place.session_id, after, max(1, until - after))
        return [record for record in records if place.seq - around <= record.seq <= until]


def _whole(memory: Hit | Fact | Record | Extraction | Document | Node) -> WholeMemory:
    """A memory of any kind, as it is: neither shortened nor without secrets."""
    match memory:
        case Fact():
            return WholeMemory(
                id=memory.id,
                kind=EntryKind.FACT.value,
                text=memory.content,
                date=day(memory.valid_from or memory.created_at),
                by=memory.trust.value,
                tags=list(map(shortened, memory.tags)),
                until=day(memory.valid_to),
                about=list(map(shortened, memory.about)),
                happened=days(memory.happened_from, memory.happened_to),
                superseded_by=memory.superseded_by or "",
                caution=_caution(memory.content, memory.trust),
            )
        case Record():
            text, by = _words_of(memory), memory.name or memory.role.value
            return WholeMemory(
                id=f"{memory.session_id}:{memory.seq}",
                kind=EntryKind.RECORD.value,
                text=text,
                date=day(memory.at),
                by=by,
                caution=_caution(text, _TRUST_OF.get(memory.role, Trust.AGENT), by),
            )
        case Extraction():
            return WholeMemory(
                id=memory.session_id,
                kind=EntryKind.SUMMARY.value,
                text=_came_to(memory),
                date=day(memory.source_updated_at),
                by=Trust.AGENT.value,
            )
        case Document():
            is_persons = memory.author.kind is AuthorKind.PERSON
            return WholeMemory(
                id=memory.path,
                kind=EntryKind.DOCUMENT.value,
                text=memory.body,
                date=day(memory.updated_at),
                by=shortened(memory.author.name, 60) or (Trust.USER if is_persons else Trust.AGENT),
                tags=list(map(shortened, memory.tags)),
                version=memory.version,
            )
        case Node():
            about = f": {memory.description}" if memory.description else ""
            return WholeMemory(
                id=memory.path,
                kind=EntryKind.DOCUMENT.value,
                text=f"{memory.title}{about} ({memory.body_chars:,} characters)",
                date=day(memory.updated_at),
            )
        case Hit():
            return _whole_hit(memory)
        case _:
            assert_never(memory)


def _whole_hit(hit: Hit) -> WholeMemory:
    is_titled = hit.kind is EntryKind.DOCUMENT and hit.title
    return WholeMemory(
        id=hit.id,
        kind=hit.kind.value,
        text=f"{hit.title}: {hit.text}" if is_titled else hit.text,
        date=day(hit.at),
        by=hit.speaker or hit.trust.value,
        caution=_caution(f"{hit.title}\n{hit.text}", hit.trust, hit.speaker),
    )


def _caution(text: str, trust: Trust, by: str = "") -> str:
    """A warning about a text that nobody vouches for and that wants something done."""
    return CAUTION if is_quarantined(text, trust, by) else ""


def _read_place(memory_id: str) -> Source | None:
    """Where a record is that an id names; none: it is no record's."""
    session_id, _, given = memory_id.rpartition(":")
    if not session_id or not given.isascii() or not given.isdigit() or len(given) > 18:
        return None
    return Source(session_id=session_id, seq=int(given), seq_to=int(given))


def _no_cursor(cursor: str) -> InvalidValue:
    return InvalidValue(f"{cursor[:100]!r} is no cursor, or leads nowhere: begin without one")


def _not_found(memory_id: str) -> NotFound:
    return NotFound(f"this space remembers nothing by the id {memory_id[:200]!r}")


def _source_id(source: Source) -> str:
    return f"{source.session_id}:{source.seq}" if source.seq else source.session_id


def _came_to(extraction: Extraction | None) -> str:
    return "" if extraction is None else extraction.rollout_summary or extraction.raw_memory


def _words_of(record: Record) -> str:
    """What somebody said, without what was recalled for them."""
    return record.content if record.role is Role.TOOL else without_recalled(record.content)


def _told(readers: Sequence[Reader]) -> str:
    """Who was told what it said before, and may have to be told better."""
    return f"Was told to {'; '.join(each.words for each in readers)}." if readers else ""


def _changed(
    done: str, memory_id: str, text: str = "", kind: EntryKind = EntryKind.FACT, note: str = ""
) -> ChangedMemory:
    return ChangedMemory(done=done, id=memory_id, kind=kind.value, text=shortened(text), note=note)


def _cut(text: str) -> str:
    """Whole lines up to what an answer holds, and how to see the others."""
    if len(text) <= ANSWER_CHARS_MAX:
        return text
    room = ANSWER_CHARS_MAX - 200
    end = text.rfind("\n", 0, room)
    shown = text[: end if end > 0 else room]
    return (
        f"{shown}\n(Truncated: {len(text) - len(shown):,} more characters. View the rest with"
        " view_range, a part of its lines.)"
    )
