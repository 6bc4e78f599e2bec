"""Every route there is, and which one a path means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from recollect.interfaces.http import (
    agents,
    auditing,
    documents,
    facts,
    mem0,
    operating,
    quarantine,
    recalling,
    sessions,
)
from recollect.interfaces.http.route import Route

ROUTES: tuple[Route, ...] = (
    *operating.SPACE_ROUTES,
    *sessions.ROUTES,
    *agents.ROUTES,
    *recalling.ROUTES,
    *facts.ROUTES,
    *quarantine.ROUTES,
    *documents.ROUTES,
    *operating.ROUTES,
    *auditing.ROUTES,
    *mem0.ROUTES,
)


class Placed(Protocol):
    """What a table can hold: something that answers to a method on a path."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def parts(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=Placed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Generic[R]):
    """The routes of a path, by method, and what stands in its places."""

    template: str
    routes: Mapping[str, R]
    places: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    place: tuple[str, _Node] | None = None
    routes: dict[str, Any] = field(default_factory=dict)


class Table(Generic[R]):
    """Finds routes. What is written out goes before what may be anything."""

    def __init__(self, routes: Iterable[R]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for part in route.parts:
                node = _child(node, part)
            assert route.method not in node.routes, f"two routes are {route.method} {route.path}"
            node.routes[route.method] = route

    def match(self, segments: Sequence[str]) -> Match[R] | None:
        places: dict[str, str] = {}
        node = _found(self._root, segments, places)
        if node is None:
            return None
        template = next(iter(node.routes.values())).path
        return Match(template=template, routes=node.routes, places=places)


def _child(node: _Node, part: str) -> _Node:
    if not part.startswith("{"):
        return node.children.setdefault(part, _Node())
    if node.place is None:
        node.place = (part.strip("{}"), _Node())
    assert node.place[0] == part.strip("{}"), f"{part} is called {node.place[0]} elsewhere"
    return node.place[1]


def _found(node: _Node, segments: Sequence[str], places: dict[str, str]) -> _Node | None:
    if not segments:
        return node if node.routes else None
    first, rest = segments[0], segments[1:]
    if first in node.children:
        found = _found(node.children[first], rest, places)
        if found is not None:
            return found
    if node.place is None or not first:
        return None
    name, below = node.place
    found = _found(below, rest, places)
    if found is not None:
        places[name] = first
    return found
