"""Names the project of a directory: the root of its work tree, as everybody else names it too.

Importers, hooks and tools all use this module, so that what was learned in one session is found in
the next. A directory may come from a log and is not trusted: it is read, never changed, and its
`.git` is believed only where the repository that it names agrees.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import stat
from functools import lru_cache
from pathlib import Path, PureWindowsPath

DIRECTORY_BYTES_MAX = 400
GIT_FILE_BYTES_MAX = 4096
_LEVELS_MAX = 64


def project_of(directory: str) -> str | None:
    """The nearest directory from here upwards that has a `.git`, else the directory itself.

    A work tree that is linked to a repository is that repository's main one; a submodule is itself.
    None for what is no absolute path, has control characters or is too long to be a name. A path of
    another machine, or of another system, is a name like any other. Paths are taken as they are
    written: no link is followed.
    """
    known = known_directory(directory)
    return None if known is None else _root_of(known)


def known_directory(value: object) -> str | None:
    """An absolute path without `..` and without a slash at its end; none for anything else."""
    if not isinstance(value, str) or not value or not value.isprintable():
        return None
    if len(value) > DIRECTORY_BYTES_MAX or len(value.encode()) > DIRECTORY_BYTES_MAX:
        return None
    # As text: the directory need not exist here.
    if value.startswith("/"):
        return posixpath.normpath(f"/{value.lstrip('/')}")
    return ntpath.normpath(value) if PureWindowsPath(value).is_absolute() else None


@lru_cache(maxsize=1024)
def _root_of(directory: str) -> str:
    # Two separators begin the name of another machine: to look there would mean to call it.
    if not Path(directory).is_absolute() or directory.startswith(("//", "\\\\")):
        return directory
    here = Path(directory)
    for candidate in (here, *list(here.parents)[:_LEVELS_MAX]):
        if _has_git(candidate):
            return _main_tree(candidate) or str(candidate)
    return directory


def _has_git(directory: Path) -> bool:
    """A directory in a work tree of its own, a file in one that belongs to another repository."""
    try:
        return os.path.lexists(directory / ".git")
    except (OSError, ValueError):
        return False


def _main_tree(directory: Path) -> str | None:
    """The main work tree of a linked one; None if it is not linked, or is not known there."""
    named = _line(directory / ".git")
    if not named.startswith("gitdir: "):
        return None
    own = _joined(directory, named.removeprefix("gitdir: "))
    common, back = _line(own / "commondir"), _line(own / "gitdir")
    if not common or not back or _joined(own, back) != directory / ".git":
        return None
    repository = _joined(own, common)
    if own.parent != repository / "worktrees":
        return None
    # Beside its work trees a bare repository is hidden, or else a project by its own name.
    root = repository.parent if repository.name.startswith(".") else repository
    return known_directory(str(root))


def _line(file: Path) -> str:
    """What a small file says in its first line; nothing if it is none."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode) or file.lstat().st_size > GIT_FILE_BYTES_MAX:
            return ""
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, ValueError):
        return ""


def _joined(directory: Path, path: str) -> Path:
    return Path(os.path.normpath(directory / path))
