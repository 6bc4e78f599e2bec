"""The tree of documents on pages: read, with history and differences, written and deleted."""

from __future__ import annotations

from dataclasses import dataclass

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
from recollect.interfaces.web.rendering import diff_lines
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Answer,
    Asked,
    Moved,
    PageView,
    WebPage,
    done,
    receipt_words,
    shown,
)
from recollect.session import LIST_MAX
from recollect.types.access import Scope
from recollect.types.pages import Document, Node, ReferenceKind

DOCUMENTS = f"{SPACE}/documents"
ONE = f"{DOCUMENTS}/at"
VERSION_MAX = 10**9
FOUND = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """A line of the tree, with how deep it stands below the first that is shown."""

    node: Node
    level: int


def documents(asked: Asked) -> WebPage:
    query, after = asked.wanted("q"), asked.wanted("after")
    held = asked.space.documents
    nodes = held.tree(limit=LIST_MAX, after=after)
    return WebPage(
        template="documents.html",
        fragment="_documents.html",
        content={
            "branches": [TreeLine(node=node, level=min(node.depth, 8)) for node in nodes],
            "following": nodes[-1].path if len(nodes) == LIST_MAX else None,
            "after": after or "",
            "query": query or "",
            "found": held.search(query, FOUND) if query else [],
            "deleted": held.deleted(limit=PAGE),
        },
    )


def _path(asked: Asked) -> str:
    path = asked.wanted("path")
    if path is None:
        raise InvalidValue("a document is named by its path, as in ~/memory/people/Ana")
    return path


def document(asked: Asked) -> Answer:
    path, held = _path(asked), asked.space.documents
    found = held.find(path)
    if found is None:
        if not asked.may(Scope.WRITE):
            raise NotFound(f"there is no document at {path}")
        return _form(asked, path, None, status=404)
    links = held.links(found.id, limit=PAGE)
    return WebPage(
        template="document.html",
        content={
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
        },
    )


def history(asked: Asked) -> WebPage:
    path, held = _path(asked), asked.space.documents
    before = asked.number("before", 0, most=VERSION_MAX) or None
    versions = held.history(path, PAGE, before)
    if not versions and before is None:
        raise NotFound(f"there is no document at {path}")
    return WebPage(
        template="document_history.html",
        content={
            "path": path,
            "is_there": held.find(path) is not None,
            "versions": versions,
            "following": versions[-1].number if len(versions) == PAGE else None,
        },
    )


def diff(asked: Asked) -> WebPage:
    path, held = _path(asked), asked.space.documents
    newest = held.history(path, 1)
    if not newest:
        raise NotFound(f"there is no document at {path}")
    newer = asked.number("newer", newest[0].number, least=1, most=VERSION_MAX)
    older = asked.number("older", max(newer - 1, 1), least=1, most=VERSION_MAX)
    return WebPage(
        template="document_diff.html",
        content={
            "path": path,
            "older": older,
            "newer": newer,
            "newest": newest[0].number,
            "lines": diff_lines(held.diff(path, older, newer)),
            "version": held.version(path, newer),
        },
    )


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
    given = asked.form
    return WebPage(
        template="edit_document.html",
        status=status,
        content={
            "path": known.path if known else path,
            "is_new": known is None,
            "title": given.get("title", known.title if known else ""),
            "description": given.get("description", known.description if known else ""),
            "tags": given.get("tags", ", ".join(known.tags) if known else ""),
            "body": given.get("body", known.body if known else ""),
            "reason": given.get("reason", ""),
            "version": known.version if known else 0,
            "wrong": wrong,
            "is_crossed": isinstance(wrong, StaleVersion | DocumentExists),
            "theirs": known,
        },
    )


def write(asked: Asked) -> Answer:
    path = asked.field("path")
    tags = [tag.strip() for tag in asked.field("tags").split(",") if tag.strip()]
    version = asked.field("version")
    if not version.isascii() or not version.isdigit() or len(version) > 18:
        raise InvalidValue("the version is a number")
    try:
        written = asked.space.documents.write(
            path,
            asked.field("body"),
            title=asked.field("title") or None,
            description=asked.field("description"),
            tags=tags,
            expected_version=int(version),
            reason=asked.field("reason"),
        )
    # Nothing that was typed is lost: the form comes back, beside what stands there now.
    except (StaleVersion, DocumentExists) as error:
        return _form(asked, path, asked.space.documents.find(path), status=409, wrong=error)
    except InvalidPath:
        raise  # it came from no form of ours
    except (InvalidValue, NotAllowed) as error:
        known, status = asked.space.documents.find(path), problem_of(error).status
        return _form(asked, path, known, status=status, wrong=error)
    return Moved(
        to=asked.at("documents", "at", path=written.path),
        said=f"Version {written.version} is kept.",
    )


def move(asked: Asked) -> Moved:
    moved = asked.space.documents.move(
        asked.field("path"), asked.field("to"), reason=asked.field("reason")
    )
    return Moved(
        to=asked.at("documents", "at", path=moved.path),
        said="Moved. Links to its old place still lead here.",
    )


def delete(asked: Asked) -> Moved:
    gone = asked.space.documents.delete(
        asked.field("path"),
        below="below" in asked.form,
        references=asked.form.get("references", OnReferences.REFUSE),
        reason=asked.field("reason"),
    )
    return Moved(to=asked.at("documents"), said=f"{gone.path} is deleted, and can be restored.")


def restore(asked: Asked) -> Moved:
    given = asked.form.get("version", "")
    version = int(given) if given.isascii() and given.isdigit() and len(given) < 18 else None
    back = asked.space.documents.restore(asked.field("path"), version, reason=asked.field("reason"))
    return Moved(
        to=asked.at("documents", "at", path=back.path), said=f"Restored, as version {back.version}."
    )


def forget(asked: Asked) -> Moved:
    path = asked.field("path")
    receipt = asked.space.forget(document=path)
    return Moved(to=asked.at("documents"), said=receipt_words(receipt))


VIEWS: tuple[PageView, ...] = (
    shown(DOCUMENTS, "documents", documents),
    shown(ONE, "document", document),
    shown(f"{DOCUMENTS}/history", "document_history", history),
    shown(f"{DOCUMENTS}/diff", "document_diff", diff),
    shown(f"{DOCUMENTS}/edit", "edit_document", edit, scope=Scope.WRITE),
    done(f"{DOCUMENTS}/edit", "write_document", write, Scope.WRITE),
    done(f"{DOCUMENTS}/move", "move_document", move, Scope.WRITE),
    done(f"{DOCUMENTS}/delete", "delete_document", delete, Scope.WRITE),
    done(f"{DOCUMENTS}/restore", "restore_document", restore, Scope.WRITE),
    done(f"{DOCUMENTS}/forget", "forget_document", forget, Scope.ADMIN),
)
