"""Pages for the document tree: reading, history and differences, writing and deleting."""

from __future__ import annotations

from typing import Any

from recollect.documents.editing import OnReferences
from recollect.errors import (
    DocumentExists,
    InvalidPath,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
)
from recollect.interfaces.http.problems import problem_of
from recollect.interfaces.web.sessions import source_names
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Asked,
    Moved,
    PageView,
    WebPage,
    done,
    read_number,
    receipt_words,
    shown,
)
from recollect.session import LIST_MAX
from recollect.types.access import Scope
from recollect.types.facts import Receipt
from recollect.types.pages import Document, ReferenceKind

Json = dict[str, Any]

DOCUMENTS = f"{SPACE}/documents"
VERSION_MAX = 10**9
FOUND = 20


def documents(asked: Asked) -> Json:
    query, after = asked.wanted("q"), asked.wanted("after")
    held = asked.space.documents
    nodes = held.tree(limit=LIST_MAX, after=after)
    return {
        "nodes": nodes,
        "following": nodes[-1].path if len(nodes) == LIST_MAX else None,
        "after": after or "",
        "query": query or "",
        "found": held.search(query, FOUND) if query else [],
        "deleted": held.deleted(limit=PAGE),
    }


def _path(asked: Asked) -> str:
    path = asked.wanted("path")
    if path is None:
        raise InvalidValue("a document is named by its path, as in ~/memory/people/Ana")
    return path


def document(asked: Asked) -> Json | WebPage:
    path, held = _path(asked), asked.space.documents
    found = held.find(path)
    if found is None and not asked.may(Scope.WRITE):
        raise NotFound(f"there is no document at {path}")
    if found is None:
        return _form(asked, path, None, status=404)
    links = held.links(found.id, limit=PAGE)
    return {
        "document": found,
        "children": [node for node in held.tree(found.path, depth=1) if node.id != found.id],
        "outgoing": links.outgoing,
        "meant": {
            each.named: each.target
            for each in links.outgoing
            if each.kind is ReferenceKind.BODY and not each.is_broken
        },
        "incoming": links.incoming,
        "documents_at": asked.at("documents", "at") + "?path=",
        "named": source_names(asked, found.sources),
        "stated": [each for each in map(asked.space.facts.get, found.facts[:PAGE]) if each],
    }


def history(asked: Asked) -> Json:
    path, held = _path(asked), asked.space.documents
    before = asked.number("before", 0, most=VERSION_MAX) or None
    versions = held.history(path, PAGE, before)
    if not versions and before is None:
        raise NotFound(f"there is no document at {path}")
    return {
        "path": path,
        "is_there": held.find(path) is not None,
        "versions": versions,
        "following": versions[-1].number if len(versions) == PAGE else None,
    }


def diff(asked: Asked) -> Json:
    path, held = _path(asked), asked.space.documents
    newest = held.history(path, 1)
    if not newest:
        raise NotFound(f"there is no document at {path}")
    newer = asked.number("newer", newest[0].number, least=1, most=VERSION_MAX)
    older = asked.number("older", max(newer - 1, 1), least=1, most=VERSION_MAX)
    return {
        "path": path,
        "older": older,
        "newer": newer,
        "newest": newest[0].number,
        "changes": held.diff(path, older, newer),
        "version": held.version(path, newer),
    }


def edit(asked: Asked) -> WebPage:
    path = _path(asked)
    return _form(asked, path, asked.space.documents.find(path))


def _form(
    asked: Asked,
    path: str,
    known: Document | None,
    *,
    status: int = 200,
    wrong: Exception | None = None,
) -> WebPage:
    """The form for a document, with what was typed and what is wrong with it.

    Where somebody else has written meanwhile, `known` is what stands there now.
    """
    stands = {
        "title": known.title if known else "",
        "description": known.description if known else "",
        "tags": ", ".join(known.tags) if known else "",
        "body": known.body if known else "",
        "reason": "",
    }
    return WebPage(
        template="edit_document.html",
        status=status,
        content={
            **{name: asked.form.get(name, text) for name, text in stands.items()},
            "path": known.path if known else path,
            "is_new": known is None,
            "version": known.version if known else 0,
            "wrong": wrong,
            "is_crossed": isinstance(wrong, StaleVersion | DocumentExists),
            "theirs": known,
        },
    )


def write(asked: Asked) -> WebPage | Moved:
    path, held = asked.field("path"), asked.space.documents
    tags, version = asked.tags(), read_number(asked.field("version"), "the version")
    try:
        written = held.write(
            path,
            asked.field("body"),
            title=asked.field("title") or None,
            description=asked.field("description"),
            tags=tags,
            expected_version=version,
            reason=asked.field("reason"),
        )
    except InvalidPath:
        raise  # it came from no form of ours
    # Nothing that was typed is lost: the form comes back, beside what stands there now.
    except (StaleVersion, DocumentExists, InvalidValue, NotAllowed) as error:
        is_crossed = isinstance(error, StaleVersion | DocumentExists)
        status = 409 if is_crossed else problem_of(error).status
        return _form(asked, path, held.find(path), status=status, wrong=error)
    return _at(asked, written, f"Version {written.version} is kept.")


def move(asked: Asked) -> Moved:
    path, to, reason = (asked.field(name) for name in ("path", "to", "reason"))
    moved = asked.space.documents.move(path, to, reason=reason)
    return _at(asked, moved, "Moved. Links to its old place still lead here.")


def delete(asked: Asked) -> Document:
    return asked.space.documents.delete(
        asked.field("path"),
        below="below" in asked.form,
        references=asked.form.get("references", OnReferences.REFUSE),
        reason=asked.field("reason"),
    )


def restore(asked: Asked) -> Moved:
    given = asked.form.get("version", "")
    version = read_number(given, "the version") if given else None
    back = asked.space.documents.restore(asked.field("path"), version, reason=asked.field("reason"))
    return _at(asked, back, f"Restored, as version {back.version}.")


def forget(asked: Asked) -> Receipt:
    return asked.space.forget(document=asked.field("path"))


def _at(asked: Asked, document: Document, said: str) -> Moved:
    return Moved(to=asked.at("documents", "at", path=document.path), said=said)


def _deleted(document: Document) -> str:
    return f"{document.path} is deleted, and can be restored."


VIEWS: tuple[PageView, ...] = (
    shown(DOCUMENTS, "documents", documents),
    shown(f"{DOCUMENTS}/at", "document", document),
    shown(f"{DOCUMENTS}/history", "document_history", history),
    shown(f"{DOCUMENTS}/diff", "document_diff", diff),
    shown(f"{DOCUMENTS}/edit", "edit_document", edit, scope=Scope.WRITE),
    done(f"{DOCUMENTS}/edit", "write_document", Scope.WRITE, write),
    done(f"{DOCUMENTS}/move", "move_document", Scope.WRITE, move),
    done(
        f"{DOCUMENTS}/delete",
        "delete_document",
        Scope.WRITE,
        delete,
        to="documents",
        said=_deleted,
    ),
    done(f"{DOCUMENTS}/restore", "restore_document", Scope.WRITE, restore),
    done(
        f"{DOCUMENTS}/forget",
        "forget_document",
        Scope.ADMIN,
        forget,
        to="documents",
        said=receipt_words,
    ),
)
