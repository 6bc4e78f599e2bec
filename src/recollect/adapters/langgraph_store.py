"""A LangGraph store (`langgraph.store.base.BaseStore`) on the documents of a space.

Every item is a versioned document below `~/langgraph`: what a graph puts there survives the process
and is recalled like everything else, and no pipeline rewrites it. All puts of a batch are made in
one transaction, or none; reads of a batch see what was there before it.

A page has three lines of JSON in a fence (the namespace, the key, the value) and a fourth where the
item says by which of its fields it is ranked. Namespaces and keys are any texts and paths are not,
so a path is what can be read of them and a digest; the page itself has the truth.
"""

from __future__ import annotations

import asyncio
import json
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.base.embed import get_text_at_path

from recollect.documents.editing import OnReferences
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import DocumentExists, InvalidValue, NotFound, StaleVersion, TooLarge
from recollect.messages import storable_json
from recollect.session import LIST_MAX
from recollect.stemming import asked_stems, stems
from recollect.types.pages import Author, AuthorKind, Document, Node
from recollect.types.recall import Hit

ROOT = "~/langgraph"
TRIES_MAX = 50  # of a batch, while others change the same items
RANKED_MIN = 50  # that recall is asked for, as items may be left out of what it finds
TITLE_CHARS_MAX = 300
_AUTHOR = Author(kind=AuthorKind.AGENT, name="langgraph")


Namespace = tuple[str, ...]
IndexedBy = Literal[False] | list[str] | None

LABELS_MAX = 60  # of a namespace: each of its beginnings is a tag
TAG = "langgraph"
_DIGEST_CHARS = 20
_READABLE_CHARS = 40
_UNREADABLE = re.compile(r"[^A-Za-z0-9_]+")
_FENCE = "```"

_ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """What the page of an item says."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    index: IndexedBy = None


def read_namespace(namespace: object) -> Namespace:
    """A namespace as it was given, or InvalidValue."""
    if not isinstance(namespace, tuple | list) or not all(isinstance(n, str) for n in namespace):
        raise InvalidValue(f"a namespace is a tuple of texts, not {namespace!r}")
    if len(namespace) > LABELS_MAX:
        raise TooLarge(f"a namespace has at most {LABELS_MAX} labels, this has {len(namespace)}")
    return tuple(namespace)


def read_page(op: PutOp) -> ItemPage:
    """What is to be put, checked. InvalidValue: it cannot be kept."""
    if not isinstance(op.key, str):
        raise InvalidValue(f"a key is text, not {type(op.key).__name__}")
    if not isinstance(op.value, Mapping):
        raise InvalidValue(f"a value is a mapping of names to JSON, not {type(op.value).__name__}")
    if op.ttl is not None:
        raise InvalidValue("items do not expire here: put them without a ttl")
    index = op.index
    if index not in (None, False) and not (
        isinstance(index, list) and all(isinstance(path, str) for path in index)
    ):
        raise InvalidValue(f"index is False, None or a list of paths, not {index!r}")
    namespace = read_namespace(op.namespace)
    return ItemPage(namespace=namespace, key=op.key, value=dict(op.value), index=index)


def encode(page: ItemPage) -> str:
    """The body of an item's document."""
    parts: list[Any] = [list(page.namespace), page.key, page.value]
    if page.index is not None:
        parts.append(page.index)
    try:
        lines = [json.dumps(part, ensure_ascii=False, allow_nan=False) for part in parts]
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"the value of {page.key!r} is not JSON: {error}") from error
    return "\n".join([_FENCE, *map(storable_json, lines), _FENCE])


def decode(body: str) -> ItemPage | None:
    """What the page of an item says; none: it is no such page."""
    head, *lines, foot = body.rstrip("\n").split("\n") if "\n" in body else ("", "")
    if head != _FENCE or foot != _FENCE or len(lines) not in (3, 4):
        return None
    try:
        namespace, key, value, *rest = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return None
    is_item = isinstance(namespace, list) and isinstance(key, str) and isinstance(value, dict)
    if not is_item or not all(isinstance(label, str) for label in namespace):
        return None
    return ItemPage(
        namespace=tuple(namespace), key=key, value=value, index=rest[0] if rest else None
    )


# places


def tag_of(prefix: Namespace) -> str:
    """The tag that everything in a namespace and below it has."""
    return f"{TAG}:{_digest(list(prefix))}" if prefix else TAG


def tags_of(namespace: Namespace) -> list[str]:
    return [tag_of(namespace[:end]) for end in range(len(namespace) + 1)]


def _slug(readable: str, exact: object) -> str:
    shown = _UNREADABLE.sub("-", readable[: 4 * _READABLE_CHARS]).strip("-").lower()
    shown = shown[:_READABLE_CHARS].strip("-")
    return f"{shown}-{_digest(exact)}" if shown else _digest(exact)


def _digest(exact: object) -> str:
    return sha256(json.dumps(exact).encode()).hexdigest()[:_DIGEST_CHARS]


# questions


def is_indexed_for(page: ItemPage, query: str) -> bool:
    """Whether what an item is ranked by, if it says so itself, has a word of the question."""
    if page.index is None:
        return True
    if not page.index:
        return False
    texts = [text for path in page.index for text in get_text_at_path(page.value, path)]
    return not asked_stems(query).keys().isdisjoint(stems(" ".join(texts)))


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether an item's value is as a filter wants it."""
    return all(_is_like(value.get(name), each) for name, each in (wanted or {}).items())


def _is_like(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in wanted):
            return all(_compares(value, name, each) for name, each in wanted.items())
        return isinstance(value, Mapping) and fits(value, wanted)
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list) or len(value) != len(wanted):
            return False
        return all(map(_is_like, value, wanted))
    return bool(value == wanted)


def _compares(value: Any, how: str, wanted: Any) -> bool:
    if how == "$eq":
        return bool(value == wanted)
    if how == "$ne":
        return bool(value != wanted)
    compare = _ORDERINGS.get(how)
    if compare is None:
        raise InvalidValue(f"unknown operator {how!r}; use $eq, $ne or one of {[*_ORDERINGS]}")
    one, other = _number(value), _number(wanted)
    if one is not None and other is not None:
        return compare(one, other)
    both_text = isinstance(value, str) and isinstance(wanted, str)
    return both_text and compare(value, wanted)  # as times in ISO are


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def listed(namespaces: Sequence[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """The namespaces that are asked for, cut to a depth, each once and in order."""
    found = (
        namespace
        for namespace in namespaces
        if all(_matches(condition, namespace) for condition in op.match_conditions or ())
    )
    depth = op.max_depth
    cut = {namespace if depth is None else namespace[:depth] for namespace in found}
    return sorted(cut)[op.offset : op.offset + op.limit]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    match condition.match_type:
        case "prefix":
            part = namespace[: len(path)]
        case "suffix":
            part = namespace[len(namespace) - len(path) :]
        case _:
            raise InvalidValue(f"a match is a prefix or a suffix, not {condition.match_type!r}")
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


class Recalling(Protocol):
    """What is needed of a `recollect.Space`."""

    @property
    def documents(self) -> Documents: ...

    def recall(
        self, query: str, limit: int = ..., *, kinds: Sequence[str], filters: Mapping[str, Any]
    ) -> list[Hit]: ...


class RecollectStore(BaseStore):
    """`graph.compile(store=RecollectStore(space))`. Safe to use from any number of threads.

    `supports_ttl` is false: nothing in a memory goes away by itself.
    """

    supports_ttl = False

    def __init__(self, space: Recalling | Any, *, root: str = ROOT) -> None:
        # The one inside, of a space of `recollect.aio`.
        self._space: Recalling = getattr(space, "sync", space)
        self._root = read_path(root)
        self._documents = self._space.documents.held_by(Holder(author=_AUTHOR, root=self._root))
        self._namespaces: dict[str, Namespace] = {}  # by slug: what it stands for never changes
        self._committing = threading.Lock()  # so that our own threads need not try again

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads first, then all puts at once, the last of each key."""
        given = list(ops)
        puts = {(tuple(op.namespace), op.key): op for op in given if isinstance(op, PutOp)}
        pages = {name: read_page(op) for name, op in puts.items() if op.value is not None}
        bodies = {name: encode(page) for name, page in pages.items()}
        gone = [
            self._path(read_namespace(op.namespace), op.key)
            for op in puts.values()
            if op.value is None
        ]
        results = [self._read(op) for op in given]
        if puts:
            self._put([(pages[name], body) for name, body in bodies.items()], gone)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread; what has begun is finished even if nobody waits for it."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return list(self._search(op))
            case ListNamespacesOp():
                _check_page(op.limit, op.offset)
                namespaces = [each for each, _ in self._folders(())]
                return listed(namespaces, op)
            case PutOp():
                return None
            case _:
                raise InvalidValue(f"unsupported operation: {type(op).__name__}")

    # put

    def _put(self, pages: Sequence[tuple[ItemPage, str]], gone: Sequence[str]) -> None:
        """Make all changes in one transaction; who changes the same items meanwhile goes first."""
        with self._committing:
            for attempt in range(1, TRIES_MAX + 1):
                edits = StagedPages(self._documents, "put by a graph")
                try:
                    for page, body in pages:
                        self._write(edits, page, body)
                    for path in gone:
                        found = edits.find(path)
                        if found is not None and found.path == path:
                            edits.delete(path, references=OnReferences.LEAVE)
                    edits.commit()
                except (StaleVersion, DocumentExists, NotFound):
                    if attempt == TRIES_MAX:
                        raise
                else:
                    return

    def _write(self, edits: StagedPages, page: ItemPage, body: str) -> None:
        path = self._path(page.namespace, page.key)
        title = page.key[:TITLE_CHARS_MAX]
        stored = edits.write(path, body, title=title, tags=tags_of(page.namespace))
        kept = decode(stored.body)
        if kept is None or (kept.namespace, kept.key) != (page.namespace, page.key):
            # Redacted, it would be another item, or none.
            raise InvalidValue("what looks like a secret can only be part of a value, as a text")

    # get

    def _get(self, op: GetOp) -> Item | None:
        found = self._item(self._path(read_namespace(op.namespace), op.key))
        return None if found is None else Item(**_fields(*found))

    def _item(self, path: str) -> tuple[Document, ItemPage] | None:
        """What stands at a path, if it is an item whose place that is."""
        document = self._documents.find(path)
        if document is None or document.path != path:  # it has moved away from there
            return None
        page = decode(document.body)
        if page is None or self._path(page.namespace, page.key) != path:
            return None
        return document, page

    def _path(self, namespace: Namespace, key: str) -> str:
        if not isinstance(key, str):
            raise InvalidValue(f"a key is text, not {type(key).__name__}")
        folder = _slug(" ".join(namespace), list(namespace))
        return f"{self._root.text}/{folder}/{_slug(key, key)}"

    # search

    def _search(self, op: SearchOp) -> Iterator[SearchItem]:
        """What fits: the ranked first, if there is a question, then the others, newest first."""
        _check_page(op.limit, op.offset)
        prefix, end = read_namespace(op.namespace_prefix), op.offset + op.limit
        fits(dict.fromkeys(op.filter or {}), op.filter)  # what cannot be asked is said at once
        seen: set[str] = set()
        count = 0
        for path, score in self._candidates(prefix, op):
            if count >= end:
                return
            found = None if path in seen else self._item(path)
            if found is None or not fits(found[1].value, op.filter):
                continue
            if score is not None and op.query and not is_indexed_for(found[1], op.query):
                continue  # it comes again, without a score
            seen.add(path)
            count += 1
            if count > op.offset:
                yield SearchItem(**_fields(*found), score=score)

    def _candidates(self, prefix: Namespace, op: SearchOp) -> Iterator[tuple[str, float | None]]:
        if op.query:
            wanted = LIST_MAX if op.filter else max(RANKED_MIN, 4 * (op.offset + op.limit))
            for hit in self._space.recall(
                op.query,
                min(wanted, LIST_MAX),
                kinds=["document"],
                filters={"tags": [tag_of(prefix)]},
            ):
                yield hit.id, hit.score
        nodes = [node for _, folder in self._folders(prefix) for node in self._children(folder)]
        for node in sorted(nodes, key=lambda each: (-each.updated_at.timestamp(), each.path)):
            yield node.path, None

    # namespaces

    def _folders(self, prefix: Namespace) -> Iterator[tuple[Namespace, str]]:
        """The namespaces that begin with a prefix and hold anything, and where they stand."""
        for node in self._children(self._root.text):
            namespace = self._namespace(node) if node.has_children else None
            if namespace is not None and namespace[: len(prefix)] == prefix:
                yield namespace, node.path

    def _namespace(self, folder: Node) -> Namespace | None:
        """What a folder stands for: its items say so."""
        slug = folder.path.rpartition("/")[2]
        if slug not in self._namespaces:
            for node in self._children(folder.path):
                found = self._item(node.path)
                if found is not None:
                    self._namespaces[slug] = found[1].namespace
                    break
        return self._namespaces.get(slug)

    def _children(self, path: str) -> Iterator[Node]:
        after: str | None = path
        while nodes := self._documents.tree(path, depth=1, limit=LIST_MAX, after=after):
            yield from nodes
            after = nodes[-1].path


def _check_page(limit: object, offset: object) -> None:
    for number in (limit, offset):
        if type(number) is not int or number < 0:
            raise InvalidValue(f"limit and offset are whole numbers of at least 0, not {number!r}")


def _fields(document: Document, page: ItemPage) -> dict[str, Any]:
    """What an item and a found item have alike."""
    return {
        "namespace": page.namespace,
        "key": page.key,
        "value": page.value,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
    }
