"""Puts the pages of a generation into a changeset: evidence first, and what is over last.

While it is staged, the pages of what is removed are still there to be read; nobody else sees any of
it before it is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from recollect.consolidation.artifacts import (
    raw_memories,
    recent_of,
    summary_page,
    summary_path,
)
from recollect.consolidation.handbook import emptied
from recollect.consolidation.inputs import MEMOS_PAGE, RAW_MEMOS_MAX, Inputs
from recollect.consolidation.pages import LIMITS, MEMORY, SKILLS, SUMMARY, Page, Recent
from recollect.document import Node
from recollect.documents.changeset import Changeset
from recollect.documents.editing import OnReferences
from recollect.documents.paths import read_path
from recollect.generation import Memo, Pick
from recollect.session import LIST_MAX


@dataclass(slots=True, kw_only=True)
class Stage:
    """One generation while it is made. For one thread."""

    changeset: Changeset
    inputs: Inputs
    places: dict[str, str] = field(default_factory=dict)  # of summaries, by session
    written: list[tuple[str, str]] = field(default_factory=list)  # session and path, new ones

    def put_summaries(self) -> None:
        """Write the pages of sessions that are new or changed, and those that are missing.

        After a generation was restored all of them: some say what they said at that time.
        """
        selection, is_restored = self.inputs.selection, self.inputs.is_restored
        self.places |= {pick.session_id: pick.path for pick in selection.picks if pick.path}
        again = [pick for pick in selection.retained if is_restored or pick.path is None]
        picks = [*selection.added, *again]
        for start in range(0, len(picks), MEMOS_PAGE):
            for memo in self.inputs.memos(picks[start : start + MEMOS_PAGE]):
                session_id = memo.extraction.session_id
                path = self._place(memo)
                self.put(summary_page(memo, path))
                self.written.append((session_id, path))

    def _place(self, memo: Memo) -> str:
        """Where the page of a session stands, from the first time on.

        One whose short name is gone, for it said what is not said any more, has another place.
        """
        session_id, own = memo.extraction.session_id, summary_path(memo)
        path = self.places.setdefault(session_id, own)
        if path == own or memo.extraction.rollout_slug is not None:
            return path
        if self.inputs.selection.is_forgetting:
            self._delete(path)
        elif self.changeset.find(path) is not None:
            self.changeset.move(path, own)
        self.places[session_id] = own
        return own

    def put_raw(self, also: Iterable[Memo] = ()) -> None:
        """Write what sessions came to in one page; `also` of those that are being removed."""
        newest = self.inputs.newest(RAW_MEMOS_MAX)
        memos = [*self.inputs.memos(newest), *also]
        others = len(self.inputs.selection.picks) - len(newest)
        self.put(raw_memories(memos, places=self.places, others=others))

    def recent(self) -> list[Recent]:
        """The sessions that were spoken in last, as the index of memory names them."""
        memos = self.inputs.memos(self.inputs.newest(LIMITS.recent))
        return [recent_of(memo, self.places[memo.extraction.session_id]) for memo in memos]

    def put_blank(self) -> None:
        """Have the handbook and the summary there to be written, with nothing in them."""
        for page in emptied():
            if page.path in (MEMORY, SUMMARY):
                self.put(replace(page, body=""))

    def put_handbook(self, pages: Sequence[Page]) -> None:
        """Write the pages that rules make; skills that are not among them are over."""
        for page in pages:
            self.put(page)
        kept = [read_path(page.path) for page in pages]
        # One by one, and what is below first: a generation notes of each page that it is gone.
        for node in reversed(self._skill_nodes()):
            if not any(path.is_within(read_path(node.path)) for path in kept):
                self._delete(node.path)

    def _skill_nodes(self) -> list[Node]:
        """What stands below the folder of all skills, as it is staged."""
        if self.changeset.find(SKILLS) is None:
            return []
        return self.changeset.tree(SKILLS, limit=LIST_MAX)[1:]

    def prune(self) -> None:
        """Delete the pages of what is removed."""
        kept = set(self.places.values())
        for removed in self.inputs.selection.removed:
            if removed.path is not None and removed.path not in kept:
                self._delete(removed.path)

    def removed_memos(self) -> list[Memo]:
        """What is being removed and still there, to be read once more."""
        removed = self.inputs.selection.removed
        ids = [each.session_id for each in removed[:RAW_MEMOS_MAX]]
        return self.inputs.store.memos(self.inputs.selection.space, ids)

    def put(self, page: Page) -> None:
        self.changeset.write(
            page.path,
            page.body,
            title=page.title,
            description=page.description,
            tags=page.tags,
            sources=page.sources,
            facts=page.facts,
        )

    def _delete(self, path: str) -> None:
        if self.changeset.find(path) is not None:
            self.changeset.delete(path, below=True, references=OnReferences.LEAVE)


def is_complete(changeset: Changeset, pages: Iterable[str], picks: Iterable[Pick]) -> bool:
    """Whether every page that has to be there is."""
    return all(changeset.find(path) is not None for path in pages) and all(
        pick.path is not None for pick in picks
    )
