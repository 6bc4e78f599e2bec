"""How far a run through a whole session has got, kept between its pieces."""

from __future__ import annotations

import json
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.knowledge import Draft, NewFact, Spent, Staged, Trust
from recollect.store.relational.database import Connection, Params


def put_staged(c: Connection, session: Params, staged: Staged) -> None:
    c.run(
        "stage_draft",
        {
            **session,
            "pass": staged.pass_number,
            "upto": staged.upto,
            "extractor": staged.extractor,
            "draft": _written(staged.draft),
            "calls": staged.spent.calls,
            "input_tokens": staged.spent.input_tokens,
            "output_tokens": staged.spent.output_tokens,
            "cost_micros": staged.spent.cost_micros,
        },
    )


def get_staged(c: Connection, session: Params) -> Staged | None:
    row = c.row("get_staged", session)
    if row is None:
        return None
    return Staged(
        pass_number=row[0],
        upto=row[1],
        extractor=row[2],
        draft=_read(json.loads(row[3])),
        spent=Spent(calls=row[4], input_tokens=row[5], output_tokens=row[6], cost_micros=row[7]),
    )


def _written(draft: Draft) -> str:
    facts = [
        {
            "content": fact.content,
            "seq": fact.seq,
            "seq_to": fact.seq_to,
            "valid_from": to_micros(fact.valid_from),
            "trust": fact.trust.value,
            "quote": fact.quote,
            "tags": list(fact.tags),
            "metadata": dict(fact.metadata),
            "topic": fact.topic,
            "supersedes": list(fact.supersedes),
            "valid_to": None if fact.valid_to is None else to_micros(fact.valid_to),
        }
        for fact in draft.facts
    ]
    texts = {
        "upto": draft.upto,
        "raw_memory": draft.raw_memory,
        "rollout_summary": draft.rollout_summary,
        "rollout_slug": draft.rollout_slug,
    }
    return json.dumps({**texts, "facts": facts})  # ASCII: what no database holds is escaped


def _read(written: dict[str, Any]) -> Draft:
    facts = tuple(
        NewFact(
            **fact
            | {
                "valid_from": from_micros(fact["valid_from"]),
                "trust": Trust(fact["trust"]),
                "tags": tuple(fact["tags"]),
                "supersedes": tuple(fact["supersedes"]),
                "valid_to": None if fact["valid_to"] is None else from_micros(fact["valid_to"]),
            }
        )
        for fact in written.pop("facts")
    )
    return Draft(**written, facts=facts)
