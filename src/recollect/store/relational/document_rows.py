"""Converts rows to documents, versions and references, and the sources of a version to a row."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recollect.clock import from_micros
from recollect.store.relational import rows
from recollect.store.relational.database import Connection, Row
from recollect.store.relational.indexing import erase_entries
from recollect.types.facts import Source
from recollect.types.pages import (
    Author,
    AuthorKind,
    DeletedDocument,
    Document,
    DocumentEvent,
    Node,
    Reference,
    Version,
)
from recollect.types.recall import EntryKind


def purge_documents(c: Connection, space: str, keys: Sequence[int]) -> None:
    """Remove documents with their versions; what referred to them refers to nothing."""
    names = [{"space": space, "key": key} for key in keys]
    c.run_many("purge_usages", names)
    c.run_many("drop_inputs", names)
    c.run_many("free_references", names)
    erase_entries(c, EntryKind.DOCUMENT, "purge_document", *names)


def purge_deleted(c: Connection, space: str, document_id: str) -> int | None:
    """Remove a document that was deleted; its last version. None: there is no such document."""
    row = c.row("get_document", {"space": space, "id": document_id})
    if row is None or row[13] is None:
        return None
    purge_documents(c, space, [row[0]])
    return int(row[10])


def raise_versions(c: Connection, space: str, version: int) -> None:
    """Let no document begin at or below the version of one that is gone for good."""
    c.run("raise_versions", {"space": space, "version": version})


def document(row: Row) -> Document:
    sources, facts = read_provenance(row[17])
    return Document(
        id=row[1],
        space=row[2],
        path=row[3],
        title=row[5],
        description=row[6],
        body=row[7],
        tags=tuple(json.loads(row[8])),
        links=tuple(json.loads(row[9])),
        version=row[10],
        created_at=from_micros(row[11]),
        updated_at=from_micros(row[12]),
        deleted_at=rows.moment(row[13]),
        author=Author(AuthorKind(row[14]), row[15]),
        reason=row[16],
        sources=sources,
        facts=facts,
        key=row[0],
    )


node = rows.reader(Node)
reference = rows.reader(Reference)
deleted_document = rows.reader(DeletedDocument)


def version(row: Row) -> Version:
    sources, facts = read_provenance(row[11])
    return Version(
        number=row[0],
        event=DocumentEvent(row[1]),
        path=row[2],
        title=row[3],
        description=row[4],
        body=row[5],
        tags=tuple(json.loads(row[6])),
        links=tuple(json.loads(row[7])),
        author=Author(AuthorKind(row[8]), row[9]),
        reason=row[10],
        sources=sources,
        facts=facts,
        at=from_micros(row[12]),
    )


def read_provenance(text: str) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    if not text:
        return (), ()
    grounds = json.loads(text)
    return tuple(map(rows.source, grounds["sources"])), tuple(grounds["facts"])


def provenance(sources: Sequence[Source], facts: Sequence[str]) -> str:
    """Empty for none, so that the versions that rest on something are found without the others."""
    if not sources and not facts:
        return ""
    grounds = {
        "sources": [[each.session_id, each.seq, each.seq_to, each.quote] for each in sources],
        "facts": list(facts),
    }
    return json.dumps(grounds, ensure_ascii=False)
