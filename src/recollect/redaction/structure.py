"""Walks a JSON value: a secret is known by the key it is kept under, or by its looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.redaction.checks import fits_name
from recollect.redaction.names import NameKind, name_kind
from recollect.redaction.placeholders import PLACEHOLDER

Words = Mapping[str, frozenset[str]]
# What `{"name": "DB_PASSWORD", "value": "…"}` calls the two.
NAMING_KEYS = ("name", "key", "header", "variable", "id")
CARD_MIN = 10**12
VALUE_KEYS = frozenset({"value", "val", "secret_value", "stringvalue", "default"})


def redact_value(
    value: Any,
    redact: Callable[[str], str],
    known_secret: Callable[[str, str], str],
    words: Words,
) -> Any:
    """A redacted copy. Without recursion, so that no depth of nesting is too much."""
    walk = _Walk(redact, known_secret, words)
    root: list[Any] = [None]
    walk.todo.append((root, 0, value, None))
    while walk.todo:
        walk.step(*walk.todo.pop())
    return root[0]


class _Walk:
    """What is still to be copied, each with the place of its copy and the kind its key says."""

    def __init__(
        self,
        redact: Callable[[str], str],
        known_secret: Callable[[str, str], str],
        words: Words,
    ) -> None:
        self.redact = redact
        self.known_secret = known_secret
        self.words = words
        self.todo: list[tuple[Any, Any, Any, NameKind | None]] = []

    def step(self, copy: Any, place: Any, value: Any, kind: NameKind | None) -> None:
        match value:
            case str():
                copy[place] = self._text(value, kind)
            case Mapping():
                copy[place] = self._mapping(value)
            case list() | tuple():
                copy[place] = self._list(value, kind)
            case int() if kind in (NameKind.PIN, NameKind.PASSWORD) and type(value) is int:
                copy[place] = self._number(value, kind)
            case _:
                copy[place] = value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        told = self._told_by_sibling(value)
        for key, inner in value.items():
            is_text = isinstance(key, str)
            place = self.redact(key) if is_text else key
            copy[place] = None  # keeps the order: what is to do is done from the end
            kind = name_kind(key, self.words) if is_text else None
            if type(inner) is int and is_text and inner >= CARD_MIN:
                inner = self._card(key, inner)
            if kind is None and is_text and key.lower() in VALUE_KEYS:
                kind = told
            self.todo.append((copy, place, inner, kind))
        return copy

    def _told_by_sibling(self, value: Mapping[Any, Any]) -> NameKind | None:
        for key in NAMING_KEYS:
            name = value.get(key)
            if isinstance(name, str) and (kind := name_kind(name, self.words)) is not None:
                return kind
        return None

    def _list(self, value: list[Any] | tuple[Any, ...], kind: NameKind | None) -> list[Any]:
        copy: list[Any] = [None] * len(value)
        for place, inner in enumerate(value):
            flagged = self._flag_kind(value[place - 1]) if place else None
            self.todo.append((copy, place, inner, flagged or kind))
        return copy

    def _flag_kind(self, before: Any) -> NameKind | None:
        """In a list of arguments, `--password` announces what comes next."""
        is_flag = isinstance(before, str) and before.startswith("--") and "=" not in before
        return name_kind(before, self.words) if is_flag else None

    def _text(self, value: str, kind: NameKind | None) -> str:
        redacted = self.redact(value)
        if kind is None or PLACEHOLDER.search(redacted):  # its format says more than its key
            return redacted
        is_secret = fits_name(kind, value, self.words, is_quoted=True)
        return self.known_secret(kind.value, value) if is_secret else redacted

    def _card(self, key: str, value: int) -> int | str:
        """A number that its key calls a card's, as text is read."""
        said = f"{key.replace('_', ' ')} {value}"
        return value if self.redact(said) == said else self.known_secret("card-number", str(value))

    def _number(self, value: int, kind: NameKind) -> int | str:
        if value < 1000:
            return value
        placeholder = self.known_secret(kind.value, str(value))
        return value if placeholder == str(value) else placeholder
