"""Loading a directory of Markdown files into the tree: what people wrote there, in one transaction.

Changes no file of theirs. Whatever a file is or holds, it is at worst reported; what can be had is
had, and what cannot stays as it is on both sides. What was loaded is noted for the next time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, target_of
from recollect.documents.loaded import Known, note, read_known, renewed
from recollect.documents.manifest import Manifest
from recollect.documents.paths import DocumentPath
from recollect.documents.reconcile import reconcile
from recollect.documents.survey import Conflict, Plan, Problem, Relocation, Shelf, Survey, survey
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    InvalidValue,
    MassDeletion,
    NotFound,
    StaleVersion,
    UnusableDirectory,
)
from recollect.types.pages import Document

TRIES_MAX = 8  # of a load, when others change the tree meanwhile
DELETIONS_UNASKED_MAX = 10  # of more than half of the documents


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What came of a load: paths of documents, and what was not loaded.

    `is_published`: the directory was published from here, and can be published to again.
    """

    created: tuple[str, ...]
    changed: tuple[str, ...]
    merged: tuple[str, ...]
    moved: tuple[Relocation, ...]
    deleted: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    problems: tuple[Problem, ...]
    is_published: bool = field(default=False, compare=False)

    @property
    def is_nothing(self) -> bool:
        """Whether the files say what the documents say."""
        did = (self.created, self.changed, self.merged, self.moved, self.deleted)
        return not any(did) and not self.conflicts and not self.problems


def load(
    shelf: Shelf,
    directory: str | os.PathLike[str],
    *,
    root: DocumentPath | None = None,
    dry_run: bool = False,
    allow_deletions: bool = False,
) -> Loading:
    """Load what was changed in a directory; into `root`, or to where it was published from.

    MassDeletion: most of what was published there is gone, and nobody said that it may be deleted.
    """
    with target_of(directory) as target:
        held = target.held(is_shared=dry_run)
        if held is None:
            raise UnusableDirectory(f"there is no directory at {target.shown}")
        with held:
            if held.stat(UNFINISHED) is not None:
                raise UnusableDirectory(f"{target.shown} is what is left of an old generation")
            reading = _read(shelf, held, root)
            plan, made = _carried_out(shelf, reading, dry_run, allow_deletions)
            if not dry_run:
                _note(shelf, held, reading, plan, made)
    return _loading(plan, is_published=reading.known is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DirectoryReading:
    """What a directory holds, and what is known about it if it is one of ours."""

    known: Known | None
    found: Survey
    origin: Manifest | None = None

    @property
    def base(self) -> Manifest | None:
        return None if self.known is None else self.known.base


def _read(shelf: Shelf, held: Folder, root: DocumentPath | None) -> _DirectoryReading:
    problem, known = "", None
    try:
        known = read_known(held)
    except InvalidValue as error:
        problem = str(error)
    if root is None:
        root = _usual_root(shelf, known)
    origin = None
    if known is not None and not is_own(shelf, known.published, root):
        origin, known = known.published, None
    shelf.holder.check_read(root)
    base = None if known is None else known.base
    found = survey(held, root, shelf.limits, base)
    if problem:
        found.skipped[manifests.NAME] = problem
    if known is not None and known.problem:
        found.skipped[manifests.LOADED] = known.problem
    return _DirectoryReading(known=known, found=found, origin=origin)


def _usual_root(shelf: Shelf, known: Known | None) -> DocumentPath:
    """Where a directory was published from, in this store or another one."""
    top = shelf.holder.top
    if known is None:
        return top
    root = known.published.root
    is_ours = known.published.store == shelf.store and known.published.space == shelf.space
    return root if is_ours or root.is_within(top) else top


def is_own(shelf: Shelf, published: Manifest, root: DocumentPath) -> bool:
    """Whether a directory was published from this very part of this tree."""
    whose = (published.store, published.space, published.root.key)
    return whose == (shelf.store, shelf.space, root.key)


def _carried_out(
    shelf: Shelf, reading: _DirectoryReading, dry_run: bool, allow_deletions: bool
) -> tuple[Plan, Sequence[Document]]:
    for attempt in range(TRIES_MAX):
        plan = reconcile(shelf, reading.found, reading.base, reading.origin)
        if dry_run:
            break
        if not allow_deletions:
            _check_deletions(plan)
        if not plan.edits:
            break
        try:
            return plan, shelf.apply(plan.edits)
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath):
            # Somebody else has changed the tree since the plan was made.
            if attempt + 1 == TRIES_MAX:
                raise
    return plan, ()


def _check_deletions(plan: Plan) -> None:
    deleted = len(plan.deleted)
    is_most = deleted > DELETIONS_UNASKED_MAX and 2 * deleted > plan.known
    if deleted and (is_most or deleted >= plan.known):
        raise MassDeletion(
            f"{deleted:,} of {plan.known:,} documents would be deleted, because their files are "
            "gone; nothing was loaded. If that is meant, load with --allow-deletions "
            "(allow_deletions=True)"
        )


def _note(
    shelf: Shelf, held: Folder, reading: _DirectoryReading, plan: Plan, made: Sequence[Document]
) -> None:
    """Note what was loaded; a directory that is not ours is left as it is."""
    if reading.known is None:
        return
    published, base = reading.known.published, reading.known.base
    now = renewed(shelf, base, reading.found, plan, made)
    if set(now.entries) == set(base.entries):
        return
    try:
        note(held, published, now)
    except OSError as error:
        reason = f"what was loaded could not be noted ({error.strerror}); publish before more edits"
        plan.remark(manifests.LOADED, reason)


def _loading(plan: Plan, *, is_published: bool) -> Loading:
    return Loading(
        created=tuple(plan.created),
        changed=tuple(plan.changed),
        merged=tuple(plan.merged),
        moved=tuple(plan.moved),
        deleted=tuple(plan.deleted),
        conflicts=tuple(plan.conflicts),
        problems=tuple(plan.problems),
        is_published=is_published,
    )
