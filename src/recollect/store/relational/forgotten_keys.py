"""Append keys of what was forgotten: known by their digests, so that no retry stores it again.

They stand with the items of imports, which outlive what became of them in the same way, and go with
everything in their space. No key can be read from them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.messages import Role
from recollect.store.relational.database import Asked, Connection, Params
from recollect.types.imports import digest
from recollect.types.records import KeyRef, Record

SOURCE = "append-key"  # what they are noted under
INBOX = "inbox:"  # what an item of an inbox is appended under
_OF_TURNS = (INBOX, "answer:")  # an agent that is told something once more answers once more
NOWHERE = 0  # the seq of what was not stored again


def bury_keys(c: Connection, records: Params, now: datetime) -> None:
    """Note the keys of the records from `first` to `last` of a session, which are about to go."""
    found = {
        _digest(agent_id, key, append_key)
        for agent_id, key, append_key, is_hosted in c.rows("append_keys", records)
        if not (is_hosted and append_key.startswith(_OF_TURNS))
    }
    if found:
        named = {"space": records["space"], "source": SOURCE, "now": to_micros(now)}
        c.rows("note_imported", {**named, "items": json.dumps(sorted(found))})


def asking(ref: KeyRef, keys: Collection[str]) -> Asked:
    """What asks which of these keys are of something that is gone."""
    items = json.dumps(sorted(_digest(ref.agent_id, ref.key, each) for each in keys))
    return "find_imported", {"space": ref.space, "source": SOURCE, "items": items}


def is_buried(ref: KeyRef, key: str, found: Collection[str]) -> bool:
    return _digest(ref.agent_id, ref.key, key) in found


def emptied(session_id: str, key: str, now: datetime) -> Record:
    """What is answered instead: the note that stands for what was forgotten, and stands nowhere."""
    at = from_micros(to_micros(now))
    return Record(
        session_id=session_id,
        seq=NOWHERE,
        role=Role.NOTE,
        content="",
        name=None,
        body=None,
        at=at,
        created_at=at,
        key=key,
        metadata={"forgotten": True},
    )


def _digest(agent_id: str, key: str, append_key: str) -> str:
    """By names, not numbers: those differ in a store that it is loaded into."""
    return digest(json.dumps([agent_id, key, append_key]))
