"""How a file that is made gets its name: once it is whole and durable, and only if nobody has it.

Until then it lies beside, under a name that the next attempt clears away.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from recollect.errors import InvalidValue, NotEmpty, StoreDenied

# What file systems say on which a file has one name alone, such as those of memory sticks.
_ONE_NAME = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def aside_of(path: Path) -> Path:
    """The name beside `path` for what is not whole yet."""
    if not path.name or "\0" in str(path):
        raise InvalidValue(f"no file can be called {str(path)!r}; name a new one")
    return path.with_name(f"{path.name}.part")


def check_free(path: Path, advice: str) -> None:
    """NotEmpty: whatever it is, a link or a device too, something has the name already."""
    if not os.path.lexists(path):
        return
    _clear_other_name(path)
    raise NotEmpty(f"{path} exists already; {advice}")


def put_into_place(aside: Path, path: Path) -> None:
    """Give a file that is whole its name, if nobody has it."""
    try:
        sync_file(aside)
        _name(aside, path)
        sync_file(path.parent)
    except FileExistsError as error:
        raise NotEmpty(f"{path} exists already; nothing was written over it") from error
    except OSError as error:
        raise StoreDenied(f"cannot write {path}: {error.strerror}") from error


def sync_file(path: Path) -> None:
    """Let the disk have what was written to a file, or which names a directory has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(aside: Path, path: Path) -> None:
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _ONE_NAME:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        aside.replace(path)


def _clear_other_name(path: Path) -> None:
    """Take the other name from a file whose maker was killed when it had both."""
    if not path.name:
        return
    with contextlib.suppress(OSError):
        if aside_of(path).samefile(path):
            aside_of(path).unlink()
