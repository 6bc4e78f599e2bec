"""Every route there is, and which one a path means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from recollect.interfaces.http import (
    agents,
    documents,
    facts,
    mem0,
    operating,
    recalling,
    sessions,
)
from recollect.interfaces.http.route import Route

ROUTES: tuple[Route, ...] = (
    *sessions.ROUTES,
    *agents.ROUTES,
    *recalling.ROUTES,
    *facts.ROUTES,
    *documents.ROUTES,
    *operating.ROUTES,
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


class Table(Generic[R]):
    """Finds routes by the parts of a path, each of them decoded, so that one may have a slash.

    What is written out goes before what may be anything.
    """

    def __init__(self, routes: Iterable[R]) -> None:
        # By which of its parts are places; under these, by what is written out in the others.
        self._shapes: dict[tuple[bool, ...], dict[tuple[str, ...], dict[str, R]]] = {}
        for route in sorted(routes, key=lambda route: _shape(route.parts)):
            shape = _shape(route.parts)
            by_method = self._shapes.setdefault(shape, {}).setdefault(_pick(route.parts, shape), {})
            assert route.method not in by_method, f"two routes are {route.method} {route.path}"
            by_method[route.method] = route

    def match(self, segments: Sequence[str]) -> Match[R] | None:
        for shape, known in self._shapes.items():
            routes = len(shape) == len(segments) and known.get(_pick(segments, shape))
            if not routes:
                continue
            route = next(iter(routes.values()))
            named = zip(route.parts, segments, strict=True)
            places = {part[1:-1]: given for part, given in named if part.startswith("{")}
            if all(places.values()):
                return Match(template=route.path, routes=routes, places=places)
        return None


def _shape(parts: Sequence[str]) -> tuple[bool, ...]:
    return tuple(part.startswith("{") for part in parts)


def _pick(parts: Sequence[str], shape: tuple[bool, ...]) -> tuple[str, ...]:
    return tuple(part for part, is_place in zip(parts, shape, strict=True) if not is_place)
