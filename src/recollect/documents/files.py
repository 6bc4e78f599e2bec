"""Access to directories by descriptor, so that no other process can redirect a lookup.

A Folder is an open directory. Its entries are named by a single component; links are never
followed, and only plain files are read. A PublishTarget is the directory that holds generations: it
owns the atomic exchange of two of them, the lock that keeps a publish and a load apart, and the
names of the entries beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from recollect.errors import (
    InvalidValue,
    RecollectError,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    SwapUnsupported,
    TooLarge,
    UnusableDirectory,
    UsageError,
)

FILE_MODE, FOLDER_MODE = 0o600, 0o700
UNFINISHED = ".recollect-unfinished"  # in a directory that is not whole, or not any more

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Opening something else than a file, put there a moment ago, must not wait for anybody.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_RENAME_EXCHANGE = 2
_CHUNK_BYTES = 1 << 20
_WIPED_DEPTH_MAX = 64
_NAMES_MAX = 1000
_KEPT = "-edited"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_AS_IT_WAS = frozenset(
    {errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY}
)
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_IS_A_MOUNT_POINT = "is a mount point, which cannot change places: name a directory below it"
_STANDS_FOR_OTHERS = frozenset({"", os.curdir, os.pardir})


@dataclass(frozen=True, slots=True)
class Identity:
    """Which thing it is, whatever its name."""

    device: int
    inode: int


class Folder:
    """An open directory."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def named(cls, path: Path) -> Self:
        """A directory by path, as the operator wrote it; from here on, descriptors only."""
        return cls(os.open(path, _FOLDER))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was locked is not any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def identity(self) -> Identity:
        return identity_of(os.fstat(self._fd))

    # look

    def names(self) -> list[str]:
        return sorted(os.listdir(self._fd))  # noqa: PTH208 - a descriptor, not a path

    def stat(self, name: str) -> os.stat_result | None:
        """What stands there, a link itself; none: nothing does."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def identity_at(self, name: str) -> Identity | None:
        found = self.stat(name)
        return None if found is None else identity_of(found)

    def folder(self, name: str) -> Folder:
        """A directory in it; OSError if it is a link or none."""
        return Folder(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._fd))

    def below(self, path: str, *, makes: bool = False) -> Folder:
        """A directory at any depth, or this one again; what is missing is made if that is asked."""
        folder = Folder(os.open(".", _FOLDER, dir_fd=self._fd))
        for name in filter(None, path.split("/")):
            with folder:
                if makes:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, FOLDER_MODE, dir_fd=folder._fd)
                folder = folder.folder(name)
        return folder

    def read(self, name: str, bytes_max: int) -> bytes:
        """A plain file in it. InvalidValue: it is none, or too large."""
        return b"".join(self._pieces(name, bytes_max))

    def digest(self, name: str, bytes_max: int) -> str:
        """The SHA-256 of a plain file, which need not fit into memory."""
        digest = hashlib.sha256()
        for piece in self._pieces(name, bytes_max):
            digest.update(piece)
        return digest.hexdigest()

    def _pieces(self, name: str, bytes_max: int) -> Iterator[bytes]:
        # Looked at before it is opened as well: opening a device may do something.
        _check_plain(os.stat(name, dir_fd=self._fd, follow_symlinks=False), bytes_max)
        fd = os.open(name, _READ, dir_fd=self._fd)
        try:
            _check_plain(os.fstat(fd), bytes_max)
            size = 0
            while piece := os.read(fd, _CHUNK_BYTES):
                size += len(piece)
                if size > bytes_max:
                    raise TooLarge(f"it grew beyond {bytes_max:,} bytes")
                yield piece
        finally:
            os.close(fd)

    # change

    def make(self, name: str) -> Folder:
        os.mkdir(name, FOLDER_MODE, dir_fd=self._fd)
        return self.folder(name)

    def write(self, name: str, data: bytes, modified_ns: int | None = None) -> None:
        """A new file, safely on the disk. FileExistsError: there is something."""
        fd = os.open(name, _WRITE, FILE_MODE, dir_fd=self._fd)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if modified_ns is not None:
                os.utime(fd, ns=(modified_ns, modified_ns))
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(self, name: str, data: bytes) -> None:
        """Another text of a file, in one step and safely on the disk; its time stays."""
        aside, found = f"{name}.new", self.stat(name)
        with contextlib.suppress(FileNotFoundError):
            self.remove(aside)  # of somebody who died on the way
        self.write(aside, data, None if found is None else found.st_mtime_ns)
        self.rename(aside, name)
        self.sync()

    def link(self, name: str, source: Folder, expected: Identity) -> bool:
        """The very file of another directory, here too; false if it cannot be that one."""
        try:
            os.link(name, name, src_dir_fd=source._fd, dst_dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return False
        if self.identity_at(name) == expected:
            return True
        self.remove(name)
        return False

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(name, dir_fd=self._fd)

    def rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def exchange(self, a: str, b: str) -> None:
        """Two names change places in one step. SwapUnsupported: it cannot be done here."""
        renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if renameat2 is None:
            raise SwapUnsupported("this system cannot exchange two directories in one step")
        names = os.fsencode(a), os.fsencode(b)
        if renameat2(self._fd, names[0], self._fd, names[1], _RENAME_EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number in _CANNOT:
            raise SwapUnsupported(
                f"the file system of {b!r} cannot exchange two directories in one step: "
                "publish to another one"
            )
        raise OSError(number, os.strerror(number), b)

    def sync(self) -> None:
        os.fsync(self._fd)

    def lock(self, *, is_shared: bool = False) -> bool:
        """Hold it against others until it is closed; false if somebody else does."""
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def identity_of(found: os.stat_result) -> Identity:
    return Identity(found.st_dev, found.st_ino)


def _check_plain(found: os.stat_result, bytes_max: int) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise InvalidValue("it is a link, and links are not followed")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValue("it is neither a file nor a directory")
    if found.st_size > bytes_max:
        raise TooLarge(f"it has {found.st_size:,} bytes, and a document at most {bytes_max:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTarget:
    """Where a tree is published to: a name in an open directory."""

    parent: Folder
    name: str
    shown: str

    def held(self, *, is_shared: bool) -> Folder | None:
        """The directory, locked; none: there is nothing yet. StoreBusy: somebody is at work."""
        found = self.parent.stat(self.name)
        if found is None:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise UnusableDirectory(f"{self.shown} is a link, and links are not followed")
        if not stat.S_ISDIR(found.st_mode):
            raise UnusableDirectory(f"{self.shown} is not a directory")
        folder = self.parent.folder(self.name)
        is_held = folder.lock(is_shared=is_shared)
        if is_held and self.parent.identity_at(self.name) == folder.identity:
            return folder
        folder.close()
        raise StoreBusy(f"another process publishes to {self.shown} or loads from it; try again")

    def check_can_be_replaced(self) -> None:
        found = self.parent.identity_at(self.name)
        if found is not None and found.device != self.parent.identity.device:
            raise UnusableDirectory(f"{self.shown} {_IS_A_MOUNT_POINT}")

    # the next generation

    @contextlib.contextmanager
    def aside(self, number: int) -> Iterator[tuple[str, Folder]]:
        """A new directory beside the target; it is gone if it does not come to be published."""
        numbers = range(number, number + _NAMES_MAX)
        name = self._first_free(map(self._name_beside, numbers))
        with self._begun(name) as folder:
            try:
                yield name, folder
            except BaseException:
                if self.parent.identity_at(self.name) != folder.identity:
                    self.remove(name, folder)
                raise

    def _begun(self, name: str) -> Folder:
        """Locked and marked; until then others may take it for what somebody dead has left."""
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self.parent.make(name))
                if folder.lock():
                    folder.write(UNFINISHED, b"")
                    stack.pop_all()
                    return folder
            except (FileExistsError, FileNotFoundError):
                pass
            except PermissionError as error:
                raise StoreDenied(
                    f"{Path(self.shown).parent}: {error.strerror}; a generation is written "
                    "beside the one before, so its directory has to be writable"
                ) from error
        raise StoreBusy(f"another process publishes to {self.shown}; try again")

    def _name_beside(self, number: int) -> str:
        return f".{self.name}.recollect-{number}"

    def _first_free(self, names: Iterator[str]) -> str:
        for name in names:
            if self.parent.stat(name) is None:
                return name
        raise UnusableDirectory(f"there is no free name beside {self.shown}")

    def swap(self, name: str, aside: Folder, old: Folder | None) -> None:
        """A generation takes the place of the one before, or of nothing."""
        if self.parent.identity_at(name) != aside.identity:
            raise UnusableDirectory(f"{shown(name)}, beside the target, was replaced meanwhile")
        if old is None:
            self._put(name)
        else:
            if self.parent.identity_at(self.name) != old.identity:
                raise UnusableDirectory(f"{self.shown} was replaced meanwhile")
            self.parent.exchange(name, self.name)
        if self.parent.identity_at(self.name) != aside.identity:
            if old is not None:
                self.parent.exchange(name, self.name)
            raise UnusableDirectory(f"{shown(name)} was replaced at the last moment")
        self.parent.sync()

    def _put(self, name: str) -> None:
        try:
            self.parent.rename(name, self.name)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StoreBusy(
                    f"{self.shown} was created by another process meanwhile; try again"
                ) from error
            raise

    # what stands beside it

    def remove(self, name: str, folder: Folder) -> None:
        """Remove what is no generation any more; what is left of it goes some other time."""
        with contextlib.suppress(OSError, UsageError):
            if folder.stat(UNFINISHED) is None:
                folder.write(UNFINISHED, b"")
            wipe(folder, UNFINISHED)
            self.parent.remove_folder(name)

    def keep(self, name: str) -> None:
        """Give a directory with edits a name that says so."""
        with contextlib.suppress(OSError, UsageError):
            self.parent.rename(name, self._name_of_kept(name))

    def keep_copies(self, number: int, texts: Mapping[str, bytes]) -> Path:
        """Write files that say something else than their documents beside the target, for good."""
        name = self._name_of_kept(self._name_beside(number))
        with self.parent.make(name) as folder:
            for path, data in texts.items():
                above, _, last = path.rpartition("/")
                with folder.below(above, makes=True) as inner:
                    inner.write(last, data)
        self.parent.sync()
        return Path(self.shown).with_name(name)

    def _name_of_kept(self, name: str) -> str:
        more = (f"{name}{_KEPT}-{number}" for number in range(2, _NAMES_MAX))
        return self._first_free(iter((f"{name}{_KEPT}", *more)))

    def kept_aside(self) -> tuple[str, ...]:
        """All directories with edits that stand beside the target, until somebody removes them."""
        where = Path(self.shown)
        return tuple(str(where.with_name(name)) for name in self._beside(rf"{_KEPT}(-[0-9]+)?"))

    def leftovers(self) -> Iterator[tuple[str, Folder]]:
        """Directories of publications that died."""
        for name in self._beside(""):
            with contextlib.suppress(OSError, UsageError), self.parent.folder(name) as folder:
                if folder.lock():
                    yield name, folder

    def _beside(self, ending: str) -> list[str]:
        pattern = re.compile(re.escape(self._name_beside(0)[:-1]) + "[0-9]+" + ending)
        return [name for name in self.parent.names() if pattern.fullmatch(name)]


@contextlib.contextmanager
def target_of(directory: str | os.PathLike[str]) -> Iterator[PublishTarget]:
    """The place that a path names; what the system says against it becomes one of our errors."""
    given = os.fspath(directory)
    if not given:
        raise UnusableDirectory("no directory was given; use . for the current one")
    path = Path(given)
    try:
        if path.name in _STANDS_FOR_OTHERS:
            path = path.resolve(strict=True)
            if not path.name:
                raise UnusableDirectory(f"{path} has no parent directory for a copy")
        # The system finds the way: what `..` means depends on the links before it.
        with Folder.named(path.parent) as parent:
            yield PublishTarget(parent=parent, name=path.name, shown=str(_shown_path(path)))
    except OSError as error:
        if isinstance(error, RecollectError):
            raise
        raise _typed(error, path) from error


def _shown_path(path: Path) -> Path:
    try:
        return path.parent.resolve() / path.name
    except OSError:
        return path


def _typed(error: OSError, path: Path) -> RecollectError:
    said = f"{path}: {error.strerror or error}"
    if error.errno in _FULL:
        return StoreFull(said)
    if error.errno in _DENIED:
        return StoreDenied(said)
    if error.errno == errno.EBUSY:
        return UnusableDirectory(f"{path} {_IS_A_MOUNT_POINT}")
    if error.errno in _NOT_AS_IT_WAS:
        return UnusableDirectory(f"{said} ({shown(str(error.filename))})")
    return StoreError(said)


def wipe(folder: Folder, last: str = "", depth: int = 0) -> None:
    """Remove all that is in a directory, links themselves; `last` goes at the end."""
    if depth > _WIPED_DEPTH_MAX:
        raise UnusableDirectory(f"there are directories more than {_WIPED_DEPTH_MAX} deep")
    for name in sorted(folder.names(), key=lambda name: (name == last, name)):
        found = folder.stat(name)
        if found is not None and stat.S_ISDIR(found.st_mode):
            with folder.folder(name) as inner:
                wipe(inner, depth=depth + 1)
            folder.remove_folder(name)
        elif found is not None:
            folder.remove(name)


def shown(name: str) -> str:
    """A name from a disk as it can be printed, whatever its bytes were."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
