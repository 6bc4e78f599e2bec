"""The seam at which verbs are observed: what a verb is, who looks at it, and what they are told.

An observer is told before a verb is carried out and after it. What it raises before keeps the verb
from being carried out; afterwards it may raise nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

End = Callable[[BaseException | None, object], None]


class Kind(Enum):
    """What a verb does to what is remembered."""

    READ = auto()
    WRITE = auto()
    UPKEEP = auto()  # neither shows nor changes what anybody said: claims, counts, indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreVerb:
    """One method of a store: one transaction."""

    name: str  # as in facts.add
    kind: Kind
    parameters: tuple[str, ...]

    def given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """What a call of it was given, by the names of its parameters."""
        return {**dict(zip(self.parameters, args, strict=False)), **named}

    def space(self, args: Sequence[Any], named: Mapping[str, Any]) -> str | None:
        """Which space a call is about; none: the store."""
        given = self.given(args, named)
        if "space" in given:
            space = given["space"]
        else:
            about = next((given[name] for name in ("ref", "claim") if name in given), None)
            about = about or next(iter(given.values()), None)
            space = getattr(about, "space", None)
        return space if isinstance(space, str) else None


class Observer(Protocol):
    """Looks at verbs, from any number of threads."""

    def minds(self, verb: StoreVerb) -> bool:
        """Whether it wants to be told of this one at all; asked once."""
        ...

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        """A verb is about to be carried out; what comes back is told the error, or the result."""
        ...


@contextmanager
def watched(
    observers: Sequence[Observer], verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]
) -> Iterator[Callable[[object], None]]:
    """Tell everybody that a verb begins and how it ended: who was told first is told last.

    What comes of it is said to what is yielded. If one of them refuses, those before it are told.
    """
    ends: list[End] = []
    came: list[object] = [None]
    failed: BaseException | None = None
    try:
        for observer in observers:
            ends.append(observer.begin(verb, args, named))  # noqa: PERF401  # those told so far
        yield came.append
    except BaseException as error:
        failed, came = error, [None]
        raise
    finally:
        for each in reversed(ends):
            each(failed, came[-1])
