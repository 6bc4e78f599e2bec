"""What a key opens: the one place that decides it, for the API and for the pages."""

from __future__ import annotations

from typing import Protocol, TypeVar

from recollect.interfaces.http.problems import NOTHING_HERE, Refusal, refusal
from recollect.interfaces.http.route import Reach
from recollect.interfaces.http.table import Match, Placed
from recollect.store.key_protocol import ApiKey, Scope


class Guarded(Placed, Protocol):
    """A row of a table that says who may ask for it."""

    @property
    def scope(self) -> Scope: ...

    @property
    def reach(self) -> Reach: ...


G = TypeVar("G", bound=Guarded)


def allowed(match: Match[G] | None, method: str, key: ApiKey) -> G:
    """The row that is meant. Refusal: what a key does not open is not there."""
    if match is None:
        raise Refusal(NOTHING_HERE)
    space = match.places.get("space")
    reach = next(iter(match.routes.values())).reach
    is_closed = reach is Reach.STORE and key.space is not None
    if is_closed or (space is not None and not key.opens(space)):
        raise Refusal(NOTHING_HERE)
    route = match.routes.get(method)
    if route is None:
        methods = ", ".join(sorted(match.routes))
        raise refusal(405, "method-not-allowed", f"there is: {methods}", Allow=methods)
    if not key.scope.includes(route.scope):
        raise refusal(
            403, "scope", f"this key is for {key.scope.value}, and it takes {route.scope.value}"
        )
    return route
