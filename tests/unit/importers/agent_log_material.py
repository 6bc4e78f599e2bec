"""What the tests of coding agents' logs share: reading a log, and what must hold of any of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from recollect.collection import Message, encode_key, prepare
from recollect.config import Settings
from recollect.importers.items import Found, ImportedMessage, ImportSource, Odd, Origin
from recollect.messages import read
from recollect.types.records import NewRecord
from tests.unit.strategies import any_text, json_values

MEMO_BYTES_MAX = 4096
RECORD_BYTES_MAX = Settings().record_bytes_max


def origin(name: str) -> Origin:
    path = Path("/logs") / name
    return Origin(path=path, root=path.parent, modified=datetime(2026, 5, 1, tzinfo=UTC))


def found_in(source: ImportSource, name: str, entries: Sequence[object]) -> list[Found]:
    reader = source.reader(origin(name), {})
    return [found for line, entry in enumerate(entries, 1) for found in reader.read(entry, line)]


def items_in(source: ImportSource, name: str, entries: Sequence[object]) -> list[ImportedMessage]:
    return [
        found for found in found_in(source, name, entries) if isinstance(found, ImportedMessage)
    ]


def record_of(item: ImportedMessage) -> NewRecord:
    """The item as the store takes it: this fails for what cannot be stored."""
    message = Message(message=item.message, at=item.at, key=item.id, metadata=item.metadata)
    return prepare(message, record_bytes_max=RECORD_BYTES_MAX)


def heard(source: ImportSource, name: str, entries: Sequence[object]) -> list[tuple[str, str]]:
    """Who said what, of everything that somebody said."""
    records = [record_of(item) for item in items_in(source, name, entries)]
    return [(each.role.value, each.content) for each in records if each.role.value != "system"]


def check_any_log(source: ImportSource, name: str, entries: Sequence[object], stop: int) -> None:
    """Nothing raises, everything can be stored, and a memo is as good as having read the rest."""
    whole = found_in(source, name, entries)
    for found in whole:
        if isinstance(found, ImportedMessage):
            record_of(found)
            read(found.message)
            encode_key(found.conversation.key)
            if found.conversation.parent is not None:
                encode_key(found.conversation.parent)
        elif isinstance(found, Odd):
            assert len(found.detail) <= 80
            assert found.detail.isprintable()
    first = source.reader(origin(name), {})
    resumed = [
        each for line, entry in enumerate(entries[:stop], 1) for each in first.read(entry, line)
    ]
    memo = json.dumps(first.memo)
    assert len(memo) <= MEMO_BYTES_MAX
    second = source.reader(origin(name), json.loads(memo))
    resumed += [
        each
        for line, entry in enumerate(entries[stop:], stop + 1)
        for each in second.read(entry, line)
    ]
    assert resumed == whole


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(path for key, each in inner for path in _paths(each, (*at, key)))]


@st.composite
def damaged_logs(draw: st.DrawFn, entries: Sequence[Any]) -> list[Any]:
    """A log of real shapes in another order, in which some values are something else."""
    chosen = draw(st.lists(st.sampled_from(list(entries)), min_size=1, max_size=12))
    log = [copy.deepcopy(entry) for entry in chosen]
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.integers(0, len(log) - 1))
        path = draw(st.sampled_from(_paths(log[number])))
        value = draw(json_values | any_text | st.sampled_from([float("nan"), 10**5000, [[]]]))
        if not path:
            log[number] = value
            continue
        place = log[number]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
    return log
