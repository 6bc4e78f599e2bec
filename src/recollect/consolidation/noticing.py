"""Notices that people edited published files: by size and time, so that it costs next to nothing.

A file is read only where those say that it may have changed. A change that hides from them is found
when the directory is published next, which reads everything. Nothing is followed, and nothing is
locked: a directory that changes places meanwhile is looked at another time.
"""

from __future__ import annotations

import contextlib
import json
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from recollect.config.settings import folder_of
from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, target_of
from recollect.documents.loaded import Known, read_known
from recollect.documents.manifest import Entry
from recollect.documents.paths import DEPTH_MAX, EXTENSION
from recollect.errors import InvalidValue, SchemaTooNew, TooLarge, UnusableDirectory

FILES_MAX = 1_000_000  # of one directory
FILES_LOOKED_MAX = 20_000  # at once, before others have their turn; a directory is seen whole
SEEN_MAX = 10_000  # directories that are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What can be seen of a file without reading it."""

    inode: int
    size_bytes: int
    changed_ns: int
    is_plain: bool


Glances = Mapping[str, Glance]  # by name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a directory looked like, and what of it was an edit."""

    look: str
    edit: str


def changed_files(directory: Path) -> list[str]:
    """The files of a published directory that are not as it is known, and those that are gone.

    None of them, too, if there is no directory, or nothing is known of it.
    """
    if not directory.parent.is_dir():
        return []
    with target_of(directory) as target:
        found = target.parent.stat(target.name)
        if found is None:
            return []
        if not stat.S_ISDIR(found.st_mode):
            raise UnusableDirectory(f"{target.shown} is a link, or no directory")
        with target.parent.folder(target.name) as folder:
            return _changed(folder, read_known(folder), _glances(folder))


@dataclass(slots=True)
class Watch:
    """Remembers what was seen, so that an edit is noticed once. Safe to share between threads."""

    root: Path | None
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _after: str = ""  # where the last look ended
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def noticed(self) -> list[str]:
        """The spaces whose directories were edited since they were looked at last.

        With very many files only some have their turn.
        """
        return self._looked(self._look_round)

    def noticed_in(self, name: str | None) -> list[str]:
        """The same, of one directory or of all, however many files there are."""

        def look(root: Folder) -> list[str]:
            names = _directories(root) if name is None else [name]
            found = (self._space_of_news(root, each)[0] for each in names)
            return [space for space in found if space]

        return self._looked(look)

    def _looked(self, look: Callable[[Folder], list[str]]) -> list[str]:
        if self.root is None:
            return []
        with self._lock:
            try:
                with Folder.named(self.root) as root:
                    return look(root)
            except OSError:
                return []  # there is nothing yet, or nobody may look

    def _look_round(self, root: Folder) -> list[str]:
        names = _directories(root)
        turn = [name for name in names if name > self._after]
        turn += [name for name in names if name <= self._after]
        spaces, looked = [], 0
        for name in turn:
            if looked >= FILES_LOOKED_MAX:
                break
            self._after = name
            space, files = self._space_of_news(root, name)
            spaces += [space] if space else []
            looked += files
        return spaces

    def _space_of_news(self, root: Folder, name: str) -> tuple[str, int]:
        with contextlib.suppress(OSError, InvalidValue, SchemaTooNew):
            return self._look(root, name)
        return "", 0

    def _look(self, root: Folder, name: str) -> tuple[str, int]:
        """The space of a directory if there is something new in it; how many files it has."""
        with root.folder(name) as folder:
            glances = _glances(folder)
            look = _digest(glances, glances)
            seen = self._seen.get(name)
            if seen is not None and seen.look == look:
                return "", len(glances)
            known = read_known(folder)
            space = "" if known is None else known.published.space
            changed = _changed(folder, known, glances) if folder_of(space) == name else []
            if root.identity_at(name) != folder.identity or folder.stat(UNFINISHED) is not None:
                return "", len(glances)
        edit = _digest(changed, glances) if changed else ""
        self._remember(name, _Seen(look=look, edit=edit))
        is_news = bool(edit) and (seen is None or seen.edit != edit)
        return space if is_news else "", len(glances)

    def _remember(self, name: str, seen: _Seen) -> None:
        self._seen.pop(name, None)
        self._seen[name] = seen
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]


def _directories(root: Folder) -> list[str]:
    return [name for name in root.names() if not name.startswith(".")]


def _glances(folder: Folder) -> dict[str, Glance]:
    found: dict[str, Glance] = {}
    _walk(folder, "", found, 0)
    return found


def _walk(folder: Folder, prefix: str, found: dict[str, Glance], depth: int) -> None:
    """Look at everything that may be a document; what is hidden or none cannot be taken up."""
    for name in folder.names():
        if name.startswith(".") or depth > DEPTH_MAX:
            continue
        seen = folder.stat(name)
        if seen is None:
            continue
        if stat.S_ISDIR(seen.st_mode):
            with folder.folder(name) as inner:
                _walk(inner, f"{prefix}{name}/", found, depth + 1)
        elif name.endswith(EXTENSION):
            found[f"{prefix}{name}"] = Glance(
                inode=seen.st_ino,
                size_bytes=seen.st_size,
                changed_ns=seen.st_mtime_ns,
                is_plain=stat.S_ISREG(seen.st_mode),
            )
        if len(found) > FILES_MAX:
            raise TooLarge(f"there are more than {FILES_MAX:,} files")


def _changed(folder: Folder, known: Known | None, glances: Glances) -> list[str]:
    published = folder.stat(manifests.NAME)
    if published is None or known is None:
        return []
    entries = {each.path: each for each in known.base.entries if each.sha256}
    return sorted(
        name
        for name in entries.keys() | glances.keys()
        if not _is_known(folder, name, entries.get(name), glances.get(name), published.st_mtime_ns)
    )


def _is_known(
    folder: Folder, name: str, entry: Entry | None, glance: Glance | None, published_ns: int
) -> bool:
    if entry is None or glance is None or not glance.is_plain:
        return False
    if glance.size_bytes != entry.size_bytes:
        return False
    # The list of what was published is written last: whatever is older is as it was.
    return glance.changed_ns <= published_ns or _sha256(folder, name, glance) == entry.sha256


def _sha256(folder: Folder, name: str, glance: Glance) -> str:
    *folders, last = name.split("/")
    with contextlib.ExitStack() as stack:
        for each in folders:
            folder = stack.enter_context(folder.folder(each))
        try:
            return folder.digest(last, glance.size_bytes)
        except (OSError, InvalidValue):
            return ""  # it is being changed at this very moment


def _digest(names: Mapping[str, Glance] | list[str], glances: Glances) -> str:
    told = []
    for name in sorted(names):
        seen = glances.get(name)
        told.append([name, *((seen.inode, seen.size_bytes, seen.changed_ns) if seen else ())])
    return sha256(json.dumps(told).encode()).hexdigest()
