"""How often each verb was carried out, how long it took, and which errors it ended in.

Labels are names of verbs and of classes of errors: nothing of what anybody said, and no space.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.clock import ticks
from recollect.observing.exposition import BUCKETS, Histogram, head, histogram, sample
from recollect.observing.seam import End, StoreVerb
from recollect.types.records import Claim

BOUNDS = (0.0001, 0.00025, 0.0005, *BUCKETS)  # most verbs take less than a millisecond
CLAIMS = "recollect_claims_total"
SECONDS, ERRORS = "recollect_verb_seconds", "recollect_verb_errors_total"


class VerbMetrics:
    """Implements `Observer` by counting. Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, Histogram] = defaultdict(lambda: Histogram(BOUNDS))
        self._errors: dict[tuple[str, str], int] = defaultdict(int)
        self._claims = 0

    def minds(self, verb: StoreVerb) -> bool:
        del verb
        return True

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        del args, named
        name, note, began = verb.name, self._note, ticks()

        def end(error: BaseException | None, result: object) -> None:
            note(name, ticks() - began, error, isinstance(result, Claim))

        return end

    def _note(self, verb: str, seconds: float, error: BaseException | None, is_claim: bool) -> None:
        with self._lock:
            self._taken[verb].add(seconds)
            self._claims += is_claim
            if error is not None:
                self._errors[verb, type(error).__name__] += 1

    def taken(self) -> Mapping[str, Histogram]:
        """How long each verb took so far, whatever came of it."""
        with self._lock:
            return {verb: self._taken[verb].copy() for verb in sorted(self._taken)}

    def errors(self) -> Mapping[tuple[str, str], int]:
        """How often a verb ended in an error, by its class."""
        with self._lock:
            return dict(sorted(self._errors.items()))

    def lines(self) -> Iterator[str]:
        """The same as Prometheus reads it."""
        yield from head(CLAIMS, "Jobs that this process has claimed.", "counter")
        yield sample(CLAIMS, {}, self._claims)
        yield from head(SECONDS, "How long verbs of the store took.", "histogram")
        for verb, taken in self.taken().items():
            yield from histogram(SECONDS, "verb", verb, taken)
        yield from head(ERRORS, "Verbs of the store that failed, by class of error.", "counter")
        for (verb, error), count in self.errors().items():
            yield sample(ERRORS, {"verb": verb, "error": error}, count)


# Of this process, whatever it opens: as a scraper sees it.
VERBS = VerbMetrics()
