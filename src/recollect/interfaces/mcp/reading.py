"""What the reading tools do: find and list in short lines, show one thing whole, give a context.

Index first, detail on demand: a list has the beginnings and the ids, and `get` takes every id that
a list, a source or a citation gives. Only one space is ever looked at, the one that is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from recollect import collection
from recollect.document import AuthorKind, Document, Node
from recollect.documents.paths import read_path
from recollect.documents.scope import is_of_consolidation
from recollect.domain import Record
from recollect.errors import InvalidPath, InvalidValue, NotFound
from recollect.fences import without_recalled
from recollect.importers.homes import Homes
from recollect.interfaces.mcp.keeping import Holding
from recollect.interfaces.mcp.results import (
    ANSWER_CHARS_MAX,
    Block,
    Cited,
    Line,
    Lines,
    Origin,
    Said,
    Whole,
)
from recollect.interfaces.mcp.wording import as_data, as_page, caution_of, day, shortened
from recollect.knowledge import Extraction, Fact, Source, Trust
from recollect.messages import Role
from recollect.recall.usage import named_hit
from recollect.recollection import EntryKind, Hit
from recollect.session import LIST_MAX

LIST_LIMIT = 10
LIST_LIMIT_MAX = 50
FOUND_MAX = 200  # how far a search can be paged
CONTEXT_TOKENS = 800
CONTEXT_TOKENS_MAX = 2000
AROUND_MAX = 20
ID_CHARS_MAX = 2000
BODY_CHARS = 5000  # of a text at once
SAID_CHARS = 300  # of a record around another
QUOTE_CHARS = 200
SOURCES_SHOWN = 6
FRAME_CHARS = 400  # what stands around the lines of an answer
LINE_CHARS = 120  # what a line has besides its texts: names of fields, quotation marks

_WORD_OF = {Role.USER: Trust.USER, Role.TOOL: Trust.TOOL}


def search(
    held: Holding, query: str, *, limit: int, kinds: Sequence[str] | None, cursor: str | None
) -> Lines:
    """The best memories for any text, a page of them."""
    first = _read_offset(cursor)
    last = min(first + limit, FOUND_MAX)
    filters = of_project(held.terms.project)
    hits = held.space.recall(query, last + 1, kinds=kinds, filters=filters)
    found = [(_hit_line(hit), str(at)) for at, hit in enumerate(hits, start=1)]
    return _page(found[first:last], is_more=len(found) > last and last < FOUND_MAX)


def of_project(project: str | None) -> Mapping[str, Any] | None:
    """The filter for what a project may be given: its own, and what belongs to no project."""
    return None if project is None else {"project": [project, None]}


def list_memories(
    held: Holding, kind: str, *, limit: int, tag: str | None, cursor: str | None
) -> Lines:
    """A page of everything of one kind: facts and summaries newest first, documents by path."""
    if tag is not None and kind != EntryKind.FACT:
        raise InvalidValue("only facts are listed by tag")
    match kind:
        case EntryKind.FACT:
            facts = islice(_facts_here(held, _read_fact_cursor(cursor), tag), limit + 1)
            found = [(_fact_line(held, fact), _fact_cursor(fact)) for fact in facts]
        case EntryKind.DOCUMENT:
            nodes = islice(_pages_that_say_something(held, cursor), limit + 1)
            found = [(_node_line(held, node), node.path) for node in nodes]
        case EntryKind.SUMMARY:
            after = _read_summary_cursor(held, cursor)
            summaries = islice(_summaries_here(held, after), limit + 1)
            found = [(_summary_line(held, each), each.session_id) for each in summaries]
        case _:
            raise InvalidValue("a list is of facts, documents or summaries")
    return _page(found[:limit], is_more=len(found) > limit)


def get(held: Holding, memory_id: str, *, around: int, offset: int) -> Whole:
    """One memory whole, by whatever id was given for it. NotFound: this space has none."""
    if len(memory_id) > ID_CHARS_MAX:
        raise InvalidValue(f"an id has at most {ID_CHARS_MAX:,} characters")
    fact = held.space.facts.get(memory_id)
    if fact is not None:
        return _whole_fact(held, fact, around, offset)
    session_id, _, seq = memory_id.rpartition(":")
    if session_id and seq.isascii() and seq.isdigit() and len(seq) < 19:
        return _whole_record(held, session_id, int(seq), around, offset)
    if held.space.sessions.get(memory_id) is not None:
        return _whole_session(held, memory_id, around, offset)
    return _whole_document(held, memory_id, offset)


def context(held: Holding, query: str, *, max_tokens: int, speaker: str | None = None) -> Block:
    """What is worth knowing about a question as a fenced block, within a budget."""
    block = held.space.context(
        query, max_tokens, filters=of_project(held.terms.project), speaker=speaker
    )
    if not block:
        return Block(text="", token_count=0, note="Nothing is remembered about this.")
    if not held.terms.read_only:
        held.space.cite(block)
    cited = [
        Cited(mark=each.mark, id=each.hit.id, kind=each.hit.kind.value) for each in block.citations
    ]
    return Block(text=block.text, token_count=block.token_count, citations=cited)


# pages


def _page(found: Sequence[tuple[Line, str]], *, is_more: bool) -> Lines:
    """As many lines as an answer holds, and the cursor behind the last of them."""
    lines: list[Line] = []
    room = ANSWER_CHARS_MAX - FRAME_CHARS
    for line, _ in found:
        room -= LINE_CHARS + sum(map(len, (line.id, line.text, line.source, line.by, line.caution)))
        if room < 0 and lines:
            break
        lines.append(line)
    is_cut = len(lines) < len(found)
    note = "Truncated to fit: ask for the rest with the cursor." if is_cut else ""
    cursor = found[len(lines) - 1][1] if lines and (is_more or is_cut) else None
    return Lines(memories=lines, next_cursor=cursor, note=note)


def _read_offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > len(str(FOUND_MAX)):
        raise _no_cursor(cursor)
    return int(cursor)


def _fact_cursor(fact: Fact) -> str:
    created = "" if fact.created_at is None else fact.created_at.isoformat()
    return f"{created} {fact.id}"


def _read_fact_cursor(cursor: str | None) -> Fact | None:
    if cursor is None:
        return None
    created, _, fact_id = cursor.partition(" ")
    if not created or not fact_id:
        raise _no_cursor(cursor)
    moment = collection.read_time(created)
    return Fact("", id=collection.check_id(fact_id), created_at=moment)


def _read_summary_cursor(held: Holding, cursor: str | None) -> Extraction | None:
    if cursor is None:
        return None
    found = held.space.sessions.extraction(cursor)
    if found is None:
        raise _no_cursor(cursor)
    return found


def _no_cursor(cursor: str) -> InvalidValue:
    return InvalidValue(f"{cursor[:100]!r} is no cursor, or leads nowhere: begin without one")


def _facts_here(held: Holding, after: Fact | None, tag: str | None) -> Iterator[Fact]:
    """Facts, newest first; in a project its own, and those that belong to none."""
    homes = Homes(held.space, held.terms.project)
    while facts := held.space.facts.list(_page_size(held), after, tag=tag):
        yield from (fact for fact in facts if homes.project is None or homes.has(fact))
        after = facts[-1]


def _summaries_here(held: Holding, after: Extraction | None) -> Iterator[Extraction]:
    """The same of what sessions came to."""
    homes = Homes(held.space, held.terms.project)
    while found := held.space.sessions.extractions(_page_size(held), after):
        yield from (
            each for each in found if homes.project is None or homes.has_session(each.session_id)
        )
        after = found[-1]


def _page_size(held: Holding) -> int:
    """Where most may be left out, as they are of other projects, much is read at once."""
    return LIST_LIMIT_MAX if held.terms.project is None else LIST_MAX


def _pages_that_say_something(held: Holding, after: str | None) -> Iterator[Node]:
    while nodes := held.space.documents.tree(limit=LIST_LIMIT_MAX, after=after):
        said = (node for node in nodes if node.body_chars or node.description)
        yield from (node for node in said if _is_here(held, node))
        after = nodes[-1].path


def _is_here(held: Holding, node: Node) -> bool:
    """In a project what consolidation wrote is left out: it is of all projects at once."""
    return held.terms.project is None or not is_of_consolidation(read_path(node.path))


# lines


def _hit_line(hit: Hit) -> Line:
    by = shortened(hit.speaker or hit.trust.value, 60)
    title = f"{hit.title}: " if hit.kind is EntryKind.DOCUMENT and hit.title else ""
    return Line(
        id=hit.id,
        kind=hit.kind.value,
        text=shortened(f"{title}{hit.text}"),
        date=day(hit.at),
        source=_first_source(hit.sources),
        by=by,
        caution=caution_of(f"{hit.title}\n{hit.text}", hit.trust, hit.speaker),
    )


def _fact_line(held: Holding, fact: Fact) -> Line:
    return Line(
        id=fact.id,
        kind=EntryKind.FACT.value,
        text=shortened(held.redact(fact.content)),
        date=day(fact.valid_from or fact.created_at),
        source=_first_source(fact.sources),
        by=fact.trust.value,
        caution=caution_of(fact.content, fact.trust),
    )


def _node_line(held: Holding, node: Node) -> Line:
    about = f": {node.description}" if node.description else ""
    return Line(
        id=node.path,
        kind=EntryKind.DOCUMENT.value,
        text=shortened(held.redact(f"{node.title}{about} ({node.body_chars:,} characters)")),
        date=day(node.updated_at),
    )


def _summary_line(held: Holding, extraction: Extraction) -> Line:
    return Line(
        id=extraction.session_id,
        kind=EntryKind.SUMMARY.value,
        text=shortened(held.redact(extraction.rollout_summary or extraction.raw_memory)),
        date=day(extraction.source_updated_at),
        by=Trust.AGENT.value,
    )


def _first_source(sources: Sequence[Source]) -> str:
    return _source_id(sources[0]) if sources else ""


def _source_id(source: Source) -> str:
    return f"{source.session_id}:{source.seq}" if source.seq else source.session_id


# one memory whole


def _whole_fact(held: Holding, fact: Fact, around: int, offset: int) -> Whole:
    place = next((each for each in fact.sources if each.seq), None)
    return _whole(
        held,
        Whole(
            id=fact.id,
            kind=EntryKind.FACT.value,
            text=fact.content,
            date=day(fact.valid_from or fact.created_at),
            by=fact.trust.value,
            tags=list(map(shortened, fact.tags)),
            until=day(fact.valid_to),
            superseded_by=fact.superseded_by or "",
            caution=caution_of(fact.content, fact.trust),
        ),
        fact.sources,
        _around(held, place, around),
        offset,
    )


def _whole_record(held: Holding, session_id: str, seq: int, around: int, offset: int) -> Whole:
    place = Source(session_id=session_id, seq=seq, seq_to=seq)
    records = _records(held, place, around)
    record = next((each for each in records if each.seq == seq), None)
    if record is None:
        raise _not_found(f"{session_id}:{seq}")
    text, by = _words_of(record), shortened(record.name or record.role.value, 60)
    return _whole(
        held,
        Whole(
            id=f"{session_id}:{seq}",
            kind=EntryKind.RECORD.value,
            text=text,
            date=day(record.at),
            by=by,
            caution=caution_of(text, _trust_of(record), by),
        ),
        (),
        [_said(held, each) for each in records if each.seq != seq],
        offset,
        place,
    )


def _whole_session(held: Holding, session_id: str, around: int, offset: int) -> Whole:
    """What a session came to; `around` shows how it begins."""
    state = held.space.sessions.get(session_id)
    if state is None or not state.remembered:
        raise _not_found(session_id)
    extraction = held.space.sessions.extraction(session_id)
    text = "" if extraction is None else extraction.rollout_summary or extraction.raw_memory
    place = Source(session_id=session_id, seq=1, seq_to=1)
    return _whole(
        held,
        Whole(
            id=session_id,
            kind=EntryKind.SUMMARY.value,
            text=text or "Nothing was learned from this session so far.",
            date=day(state.last_activity_at),
            title=shortened(held.redact(state.key)),
            by=Trust.AGENT.value,
            note=f"It has {state.last_seq:,} records, {session_id}:1 and so on.",
        ),
        (),
        _around(held, place, around),
        offset,
        place,
    )


def _whole_document(held: Holding, path: str, offset: int) -> Whole:
    document = find_document(held, path)
    if document is None:
        raise _not_found(path)
    is_persons = document.author.kind is AuthorKind.PERSON
    return _whole(
        held,
        Whole(
            id=document.path,
            kind=EntryKind.DOCUMENT.value,
            text=document.body,
            date=day(document.updated_at),
            title=shortened(held.redact(document.title)),
            by=shortened(document.author.name, 60) or (Trust.USER if is_persons else Trust.AGENT),
            tags=list(map(shortened, document.tags)),
            version=document.version,
        ),
        document.sources,
        [],
        offset,
    )


def find_document(held: Holding, path: str) -> Document | None:
    """The document at a path or with an id; none where no document can be."""
    try:
        return held.space.documents.find(path)
    except InvalidPath:
        return None


def _whole(
    held: Holding,
    whole: Whole,
    sources: Sequence[Source],
    around: Sequence[Said],
    offset: int,
    place: Source | None = None,
) -> Whole:
    """As much of it as an answer holds: its text first, then its sources, then what is around.

    What has no sources because it was said itself was said at `place`.
    """
    shape = as_page if whole.kind == EntryKind.DOCUMENT else as_data
    text = shape(held.redact(whole.text))
    shown = text[offset : offset + BODY_CHARS]
    end = offset + len(shown)
    notes = [whole.note] if whole.note else []
    if offset and not shown:
        raise InvalidValue(f"its text ends at {len(text):,}, before this offset")
    if end < len(text):
        notes.append(
            f"Truncated: characters {offset:,} to {end:,} of {len(text):,}; ask for the rest with"
            f" offset {end}."
        )
    origins = [
        Origin(id=_source_id(each), quote=shortened(held.redact(each.quote), QUOTE_CHARS))
        for each in sources[:SOURCES_SHOWN]
    ]
    if len(sources) > len(origins):
        notes.append(f"It has {len(sources) - len(origins):,} more sources.")
    if not offset and not held.terms.read_only:
        told = sources if place is None else (place,)
        held.space.opened(named_hit(EntryKind(whole.kind), whole.id, told))
    taken = FRAME_CHARS + len(shown) + sum(_chars(each.id, each.quote) for each in origins)
    kept = list(_fitting(around, ANSWER_CHARS_MAX - taken - sum(map(len, whole.tags))))
    if len(kept) < len(around):
        notes.append("Not all that is around it fits: read those records by their ids.")
    return whole.model_copy(
        update={
            "text": shown,
            "sources": origins,
            "around": kept,
            "next_offset": end if end < len(text) else None,
            "note": " ".join(notes),
        }
    )


def _fitting(around: Iterable[Said], room: int) -> Iterator[Said]:
    for each in around:
        room -= _chars(each.id, each.text, each.by, each.caution)
        if room < 0:
            return
        yield each


def _chars(*texts: str) -> int:
    return LINE_CHARS + sum(map(len, texts))


def _around(held: Holding, place: Source | None, around: int) -> list[Said]:
    """The records that a source names, and so many before and after them."""
    if place is None or not around:
        return []
    return [_said(held, record) for record in _records(held, place, around)]


def _records(held: Holding, place: Source, around: int) -> list[Record]:
    state = held.space.sessions.get(place.session_id)
    if state is None or not state.remembered:
        return []
    after = max(0, place.seq - around - 1)
    until = min(max(place.seq_to, place.seq), place.seq + AROUND_MAX) + around
    records = held.space.sessions.records(place.session_id, after, max(1, until - after))
    return [record for record in records if record.seq <= until]


def _said(held: Holding, record: Record) -> Said:
    text = _words_of(record)
    by = shortened(record.name or record.role.value, 60)
    return Said(
        id=f"{record.session_id}:{record.seq}",
        by=by,
        date=day(record.at),
        text=shortened(held.redact(text), SAID_CHARS),
        caution=caution_of(text, _trust_of(record), by),
    )


def _words_of(record: Record) -> str:
    """What somebody said, without what was recalled for them."""
    is_tool = record.role is Role.TOOL
    return record.content if is_tool else without_recalled(record.content)


def _trust_of(record: Record) -> Trust:
    return _WORD_OF.get(record.role, Trust.AGENT)


def _not_found(memory_id: str) -> NotFound:
    return NotFound(f"this space remembers nothing by the id {memory_id[:200]!r}")
