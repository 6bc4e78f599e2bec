"""Any sequence of edits by two writers leaves the tree of documents as a plain model says.

Hypothesis makes up the sequences, on both databases: writes, moves, renames in case, links,
deletions, restores and purges, alone and in sets that are made whole or not at all (D1 to D7). A
failure is printed as a short program, with a blob that replays it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime

import hypothesis
import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import Phase
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.documents.links import references
from recollect.documents.paths import DocumentPath, read_path
from recollect.errors import StaleVersion, UsageError
from recollect.ids import Ids
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.relational import RelationalStore
from recollect.store.relational.documents import DocumentStore
from recollect.types.pages import (
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Node,
    Purged,
    Restore,
    TreeLimits,
    Write,
)
from tests.conformance.broken_learning import MutedDatabase
from tests.stateful.document_model import Page, Tree

SPACE, OTHER = "alice", "bob"
LIMITS = TreeLimits(documents_max=14, depth_max=4)
EVERY = 1000
TABLES = "trees, documents, document_versions, document_references, document_redirects"

# Few names, some of them the same without case, so that paths meet.
NAMES = ("a", "A", "b", "ß", "SS")
WORDS = ("tea", "milk", "sugar")
PATHS = st.builds(
    "~/{}".format, st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
)
DEEP_PATHS = st.builds("~/a/{}/b/A/SS".format, st.sampled_from(NAMES))
ANY_PATHS = st.one_of(PATHS, PATHS, PATHS, PATHS, PATHS, DEEP_PATHS)
LINKS = st.lists(PATHS, max_size=2)
EXPECTED = st.sampled_from([None, None, None, 0, 1, 2, 3])


def writing(
    path: str, word: str, mentions: list[str], links: list[str], expected: int | None
) -> Write:
    target = read_path(path)
    body = " ".join([word, *(f"[[{each}|{word}]]" for each in mentions)])
    given = list(dict.fromkeys(read_path(link) for link in links))
    return Write(
        place=target.place,
        content=Content(title="page", body=body, links=tuple(each.text for each in given)),
        references=references(body, given),
        parents=tuple(above.place for above in target.parents),
        expected=expected,
    )


def moving(path: str, to: str, expected: int | None) -> Move:
    target = read_path(to)
    parents = tuple(above.place for above in target.parents)
    return Move(place=read_path(path).place, to=target.place, parents=parents, expected=expected)


def deleting(path: str, below: bool, leaves_broken: bool, expected: int | None) -> Delete:
    return Delete(
        place=read_path(path).place, below=below, leaves_broken=leaves_broken, expected=expected
    )


def restoring(path: str, expected: int | None) -> Restore:
    target = read_path(path)
    parents = tuple(above.place for above in target.parents)
    return Restore(place=target.place, parents=parents, expected=expected or None)


WRITES = st.builds(writing, ANY_PATHS, st.sampled_from(WORDS), LINKS, LINKS, EXPECTED)
MOVES = st.builds(moving, PATHS, ANY_PATHS, EXPECTED)
DELETIONS = st.builds(deleting, PATHS, st.booleans(), st.booleans(), EXPECTED)
RESTORES = st.builds(restoring, PATHS, EXPECTED)
EDITS = st.one_of(WRITES, WRITES, WRITES, MOVES, MOVES, DELETIONS, RESTORES)
WRITERS = st.sampled_from([0, 1])
INDEXES = st.integers(0, 20)


class DocumentMachine(RuleBasedStateMachine):
    """Does everything to the store and to the model, and compares them after each step."""

    steps = 0  # of all machines together
    refusals = 0

    def __init__(self, stores: tuple[Store, Store]) -> None:
        super().__init__()
        self.stores = stores
        self.clock = ManualClock()
        self.ids = Ids(self.clock)
        self.tree = Tree(limits=LIMITS)
        self.seen: tuple[dict[str, Document], dict[str, Document]] = ({}, {})
        self.theirs = self._write_elsewhere()

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def _write_elsewhere(self) -> list[Document]:
        """A page of the same name in another space, which nothing here may touch."""
        edit = writing("~/a/b", "tea", ["~/a"], [], None)
        store = self.stores[0].documents
        return store.apply(OTHER, [edit], Because(), LIMITS, self.now, self.ids.new)

    # what can be done

    @initialize(edits=st.lists(WRITES, min_size=3, max_size=8))
    def grow(self, edits: list[Write]) -> None:
        for edit in edits:
            self._apply(0, [replace(edit, expected=None)])

    @rule(writer=WRITERS, edits=st.lists(EDITS, min_size=1, max_size=4))
    def apply(self, writer: int, edits: list[Edit]) -> None:
        self._apply(writer, edits)

    @rule(writer=WRITERS, edit=WRITES)
    def write(self, writer: int, edit: Write) -> None:
        self._apply(writer, [replace(edit, expected=None)])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, edit=WRITES, index=INDEXES)
    def write_what_is_there(self, writer: int, edit: Write, index: int) -> None:
        edit = replace(edit, place=self._pick(index).path.place, parents=(), expected=None)
        self._apply(writer, [edit])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, to=ANY_PATHS, index=INDEXES)
    def move_what_is_there(self, writer: int, to: str, index: int) -> None:
        self._apply(writer, [moving(self._pick(index).path.text, to, None)])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, to=PATHS, index=INDEXES, word=st.sampled_from(WORDS), again=st.booleans())
    def replace_what_is_there(
        self, writer: int, to: str, index: int, word: str, again: bool
    ) -> None:
        """Another page in its place, and perhaps not that one either."""
        path = self._pick(index).path.text
        edits: list[Edit] = [moving(path, to, None), writing(path, word, [], [], 0)]
        if again:
            edits.append(deleting(path, True, True, None))
        self._apply(writer, edits)

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, one=INDEXES, other=INDEXES, name=st.sampled_from(NAMES))
    def move_below_another(self, writer: int, one: int, other: int, name: str) -> None:
        to = f"{self._pick(other).path.text}/{name}"
        self._apply(writer, [moving(self._pick(one).path.text, to, None)])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, index=INDEXES)
    def rename_in_another_case(self, writer: int, index: int) -> None:
        path = self._pick(index).path
        to = DocumentPath((*path.slugs[:-1], path.slug.swapcase()))
        self._apply(writer, [moving(path.text, to.text, None)])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, index=INDEXES, broken=st.booleans())
    def delete_what_is_there(self, writer: int, index: int, broken: bool) -> None:
        self._apply(writer, [deleting(self._pick(index).path.text, True, broken, None)])

    @precondition(lambda self: self._left())
    @rule(writer=WRITERS, index=INDEXES)
    def restore_where_something_stood(self, writer: int, index: int) -> None:
        left = self._left()
        self._apply(writer, [restoring(left[index % len(left)], None)])

    @precondition(lambda self: self._left())
    @rule(writer=WRITERS, index=INDEXES, word=st.sampled_from(WORDS), links=LINKS)
    def write_where_something_stood(
        self, writer: int, index: int, word: str, links: list[str]
    ) -> None:
        left = self._left()
        self._apply(writer, [writing(left[index % len(left)], word, [], links, None)])

    @precondition(lambda self: self._left() and self.tree.live)
    @rule(writer=WRITERS, index=INDEXES, other=INDEXES)
    def link_to_where_something_stood(self, writer: int, index: int, other: int) -> None:
        left = self._left()
        path = self._pick(other).path.text
        self._apply(writer, [writing(path, "tea", [left[index % len(left)]], [], None)])

    @precondition(lambda self: self.tree.live)
    @rule(writer=WRITERS, index=INDEXES)
    def read(self, writer: int, index: int) -> None:
        """A writer looks at a page, and remembers which version it saw."""
        path = self._pick(index).path
        found = self.stores[writer].documents.find(SPACE, path.place)
        assert found is not None
        self.seen[writer][path.text] = found

    @precondition(lambda self: self.seen[0] or self.seen[1])
    @rule(writer=WRITERS, index=INDEXES, word=st.sampled_from(WORDS))
    def write_what_was_seen(self, writer: int, index: int, word: str) -> None:
        """As often as not the other one has changed, moved or deleted it meanwhile."""
        seen = list((self.seen[writer] or self.seen[1 - writer]).items())
        path, known = seen[index % len(seen)]
        place, store = read_path(path).place, self.stores[writer].documents
        before = store.find(SPACE, place)
        self._apply(writer, [writing(path, word, [], [], known.version)])
        if before is not None and before.id != known.id:
            assert store.find(SPACE, place) == before  # nothing is made to what nobody saw

    @precondition(lambda self: self.tree.pages)
    @rule(writer=WRITERS, index=st.integers(0, 200))
    def purge(self, writer: int, index: int) -> None:
        pages = list(self.tree.pages.values())
        if index >= len(pages):
            return  # mostly, or there would never be much to look at
        target = pages[index].path
        purged = self.stores[writer].documents.purge(SPACE, target.place)
        documents, versions = self.tree.purge(target)
        assert purged == Purged(documents=documents, versions=versions)

    def _pick(self, index: int) -> Page:
        live = sorted(self.tree.live)
        return self.tree.live[live[index % len(live)]]

    def _left(self) -> list[str]:
        """Paths where something stood that was moved away or deleted."""
        gone = {page.path.key for page in self.tree.pages.values() if page.deleted_at is not None}
        keys = sorted((gone | self.tree.led.keys()) - self.tree.live.keys())
        return ["/".join(["~", *key.split("\x01")]) for key in keys]

    def _apply(self, writer: int, edits: list[Edit]) -> None:
        self.clock.advance(1)
        expected = self.tree.applied(edits, self.now)
        refusal = self._refusal(writer, edits)
        if refusal is None:
            assert isinstance(expected, Tree), expected
            self.tree = expected
            return
        type(self).refusals += 1
        assert isinstance(expected, UsageError), refusal
        assert type(refusal) is type(expected)
        if isinstance(expected, StaleVersion) and isinstance(refusal, StaleVersion):
            assert refusal.current == expected.current

    def _refusal(self, writer: int, edits: list[Edit]) -> UsageError | None:
        store = self.stores[writer].documents
        try:
            made = store.apply(SPACE, edits, Because(), LIMITS, self.now, self.ids.new)
        except UsageError as error:
            return error
        assert len(made) == len(edits)
        return None

    # comparing

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        type(self).steps += 1
        store = self.stores[self.steps % 2].documents
        self._compare_tree(store)
        self._compare_pages(store)
        self._compare_paths(store)
        self._compare_reports(store)
        [page] = self.theirs
        assert store.find(OTHER, read_path("~/a/b").place) == page

    def _compare_tree(self, store: DocumentStore) -> None:
        roots = {read_path(f"~/{name}").key: read_path(f"~/{name}") for name in NAMES}
        for root in roots.values():
            nodes = store.tree(SPACE, root.place, "", LIMITS.depth_max, EVERY)
            pages = self.tree.inside(root)
            assert [node.path for node in nodes] == [page.path.text for page in pages]
            for node, page in zip(nodes, pages, strict=True):
                page.id = page.id or node.id
                self._compare_node(node, page)

    def _compare_node(self, node: Node, page: Page) -> None:
        assert (node.id, node.version) == (page.id, page.version)
        assert node.updated_at == page.updated_at
        assert node.body_chars == len(page.content.body)
        assert node.has_children == (len(self.tree.inside(page.path)) > 1)

    def _compare_pages(self, store: DocumentStore) -> None:
        for page in self.tree.live.values():
            found = store.find(SPACE, page.path.place)
            assert found is not None
            assert (found.content, found.created_at) == (page.content, page.created_at)
            assert store.references_from(SPACE, page.id) == self.tree.references_from(page)
            history = store.history(SPACE, page.id, None, EVERY)
            assert [each.number for each in history] == page.numbers[::-1]
            event, path, said = page.versions[-1]
            newest = history[0]
            assert (newest.event, newest.path, newest.body) == (event, path, said.body)

    def _compare_paths(self, store: DocumentStore) -> None:
        paths = {page.path.key: page.path for page in self.tree.pages.values()}
        for key, path in paths.items():
            found, page = store.find(SPACE, path.place), self.tree.leads_to(key)
            assert (found and found.path) == (page and page.path.text)
            gone, was = store.find_deleted(SPACE, path.place), self.tree.deleted_at(key)
            if gone is not None and was is not None:
                was.id = was.id or gone.id  # made and deleted in one set of edits
            assert (gone and gone.id) == (was and was.id)
        for key, page in self.tree.led.items():
            place = replace(page.path.place, key=key)
            found = store.find(SPACE, place)
            assert (found and found.id) == (None if page.deleted_at else page.id)

    def _compare_reports(self, store: DocumentStore) -> None:
        live = sorted(self.tree.live.values(), key=lambda page: page.path.key)
        broken = [each for page in live for each in self.tree.references_from(page)]
        found = store.broken(SPACE, EVERY)
        assert sorted(map(repr, found)) == sorted(repr(each) for each in broken if each.is_broken)
        assert store.orphans(SPACE, EVERY) == [
            page.path.text
            for page in live
            if len(page.path.slugs) > 2
            and all(other is page for other in self.tree.referrers(page))
        ]
        for word in WORDS:
            for root in ("~/a", "~/b"):
                hits = store.search(SPACE, [word], read_path(root).place, EVERY)
                pages = self.tree.inside(read_path(root))
                assert sorted(hit.path for hit in hits) == sorted(
                    page.path.text for page in pages if word in page.content.body.split()
                )


def run_machine(
    fresh: Callable[[], tuple[Store, Store]], settings: hypothesis.settings
) -> tuple[int, int]:
    """Run it and give the number of steps that were taken, and of edits that were refused."""

    class Machine(DocumentMachine):
        def __init__(self) -> None:
            super().__init__(fresh())

    run_state_machine_as_test(Machine, settings=settings)
    print(f"{Machine.steps:,} steps, {Machine.refusals:,} refusals")
    return Machine.steps, Machine.refusals


def short(examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


TORTURE = hypothesis.settings(short(1_000), stateful_step_count=150)


@pytest.fixture
def fresh_in_memory() -> Iterator[Callable[[], tuple[Store, Store]]]:
    """A new store each time; the one before is closed."""
    opened: list[Store] = []

    def fresh() -> tuple[Store, Store]:
        while opened:
            opened.pop().close()
        opened.append(open_store(":memory:", Settings(), ManualClock()))
        return opened[-1], opened[-1]

    yield fresh
    for store in opened:
        store.close()


@pytest.fixture
def fresh_on_postgres(
    postgres_url: str, postgres_store_url: str
) -> Iterator[Callable[[], tuple[Store, Store]]]:
    """Two handles on one store, emptied each time."""
    schema = postgres_store_url.rpartition("schema=")[2]
    with (
        closing(open_store(postgres_store_url, Settings(), ManualClock())) as one,
        closing(open_store(postgres_store_url, Settings(), ManualClock())) as two,
        psycopg.connect(postgres_url, autocommit=True) as connection,
    ):
        connection.execute(f'SET search_path TO "{schema}"'.encode())

        def fresh() -> tuple[Store, Store]:
            connection.execute(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE".encode())
            return one, two

        yield fresh


def test_a_tree_is_as_the_model_says_in_memory(
    fresh_in_memory: Callable[[], tuple[Store, Store]],
) -> None:
    steps, refusals = run_machine(fresh_in_memory, short(60))
    assert steps > 1_000
    assert refusals > 100


def test_a_tree_is_as_the_model_says_on_postgres(
    fresh_on_postgres: Callable[[], tuple[Store, Store]],
) -> None:
    steps, _ = run_machine(fresh_on_postgres, short(10))
    assert steps > 150


@pytest.mark.parametrize(
    "query", ["bind_references", "drop_redirects", "delete_document_references"]
)
def test_a_store_that_leaves_out_a_statement_is_found_out(
    fresh_in_memory: Callable[[], tuple[Store, Store]], query: str
) -> None:
    def fresh() -> tuple[Store, Store]:
        store, _ = fresh_in_memory()
        assert isinstance(store, RelationalStore)
        muted = RelationalStore(MutedDatabase(store._database, query))
        return muted, muted

    settings = hypothesis.settings(short(100), phases=[Phase.generate], derandomize=True)
    with pytest.raises(AssertionError):
        run_machine(fresh, settings)


@pytest.mark.torture
def test_a_tree_is_as_the_model_says_for_long(
    fresh_in_memory: Callable[[], tuple[Store, Store]],
) -> None:
    assert run_machine(fresh_in_memory, TORTURE)[0] > 50_000


@pytest.mark.torture
def test_a_tree_is_as_the_model_says_for_long_on_postgres(
    fresh_on_postgres: Callable[[], tuple[Store, Store]],
) -> None:
    settings = hypothesis.settings(TORTURE, max_examples=200)
    assert run_machine(fresh_on_postgres, settings)[0] > 5_000
