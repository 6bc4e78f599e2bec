"""Documents over HTTP: the tree, one document, its versions; If-Match is the version it is about.

A document is named by the parameter `path` (or its id), since a path in a path is not kept by every
proxy. Its version is its ETag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.document import DeletedDocument, Document, Node, Reference, Version
from recollect.documents.editing import OnReferences
from recollect.documents.paths import DEPTH_MAX, PATH_CHARS_MAX
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import (
    LIMIT,
    PAGED,
    SPACE,
    Route,
    look,
    made_cursor,
    page,
    paged,
    read_cursor,
)
from recollect.interfaces.http.schemas import (
    BOOL,
    TEXT,
    listed,
    maybe,
    obj,
    one_of,
    text,
    whole,
)
from recollect.interfaces.views import schema_of, view
from recollect.store.key_protocol import Scope

PAGE = 100
VERSIONS_PAGE = 50
QUERY_CHARS_MAX = 10_000

ONE = f"{SPACE}/document"
PATH = text(PATH_CHARS_MAX, "As in ~/memory/people/Ana, or the document's id.")
REASON = text()
TEXTS = maybe(listed(text(), 1000))


def _told(document: Document, status: int = 200) -> Reply:
    return Reply(
        content=view(document),
        status=status,
        headers={"ETag": f'"{document.version}"'},
        ids=(document.id,),
    )


def changed_document(ask: Ask, ids: Sequence[str]) -> Reply:
    return _told(ask.space.documents.read(ids[0]))


def _because(ask: Ask) -> dict[str, Any]:
    return {"expected_version": ask.expected_version, "reason": ask.body.get("reason", "")}


def document_tree(ask: Ask) -> Reply:
    after = None
    if "cursor" in ask.query:
        [after] = read_cursor(ask.query["cursor"], str)
    limit = ask.query.get("limit", PAGE)
    depth = ask.query.get("depth", DEPTH_MAX)
    found = ask.space.documents.tree(ask.query.get("path"), depth=depth, limit=limit, after=after)
    following = made_cursor(found[-1].path) if found and len(found) == limit else None
    return page("documents", view(found), following)


def deleted_documents(ask: Ask) -> Reply:
    after = None
    if "cursor" in ask.query:
        [after] = read_cursor(ask.query["cursor"], str)
    limit = ask.query.get("limit", PAGE)
    found = ask.space.documents.deleted(ask.query.get("path"), limit=limit, after=after)
    following = made_cursor(found[-1].id) if found and len(found) == limit else None
    return page("documents", view(found), following)


def search_documents(ask: Ask) -> Reply:
    limit, below = ask.query.get("limit", 10), ask.query.get("below")
    found = ask.space.documents.search(ask.query["q"], limit, below=below)
    return Reply(content={"documents": view(found)})


def read_document(ask: Ask) -> Reply:
    return _told(ask.space.documents.read(ask.query["path"]))


def write_document(ask: Ask) -> Reply:
    given: dict[str, Any] = {
        name: ask.body.get(name) for name in ("title", "description", "tags", "links")
    }
    written = ask.space.documents.write(
        ask.query["path"], ask.body["body"], **given, **_because(ask)
    )
    return _told(written, 201 if written.version == 1 else 200)


def append_document(ask: Ask) -> Reply:
    return _told(ask.space.documents.append(ask.query["path"], ask.body["text"], **_because(ask)))


def patch_document(ask: Ask) -> Reply:
    old, new = ask.body["old"], ask.body["new"]
    return _told(ask.space.documents.patch(ask.query["path"], old, new, **_because(ask)))


def move_document(ask: Ask) -> Reply:
    return _told(ask.space.documents.move(ask.query["path"], ask.body["to"], **_because(ask)))


def delete_document(ask: Ask) -> Reply:
    deleted = ask.space.documents.delete(
        ask.query["path"],
        below=ask.query.get("below", False),
        references=ask.query.get("references", OnReferences.REFUSE),
        reason=ask.query.get("reason", ""),
        expected_version=ask.expected_version,
    )
    return _told(deleted)


def restore_document(ask: Ask) -> Reply:
    version = ask.body.get("version")
    return _told(ask.space.documents.restore(ask.query["path"], version, **_because(ask)))


def document_history(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        [before] = read_cursor(ask.query["cursor"], int)
    limit = ask.query.get("limit", VERSIONS_PAGE)
    found = ask.space.documents.history(ask.query["path"], limit, before)
    following = made_cursor(found[-1].number) if found and len(found) == limit else None
    return page("versions", view(found), following)


def document_diff(ask: Ask) -> Reply:
    older, newer = ask.query["older"], ask.query.get("newer")
    return Reply(content={"diff": ask.space.documents.diff(ask.query["path"], older, newer)})


def document_links(ask: Ask) -> Reply:
    found = ask.space.documents.links(ask.query["path"], limit=ask.query.get("limit", PAGE))
    return Reply(content=view(found))


def _edit(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        name=name,
        summary=summary,
        handler=handler,
        scope=Scope.WRITE,
        needs=frozenset({"path"}),
        is_conditional=True,
        problems=frozenset({409, 412}),
        **{"query": {"path": PATH}, "answers": {200: schema_of(Document)}, **more},
    )


ROUTES: tuple[Route, ...] = (
    look(
        f"{SPACE}/documents",
        "document_tree",
        "The tree, each document before what stands below it.",
        document_tree,
        paged("documents", schema_of(Node)),
        query={**PAGED, "path": PATH, "depth": whole(0, DEPTH_MAX)},
    ),
    look(
        f"{SPACE}/documents/deleted",
        "deleted_documents",
        "What was deleted and can be restored, the last first.",
        deleted_documents,
        paged("documents", schema_of(DeletedDocument)),
        query={**PAGED, "path": PATH},
    ),
    look(
        f"{SPACE}/documents/search",
        "search_documents",
        "Documents with any of a text's words, the best first.",
        search_documents,
        obj({"documents": listed(schema_of(Document))}),
        query={"q": text(QUERY_CHARS_MAX), "limit": LIMIT, "below": PATH},
        needs=frozenset({"q"}),
    ),
    look(
        ONE,
        "read_document",
        "A document; its ETag is its version.",
        read_document,
        schema_of(Document),
        query={"path": PATH},
        needs=frozenset({"path"}),
    ),
    _edit(
        "PUT",
        ONE,
        "write_document",
        "Make a document, or a new version of it; missing parents are made.",
        write_document,
        body=obj(
            {
                "body": TEXT,
                "title": maybe(TEXT),
                "description": maybe(TEXT),
                "tags": TEXTS,
                "links": TEXTS,
                "reason": REASON,
            },
            needs=("body",),
        ),
        answers={200: schema_of(Document), 201: schema_of(Document)},
    ),
    _edit(
        "PATCH",
        ONE,
        "patch_document",
        "Replace a passage that stands in a document exactly once.",
        patch_document,
        body=obj({"old": TEXT, "new": TEXT, "reason": REASON}, needs=("old", "new")),
    ),
    _edit(
        "DELETE",
        ONE,
        "delete_document",
        "Delete a document; it can be restored.",
        delete_document,
        query={
            "path": PATH,
            "below": BOOL,
            "references": one_of(OnReferences),
            "reason": REASON,
        },
    ),
    _edit(
        "POST",
        f"{ONE}/append",
        "append_document",
        "Add to the end of a document, as a paragraph of its own.",
        append_document,
        body=obj({"text": TEXT, "reason": REASON}, needs=("text",)),
        again=changed_document,
    ),
    _edit(
        "POST",
        f"{ONE}/move",
        "move_document",
        "Move a document with all that stands below it; what referred to it still does.",
        move_document,
        body=obj({"to": PATH, "reason": REASON}, needs=("to",)),
        again=changed_document,
    ),
    _edit(
        "POST",
        f"{ONE}/restore",
        "restore_document",
        "Bring back a deleted document, or what an earlier version said.",
        restore_document,
        body=obj({"version": maybe(whole(1)), "reason": REASON}, needs=()),
        again=changed_document,
    ),
    look(
        f"{ONE}/history",
        "document_history",
        "Its versions, the newest first; also of a deleted one.",
        document_history,
        paged("versions", schema_of(Version)),
        query={**PAGED, "path": PATH},
        needs=frozenset({"path"}),
    ),
    look(
        f"{ONE}/diff",
        "document_diff",
        "What changed between two versions, as a unified diff.",
        document_diff,
        obj({"diff": TEXT}),
        query={"path": PATH, "older": whole(1), "newer": whole(1)},
        needs=frozenset({"path", "older"}),
    ),
    look(
        f"{ONE}/links",
        "document_links",
        "What a document refers to, and what refers to it.",
        document_links,
        obj({"outgoing": listed(schema_of(Reference)), "incoming": listed(schema_of(Reference))}),
        query={"path": PATH, "limit": LIMIT},
        needs=frozenset({"path"}),
    ),
)
