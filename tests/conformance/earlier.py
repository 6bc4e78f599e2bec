"""A store as earlier schemas have it, written behind the store's back: today's code cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.clock import ManualClock, to_micros
from recollect.config import Settings
from recollect.store import postgres
from recollect.store.migrations import migrations
from recollect.store.opening import open_store
from recollect.terms import words
from recollect_conformance.harness import AGENT, KEY, SPACE
from recollect_conformance.lessons import day
from tests.conformance.catalogue import Catalogue

SESSION = "s1"
FACTS = ("bought 日本語 books", "paints the kitchen")
RECORDS = 300
AT = to_micros(day(1))


@contextmanager
def known_up_to(
    version: int, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """As if there were no later migrations."""
    known = migrations("sqlite" if catalogue.is_sqlite else "postgres")
    with monkeypatch.context() as before:
        before.setattr(catalogue.module, "migrations", lambda _: known[:version])
        before.setattr(catalogue.module, "newest_version", lambda _: version)
        yield


def make_earlier(
    version: int, url: str, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of an earlier schema, from the third on, with a session and what came of it."""
    _remove(url, catalogue)
    with known_up_to(version, catalogue, monkeypatch):
        open_store(url, Settings(), ManualClock()).close()
    for statement in (*_session(), *_records(), *_learned()):
        catalogue.run(statement)


def _remove(url: str, catalogue: Catalogue) -> None:
    """The empty store of today that the test was given."""
    if catalogue.is_sqlite:
        Path(url.removeprefix("sqlite:///")).unlink()
    else:
        catalogue.run(f'DROP SCHEMA "{postgres.split_schema(url, "")[1]}" CASCADE')


def _session() -> Iterator[str]:
    yield f"INSERT INTO spaces (space, created_at) VALUES ('{SPACE}', {AT})"
    yield f"INSERT INTO agents VALUES ('{SPACE}', '{AGENT}', {AT})"
    yield (
        "INSERT INTO session_keys (space, agent_id, key, session_id)"
        f" VALUES ('{SPACE}', '{AGENT}', '{KEY}', '{SESSION}')"
    )
    yield (
        "INSERT INTO sessions (id, space, key_id, rotation, source, ephemeral, mode, remembered,"
        " last_seq, processed_until, created_at, last_activity_at)"
        f" SELECT '{SESSION}', '{SPACE}', id, 1, 'api', FALSE, 'enabled', TRUE, {RECORDS}, 3,"
        f" {AT}, {AT} FROM session_keys"
    )


def _records() -> Iterator[str]:
    for seq in range(1, RECORDS + 1):
        yield (
            "INSERT INTO session_history (space, session_id, seq, key_id, role, content, said_at,"
            f" created_at) SELECT '{SPACE}', '{SESSION}', {seq}, id, 'user',"
            f" 'said version 1.{seq}', {AT}, {AT} FROM session_keys"
        )


def _learned() -> Iterator[str]:
    yield (
        "INSERT INTO extractions (session_id, space, raw_memory, rollout_summary, extractor, pass,"
        " upto, source_updated_at, generated_at, usage_count)"
        f" VALUES ('{SESSION}', '{SPACE}', '- bought', 'about what was bought', 'rules', 1, 3,"
        f" {AT}, {AT}, 7)"
    )
    yield f"INSERT INTO consolidations (space, changed, changed_at) VALUES ('{SPACE}', 1, {AT})"
    for number, content in enumerate(FACTS):
        yield (
            "INSERT INTO facts (id, space, content, words, tags, metadata, trust, created_at,"
            f" updated_at, valid_from) VALUES ('fact {number}', '{SPACE}', '{content}',"
            f" '{words(content)}', '[]', '{{}}', 'user', {AT}, {AT}, {AT})"
        )
    yield (
        "INSERT INTO fact_sources (fact_key, session_id, seq, seq_to, space, quote, trust,"
        f" created_at) SELECT key, '{SESSION}', 1, 1, '{SPACE}', 'q', 'user', {AT} FROM facts"
    )
