"""Directories by descriptor, so that no name is looked up where somebody could redirect it.

A Folder is an open directory. What is in it is named by one component, is never followed if it is a
link, and is read only if it is a plain file. Owns the one step in which two generations change
places, and the lock that keeps whoever publishes and whoever loads out of each other's way.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A plain file: what it holds, which one it is, and who may read it."""

    data: bytes
    identity: Identity
    mode: int


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

    def read(self, name: str, bytes_max: int) -> FileRead:
        """A plain file in it. InvalidValue: it is none, or too large."""
        found = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        _check_plain(found, bytes_max)
        fd = os.open(name, _READ, dir_fd=self._fd)
        try:
            found = os.fstat(fd)
            _check_plain(found, bytes_max)
            data = b"".join(_pieces(fd, bytes_max))
        finally:
            os.close(fd)
        return FileRead(data=data, identity=identity_of(found), mode=stat.S_IMODE(found.st_mode))

    def digest(self, name: str, bytes_max: int) -> str:
        """The SHA-256 of a plain file, which need not fit into memory."""
        fd = os.open(name, _READ, dir_fd=self._fd)
        try:
            _check_plain(os.fstat(fd), bytes_max)
            digest = hashlib.sha256()
            for piece in _pieces(fd, bytes_max):
                digest.update(piece)
        finally:
            os.close(fd)
        return digest.hexdigest()

    # change

    def make(self, name: str) -> Folder:
        os.mkdir(name, FOLDER_MODE, dir_fd=self._fd)
        return self.folder(name)

    def write(self, name: str, data: bytes) -> None:
        """A new file, safely on the disk. FileExistsError: there is something."""
        fd = os.open(name, _WRITE, FILE_MODE, dir_fd=self._fd)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(self, name: str, data: bytes) -> None:
        """A file in the place of another one, in one step and safely on the disk."""
        aside = f"{name}.new"
        with contextlib.suppress(FileNotFoundError):
            self.remove(aside)  # of somebody who died on the way
        self.write(aside, data)
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


def _pieces(fd: int, bytes_max: int) -> Iterator[bytes]:
    size = 0
    while piece := os.read(fd, _CHUNK_BYTES):
        size += len(piece)
        if size > bytes_max:
            raise TooLarge(f"it grew beyond {bytes_max:,} bytes")
        yield piece


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
        raise StoreBusy(f"somebody else publishes to {self.shown} or loads from it; try again")

    def check_can_be_replaced(self) -> None:
        found = self.parent.identity_at(self.name)
        if found is not None and found.device != self.parent.identity.device:
            raise UnusableDirectory(f"{self.shown} {_IS_A_MOUNT_POINT}")


@contextlib.contextmanager
def target_of(directory: str | os.PathLike[str]) -> Iterator[PublishTarget]:
    """The place that a path names; what the system says against it becomes one of our errors."""
    given = os.fspath(directory)
    if not given:
        raise UnusableDirectory("no directory is named; the one you are in is .")
    path = Path(given)
    try:
        if path.name in _STANDS_FOR_OTHERS:
            path = path.resolve(strict=True)
            if not path.name:
                raise UnusableDirectory(f"{path} has nothing beside it, where a copy could be made")
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
