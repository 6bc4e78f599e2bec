"""An item of a LangGraph store as a document: where it stands, what it says, what is asked of it.

Pure. A page has three lines of JSON in a fence (the namespace, the key, the value) and a fourth
where the item says by which of its fields it is ranked. Namespaces and keys are any texts and paths
are not, so a path is what can be read of them and a digest; the page itself has the truth.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp
from langgraph.store.base.embed import get_text_at_path

from recollect.errors import InvalidValue, TooLarge
from recollect.messages import storable_json
from recollect.stemming import asked_stems, stems

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


def folder_slug(namespace: Namespace) -> str:
    return _slug(" ".join(namespace), list(namespace))


def key_slug(key: str) -> str:
    return _slug(key, key)


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
        raise InvalidValue(f"{how!r} is no way to compare; there are $eq, $ne and {[*_ORDERINGS]}")
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
