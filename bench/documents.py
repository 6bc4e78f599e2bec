"""Whether the tree of documents slows down as it grows, and whether publishing repeats itself."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import apsw

import recollect
from bench.bare import NOW
from bench.measure import Action, Cost, take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SPACE, open_memory, sqlite_address, with_schema
from bench.texts import SEED

FEW, MANY = 100, 100_000
PUBLISHED = 1000
IN_AN_AREA = 100  # pages below one document
PAGE = 200  # documents of a page of the tree
PAGE_MS_MAX = 20.0
TEXTS, WORDS = 2000, 20_000  # of the pages, and of the language they are in
RATIO_MAX = 1.2
GROUP = "documents, in a tree of 100 and in one of 100,000"


def measure_documents(run: Run) -> Iterator[Line]:
    """What a publication writes; read, write and tree on both databases."""
    yield from _publishing(run)
    yield from _compare(run, "SQLite", lambda pages: _sqlite_store(run, pages))
    url = run.postgres_url
    if url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)
        return
    yield from _compare(run, "PostgreSQL", lambda pages: _postgres_store(url, pages))


def _publishing(run: Run) -> Iterator[Line]:
    """How many files are written when one document of many has changed."""
    directory = run.directory / "published"
    with open_memory(_sqlite_store(run, PUBLISHED)) as memory:
        documents = memory.space(SPACE).documents
        whole = documents.publish(directory)
        documents.write(_path(PUBLISHED // 2), "Something else.")
        before = {file: file.stat().st_ino for file in directory.rglob("*.md")}
        changed = documents.publish(directory)
    new = sum(before.get(file) != file.stat().st_ino for file in directory.rglob("*.md"))
    assert new == changed.written, "what is said to be written is what is new on the disk"
    yield Line(
        group="publishing the tree",
        name=f"files written after one of {PUBLISHED:,} documents changed",
        measured=new,
        target=1,
        is_ratio=False,
        note=f"{whole.written:,} the first time",
    )


def _compare(run: Run, database: str, make: Callable[[int], str]) -> Iterator[Line]:
    many = run.scaled(MANY, 10_000)
    with ExitStack() as stack:
        memories = {pages: stack.enter_context(open_memory(make(pages))) for pages in (FEW, many)}
        spaces = {pages: memory.space(SPACE) for pages, memory in memories.items()}
        actions = {pages: _actions(space, pages) for pages, space in spaces.items()}
        for name in actions[FEW]:
            costs = _measured(run, database, actions[FEW][name], actions[many][name])
            yield _ratio_line(run, database, name, costs, many)
        for name, action in _pages(spaces[many], many).items():
            cost = take_turns({"": action}, repetitions=run.scaled(100, 20), calls=1)[""]
            yield Line(
                group=GROUP,
                name=f"{database}: {name}, wall",
                unit="ms",
                measured=cost.wall_us / 1000,
                target=PAGE_MS_MAX,
                is_ratio=False,
                note=f"{PAGE} of {many:,}",
            )


def _measured(run: Run, database: str, among_few: Action, among_many: Action) -> tuple[Cost, Cost]:
    in_process = database == "SQLite"
    costs = take_turns(
        {"few": among_few, "many": among_many},
        repetitions=run.scaled(250, 40) if in_process else run.scaled(1000, 200),
        calls=8 if in_process else 1,
    )
    return costs["few"], costs["many"]


def _ratio_line(run: Run, database: str, name: str, costs: tuple[Cost, Cost], many: int) -> Line:
    few, several = costs
    in_process = database == "SQLite"
    # The index for search is tidied up now and then, by a write whose turn it is: the best
    # repetition does not show that, the middle one does.
    notes = [f"middle {several.cpu_median_us / few.cpu_median_us:.2f} ×"] if in_process else []
    notes += [f"quick: {many:,} instead of {MANY:,}"] if run.quick else []
    return Line(
        group=GROUP,
        name=f"{database}: {name}, {'CPU' if in_process else 'wall'}",
        unit="µs",
        measured=several.cpu_us if in_process else several.wall_us,
        limit=few.cpu_us if in_process else few.wall_us,
        target=RATIO_MAX,
        note="; ".join(notes),
    )


def _actions(space: recollect.Space, pages: int) -> dict[str, Action]:
    """The same calls on a tree of any size, on pages that stand far apart in it."""
    documents = space.documents
    paths = itertools.cycle(_path(i) for i in range(1, pages + 1, pages // FEW))
    texts = itertools.cycle(_texts(TEXTS + 101)[TEXTS:])
    numbers = itertools.count()
    return {
        "read by path": lambda: documents.read(next(paths)),
        "write a new version": lambda: documents.write(next(paths), next(texts)),
        "write a new document": lambda: documents.write(f"new/n{next(numbers)}", next(texts)),
    }


def _pages(space: recollect.Space, pages: int) -> dict[str, Action]:
    tree = space.documents.tree
    middle = _path(pages // 2)
    return {
        "first page of the tree": lambda: _full(tree(limit=PAGE)),
        "a page from the middle": lambda: _full(tree(limit=PAGE, after=middle)),
        "first page of the top level": lambda: _full(tree(depth=1, limit=PAGE), at_least=2),
    }


def _full(nodes: list[Any], at_least: int = PAGE) -> None:
    assert len(nodes) >= at_least, "a page that is not full measures nothing"


def _path(page: int) -> str:
    return f"area-{page // IN_AN_AREA}/page-{page}"


def _sqlite_store(run: Run, pages: int) -> str:
    path = run.directory / f"documents-{pages}.db"
    address = sqlite_address(path, synchronous="off")
    _begin(address)
    connection = apsw.Connection(str(path))
    series = (
        f"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {pages})"
        " SELECT i FROM n) AS s"
    )
    with connection:
        _fill(connection, series, "char(1)", pages)
    connection.close()
    return address


def _postgres_store(url: str, pages: int) -> str:
    import psycopg  # an extra; without it there is no URL

    schema = f"recollect_bench_documents_{pages}"
    address = with_schema(url, schema)
    _begin(address)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        connection.execute("SELECT set_config('recollect.operator', 'on', false)")
        _fill(connection, f"generate_series(1, {pages}) AS i", "chr(1)", pages)
        connection.execute("VACUUM ANALYZE")  # what autovacuum does within a minute
    return address


def _begin(address: str) -> None:
    with open_memory(address) as memory:
        memory.space(SPACE).documents.write("new", "What is written while it is measured.")


def _fill(connection: Any, series: str, separator: str, pages: int) -> None:
    """Pages below areas below the root, each with a version and a link to its area.

    `connection` runs SQL (apsw's or psycopg's) and `series` is a query for 1 … pages as `i`.
    """
    rows = ", ".join(f"({n}, '{text}')" for n, text in enumerate(_texts(TEXTS)))
    for statement in ("CREATE TEMP TABLE texts (n BIGINT, text TEXT)", *_PAGES):
        filled = statement.replace("{series}", series).replace("{separator}", separator)
        filled = filled.replace("{now}", str(NOW)).replace("{space}", SPACE)
        filled = filled.replace("{rows}", rows).replace("{texts}", str(TEXTS))
        connection.execute(filled.replace("{area}", str(IN_AN_AREA)))
    count = "SELECT count(*) FROM documents WHERE depth = 3 AND id LIKE 'page-%'"
    assert connection.execute(count).fetchall() == [(pages,)]


def _texts(count: int, words: int = 60) -> list[str]:
    """Texts whose words are as unequal as those of a language: a few everywhere, most seldom."""
    rng = random.Random(SEED)
    weights = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    vocabulary = [_word(rng) for _ in range(WORDS)]
    return [" ".join(rng.choices(vocabulary, cum_weights=weights, k=words)) for _ in range(count)]


def _word(rng: random.Random) -> str:
    return "".join(
        rng.choice("bdfglmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))
    )


_DOCUMENT = """
    INSERT INTO documents (
        id, space, path, path_key, depth, title, description, body, called, about, words, tags,
        links, version, author_kind, author, reason, provenance, created_at, updated_at)
"""
_REST = """'[]', '[]', 1, 'person', 'user', '', '{"sources": [], "facts": []}', {now}, {now}"""
_PAGES = (
    "INSERT INTO texts VALUES {rows}",
    _DOCUMENT
    + """
    SELECT 'area-' || a, '{space}', '~/memory/area-' || a, 'memory' || {separator} || 'area-' || a,
        2, 'Area ' || a, '', '', 'area ' || a, '', 'area ' || a,
    """
    + _REST
    + " FROM (SELECT DISTINCT i / {area} AS a FROM {series}) areas",
    _DOCUMENT
    + """
    SELECT 'page-' || i, '{space}', '~/memory/area-' || (i / {area}) || '/page-' || i,
        'memory' || {separator} || 'area-' || (i / {area}) || {separator} || 'page-' || i,
        3, 'Page ' || i, 'What page ' || i || ' is about', t.text, 'page ' || i,
        'what page ' || i || ' is about', t.text,
    """
    + _REST
    + " FROM {series} JOIN texts t ON t.n = i % {texts}",
    """
    INSERT INTO document_versions (
        document_key, version, space, event, path, title, description, body, tags, links,
        author_kind, author, reason, provenance, created_at)
    SELECT key, version, space, 'created', path, title, description, body, tags, links,
        author_kind, author, reason, provenance, created_at
    FROM documents WHERE id LIKE 'page-%' OR id LIKE 'area-%'
    """,
    """
    INSERT INTO document_references (
        document_key, kind, target_path_key, target_path, alias, target_key, space)
    SELECT p.key, 'body', a.path_key, a.path, '', a.key, p.space
    FROM {series} JOIN documents p ON p.space = '{space}' AND p.id = 'page-' || i
    JOIN documents a ON a.space = '{space}' AND a.id = 'area-' || (i / {area})
    """,
    "UPDATE trees SET documents = (SELECT count(*) FROM documents WHERE space = '{space}')",
)
