"""A generation as files while a model writes it, for people who want to look over its shoulder.

A directory beside the published one, for as long as the run lasts; nothing is ever read from it.
What leaves the handbook stands there too, until the generation is published. It is made before the
run reads anything, and never again: whoever forgets something takes it away afterwards, and what
the run had read before is shown no more.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from recollect.consolidation.pages import RAW, SUMMARIES
from recollect.documents.changeset import Changeset
from recollect.documents.front_matter import render
from recollect.documents.paths import EXTENSION, memory_root, read_path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_GONE = "-gone"

_log = logging.getLogger(__name__)

Show = Callable[[Changeset, Iterable[str]], None]  # what was staged, and other pages to look at


def nowhere(_space: str, _token: int) -> contextlib.AbstractContextManager[Show]:
    """Where nothing is published, nothing is shown."""
    return contextlib.nullcontext(lambda _changeset, _others: None)


def take_away(directory: Path) -> tuple[Path, ...]:
    """Remove what runs show beside a published directory, also if they go on; what could not be."""
    mine = f"{glob.escape(_prefix(directory))}*"
    # Those first that were given another name and not removed: they stand in the way of others.
    for each in sorted(directory.parent.glob(mine), reverse=True):
        place = each
        if each.is_symlink():  # nothing of ours is behind it
            each.unlink(missing_ok=True)
        elif not each.name.endswith(_GONE):
            # Whoever shows something there must not find the place while it is emptied.
            with contextlib.suppress(OSError):
                place = each.rename(each.with_name(f"{each.name}{_GONE}"))
        shutil.rmtree(place, ignore_errors=True)
    return tuple(sorted(directory.parent.glob(mine)))


@contextlib.contextmanager
def shown_in(directory: Path, token: int) -> Iterator[Show]:
    """Show changesets beside a published directory, under a name with the token of the run."""
    place = directory.with_name(f"{_prefix(directory)}{token}")
    shown: set[str] = set()

    def show(changeset: Changeset, others: Iterable[str]) -> None:
        """All of it the first time; then what a model can have written since."""
        staged = {edit.path for edit in changeset.edits}
        paths = {path for path in staged if path not in shown or not _is_evidence(path)}
        try:
            for path in sorted(paths.union(others)):
                _write(changeset, path, place)
        except OSError as error:
            if place.is_dir():  # else somebody has taken it away
                _log.warning("what is staged is not shown: %s", error)
        shown.update(staged)

    try:
        directory.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        take_away(directory)  # of runs that died
        place.mkdir(mode=FOLDER_MODE)
    except OSError as error:
        _log.warning("what is staged cannot be shown: %s", error)
        yield lambda _changeset, _others: None
        return
    try:
        yield show
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _prefix(directory: Path) -> str:
    return f".{directory.name}.staged-"


def _is_evidence(path: str) -> bool:
    return path == RAW or path.startswith(f"{SUMMARIES}/")


def _write(changeset: Changeset, path: str, place: Path) -> None:
    """A page as it is staged, as a file; none, if it is deleted."""
    slugs = read_path(path).slugs[len(memory_root().slugs) :]
    file = place.joinpath(*slugs[:-1], f"{slugs[-1]}{EXTENSION}")
    found = changeset.find(path)
    if found is None:
        file.unlink(missing_ok=True)
        return
    folder = place
    for slug in slugs[:-1]:
        folder = folder / slug
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    file.write_bytes(render(found))
    file.chmod(FILE_MODE)
