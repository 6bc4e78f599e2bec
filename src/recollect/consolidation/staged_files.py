"""A generation as files while a model writes it, for people who want to look over its shoulder.

A directory beside the published one, for as long as the run lasts; nothing is ever read from it.
What is being forgotten stands there too, until the generation is published.
"""

from __future__ import annotations

import contextlib
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

_log = logging.getLogger(__name__)

Show = Callable[[Changeset, Iterable[str]], None]  # what was staged, and other pages to look at


def nowhere(_space: str, _token: int) -> contextlib.AbstractContextManager[Show]:
    """Where nothing is published, nothing is shown."""
    return contextlib.nullcontext(lambda _changeset, _others: None)


@contextlib.contextmanager
def shown_in(directory: Path, token: int) -> Iterator[Show]:
    """Show changesets beside a published directory, under a name with the token of the run."""
    prefix = f".{directory.name}.staged-"
    place = directory.with_name(f"{prefix}{token}")
    shown: set[str] = set()

    def show(changeset: Changeset, others: Iterable[str]) -> None:
        """All of it the first time; then what a model can have written since."""
        staged = {edit.path for edit in changeset.edits}
        paths = {path for path in staged if path not in shown or not _is_evidence(path)}
        try:
            for path in sorted(paths.union(others)):
                _write(changeset, path, place)
        except OSError as error:
            _log.warning("what is staged is not shown: %s", error)
        shown.update(staged)

    try:
        directory.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        for left in directory.parent.glob(f"{prefix}*"):  # of runs that died
            shutil.rmtree(left, ignore_errors=True)
        place.mkdir(mode=FOLDER_MODE)
    except OSError as error:
        _log.warning("what is staged cannot be shown: %s", error)
        yield lambda _changeset, _others: None
        return
    try:
        yield show
    finally:
        shutil.rmtree(place, ignore_errors=True)


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
    file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    file.write_bytes(render(found))
    file.chmod(FILE_MODE)
