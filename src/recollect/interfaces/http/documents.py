"""Documents over HTTP: the tree, one document, its versions; If-Match is the version it is about.

A document is named by the parameter `path` (or its id), since a path in a path is not kept by every
proxy. Its version is its ETag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from recollect.document import DeletedDocument, Document, Node, Reference, Version
from recollect.documents.editing import OnReferences
from recollect.documents.paths import DEPTH_MAX, PATH_CHARS_MAX
from recollect.interfaces.http.binding import Cursor, Json, Limit, Number, Place, Tags
from recollect.interfaces.http.messages import Answer, Request
from recollect.interfaces.http.route import (
    SPACE,
    Routes,
    made_cursor,
    page,
    paged,
    read_one,
)
from recollect.interfaces.views import view

PAGE = 100
VERSIONS_PAGE = 50
TREE, ONE = f"{SPACE}/documents", f"{SPACE}/document"

ROUTES = Routes()

_PATH = Meta(
    max_length=PATH_CHARS_MAX, description="As in ~/memory/people/Ana, or the document's id."
)
Path = Annotated[str, _PATH]
Named = Annotated[str, _PATH, Place.QUERY]
Depth = Annotated[int, Meta(ge=0, le=DEPTH_MAX)]
Query = Annotated[str, Meta(max_length=10_000)]


def read_again(request: Request, ids: Sequence[str]) -> Document:
    return request.space.documents.read(ids[0])


def _because(request: Request, reason: str) -> dict[str, Any]:
    return {"expected_version": request.expected_version, "reason": reason}


@ROUTES("GET", TREE, answer=paged("documents", Node))
def document_tree(
    request: Request,
    path: Path | None = None,
    depth: Depth = DEPTH_MAX,
    limit: Limit = PAGE,
    cursor: Cursor | None = None,
) -> Json:
    """The tree, each document before what stands below it."""
    after = read_one(cursor, str)
    found = request.space.documents.tree(path, depth=depth, limit=limit, after=after)
    return page("documents", found, limit, lambda node: made_cursor(node.path))


@ROUTES("GET", f"{TREE}/deleted", answer=paged("documents", DeletedDocument))
def deleted_documents(
    request: Request,
    path: Path | None = None,
    limit: Limit = PAGE,
    cursor: Cursor | None = None,
) -> Json:
    """What was deleted and can be restored, the last first."""
    after = read_one(cursor, str)
    found = request.space.documents.deleted(path, limit=limit, after=after)
    return page("documents", found, limit, lambda each: made_cursor(each.id))


@ROUTES("GET", f"{TREE}/search", answer={"documents": list[Document]})
def search_documents(
    request: Request, q: Query, limit: Limit = 10, below: Path | None = None
) -> Json:
    """Documents with any of a text's words, the best first."""
    return {"documents": view(request.space.documents.search(q, limit, below=below))}


@ROUTES("GET", ONE)
def read_document(request: Request, path: Path) -> Document:
    """A document; its ETag is its version."""
    return request.space.documents.read(path)


@ROUTES("PUT", ONE, statuses=(200, 201), is_conditional=True, problems=frozenset({409, 412}))
def write_document(
    request: Request,
    path: Named,
    body: str,
    title: str | None = None,
    description: str | None = None,
    tags: Tags | None = None,
    links: Tags | None = None,
    reason: str = "",
) -> Document | Answer:
    """Make a document, or a new version of it; missing parents are made."""
    written = request.space.documents.write(
        path,
        body,
        title=title,
        description=description,
        tags=tags,
        links=links,
        **_because(request, reason),
    )
    headers = {"ETag": f'"{written.version}"'}
    status = 201 if written.version == 1 else 200
    return Answer(content=view(written), status=status, headers=headers)


_CHANGES: dict[str, Any] = {"is_conditional": True, "problems": frozenset({409, 412})}


@ROUTES("PATCH", ONE, **_CHANGES)
def patch_document(request: Request, path: Named, old: str, new: str, reason: str = "") -> Document:
    """Replace a passage that stands in a document exactly once."""
    return request.space.documents.patch(path, old, new, **_because(request, reason))


@ROUTES("DELETE", ONE, **_CHANGES)
def delete_document(
    request: Request,
    path: Path,
    below: bool = False,
    references: OnReferences = OnReferences.REFUSE,
    reason: str = "",
) -> Document:
    """Delete a document; it can be restored."""
    return request.space.documents.delete(
        path, below=below, references=references, **_because(request, reason)
    )


@ROUTES("POST", f"{ONE}/append", again=read_again, **_CHANGES)
def append_document(request: Request, path: Named, text: str, reason: str = "") -> Document:
    """Add to the end of a document, as a paragraph of its own."""
    return request.space.documents.append(path, text, **_because(request, reason))


@ROUTES("POST", f"{ONE}/move", again=read_again, **_CHANGES)
def move_document(request: Request, path: Named, to: Path, reason: str = "") -> Document:
    """Move a document with all that stands below it; what referred to it still does."""
    return request.space.documents.move(path, to, **_because(request, reason))


@ROUTES("POST", f"{ONE}/restore", again=read_again, **_CHANGES)
def restore_document(
    request: Request, path: Named, version: Number | None = None, reason: str = ""
) -> Document:
    """Bring back a deleted document, or what an earlier version said."""
    return request.space.documents.restore(path, version, **_because(request, reason))


@ROUTES("GET", f"{ONE}/history", answer=paged("versions", Version))
def document_history(
    request: Request, path: Path, limit: Limit = VERSIONS_PAGE, cursor: Cursor | None = None
) -> Json:
    """Its versions, the newest first; also of a deleted one."""
    found = request.space.documents.history(path, limit, read_one(cursor, int))
    return page("versions", found, limit, lambda version: made_cursor(version.number))


@ROUTES("GET", f"{ONE}/diff", answer={"diff": str})
def document_diff(request: Request, path: Path, older: Number, newer: Number | None = None) -> Json:
    """What changed between two versions, as a unified diff."""
    return {"diff": request.space.documents.diff(path, older, newer)}


@ROUTES("GET", f"{ONE}/links", answer={"outgoing": list[Reference], "incoming": list[Reference]})
def document_links(request: Request, path: Path, limit: Limit = PAGE) -> Json:
    """What a document refers to, and what refers to it."""
    return view(request.space.documents.links(path, limit=limit))
