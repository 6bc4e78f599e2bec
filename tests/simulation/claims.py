"""Claims of many workers, by the claim's own rules, on a server that does so much at a time.

Each worker looks for spaces with work without taking a lock, a page from where it was last, goes
through them in any order, and takes the first due job of one unless another worker was quicker.
Between a look and a take others go on: that costs tries. `python -m tests.simulation.claims`
prints what the scale page says.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from recollect.store.relational.leases import SPACES_MAX, START_MAX

LOOK, TAKE = "look", "take"
STATEMENTS = {LOOK: 0.001, TAKE: 0.001}  # seconds of one core of the server, both generous
IDLE_SECONDS = 1.0  # until a worker that found nothing looks again


class Queue:
    """Due jobs by space, as the index of jobs has them: in the order of names."""

    def __init__(self, loads: Mapping[str, int]) -> None:
        self._due = dict(loads)
        self._names = sorted(name for name, count in loads.items() if count)

    def page(self, since: str | None) -> list[str]:
        start = bisect_left(self._names, since or "")
        return self._names[start : start + (START_MAX if since is None else SPACES_MAX)]

    def take(self, space: str) -> bool:
        if not self._due[space]:
            return False
        self._due[space] -= 1
        if not self._due[space]:
            del self._names[bisect_left(self._names, space)]
        return True

    def __len__(self) -> int:
        return sum(self._due.values())


@dataclass(slots=True)
class Claimer:
    """One worker process: where it was last, and its own randomness."""

    randomness: random.Random
    since: str | None = None
    tries: int = 0

    def claim(self, queue: Queue) -> Iterator[str]:
        """Its statements, one after the other, and in the end the space, or nothing."""
        since = self.since
        yield LOOK
        page = queue.page(since)
        if since is None and len(page) > SPACES_MAX:
            start = self.randomness.randrange(len(page) - SPACES_MAX + 1)
            page = page[start : start + SPACES_MAX]
            since = page[0]
        is_whole = not since
        while True:
            is_end = len(page) < SPACES_MAX
            shuffled = self.randomness.sample(page, len(page)) if len(page) > 1 else page
            for space in shuffled:
                self.since = "" if is_end else f"{space}\x01"
                yield TAKE
                self.tries += 1
                if queue.take(space):
                    yield f"={space}"
                    return
            if is_end and is_whole:
                yield "="
                return
            since = "" if is_end else f"{page[-1]}\x01"
            is_whole = is_whole or is_end
            yield LOOK
            page = queue.page(since)


@dataclass(slots=True, kw_only=True)
class Played:
    """What came of it."""

    claimed: list[str] = field(default_factory=list)
    first: dict[str, tuple[int, float]] = field(default_factory=dict)  # claim and second, by space
    tries: int = 0
    seconds: float = 0.0


def play(
    loads: Mapping[str, int], *, workers: int, cores: int, work_seconds: float, seed: int
) -> Played:
    """Until all is claimed: workers that work so long on each job, on so many cores of a server."""
    randomness, queue, played = random.Random(seed), Queue(loads), Played()
    claimers = [Claimer(random.Random(seed + 1 + number)) for number in range(workers)]
    running = [each.claim(queue) for each in claimers]
    free = [0.0] * cores
    ready = [(randomness.random() * STATEMENTS[LOOK], number) for number in range(workers)]
    heapq.heapify(ready)
    while len(queue) and ready:
        now, number = heapq.heappop(ready)
        said = next(running[number])  # carries out the statement before, and says the next
        if not said.startswith("="):
            began = max(now, heapq.heappop(free))
            heapq.heappush(free, began + STATEMENTS[said])
            heapq.heappush(ready, (began + STATEMENTS[said], number))
            continue
        running[number] = claimers[number].claim(queue)
        if space := said[1:]:
            played.claimed.append(space)
            played.first.setdefault(space, (len(played.claimed), now))
            played.seconds = now
        pause = work_seconds * randomness.uniform(0.5, 1.5) if space else IDLE_SECONDS
        heapq.heappush(ready, (now + pause, number))
    played.tries = sum(each.tries for each in claimers)
    return played


def in_turn(loads: Mapping[str, int], seeds: list[int]) -> list[str]:
    """The spaces in the order of claims, where nobody comes between a look and its take."""
    queue, claimed = Queue(loads), list[str]()
    claimers = [Claimer(random.Random(seed)) for seed in seeds]
    while len(queue):
        for each in claimers:
            *_, last = each.claim(queue)
            claimed += [last[1:]] if last != "=" else []
    return claimed


def loads_of(spaces: int, jobs: int, largest: int) -> dict[str, int]:
    """One space with very much to do, in the middle of many with a little."""
    return {f"s{number:06}": jobs for number in range(spaces)} | {f"s{spaces // 2:06}": largest}


def main() -> None:
    print("workers  work s  claims/s  tries/claim  every space served within (claims, s)")
    for workers, work_seconds in ((10, 2.0), (100, 2.0), (1000, 2.0), (1000, 20.0)):
        loads = loads_of(2_000, 5, 5_000)
        played = play(loads, workers=workers, cores=8, work_seconds=work_seconds, seed=1)
        rate = len(played.claimed) / played.seconds
        claims, seconds = max(played.first.values())
        tries = played.tries / len(played.claimed)
        print(
            f"{workers:7} {work_seconds:7} {rate:9,.0f} {tries:12.2f} {claims:12,} {seconds:9,.1f}"
        )


if __name__ == "__main__":
    main()
