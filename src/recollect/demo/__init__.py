"""The demonstration: sample sessions played into a store, and every step told as a value.

The marks come by a clock that is turned by hand, so that ten idle minutes take no time; the workers
are real processes on a real clock, with a short lease. Printing is the command line's part.
"""

from collections.abc import Iterator

from recollect.demo.consolidating import play_consolidation
from recollect.demo.learning import play_learning
from recollect.demo.marks import play_marks
from recollect.demo.recalling import play_recall
from recollect.demo.stage import SETTINGS, START, Change, Stage, Step
from recollect.demo.workers import play_workers, stall

__all__ = ["SETTINGS", "START", "Change", "Stage", "Step", "play", "stall"]


def play(stage: Stage, address: str) -> Iterator[Step]:
    """Everything that is shown, in order; each step has happened when it is told."""
    yield from play_marks(stage)
    if stage.others_wait():
        yield Step(
            title="Workers and learning, left out",
            story="A worker would be killed here, and facts be learned and consolidated. But "
            "workers work for a whole store, and this one holds other sessions that are not "
            "processed yet: they are left alone.",
        )
        return
    yield from play_workers(stage, address)
    yield from play_learning(stage)
    yield from play_recall(stage)
    yield from play_consolidation(stage)
