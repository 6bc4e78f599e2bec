"""The files of a generation: a directory for each space below `memories_root`, swapped whole.

They are a projection: whatever happens to them, the store holds what they say, and the next sweep
writes what is missing. Owns the part of G6 and P6 that is files. A file that cannot be written
fails no generation; it is logged, and tried again. What people wrote there is taken up before it is
written over; what cannot be taken up is kept beside it.

While a model writes, what it has staged stands in a directory beside the published one, for people
to look at; nothing is ever read from it. What leaves the handbook stands there too. It is made
before the run reads anything, and never again: forgetting removes it afterwards.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from recollect.config import Settings
from recollect.config.settings import folder_of
from recollect.consolidation.edits import NOTHING, Absorbed, Watch, absorb
from recollect.consolidation.pages import RAW, SUMMARIES
from recollect.documents.files import FILE_MODE, FOLDER_MODE, Folder
from recollect.documents.front_matter import render
from recollect.documents.load import Problem
from recollect.documents.paths import EXTENSION, memory_root, read_path
from recollect.documents.publish import Publication
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import NotFound, RecollectError, StoreClosed
from recollect.facts import Facts
from recollect.store.protocol import Store
from recollect.types.records import StoreDescription

NOWHERE = "none"
FOLDER = "memories"
USUAL_FILE = "memory.db"
EDITED = "-edited"  # in the names of what was kept aside
SPACES_MAX = 100  # whose files one sweep writes
EDITS_NAMED = 10  # of those that were not taken up

_GONE = "-gone"

_log = logging.getLogger(__name__)

Show = Callable[[StagedPages, Iterable[str]], None]  # what was staged, and other pages to look at


def root_of(settings: Settings, store: StoreDescription) -> Path | None:
    """Where spaces are published: as the settings say, else beside the SQLite file.

    `memories` beside `memory.db`; another file has a directory of its own, named after it.
    """
    if settings.memories_root == NOWHERE:
        return None
    if settings.memories_root is not None:
        given = settings.memories_root.replace("{data_dir}", settings.data_dir)
        return Path(given).expanduser()
    if store.kind != "sqlite" or store.location == ":memory:":
        return None
    file = Path(store.location)
    return file.with_name(FOLDER if file.name == USUAL_FILE else f"{file.stem}-{FOLDER}")


class MemoryFiles:
    """Writes the memory of spaces as files. Safe to share between threads."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        documents: Callable[[str], Documents],
        facts: Callable[[str], Facts] | None = None,
    ) -> None:
        self._store = store
        self._documents = documents
        self._facts = facts  # none: what people wrote is only kept aside
        self._root = root_of(settings, store.describe())
        self._watch = Watch(self._root)

    def directory(self, space: str) -> Path | None:
        """Where a space is published; none: nowhere."""
        return None if self._root is None else self._root / folder_of(space)

    def staged(self, space: str, token: int) -> AbstractContextManager[Show]:
        """What shows a generation in files while it is made."""
        directory = self.directory(space)
        return nowhere(space, token) if directory is None else shown_in(directory, token)

    def write(self, space: str, number: int | None = None) -> bool:
        """Make files and documents agree, whichever was changed; return whether they do.

        `number`: the generation that is published with that.
        """
        directory = self.directory(space)
        if directory is None:
            return False
        left, made = self.absorb(space).left, None
        try:
            directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            documents = self._documents(space)
            with suppress(NotFound):  # nothing was ever written there, or all of it is forgotten
                made = documents.publish(directory, path=str(memory_root()), discard_edits=True)
            if number is not None:
                self._store.generations.files_published(space, number)
        except StoreClosed:
            raise
        except (RecollectError, OSError) as error:
            _log.warning("the files of space %r were not written: %s", space, error)
            return False
        if made is not None:
            _report_left(space, left, made)
        return made is not None

    # what is forgotten

    def remove(self, space: str) -> tuple[str, ...]:
        """Take a space's files away, with what people wrote there and what was kept beside it.

        What could not be removed is named.
        """
        directory = self.directory(space)
        if directory is None:
            return ()
        return _cleared(space, directory, [directory, *_beside(directory)])

    def withdraw(self, space: str, *, is_published: bool) -> tuple[str, ...]:
        """Let no file say what was just forgotten, nor what is kept beside them.

        What a run shows goes, and edits that were kept aside: they are copies of what was
        published. What could not be written anew or removed is named.
        """
        directory = self.directory(space)
        if directory is None:
            return ()
        is_current = not is_published or self.write(space) or not _is_there(directory)
        beside = _beside(directory)
        kept = [each for each in beside if EDITED in each.name]
        if kept:
            _log.warning(
                "edits that were kept aside of space %r may say what was forgotten; removed: %s",
                *(space, ", ".join(map(str, kept))),
            )
        gone = [each for each in beside if each in kept or _is_abandoned(each)]
        return _cleared(space, directory, gone, () if is_current else (directory,))

    def write_missing(self, space: str | None = None) -> int:
        """Publish what a process that died left, of a space or of all; return the number."""
        if self._root is None:
            return 0
        missing = self._store.generations.without_files(SPACES_MAX, space)
        return sum(self.write(each, number) for each, number in missing)

    # what people wrote

    def noticed(self) -> list[str]:
        """The spaces whose files were edited since anybody looked; each edit is reported once."""
        return self._watch.noticed(in_turn=True)

    def noticed_in(self, space: str | None) -> list[str]:
        """The same, of one space or of all, however many files there are."""
        return self._watch.noticed(None if space is None else folder_of(space))

    def absorb(self, space: str) -> Absorbed:
        """Take up what people wrote into the files of a space; it never fails a generation."""
        directory = self.directory(space)
        if directory is None or self._facts is None:
            return NOTHING
        try:
            found = absorb(self._documents(space), self._facts(space), directory)
        except StoreClosed:
            raise
        except (RecollectError, OSError) as error:
            _log.warning("edits in the files of space %r were not taken up: %s", space, error)
            return Absorbed(left=(Problem(file=str(directory), reason=str(error)),))
        if found.added or found.documents:
            _log.info(
                "space %r was edited as files: %d facts added, %d documents changed",
                *(space, len(found.added), len(found.documents)),
            )
        return found


def _beside(directory: Path) -> list[Path]:
    """What publications have made beside a directory."""
    prefix = glob.escape(f".{directory.name}.recollect-")
    return sorted(directory.parent.glob(f"{prefix}*"))


def _is_abandoned(place: Path) -> bool:
    """Whether nobody is at work on a directory beside the published one."""
    with suppress(OSError), Folder.named(place) as folder:
        return folder.lock()
    return False


def _cleared(
    space: str, directory: Path, places: Sequence[Path], stale: Sequence[Path] = ()
) -> tuple[str, ...]:
    """Remove directories with all that is in them; what is left, and may say what is forgotten."""
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    left = [*stale, *filter(_is_there, places), *take_away(directory)]
    if left:
        _log.warning(
            "files of space %r may still say what was forgotten: %s",
            *(space, ", ".join(map(str, left))),
        )
    return tuple(map(str, left))


def _is_there(place: Path) -> bool:
    return place.is_symlink() or place.exists()


def _report_left(space: str, left: Sequence[Problem], made: Publication) -> None:
    """Say which edits were not taken up, and where they are from now on."""
    kept = [each for each in made.kept_aside if f".recollect-{made.generation}-edited" in each]
    if not left and not kept:
        return
    reasons = "; ".join(f"{each.file}: {each.reason}" for each in left[:EDITS_NAMED])
    more = f"; and {len(left) - EDITS_NAMED} more" if len(left) > EDITS_NAMED else ""
    where = f"; they are kept in {', '.join(kept)}" if kept else ""
    _log.warning(
        "edits in the files of space %r were not taken up: %s%s%s",
        *(space, reasons or "made in the last moment", more, where),
    )


# while a model writes


def nowhere(_space: str, _token: int) -> contextlib.AbstractContextManager[Show]:
    """Where nothing is published, nothing is shown."""
    return contextlib.nullcontext(lambda _pages, _others: None)


def take_away(directory: Path) -> tuple[Path, ...]:
    """Remove what runs show beside a published directory, also if they go on; what could not be."""
    mine = f"{glob.escape(_prefix(directory))}*"
    # Those first that were given another name and not removed: they stand in the way of others.
    for each in sorted(directory.parent.glob(mine), reverse=True):
        place = each
        if each.is_symlink():  # nothing of ours is behind it
            each.unlink(missing_ok=True)
        elif not each.name.endswith(_GONE):
            # A run that shows its pages there must not find the directory while it is emptied.
            with contextlib.suppress(OSError):
                place = each.rename(each.with_name(f"{each.name}{_GONE}"))
        shutil.rmtree(place, ignore_errors=True)
    return tuple(sorted(directory.parent.glob(mine)))


@contextlib.contextmanager
def shown_in(directory: Path, token: int) -> Iterator[Show]:
    """Show what is staged beside a published directory, under a name with the token of the run."""
    place = directory.with_name(f"{_prefix(directory)}{token}")
    shown: set[str] = set()

    def show(staged_pages: StagedPages, others: Iterable[str]) -> None:
        """All of it the first time; then what a model can have written since."""
        staged = staged_pages.touched
        paths = {path for path in staged if path not in shown or not _is_evidence(path)}
        try:
            for path in sorted(paths.union(others)):
                _write(staged_pages, path, place)
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
        yield lambda _pages, _others: None
        return
    try:
        yield show
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _prefix(directory: Path) -> str:
    return f".{directory.name}.staged-"


def _is_evidence(path: str) -> bool:
    return path == RAW or path.startswith(f"{SUMMARIES}/")


def _write(staged_pages: StagedPages, path: str, place: Path) -> None:
    """A page as it is staged, as a file; none, if it is deleted."""
    slugs = read_path(path).slugs[len(memory_root().slugs) :]
    file = place.joinpath(*slugs[:-1], f"{slugs[-1]}{EXTENSION}")
    found = staged_pages.find(path)
    if found is None:
        file.unlink(missing_ok=True)
        return
    folder = place
    for slug in slugs[:-1]:
        folder = folder / slug
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    file.write_bytes(render(found))
    file.chmod(FILE_MODE)
