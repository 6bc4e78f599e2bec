"""The JSON shapes of documents, field by field: of one, a line of the tree, a version, a link."""

from __future__ import annotations

from typing import Any

from recollect.document import Author, DeletedDocument, Document, Node, Reference, Version
from recollect.interfaces.cli.shapes import source_shape


def author_shape(author: Author) -> dict[str, Any]:
    return {"kind": author.kind.value, "name": author.name}


def document_shape(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "space": document.space,
        "path": document.path,
        "title": document.title,
        "description": document.description,
        "body": document.body,
        "tags": list(document.tags),
        "links": list(document.links),
        "version": document.version,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
        "deleted_at": document.deleted_at,
        "author": author_shape(document.author),
        "reason": document.reason,
        "sources": [source_shape(source) for source in document.sources],
        "facts": list(document.facts),
    }


def deleted_shape(document: DeletedDocument) -> dict[str, Any]:
    return {
        "id": document.id,
        "path": document.path,
        "title": document.title,
        "version": document.version,
        "body_chars": document.body_chars,
        "deleted_at": document.deleted_at,
        "author": author_shape(document.author),
        "reason": document.reason,
    }


def node_shape(node: Node) -> dict[str, Any]:
    return {
        "id": node.id,
        "path": node.path,
        "title": node.title,
        "description": node.description,
        "version": node.version,
        "body_chars": node.body_chars,
        "updated_at": node.updated_at,
        "has_children": node.has_children,
    }


def version_shape(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "event": version.event.value,
        "path": version.path,
        "title": version.title,
        "description": version.description,
        "body": version.body,
        "tags": list(version.tags),
        "links": list(version.links),
        "at": version.at,
        "author": author_shape(version.author),
        "reason": version.reason,
        "sources": [source_shape(source) for source in version.sources],
        "facts": list(version.facts),
    }


def reference_shape(reference: Reference) -> dict[str, Any]:
    return {
        "kind": reference.kind.value,
        "source": reference.source,
        "target": reference.target,
        "alias": reference.alias,
        "is_broken": reference.is_broken,
    }
