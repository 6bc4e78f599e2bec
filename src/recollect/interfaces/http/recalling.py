"""Recall over HTTP: hits, a block for a prompt, and what became of it; no state is kept between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect import collection
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import LIMIT, SPACE, Route
from recollect.interfaces.http.schemas import (
    COUNT,
    FREE,
    MOMENT,
    Schema,
    listed,
    maybe,
    obj,
    one_of,
    text,
    whole,
)
from recollect.interfaces.views import schema_of, view
from recollect.knowledge import Source
from recollect.recall.usage import named_hit
from recollect.recollection import Citation, Context, EntryKind, Hit, Omission
from recollect.store.key_protocol import Scope

QUERY_CHARS_MAX = 100_000
TOKENS_MAX = 1_000_000
CITED_MAX = 1000
USED_MAX = 1000

ASKED: Mapping[str, Schema] = {
    "query": text(QUERY_CHARS_MAX),
    "kinds": maybe(listed(one_of(EntryKind), len(EntryKind))),
    "filters": maybe(FREE),
    "as_of": maybe(MOMENT),
    "speaker": maybe(text()),
}
SENT_HIT = obj(
    {
        "id": text(),
        "kind": one_of(EntryKind),
        "sources": listed(
            obj({"session_id": text(), "seq": whole()}, more=True),
            CITED_MAX,
        ),
    },
    needs=("id", "kind"),
    more=True,
)
BLOCK = obj(
    {
        "id": text(collection.KEY_BYTES_MAX),
        "citations": listed(
            obj({"mark": text(), "hit": SENT_HIT}, needs=("mark", "hit"), more=True), CITED_MAX
        ),
        "omitted": listed(
            obj({"hit": SENT_HIT, "instead": maybe(text())}, needs=("hit",), more=True), CITED_MAX
        ),
    },
    needs=("id", "citations"),
    more=True,
)


def recall(ask: Ask) -> Reply:
    hits = ask.space.recall(ask.body["query"], ask.body.get("limit", 10), **_asked(ask))
    return Reply(content={"hits": view(hits)})


def context(ask: Ask) -> Reply:
    block = ask.space.context(
        ask.body["query"],
        ask.body.get("max_tokens"),
        max_facts=ask.body.get("max_facts", 10),
        beside=ask.body.get("beside"),
        **_asked(ask),
    )
    return Reply(content=view(block))


def _asked(ask: Ask) -> dict[str, Any]:
    return {name: ask.body.get(name) for name in ("kinds", "filters", "as_of", "speaker")}


def cite(ask: Ask) -> Reply:
    counted = ask.space.cite(
        _block(ask.body["context"]), ask.body.get("used") or (), turn=ask.body.get("turn")
    )
    return Reply(content={"counted": counted})


def _block(given: Mapping[str, Any]) -> Context:
    """A block as it was answered, sent back; of its hits only what they are counts."""
    return Context(
        text="",
        id=collection.check_id(given["id"]),
        citations=tuple(
            Citation(mark=each["mark"], hit=_hit(each["hit"])) for each in given["citations"]
        ),
        omitted=tuple(
            Omission(hit=_hit(each["hit"]), reason="", instead=each.get("instead") or "")
            for each in given.get("omitted", ())
        ),
    )


def _hit(given: Mapping[str, Any]) -> Hit:
    return named_hit(
        EntryKind(given["kind"]),
        collection.check_id(given["id"]),
        (
            Source(
                session_id=collection.check_id(each["session_id"]),
                seq=each["seq"],
                seq_to=each["seq"],
            )
            for each in given.get("sources", ())
        ),
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path=f"{SPACE}/recall",
        name="recall",
        summary="What is remembered about any text, best first, with sources and reasons.",
        handler=recall,
        body=obj({**ASKED, "limit": LIMIT}, needs=("query",)),
        answers={200: obj({"hits": listed(schema_of(Hit))})},
    ),
    Route(
        method="POST",
        path=f"{SPACE}/context",
        name="context",
        summary="The same as a fenced block for a prompt, within a budget.",
        handler=context,
        body=obj(
            {
                **ASKED,
                "max_tokens": whole(0, TOKENS_MAX),
                "max_facts": whole(0, 1000),
                "beside": maybe(text()),
            },
            needs=("query",),
        ),
        answers={200: schema_of(Context)},
    ),
    Route(
        method="POST",
        path=f"{SPACE}/cite",
        name="cite",
        summary="Tell what became of a block: send it back, and what a model used of it.",
        handler=cite,
        scope=Scope.WRITE,
        body=obj(
            {
                "context": BLOCK,
                "used": maybe(listed(text(), USED_MAX)),
                "turn": maybe(text()),
            },
            needs=("context",),
        ),
        answers={200: obj({"counted": COUNT})},
    ),
)
