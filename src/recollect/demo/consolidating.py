"""What memory comes to: a generation of the handbook, the next one, and what forgetting does."""

from __future__ import annotations

from collections.abc import Iterator

import recollect
from recollect.config.settings import folder_of
from recollect.consolidation.files import root_of
from recollect.consolidation.pages import MEMORY, SUMMARY
from recollect.demo.stage import Stage, Step
from recollect.documents.links import unlinked
from recollect.generation import DocumentChange, GenerationChange

SURPRISE = "surprise party"


def play_consolidation(stage: Stage) -> Iterator[Step]:
    """Makes the first generation by hand; the workers before it were told to leave that alone."""
    yield _first(stage)
    yield _next(stage)
    yield _forgotten(stage)


def _first(stage: Stage) -> Step:
    generations = stage.space.generations
    report = generations.run()
    return Step(
        title="A generation of memory",
        story="What the sessions came to is consolidated: the best memories are selected, and a "
        "handbook and a short summary of it are written by rules, each claim with the sessions "
        "that bear it out. All of it is published at once, as documents and as files.",
        results=(
            f"generations.run() -> {report.generations} generation",
            _in_words(generations.get()),
            *_files(stage),
        ),
        pages=tuple(stage.space.documents.read(path) for path in (MEMORY, SUMMARY)),
    )


def _files(stage: Stage) -> Iterator[str]:
    """Where the files are; nowhere for a store that is no file."""
    root = root_of(stage.memory.settings, stage.memory.store.describe())
    if root is not None:
        yield f"files: {root / folder_of(stage.space.name)}"


def _next(stage: Stage) -> Step:
    generations = stage.space.generations
    said = (*stage.say("newsletter"), *stage.say("party"))
    for name in ("newsletter", "party"):
        stage.session(name).end()
    stage.memory.work()
    coming = generations.preview().selection
    before = generations.get().number
    generations.run()
    return Step(
        title="The next generation",
        story="Ben and Ana come back. A look ahead says what the next generation would be made "
        "of; then it is made, and only what changed is written. The one before is kept, and can "
        "be restored.",
        said=said,
        results=(
            f"preview(): {_counts(len(coming.added), len(coming.retained), len(coming.removed))}",
            _in_words(generations.get()),
            f"diff({before}):",
            *(line for change in generations.diff(before) for line in _lines(change)),
        ),
    )


def _forgotten(stage: Stage) -> Step:
    generations = stage.space.generations
    before = generations.get()
    told = _pages_with(stage, SURPRISE)
    receipt = stage.space.forget(session=stage.session("party").id)
    is_whole = "yes" if generations.get(before.number).is_whole else "no"
    return Step(
        title="A forgotten session leaves it",
        story="Ana thinks better of it, and has the session about the party forgotten. Its records "
        "and what was learned from it alone are erased, and a generation without it is published "
        "at once. What it said is gone from earlier generations too: they cannot be restored.",
        results=(
            f"forget(…) -> {receipt.records} records, {receipt.facts} fact",
            _in_words(generations.get()),
            f"pages that know of the {SURPRISE}: {told} before, {_pages_with(stage, SURPRISE)} now",
            f"generation {before.number} can be restored: {is_whole}",
        ),
    )


def _pages_with(stage: Stage, words: str) -> int:
    documents = stage.space.documents
    return sum(words in documents.read(node.path).body for node in documents.tree())


def _in_words(made: recollect.Generation) -> str:
    memories = _counts(made.added, made.retained, made.removed)
    return (
        f"generation {made.number}, by {made.made_by}: {memories}; "
        f"{made.changed} of {made.documents} documents changed"
    )


def _counts(added: int, retained: int, removed: int) -> str:
    return f"{added} memories added, {retained} retained, {removed} removed"


def _lines(change: GenerationChange) -> Iterator[str]:
    """Which document differs; of the handbook, also how."""
    yield f"{change.change.value} {change.path}"
    if change.path == MEMORY and change.change is DocumentChange.CHANGED:
        for line in change.text.splitlines():
            if line[:2] in ("+-", "--", "+#", "-#") and not line.startswith("---"):
                yield f"{line[0]} {unlinked(line[1:], lambda _path: True)}"
