"""Stores that keep documents wrongly, to show that the conformance suite has teeth.

Some are wrong by a method; the others leave out one of their statements without a word.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recollect.ids import NewId
from recollect.store.relational.documents import DocumentStore
from recollect.types.pages import (
    Because,
    Delete,
    Document,
    Edit,
    Move,
    Node,
    Place,
    Reference,
    Restore,
    Rewrite,
    TreeLimits,
    Version,
    Write,
)


class TwistedDocuments(DocumentStore):
    """Makes other edits than it was given."""

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: NewId,
    ) -> list[Document]:
        twisted = [self.twist(edit) for edit in edits]
        return super().apply(space, twisted, because, limits, now, new_id)

    def twist(self, edit: Edit) -> Edit:
        return edit


class PiecemealDocuments(DocumentStore):
    """Makes each edit on its own."""

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: NewId,
    ) -> list[Document]:
        return [
            document
            for edit in edits
            for document in super(PiecemealDocuments, self).apply(
                space, [edit], because, limits, now, new_id
            )
        ]


class HastyDocuments(TwistedDocuments):
    """Does not look at the version it is to change."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, expected=None)


class ForgetfulDocuments(TwistedDocuments):
    """Does not look at the document it is to change."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, document_id=None)


class CaseDocuments(TwistedDocuments):
    """Takes names in another case for others."""

    def twist(self, edit: Edit) -> Edit:
        if isinstance(edit, Write):
            parents = tuple(_as_written(place) for place in edit.parents)
            return replace(edit, place=_as_written(edit.place), parents=parents)
        return edit

    def find(self, space: str, place: Place) -> Document | None:
        return super().find(space, _as_written(place))


def _as_written(place: Place) -> Place:
    return replace(place, key=place.text.removeprefix("~/").replace("/", "\x01"))


class RecklessDocuments(TwistedDocuments):
    """Deletes whatever others refer to."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, leaves_broken=True) if isinstance(edit, Delete) else edit


class SweepingDocuments(TwistedDocuments):
    """Deletes what is below without being asked."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, below=True) if isinstance(edit, Delete) else edit


class ChangingDocuments(TwistedDocuments):
    """Makes a version of every write."""

    numbers = itertools.count()

    def twist(self, edit: Edit) -> Edit:
        if isinstance(edit, Write):
            said = replace(edit.content, description=str(next(self.numbers)))
            return replace(edit, content=said)
        return edit


class GroundlessDocuments(TwistedDocuments):
    """Makes every edit on the grounds of all."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, because=None)


class UncountingDocuments(TwistedDocuments):
    """Deletes what nobody has seen."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, count_expected=None) if isinstance(edit, Delete) else edit


class LinklessDocuments(TwistedDocuments):
    def twist(self, edit: Edit) -> Edit:
        return replace(edit, references=()) if isinstance(edit, Write) else edit


class ParentlessDocuments(TwistedDocuments):
    def twist(self, edit: Edit) -> Edit:
        return edit if isinstance(edit, Delete | Rewrite) else replace(edit, parents=())


class LatestDocuments(TwistedDocuments):
    """Restores the last one, whichever is meant."""

    def twist(self, edit: Edit) -> Edit:
        return replace(edit, document_id=None) if isinstance(edit, Restore) else edit


class BoundlessDocuments(DocumentStore):
    """Knows no limits."""

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: NewId,
    ) -> list[Document]:
        wide = TreeLimits(documents_max=10**6, depth_max=100)
        return super().apply(space, edits, because, wide, now, new_id)


class CopyingDocuments(TwistedDocuments):
    """Moves a page without what is above it."""

    def twist(self, edit: Edit) -> Edit:
        if isinstance(edit, Move) and len(edit.parents) > 1:
            last = edit.to.text.rpartition("/")[2]
            return replace(edit, to=Place(text=f"~/{last}", key=last.casefold(), depth=1))
        return edit


class UnorderedDocuments(DocumentStore):
    """Levels one after the other."""

    def tree(self, space: str, root: Place, after: str, depth_max: int, limit: int) -> list[Node]:
        found = super().tree(space, root, after, depth_max, limit)
        return sorted(found, key=lambda node: (node.depth, node.path))


class DeepDocuments(DocumentStore):
    def tree(self, space: str, root: Place, after: str, depth_max: int, limit: int) -> list[Node]:
        return super().tree(space, root, after, 16, limit)


class BackwardDocuments(DocumentStore):
    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> list[Version]:
        return super().history(space, document_id, before, limit)[::-1]


class RootlessDocuments(DocumentStore):
    """Searches everything."""

    def search(self, space: str, terms: Sequence[str], root: Place, limit: int) -> list[Document]:
        top = replace(root, key="a") if root.key.startswith("a") else root
        return super().search(space, terms, top, limit)

    def broken(self, space: str, limit: int, root: Place | None = None) -> list[Reference]:
        return super().broken(space, limit)

    def orphans(self, space: str, limit: int, root: Place | None = None) -> list[str]:
        return super().orphans(space, limit)


class NeighbourlyDocuments(DocumentStore):
    """Looks a document up by its id wherever it is."""

    def get(self, space: str, document_id: str) -> Document | None:
        return super().get(space, document_id) or super().get("theirs", document_id)


# What is wrong, and the case that has to notice.
BROKEN_DOCUMENTS: dict[str, tuple[type[DocumentStore], str]] = {
    "edits that are made one by one": (PiecemealDocuments, "all_edits_are_made_or_none"),
    "a stale version that is changed": (HastyDocuments, "a_stale_version_is_refused"),
    "an edit to another page": (ForgetfulDocuments, "an_edit_is_made_to_what_it_is_meant_for"),
    "siblings that differ in case": (CaseDocuments, "siblings_are_unique_without_case"),
    "a deletion of what is referred to": (
        RecklessDocuments,
        "a_page_that_is_referred_to_is_not_deleted",
    ),
    "a deletion of more than was asked": (
        SweepingDocuments,
        "a_page_is_deleted_with_what_is_below",
    ),
    "a version of nothing new": (ChangingDocuments, "an_identical_write_makes_no_version"),
    "pages without references": (LinklessDocuments, "links_and_mentions_are_kept"),
    "parents that are not made": (ParentlessDocuments, "missing_parents_are_made"),
    "another page restored than meant": (LatestDocuments, "the_last_or_the_meant_one_comes_back"),
    "a tree without limits": (BoundlessDocuments, "no_tree_grows_too_large"),
    "a tree without a bottom": (BoundlessDocuments, "no_page_stands_too_deep"),
    "a move to another place": (CopyingDocuments, "what_is_below_moves_along"),
    "a tree by levels": (UnorderedDocuments, "the_tree_is_in_order"),
    "a tree that shows every level": (DeepDocuments, "a_tree_shows_some_levels"),
    "history in the wrong order": (BackwardDocuments, "history_comes_in_pages"),
    "a search of everything": (RootlessDocuments, "a_search_stays_below_its_root"),
    "broken links of everything": (
        RootlessDocuments,
        "broken_links_show_nothing_of_the_outside",
    ),
    "orphans of everything": (RootlessDocuments, "orphans_show_nothing_of_the_outside"),
    "grounds that are mixed": (GroundlessDocuments, "each_edit_has_its_own_grounds"),
    "a deletion of what was not seen": (
        UncountingDocuments,
        "a_deletion_of_what_was_not_seen_is_refused",
    ),
    "pages of other spaces": (NeighbourlyDocuments, "no_page_of_another_space_is_found"),
}

# What a store may leave out, and the case that has to notice.
MUTED_DOCUMENTS: dict[str, str] = {
    "count_documents": "no_tree_grows_too_large",
    "update_document": "a_write_makes_a_version",
    "note_document": "a_move_keeps_a_page",
    "move_documents": "what_is_below_moves_along",
    "delete_documents": "a_deleted_page_is_not_there",
    "restore_documents": "a_restored_page_is_as_it_was",
    "raise_document": "what_is_moved_in_is_above_what_stood_there",
    "overtaken_documents": "what_is_restored_is_above_what_stood_there",
    "raise_versions": "no_version_comes_again_after_a_purge",
    "note_forgotten": "a_forgotten_session_is_never_a_ground_again",
    "forgotten_sessions": "a_forgotten_session_is_never_a_ground_again",
    "deleted_documents": "what_was_deleted_is_listed",
    "insert_document_version": "a_new_document_is_version_one",
    "insert_deleted_versions": "a_page_is_deleted_with_what_is_below",
    "insert_restored_versions": "a_restored_page_is_as_it_was",
    "delete_document_references": "a_dropped_link_is_no_backlink",
    "insert_document_reference": "links_and_mentions_are_kept",
    "bind_references": "a_link_comes_alive_when_its_page_is_made",
    "kept_references": "a_link_that_stays_means_what_it_meant",
    "release_references": "a_link_is_released",
    "bind_unbound_references": "a_link_is_released",
    "put_redirects": "an_old_path_leads_to_a_page",
    "drop_redirects": "an_old_path_means_what_is_new_there",
    "purge_document": "a_purge_removes_everything",
    "free_references": "a_link_is_released",
    "erase_version": "earlier_versions_can_be_erased",
    "erase_versions_before": "a_page_that_a_model_wrote_is_dropped",
    "trim_versions": "old_versions_of_a_page_go",
    "set_provenance": "a_forgotten_session_is_no_ground",
    "set_document_provenance": "a_forgotten_session_is_no_ground",
    "find_moved_document": "an_old_path_leads_to_a_page",
    "find_deleted_document": "a_deleted_page_is_not_there",
    "find_referrers": "a_page_that_is_referred_to_is_not_deleted",
    "list_purgeable": "a_purge_removes_everything",
    "documents_made_from": "a_forgotten_session_is_no_ground",
}
# Without these nothing works at all, or only the bytes of a file would notice.
NOT_MUTED_DOCUMENTS = frozenset({"lock_tree", "insert_document"})
