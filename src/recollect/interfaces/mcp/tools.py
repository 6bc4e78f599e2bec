"""The tools: each public method of `Tools` is one, by its signature and its docstring.

Index first, detail on demand: lists have beginnings and ids, and `get_memory` takes every id that a
list, a source or a citation gives. No argument names a space: it is the server's. What an agent
adds is that agent's word, and belongs to the server's project unless it is meant for everywhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Literal

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
    caution_of,
    day,
    shortened,
    visible,
)
from recollect.memory import Memory
from recollect.messages import Role
from recollect.quoting import without_recalled
from recollect.recall.usage import named_hit
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.types.facts import UNCHANGED, Extraction, Fact, Source, Trust
from recollect.types.pages import Author, AuthorKind, Document
from recollect.types.recall import EntryKind
from recollect.types.records import Record

LIST_LIMIT_MAX = 50
FOUND_MAX = 200  # how far a search can be paged
AROUND_MAX = 20
ID_CHARS_MAX = 2000
BODY_CHARS = 5000  # of a text at once
RECORD_CHARS = 300  # of a record around another
QUOTE_CHARS = 200
SOURCES_SHOWN = 6
FRAME_CHARS = 400  # what stands around the lines of an answer
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
        first = _read_offset(cursor)
        last = min(first + limit, FOUND_MAX)
        found: list[tuple[MemoryLine, str]] = []
        for at, hit in enumerate(
            self._space.recall(query, last + 1, kinds=kinds, filters=self._of_project), start=1
        ):
            title = f"{hit.title}: " if hit.kind is EntryKind.DOCUMENT and hit.title else ""
            line = MemoryLine(
                id=hit.id,
                kind=hit.kind.value,
                text=shortened(f"{title}{hit.text}"),
                date=day(hit.at),
                source=_source_id(hit.sources[0]) if hit.sources else "",
                by=shortened(hit.speaker or hit.trust.value, 60),
                caution=caution_of(f"{hit.title}\n{hit.text}", hit.trust, hit.speaker),
            )
            found.append((line, str(at)))
        return _page(found[first:last], is_more=len(found) > last and last < FOUND_MAX)

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
        fact = self._space.facts.get(id)
        if fact is not None:
            return self._whole_fact(fact, around, offset)
        session_id, _, seq = id.rpartition(":")
        if session_id and seq.isascii() and seq.isdigit() and len(seq) < 19:
            return self._whole_record(session_id, int(seq), around, offset)
        if self._space.sessions.get(id) is not None:
            return self._whole_session(id, around, offset)
        return self._whole_document(id, offset)

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
        return _page(found[:limit], is_more=len(found) > limit)

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
        is_known = fact.created_at is not None and fact.created_at < began
        if home is not None and project is None:  # what held in one project holds in all
            metadata = {name: each for name, each in fact.metadata.items() if name != PROJECT}
            fact = self._space.facts.update(fact.id, metadata=metadata)
        elif home is not None and home != project:
            # The same rule of two projects is two facts, as with learned ones: it is named.
            fact = self._add(f"In {named(place_of(project))}: {text}", tags, project)
            is_known = fact.created_at is not None and fact.created_at < began
        return _changed("already known" if is_known else "stored", fact)

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
        fact = self._space.facts.get(id)
        if fact is not None:
            edited = self._space.facts.update(
                id,
                text,
                tags=UNCHANGED if tags is None else tuple(tags),
                trust=Trust.AGENT if fact.trust is Trust.USER else UNCHANGED,
            )
            return _changed("updated", edited)
        document = self._own_documents.write(
            self._document_path(id), text, tags=tags, reason=f"updated by {self._terms.agent}"
        )
        return ChangedMemory(
            done="updated",
            id=document.path,
            kind=EntryKind.DOCUMENT.value,
            text=shortened(document.body),
            note=f"This is version {document.version}; earlier ones are kept.",
        )

    def delete_memory(self, id: Id) -> ChangedMemory:  # noqa: A002
        """Delete a fact or a document for good reason: the user asks for it, or it was never true.
        What has changed is better updated."""
        self._check_writable()
        if self._space.facts.get(id) is not None:
            self._space.facts.delete(id)
            return ChangedMemory(done="deleted", id=id, kind=EntryKind.FACT.value)
        path = self._document_path(id)
        self._own_documents.delete(path, reason=f"deleted by {self._terms.agent}")
        note = "It can be restored: recollect docs restore."
        return ChangedMemory(done="deleted", id=path, kind=EntryKind.DOCUMENT.value, note=note)

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
        session_id, _, seq = memory_id.rpartition(":")
        session = session_id if session_id and seq.isdigit() else memory_id
        if self._space.sessions.get(session) is not None:
            raise InvalidValue(
                "what was said in a session stays as it was said; only facts and documents change"
            )
        raise NotFound(f"this space has no fact or document {memory_id[:200]!r}")

    # Lists: each line with the cursor behind it.

    def _facts(self, cursor: str | None, tag: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """Facts, newest first; in a project its own, and those that belong to none."""
        homes, after = Homes(self._space, self._terms.project), _read_fact_cursor(cursor)
        while facts := self._space.facts.list(self._page_size, after, tag=tag):
            for fact in facts:
                if homes.project is None or homes.has(fact):
                    created = "" if fact.created_at is None else fact.created_at.isoformat()
                    yield self._fact_line(fact), f"{created} {fact.id}"
            after = facts[-1]

    def _fact_line(self, fact: Fact) -> MemoryLine:
        return MemoryLine(
            id=fact.id,
            kind=EntryKind.FACT.value,
            text=shortened(self._redact(fact.content)),
            date=day(fact.valid_from or fact.created_at),
            source=_source_id(fact.sources[0]) if fact.sources else "",
            by=fact.trust.value,
            caution=caution_of(fact.content, fact.trust),
        )

    def _documents(self, cursor: str | None, _: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """Documents that say something; in a project none of consolidation, which is of all."""
        after, is_anywhere = cursor, self._terms.project is None
        while nodes := self._space.documents.tree(limit=LIST_LIMIT_MAX, after=after):
            for node in nodes:
                is_here = is_anywhere or not is_of_consolidation(read_path(node.path))
                if is_here and (node.body_chars or node.description):
                    about = f": {node.description}" if node.description else ""
                    text = f"{node.title}{about} ({node.body_chars:,} characters)"
                    line = MemoryLine(
                        id=node.path,
                        kind=EntryKind.DOCUMENT.value,
                        text=shortened(self._redact(text)),
                        date=day(node.updated_at),
                    )
                    yield line, node.path
            after = nodes[-1].path

    def _summaries(self, cursor: str | None, _: str | None) -> Iterator[tuple[MemoryLine, str]]:
        """What sessions came to, newest first; in a project of its sessions, and those of none."""
        homes, after = Homes(self._space, self._terms.project), self._read_summary_cursor(cursor)
        while found := self._space.sessions.extractions(self._page_size, after):
            for each in found:
                if homes.project is None or homes.has_session(each.session_id):
                    line = MemoryLine(
                        id=each.session_id,
                        kind=EntryKind.SUMMARY.value,
                        text=shortened(self._redact(each.rollout_summary or each.raw_memory)),
                        date=day(each.source_updated_at),
                        by=Trust.AGENT.value,
                    )
                    yield line, each.session_id
            after = found[-1]

    def _read_summary_cursor(self, cursor: str | None) -> Extraction | None:
        found = None if cursor is None else self._space.sessions.extraction(cursor)
        if found is None and cursor is not None:
            raise _no_cursor(cursor)
        return found

    @property
    def _page_size(self) -> int:
        """Where most may be left out, as they are of other projects, much is read at once."""
        return LIST_LIMIT_MAX if self._terms.project is None else LIST_MAX

    # One memory whole.

    def _whole_fact(self, fact: Fact, around: int, offset: int) -> WholeMemory:
        place = next((each for each in fact.sources if each.seq), None)
        whole = WholeMemory(
            id=fact.id,
            kind=EntryKind.FACT.value,
            text=fact.content,
            date=day(fact.valid_from or fact.created_at),
            by=fact.trust.value,
            tags=list(map(shortened, fact.tags)),
            until=day(fact.valid_to),
            superseded_by=fact.superseded_by or "",
            caution=caution_of(fact.content, fact.trust),
        )
        records = [] if place is None or not around else self._records(place, around)
        return self._whole(whole, offset, fact.sources, records)

    def _whole_record(self, session_id: str, seq: int, around: int, offset: int) -> WholeMemory:
        place = Source(session_id=session_id, seq=seq, seq_to=seq)
        records = self._records(place, around)
        record = next((each for each in records if each.seq == seq), None)
        if record is None:
            raise _not_found(f"{session_id}:{seq}")
        text, line = _words_of(record), self._record_line(record)
        whole = WholeMemory(
            id=line.id,
            kind=line.kind,
            text=text,
            date=line.date,
            by=line.by,
            caution=line.caution,
        )
        others = [each for each in records if each.seq != seq]
        return self._whole(whole, offset, (), others, said_at=place)

    def _whole_session(self, session_id: str, around: int, offset: int) -> WholeMemory:
        """What a session came to; `around` shows how it begins."""
        state = self._space.sessions.get(session_id)
        if state is None or not state.remembered:
            raise _not_found(session_id)
        extraction = self._space.sessions.extraction(session_id)
        text = "" if extraction is None else extraction.rollout_summary or extraction.raw_memory
        place = Source(session_id=session_id, seq=1, seq_to=1)
        whole = WholeMemory(
            id=session_id,
            kind=EntryKind.SUMMARY.value,
            text=text or "Nothing was learned from this session so far.",
            date=day(state.last_activity_at),
            title=shortened(self._redact(state.key)),
            by=Trust.AGENT.value,
            note=f"It has {state.last_seq:,} records, {session_id}:1 and so on.",
        )
        records = self._records(place, around) if around else []
        return self._whole(whole, offset, (), records, said_at=place)

    def _whole_document(self, path: str, offset: int) -> WholeMemory:
        document = self._document(path)
        if document is None:
            raise _not_found(path)
        is_persons = document.author.kind is AuthorKind.PERSON
        whole = WholeMemory(
            id=document.path,
            kind=EntryKind.DOCUMENT.value,
            text=document.body,
            date=day(document.updated_at),
            title=shortened(self._redact(document.title)),
            by=shortened(document.author.name, 60) or (Trust.USER if is_persons else Trust.AGENT),
            tags=list(map(shortened, document.tags)),
            version=document.version,
        )
        return self._whole(whole, offset, document.sources, [])

    def _whole(
        self,
        whole: WholeMemory,
        offset: int,
        sources: Sequence[Source],
        records: Sequence[Record],
        *,
        said_at: Source | None = None,
    ) -> WholeMemory:
        """As much of it as an answer holds: its text first, then its sources, then what is around.

        What has no sources because it was said itself was said at `said_at`.
        """
        shape = as_page if whole.kind == EntryKind.DOCUMENT else as_data
        text = shape(self._redact(whole.text))
        shown = text[offset : offset + BODY_CHARS]
        end = offset + len(shown)
        notes = [whole.note]
        if offset and not shown:
            raise InvalidValue(f"its text ends at {len(text):,}, before this offset")
        if end < len(text):
            notes.append(
                f"Truncated: characters {offset:,} to {end:,} of {len(text):,}; ask for the rest"
                f" with offset {end}."
            )
        quotes = [
            SourceQuote(id=_source_id(each), quote=shortened(self._redact(each.quote), QUOTE_CHARS))
            for each in sources[:SOURCES_SHOWN]
        ]
        if len(sources) > len(quotes):
            notes.append(f"It has {len(sources) - len(quotes):,} more sources.")
        if not offset and not self._terms.read_only:
            told = sources if said_at is None else (said_at,)
            self._space.opened(named_hit(EntryKind(whole.kind), whole.id, told))
        taken = FRAME_CHARS + len(shown) + sum(120 + len(e.id) + len(e.quote) for e in quotes)
        around = list(map(self._record_line, records))
        kept = _fitting(around, ANSWER_CHARS_MAX - taken - sum(map(len, whole.tags)))
        if len(kept) < len(around):
            notes.append("Not all that is around it fits: read those records by their ids.")
        return replace(
            whole,
            text=shown,
            sources=quotes,
            around=kept,
            next_offset=end if end < len(text) else None,
            note=" ".join(filter(None, notes)),
        )

    def _records(self, place: Source, around: int) -> list[Record]:
        """The records that a source names, and so many before and after them."""
        state = self._space.sessions.get(place.session_id)
        if state is None or not state.remembered:
            return []
        after = max(0, place.seq - around - 1)
        until = min(max(place.seq_to, place.seq), place.seq + AROUND_MAX) + around
        records = self._space.sessions.records(place.session_id, after, max(1, until - after))
        return [record for record in records if record.seq <= until]

    def _record_line(self, record: Record) -> MemoryLine:
        text = _words_of(record)
        by = shortened(record.name or record.role.value, 60)
        return MemoryLine(
            id=f"{record.session_id}:{record.seq}",
            kind=EntryKind.RECORD.value,
            text=shortened(self._redact(text), RECORD_CHARS),
            date=day(record.at),
            by=by,
            caution=caution_of(text, _TRUST_OF.get(record.role, Trust.AGENT), by),
        )


def _page(found: Sequence[tuple[MemoryLine, str]], *, is_more: bool) -> MemoryPage:
    """As many lines as an answer holds, and the cursor behind the last of them."""
    given = [line for line, _ in found]
    lines = _fitting(given, ANSWER_CHARS_MAX - FRAME_CHARS) or given[:1]
    is_cut = len(lines) < len(given)
    return MemoryPage(
        memories=lines,
        next_cursor=found[len(lines) - 1][1] if lines and (is_more or is_cut) else None,
        note="Truncated to fit: ask for the rest with the cursor." if is_cut else "",
    )


def _fitting(lines: Sequence[MemoryLine], room: int) -> list[MemoryLine]:
    kept: list[MemoryLine] = []
    for each in lines:
        room -= each.chars()
        if room < 0:
            break
        kept.append(each)
    return kept


def _read_offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > len(str(FOUND_MAX)):
        raise _no_cursor(cursor)
    return int(cursor)


def _read_fact_cursor(cursor: str | None) -> Fact | None:
    if cursor is None:
        return None
    created, _, fact_id = cursor.partition(" ")
    if not created or not fact_id:
        raise _no_cursor(cursor)
    moment = collection.read_time(created)
    return Fact("", id=collection.check_id(fact_id), created_at=moment)


def _no_cursor(cursor: str) -> InvalidValue:
    return InvalidValue(f"{cursor[:100]!r} is no cursor, or leads nowhere: begin without one")


def _not_found(memory_id: str) -> NotFound:
    return NotFound(f"this space remembers nothing by the id {memory_id[:200]!r}")


def _source_id(source: Source) -> str:
    return f"{source.session_id}:{source.seq}" if source.seq else source.session_id


def _words_of(record: Record) -> str:
    """What somebody said, without what was recalled for them."""
    return record.content if record.role is Role.TOOL else without_recalled(record.content)


def _changed(done: str, fact: Fact) -> ChangedMemory:
    text = shortened(fact.content)
    return ChangedMemory(done=done, id=fact.id, kind=EntryKind.FACT.value, text=text)


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
