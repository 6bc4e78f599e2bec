"""Loading a directory of Markdown files into the tree: what people wrote there, in one transaction.

Only reads the directory. Whatever a file is or holds, it is at worst reported; what can be had is
had, and what cannot stays as it is on both sides.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from recollect.documents import manifest as manifests
from recollect.documents.files import Folder, target_of
from recollect.documents.manifest import Manifest
from recollect.documents.paths import DocumentPath
from recollect.documents.reconcile import reconcile
from recollect.documents.shelf import Conflict, Plan, Problem, Relocation, Shelf
from recollect.documents.survey import Survey, survey
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    InvalidValue,
    NotFound,
    StaleVersion,
    UnusableDirectory,
)

TRIES_MAX = 8  # of a load, when others change the tree meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What came of a load: paths of documents, and what was not loaded."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    merged: tuple[str, ...]
    moved: tuple[Relocation, ...]
    deleted: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    problems: tuple[Problem, ...]


def load(
    shelf: Shelf,
    directory: str | os.PathLike[str],
    *,
    root: DocumentPath | None = None,
    dry_run: bool = False,
) -> Loading:
    """Load what was changed in a directory; into `root`, or to where it was published from."""
    known, found = _read(shelf, directory, root)
    for attempt in range(TRIES_MAX):
        plan = reconcile(shelf, found, known)
        if dry_run or not plan.edits:
            break
        try:
            shelf.apply(plan.edits)
            break
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath):
            # Somebody else has changed the tree since the plan was made.
            if attempt + 1 == TRIES_MAX:
                raise
    return _loading(plan)


def read_manifest(folder: Folder) -> Manifest | None:
    """The manifest of a directory; none: it has none. InvalidValue: it cannot be read."""
    if folder.stat(manifests.NAME) is None:
        return None
    return manifests.read(folder.read(manifests.NAME, manifests.BYTES_MAX).data)


def _read(
    shelf: Shelf, directory: str | os.PathLike[str], root: DocumentPath | None
) -> tuple[Manifest | None, Survey]:
    with target_of(directory) as target:
        held = target.held(is_shared=True)
        if held is None:
            raise UnusableDirectory(f"there is no directory at {target.shown}")
        with held:
            problem, known = "", None
            try:
                known = read_manifest(held)
            except InvalidValue as error:
                problem = str(error)
            if known is not None and known.space != shelf.space:
                known = None
            if root is None:
                root = shelf.holder.top if known is None else known.root
            elif known is not None and known.root.key != root.key:
                known = None
            shelf.holder.check_read(root)
            found = survey(held, root, shelf.limits, known)
            if problem:
                found.skipped[manifests.NAME] = problem
            return known, found


def _loading(plan: Plan) -> Loading:
    return Loading(
        created=tuple(plan.created),
        changed=tuple(plan.changed),
        merged=tuple(plan.merged),
        moved=tuple(plan.moved),
        deleted=tuple(plan.deleted),
        conflicts=tuple(plan.conflicts),
        problems=tuple(plan.problems),
    )
