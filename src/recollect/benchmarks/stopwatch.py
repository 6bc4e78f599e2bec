"""How much processor time a piece of work takes, and what is usual and what is rare among many.

Processor time of this process, all threads: what others do on the machine does not count, and
neither does what a database server does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gives, and the milliseconds it took."""
    began = time.process_time()
    result = work()
    return result, 1000 * (time.process_time() - began)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of them does not exceed."""
    place = math.ceil(share * len(values)) - 1
    return sorted(values)[max(place, 0)]
