"""Generations of a directory: one is made beside it, takes its place, and the one before retires.

Owns the step in which two generations change places, and that nothing is removed that anybody has
changed: it is kept under a name that says so.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.documents.files import UNFINISHED, Folder, Target, shown, wipe
from recollect.errors import StoreBusy, StoreDenied, UnusableDirectory, UsageError

_NAMES_MAX = 1000
_TRIES_MAX = 16
_KEPT = "-edited"


@dataclass(slots=True, kw_only=True)
class Generations:
    """What stands beside a target, and belongs to it."""

    target: Target
    old: Folder | None

    @contextlib.contextmanager
    def aside(self, number: int) -> Iterator[tuple[str, Folder]]:
        """A new directory beside the target; it is gone if it does not come to be published."""
        name, aside = self._made(number)
        with aside:
            try:
                yield name, aside
            except BaseException:
                if self.target.parent.identity_at(self.target.name) != aside.identity:
                    with contextlib.suppress(OSError, UsageError):
                        wipe(aside, UNFINISHED)
                        self.target.parent.remove_folder(name)
                raise

    def _made(self, number: int) -> tuple[str, Folder]:
        for _ in range(_TRIES_MAX):
            name = self._free_name(number)
            try:
                folder = self.target.parent.make(name)
            except FileExistsError:
                continue  # somebody else was faster
            except PermissionError as error:
                raise StoreDenied(
                    f"{Path(self.target.shown).parent}: {error.strerror}; a generation is written "
                    "beside the one before, so its directory has to be writable"
                ) from error
            with contextlib.ExitStack() as stack:
                stack.enter_context(folder)
                if self._is_begun(name, folder):
                    stack.pop_all()
                    return name, folder
        raise StoreBusy(f"somebody else publishes to {self.target.shown}; try again")

    def _is_begun(self, name: str, folder: Folder) -> bool:
        """Before it is marked, others may take it for what somebody dead has left behind."""
        try:
            if not folder.lock():
                return False
            folder.write(UNFINISHED, b"")
        except FileNotFoundError:
            return False
        return self.target.parent.identity_at(name) == folder.identity

    def _free_name(self, number: int) -> str:
        for each in range(number, number + _NAMES_MAX):
            name = f".{self.target.name}.recollect-{each}"
            if self.target.parent.stat(name) is None:
                return name
        raise UnusableDirectory(f"there is no free name beside {self.target.shown}")

    def swap(self, name: str, aside: Folder) -> None:
        """A generation takes the place of the one before, or of nothing."""
        parent, target = self.target.parent, self.target.name
        if parent.identity_at(name) != aside.identity:
            raise UnusableDirectory(f"somebody has replaced {shown(name)} beside the target")
        if self.old is None:
            self._put(name)
        else:
            if parent.identity_at(target) != self.old.identity:
                raise UnusableDirectory(f"somebody has replaced {self.target.shown} meanwhile")
            parent.exchange(name, target)
        if parent.identity_at(target) != aside.identity:
            if self.old is not None:
                parent.exchange(name, target)
            raise UnusableDirectory(f"somebody has replaced {shown(name)} in the last moment")
        parent.sync()

    def _put(self, name: str) -> None:
        try:
            self.target.parent.rename(name, self.target.name)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StoreBusy(
                    f"somebody else has made {self.target.shown} meanwhile; try again"
                ) from error
            raise

    # what is left of generations before

    def retire(self, name: str, is_as_it_was: Callable[[Folder], bool]) -> None:
        """Remove the generation before, if it still is what it was when it was looked at."""
        if self.old is None:
            return
        try:
            is_ours = self.target.parent.identity_at(name) == self.old.identity
            if is_ours and is_as_it_was(self.old):
                self.old.write(UNFINISHED, b"")
                self._remove(name, self.old)
                return
        except (OSError, UsageError):
            pass  # whatever it is, it is not removed
        self.keep(name)

    def _remove(self, name: str, folder: Folder) -> None:
        """From here on it is not whole: what cannot be removed now is removed some other time."""
        with contextlib.suppress(OSError, UsageError):
            wipe(folder, UNFINISHED)
            self.target.parent.remove_folder(name)

    def keep(self, name: str) -> None:
        """Give a directory with edits a name that says so."""
        parent = self.target.parent
        for number in range(1, _NAMES_MAX):
            kept = f"{name}{_KEPT}" if number == 1 else f"{name}{_KEPT}-{number}"
            if parent.stat(kept) is None and parent.stat(name) is not None:
                with contextlib.suppress(OSError):
                    parent.rename(name, kept)
                break

    def kept_aside(self) -> tuple[str, ...]:
        """All directories with edits that stand beside the target, until somebody removes them."""
        pattern = re.compile(self._prefix + rf"[0-9]+{_KEPT}(-[0-9]+)?")
        where = Path(self.target.shown)
        names = [name for name in self.target.parent.names() if pattern.fullmatch(name)]
        return tuple(str(where.with_name(name)) for name in names)

    @property
    def _prefix(self) -> str:
        return re.escape(f".{self.target.name}.recollect-")

    def clear(self, is_disposable: Callable[[Folder], bool]) -> None:
        """Remove what a publication that died has left behind."""
        parent = self.target.parent
        pattern = re.compile(self._prefix + "[0-9]+")
        for name in parent.names():
            if not pattern.fullmatch(name):
                continue
            with contextlib.suppress(OSError, UsageError), parent.folder(name) as folder:
                if not folder.lock():
                    continue
                if not folder.names() or folder.stat(UNFINISHED) is not None:
                    self._remove(name, folder)
                elif is_disposable(folder):
                    folder.write(UNFINISHED, b"")
                    self._remove(name, folder)
                else:
                    self.keep(name)
