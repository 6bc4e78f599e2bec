"""Recall over HTTP: hits, a block for a prompt, and what became of it; no state is kept between."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from recollect import collection
from recollect.interfaces.http.binding import Count, Json, Limit, Moment
from recollect.interfaces.http.messages import Request
from recollect.interfaces.http.route import SPACE, Routes
from recollect.interfaces.views import view
from recollect.knowledge import Source
from recollect.recall.usage import named_hit
from recollect.recollection import Citation, Context, EntryKind, Hit, Omission

ITEMS_MAX = 1000

ROUTES = Routes()

Query = Annotated[str, Meta(max_length=100_000)]
Kinds = Annotated[list[EntryKind], Meta(max_length=len(EntryKind))]


class SentSource(Struct):
    """Where a hit of a block that is sent back comes from."""

    session_id: str
    seq: Count


class SentHit(Struct):
    """A hit of a block that is sent back: what it is counts, not what it said."""

    id: str
    kind: EntryKind
    sources: Annotated[list[SentSource], Meta(max_length=ITEMS_MAX)] = []

    def hit(self) -> Hit:
        return named_hit(
            self.kind,
            collection.check_id(self.id),
            (
                Source(
                    session_id=collection.check_id(each.session_id), seq=each.seq, seq_to=each.seq
                )
                for each in self.sources
            ),
        )


class SentCitation(Struct):
    """Something that stood in a block."""

    mark: str
    hit: SentHit


class SentOmission(Struct):
    """Something that was left out of it."""

    hit: SentHit
    instead: str | None = None


class SentContext(Struct):
    """A block as it was answered."""

    id: Annotated[str, Meta(max_length=collection.KEY_BYTES_MAX)]
    citations: Annotated[list[SentCitation], Meta(max_length=ITEMS_MAX)]
    omitted: Annotated[list[SentOmission], Meta(max_length=ITEMS_MAX)] = []

    def block(self) -> Context:
        return Context(
            text="",
            id=collection.check_id(self.id),
            citations=tuple(
                Citation(mark=each.mark, hit=each.hit.hit()) for each in self.citations
            ),
            omitted=tuple(
                Omission(hit=each.hit.hit(), reason="", instead=each.instead or "")
                for each in self.omitted
            ),
        )


@ROUTES("POST", f"{SPACE}/recall", answer={"hits": list[Hit]})
def recall(
    request: Request,
    query: Query,
    limit: Limit = 10,
    kinds: Kinds | None = None,
    filters: Json | None = None,
    as_of: Moment | None = None,
    speaker: str | None = None,
) -> Json:
    """What is remembered about any text, best first, with sources and reasons."""
    hits = request.space.recall(
        query, limit, kinds=kinds, filters=filters, as_of=as_of, speaker=speaker
    )
    return {"hits": view(hits)}


@ROUTES("POST", f"{SPACE}/context")
def context(
    request: Request,
    query: Query,
    max_tokens: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None,
    max_facts: Annotated[int, Meta(ge=0, le=1000)] = 10,
    beside: str | None = None,
    kinds: Kinds | None = None,
    filters: Json | None = None,
    as_of: Moment | None = None,
    speaker: str | None = None,
) -> Context:
    """The same as a fenced block for a prompt, within a budget."""
    return request.space.context(
        query,
        max_tokens,
        max_facts=max_facts,
        beside=beside,
        kinds=kinds,
        filters=filters,
        as_of=as_of,
        speaker=speaker,
    )


@ROUTES("POST", f"{SPACE}/cite", answer={"counted": int})
def cite(
    request: Request,
    context: SentContext,
    used: Annotated[list[str], Meta(max_length=ITEMS_MAX)] | None = None,
    turn: str | None = None,
) -> Json:
    """Tell what became of a block: send it back, and what a model used of it."""
    return {"counted": request.space.cite(context.block(), used or (), turn=turn)}
