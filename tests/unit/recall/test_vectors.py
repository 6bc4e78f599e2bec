"""P11, N1: vectors in memory: what is nearest, kept current, within their bytes, under threads."""

from __future__ import annotations

import math
import random
import threading
import tracemalloc
from collections.abc import Collection, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.embedding.protocol import floats, unit_bytes, zero_bytes
from recollect.errors import InvalidValue
from recollect.recall import vectors as vectors_module
from recollect.recall.vectors import EntryKey, SpaceVectors, VectorCache, VectorRow
from recollect_conformance.scripted_embedder import HashEmbedder
from tests.tables import every_row

SEED = 20_261
DIMENSIONS = 24
KINDS = ("record", "fact", "summary")


def random_vectors(count: int, dimensions: int = DIMENSIONS, seed: int = SEED) -> list[bytes]:
    print(f"seed {seed}")
    numbers = random.Random(seed)
    return [unit_bytes([numbers.gauss(0, 1) for _ in range(dimensions)]) for _ in range(count)]


def rows_of(vectors: Iterable[bytes], start: int = 1) -> list[VectorRow]:
    """Rows whose entries come in no order, of three kinds."""
    return [
        (at, KINDS[at % 3], at * 7919 % 100_003, vector) for at, vector in enumerate(vectors, start)
    ]


def similarity(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(floats(one), floats(other), strict=True))


def by_hand(rows: Iterable[VectorRow], query: bytes) -> dict[EntryKey, float]:
    """The newest vector of each entry, compared one by one."""
    newest = {(kind, key): vector for _, kind, key, vector in rows}
    return {entry: similarity(query, vector) for entry, vector in newest.items()}


def search(
    space: SpaceVectors, query: bytes, limit: int, kinds: Collection[str] | None = None
) -> list[tuple[str, int, float]]:
    return space.compared(query).nearest(limit, kinds)


def similarities(
    space: SpaceVectors, query: bytes, entries: Iterable[EntryKey]
) -> dict[EntryKey, float]:
    """Those without a vector are left out."""
    asked = list(entries)
    found = zip(asked, space.compared(query).of(asked), strict=True)
    return {entry: value for entry, value in found if value is not None}


def filled(rows: Iterable[VectorRow], dimensions: int = DIMENSIONS) -> SpaceVectors:
    space = SpaceVectors(dimensions)
    space.extend(rows)
    return space


def assert_found(
    found: list[tuple[str, int, float]], expected: dict[EntryKey, float], limit: int
) -> None:
    best = sorted(expected.values(), reverse=True)[:limit]
    assert [value for _, _, value in found] == pytest.approx(best, abs=1e-5)
    for kind, key, value in found:
        assert value == pytest.approx(expected[kind, key], abs=1e-5)
    assert len({(kind, key) for kind, key, _ in found}) == len(found)


@every_row("count", [1, 63, 64, 65, 1000, 3000])
@every_row("limit", [1, 10, 5000])
def test_the_nearest_are_those_a_plain_loop_finds(count: int, limit: int) -> None:
    rows = rows_of(random_vectors(count))
    space = filled(rows)
    query = random_vectors(1, seed=7)[0]
    assert_found(search(space, query, limit), by_hand(rows, query), limit)
    assert len(space) == count


@pytest.mark.parametrize("dimensions", [1, 7, 64, 65, 300])
def test_vectors_may_have_any_number_of_dimensions(
    dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_ROWS", 100)
    monkeypatch.setattr(vectors_module, "SHORTLIST_ROWS", 100)
    rows = rows_of(random_vectors(500, dimensions))
    space = filled(rows, dimensions)
    own = rows[123]
    assert search(space, own[3], 1)[0][2] == pytest.approx(1, abs=1e-5)
    assert similarities(space, own[3], [own[1:3]]) == pytest.approx({own[1:3]: 1}, abs=1e-5)


def test_many_are_found_by_their_signs_all_but_as_well() -> None:
    """What is looked for resembles some entries, as a question does: then signs tell."""
    topics = random_vectors(40, 128, seed=3)
    numbers = random.Random(SEED)

    def near(topic: bytes, spread: float) -> bytes:
        return unit_bytes([value + numbers.gauss(0, spread) for value in floats(topic)])

    count = vectors_module.EXACT_ROWS + 2000
    rows = rows_of([near(topics[at % 40], 0.08) for at in range(count)])
    space = filled(rows, 128)
    queries = [near(topic, 0.05) for topic in topics[:10]]
    hits = 0
    for query in queries:
        expected = by_hand(rows, query)
        best = sorted(expected, key=lambda entry: -expected[entry])[:10]
        found = search(space, query, 10)
        hits += len({(kind, key) for kind, key, _ in found} & set(best))
        for kind, key, value in found:
            assert value == pytest.approx(expected[kind, key], abs=1e-5)
    assert hits >= 98


def test_the_sort_is_by_similarity_then_by_key() -> None:
    same = random_vectors(1)[0]
    space = filled([(1, "record", 9, same), (2, "record", 3, same), (3, "record", 5, same)])
    assert [key for _, key, _ in search(space, same, 3)] == [3, 5, 9]


@pytest.mark.parametrize("block", [1, DIMENSIONS, 7 * DIMENSIONS + 3])
def test_every_row_is_compared_however_many_at_a_time(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "BLOCK_NUMBERS", block)
    rows = rows_of(random_vectors(500))
    space = filled(rows)
    query = random_vectors(1, seed=7)[0]
    expected = by_hand(rows, query)
    assert_found(search(space, query, 500), expected, 500)
    assert similarities(space, query, expected) == pytest.approx(expected, abs=1e-5)
    few = dict(list(expected.items())[:40])
    assert similarities(space, query, few) == pytest.approx(few, abs=1e-5)


@pytest.mark.parametrize("kinds", [KINDS, KINDS[:2]])
def test_what_is_gone_is_not_found_among_any_kinds(kinds: tuple[str, ...]) -> None:
    rows = rows_of(random_vectors(300))
    space = filled(rows)
    gone = {row[1:3] for row in rows[:4]}
    space.drop(gone)
    query = rows[0][3]
    left = {entry: value for entry, value in by_hand(rows, query).items() if entry not in gone}
    limited = {entry: value for entry, value in left.items() if entry[0] in kinds}
    assert_found(search(space, query, 300, kinds=kinds), limited, 300)


@pytest.mark.parametrize("exact_rows", [100, 100_000])
def test_only_some_kinds_are_found(exact_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_ROWS", exact_rows)
    monkeypatch.setattr(vectors_module, "SHORTLIST_ROWS", 400)
    rows = rows_of(random_vectors(6000))
    space = filled(rows)
    query = rows[500][3]
    expected = by_hand(rows, query)
    found = search(space, query, 2, kinds={"fact", "summary", "nothing"})
    assert {kind for kind, _, _ in found} <= {"fact", "summary"}
    limited = {entry: value for entry, value in expected.items() if entry[0] != "record"}
    assert_found(found[:1], limited, 1)
    assert search(space, query, 5, kinds=()) == []


def test_similarities_are_of_what_was_asked_for_and_is_there() -> None:
    rows = rows_of(random_vectors(1000))
    space = filled(rows)
    query = random_vectors(1, seed=7)[0]
    asked = [row[1:3] for row in rows[::9]]
    expected = by_hand(rows[::9], query)
    found = similarities(space, query, [*asked, *asked, ("record", 99_999_999), ("other", 1)])
    assert found == pytest.approx(expected, abs=1e-5)


def test_what_says_nothing_resembles_nothing() -> None:
    zero = zero_bytes(DIMENSIONS)
    space = filled([(1, "record", 1, zero), (2, "record", 2, random_vectors(1)[0])])
    assert search(space, zero, 5) == []
    assert similarities(space, zero, [("record", 2)]) == {}
    query = random_vectors(1, seed=7)[0]
    assert similarities(space, query, [("record", 1)]) == {("record", 1): 0.0}


def test_an_empty_space_finds_nothing() -> None:
    space = SpaceVectors(DIMENSIONS)
    query = random_vectors(1)[0]
    assert search(space, query, 5) == []
    assert search(space, query, 5, kinds=["record"]) == []
    assert similarities(space, query, [("record", 1)]) == {}
    space.drop([("record", 1)])
    assert (len(space), space.last_key, space.nbytes) == (0, 0, 0)
    assert search(filled(rows_of([query])), query, 0) == []


def test_an_entry_has_its_newest_vector() -> None:
    old, new, newest = random_vectors(3)
    space = filled([(1, "fact", 1, old), (2, "fact", 1, new)])
    assert search(space, new, 5) == [("fact", 1, 1.0)]
    space.extend([(3, "fact", 1, newest)])
    assert search(space, newest, 5) == [("fact", 1, 1.0)]
    assert len(space) == 1


def test_an_empty_vector_says_that_an_entry_has_none() -> None:
    one, other = random_vectors(2)
    space = filled([(1, "fact", 1, one), (2, "fact", 2, other)])
    space.extend([(3, "fact", 1, b""), (4, "fact", 3, b"")])
    assert [each[:2] for each in search(space, one, 5)] == [("fact", 2)]
    assert space.last_key == 4


def test_what_is_usual_is_the_mean_and_spread_over_pairs() -> None:
    vectors = random_vectors(200)
    pairs = [similarity(one, other) for at, one in enumerate(vectors) for other in vectors[:at]]
    mean = sum(pairs) / len(pairs)
    spread = math.sqrt(sum((value - mean) ** 2 for value in pairs) / len(pairs))
    space = filled(rows_of(vectors))
    assert space.usual() == pytest.approx((mean, spread), abs=1e-5)
    space.extend(rows_of(random_vectors(5000, seed=4), start=1000))
    assert space.usual() == pytest.approx((mean, spread), abs=0.02)


def test_what_is_usual_changes_with_what_is_there() -> None:
    one, other = random_vectors(2)
    space = filled([(1, "fact", 1, one)])
    assert space.usual() == (0, 0)
    space.extend([(2, "fact", 2, other)])
    assert space.usual() == pytest.approx((similarity(one, other), 0), abs=1e-5)
    space.drop([("fact", 2)])
    assert space.usual() == (0, 0)
    space.drop([("fact", 1)])
    assert space.usual() == (0, 0)


def test_kinds_are_told_apart() -> None:
    one, other = random_vectors(2)
    space = filled([(1, "fact", 1, one), (2, "record", 1, other)])
    space.drop([("fact", 1)])
    assert [each[:2] for each in search(space, one, 5)] == [("record", 1)]


def _held_bytes(space: SpaceVectors) -> bytes:
    """All that the arrays of a space hold, used or not."""
    held = b""
    for chunk in space._chunks:
        for array in (chunk.vectors, chunk.signs, chunk.codes):
            whole = array.base if array.base is not None else array
            held += whole.tobytes()
    return held


@pytest.mark.parametrize("count", [10, 1000])
def test_what_is_dropped_is_gone_from_memory(count: int) -> None:
    """P11: also where it shares an array with what stays."""
    vectors = random_vectors(count)
    rows = rows_of(vectors)
    space = filled(rows)
    assert vectors[3] in _held_bytes(space)
    space.drop([rows[3][1:3], ("record", 99_999_999), ("other", 1)])
    assert vectors[3] not in _held_bytes(space)
    assert vectors[4] in _held_bytes(space)
    query = vectors[3]
    assert_found(search(space, query, count), by_hand(rows[:3] + rows[4:], query), count)
    assert len(space) == count - 1


def test_what_was_replaced_is_gone_from_memory() -> None:
    vectors = random_vectors(100)
    space = filled(rows_of(vectors[:99]))
    space.extend([(100, *rows_of(vectors)[5][1:3], vectors[99])])
    assert vectors[5] not in _held_bytes(space)
    assert vectors[99] in _held_bytes(space)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 200)), min_size=1, max_size=25
    ),
    st.integers(0, 10**6),
)
def test_kept_current_is_the_same_as_built_anew(
    changes: list[tuple[bool, int, int]], seed: int
) -> None:
    """Any order of new, replaced and dropped entries comes to what is left in the end."""
    numbers = random.Random(seed)
    space = SpaceVectors(4)
    left: dict[EntryKey, bytes] = {}
    key = 0
    for is_drop, start, count in changes:
        entries = [(KINDS[at % 3], at) for at in range(start, start + count)]
        if is_drop:
            space.drop(entries)
            for entry in entries:
                left.pop(entry, None)
            continue
        rows = []
        for kind, number in entries:
            key += 1
            left[kind, number] = unit_bytes([numbers.gauss(0, 1) for _ in range(4)])
            rows.append((key, kind, number, left[kind, number]))
        space.extend(rows)
    query = unit_bytes([numbers.gauss(0, 1) for _ in range(4)])
    anew = filled([(at, *entry, vector) for at, (entry, vector) in enumerate(left.items(), 1)], 4)
    assert len(space) == len(anew) == len(left)
    assert space.last_key == key
    expected = {entry: similarity(query, vector) for entry, vector in left.items()}
    assert_found(search(space, query, 300), expected, 300)
    assert similarities(space, query, left) == pytest.approx(expected, abs=1e-5)
    assert similarities(anew, query, left) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dimensions", [64, 256])
def test_memory_is_little_more_than_the_vectors(dimensions: int) -> None:
    """Row by row or page by page, and after entries were replaced and dropped all over."""
    numbers = random.Random(SEED)
    vectors = [
        numbers.randbytes(4 * dimensions)[:-1] + b"\0" for _ in range(200)
    ]  # any bytes will do: nothing is compared
    space = SpaceVectors(dimensions)
    key = 0
    for page in (*[1] * 30, *[700] * 20, *[1] * 30):
        space.extend(
            [(key + at, "record", key + at, vectors[at % 200]) for at in range(1, page + 1)]
        )
        key += page
        if key > 1000:
            assert space.nbytes <= 1.2 * 4 * dimensions * len(space)
    for turn in range(1, 60):
        entries = [("record", numbers.randint(1, key)) for _ in range(100)]
        if turn % 2:
            space.drop(entries)
        else:
            space.extend([(key + at, *entry, vectors[at]) for at, entry in enumerate(entries)])
        assert space.nbytes <= 1.2 * 4 * dimensions * len(space)


@every_row("left", [0, 1, 20, 300, 1000, 5000])
def test_memory_goes_with_what_is_dropped(left: int) -> None:
    """Measured by what is allocated: no array outlives most of what it holds."""
    vector = unit_bytes([1.0] * 256)
    # The least of a few: what others in this process allocate meanwhile is counted, too.
    held = min(allocated_after_dropping(vector, left) for _ in range(3))
    assert held <= len(vector) * (1.2 * left + 128) + 32_768


def allocated_after_dropping(vector: bytes, left: int) -> int:
    tracemalloc.start()
    try:
        space = SpaceVectors(256)
        for page in range(0, 13_000, 1000):
            space.extend([(at, "record", at, vector) for at in range(page + 1, page + 1001)])
        space.drop([("record", at) for at in range(1, 13_001 - left)])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(space) == left
    return held


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    vectors = random_vectors(2)
    space = filled([(1, "record", 1, vectors[0])])
    for row in (
        (2, "record", 2, vectors[1][:-4]),
        (2, "record", 2, vectors[1] + b"\0\0\0\0"),
        (2, "record", -1, vectors[1]),
        (2, "record", 1 << 56, vectors[1]),
    ):
        with pytest.raises(InvalidValue):
            space.extend([row])
    assert (len(space), space.last_key) == (1, 1)
    assert search(space, vectors[0], 5) == [("record", 1, 1.0)]
    with pytest.raises(InvalidValue):
        search(space, vectors[0][:-4], 5)
    with pytest.raises(InvalidValue):
        SpaceVectors(0)


def test_readers_see_what_is_there_while_a_writer_adds_and_drops() -> None:
    """Entries that nobody touches are found by every search, each with its own similarity."""
    lasting = [(at, "fact", at, vector) for at, vector in enumerate(random_vectors(300), 1)]
    passing = random_vectors(200, seed=9)
    space = filled(lasting)
    query = random_vectors(1, seed=7)[0]
    expected = by_hand(lasting, query)
    best = sorted(expected.values(), reverse=True)[:20]
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            found = search(space, query, 20, kinds=["fact"])
            values = similarities(space, query, expected)
            if [value for _, _, value in found] != pytest.approx(best, abs=1e-5):
                wrong.append(found)
            if values != pytest.approx(expected, abs=1e-5):
                wrong.append(values)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    key = 300
    for turn in range(60):
        rows = [(key + at, "record", at, vector) for at, vector in enumerate(passing, 1)]
        space.extend(rows[: 50 + turn])
        key += 200
        space.drop([("record", at) for at in range(turn, 150)])
    done.set()
    for reader in readers:
        reader.join(20)
    assert wrong == []


def test_vectors_of_texts_find_the_text_that_shares_words() -> None:
    texts = ["bees dance at noon", "taxes are due in May", "the mill was sold"]
    embedder = HashEmbedder()
    space = SpaceVectors(embedder.dimensions)
    space.extend(
        [(at, "record", at, vector) for at, vector in enumerate(embedder.embed(texts).vectors, 1)]
    )
    (query,) = embedder.embed(["when are taxes due"]).vectors
    assert search(space, query, 1)[0][:2] == ("record", 2)


def test_a_cache_keeps_what_was_used_last_within_its_bytes() -> None:
    size = filled(rows_of(random_vectors(100))).nbytes
    cache = VectorCache(int(2.5 * size))
    for key in "abc":
        cache.get(key, DIMENSIONS).extend(rows_of(random_vectors(100)))
    assert cache.nbytes == 3 * size
    cache.get("a", DIMENSIONS)
    assert cache.nbytes == 2 * size
    assert [len(cache.get(key, DIMENSIONS)) for key in "acb"] == [100, 100, 0]


def test_one_space_is_kept_however_large_it_is() -> None:
    cache = VectorCache(10)
    space = cache.get("a", DIMENSIONS)
    space.extend(rows_of(random_vectors(100)))
    cache.trim()
    assert cache.get("a", DIMENSIONS) is space
    other = cache.get("b", DIMENSIONS)
    assert cache.get("b", DIMENSIONS) is other
    assert cache.nbytes == 0
    assert len(space) == 100, "whoever holds it goes on with it"


def test_vectors_of_another_length_are_another_space() -> None:
    cache = VectorCache(1_000_000)
    cache.get("a", DIMENSIONS).extend(rows_of(random_vectors(10)))
    assert cache.get("a", 5).dimensions == 5
    assert len(cache.get("a", 5)) == 0


def test_a_space_that_is_forgotten_leaves_the_cache() -> None:
    cache = VectorCache(1_000_000)
    cache.get("a", DIMENSIONS).extend(rows_of(random_vectors(10)))
    cache.discard("a")
    cache.discard("a")
    assert cache.nbytes == 0
    assert len(cache.get("a", DIMENSIONS)) == 0


def test_similarities_lie_between_opposite_and_the_same() -> None:
    (vector,) = random_vectors(1)
    opposite = unit_bytes([-value for value in floats(vector)])
    found = search(filled([(1, "fact", 1, vector), (2, "fact", 2, opposite)]), vector, 2)
    assert [value for _, _, value in found] == pytest.approx([1, -1], abs=1e-5)
    assert all(math.isfinite(value) for _, _, value in found)
