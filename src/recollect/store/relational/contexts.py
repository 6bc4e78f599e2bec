"""What was told, by reference: blocks are added in batches, and lose what is erased with it."""

from __future__ import annotations

import builtins
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.references import (
    STATEMENT,
    entries_in,
    keys_in,
    read_reference,
    readers_of,
    statement_ref,
)
from recollect.stemming import asked_stems
from recollect.store.relational.database import (
    Aggregate,
    Asked,
    Connection,
    Params,
    Row,
    in_each_space,
)
from recollect.store.relational.rows import reader, source, storable
from recollect.types.facts import Reader, Source
from recollect.types.recall import (
    EntryKind,
    EntryVersions,
    KeptContext,
    LineState,
    ref_of,
)

_NAMED = {"R": "records_told", "F": "facts_told", "D": "documents_told", "S": "summaries_told"}
_EARLIER = {"F": "earlier_facts", "D": "earlier_documents"}
QUOTED_SHARE = 0.5  # of its words: a question that has more of them of something erased quotes it
STATEMENT_END = "g"  # behind every hexadecimal digit


class Contexts(Aggregate):
    """What was told, by reference. What is erased goes from here in the same transaction."""

    def add(self, space: str, kept: Sequence[KeptContext]) -> None:
        """Keep blocks, without lines from what has been erased since they were made."""
        self._database.write(space, lambda c: _add(c, space, kept))

    def get(self, space: str, context_id: str) -> KeptContext | None:
        return self._one(_kept, space, "get_context", {"space": space, "id": context_id})

    def list(self, space: str, limit: int) -> builtins.list[KeptContext]:
        """The newest first."""
        return self._page(_kept, space, "list_contexts", {"space": space, "limit": limit})

    def refs(self, space: str) -> Mapping[str, tuple[str, str, str | None, datetime]]:
        """What each block of a space refers to, its reader, the session, and when it was told."""
        rows = self._rows(space, "all_refs", {"space": space})
        return {row[0]: (row[1], row[2], row[3], from_micros(row[4])) for row in rows}

    def readers(self, space: str, fact_id: str) -> builtins.list[Reader]:
        """Who was told of a fact, who was told last first."""
        rows = self._telling(space, fact_id)
        return readers_of((row[2], row[3], from_micros(row[4])) for row in rows)

    def asked(self, space: str, fact_id: str) -> str:
        """What was asked when a fact was told last; empty: nothing that is kept."""
        latest = sorted(row for row in self._telling(space, fact_id) if row[5])
        return str(latest[-1][5]) if latest else ""

    def _telling(self, space: str, fact_id: str) -> builtins.list[Row]:
        def job(c: Connection) -> builtins.list[Row]:
            found = c.row("find_any_fact", {"space": space, "id": fact_id})
            if found is None:
                return []
            refs = {ref_of(EntryKind.FACT, found[0]), statement_ref(found[1])}
            asked: builtins.list[Asked] = [
                ("contexts_telling", {"space": space, "ref": ref}) for ref in sorted(refs)
            ]
            rows = {row[0]: row for each in c.rows_each(asked) for row in each}
            return [row for row in rows.values() if not refs.isdisjoint(entries_in(row[1]))]

        return self._database.read(space, job)

    def versions(self, space: str, refs: Collection[str]) -> Mapping[str, EntryVersions]:
        """What entries say and said; none of what was erased."""
        return self._database.read(space, lambda c: _versions(c, space, refs))

    def prune(self, before: datetime, keep: int) -> int:
        """Drop what was told before a time, and all but the newest of a space; their number."""
        names = {"before": to_micros(before), "keep": keep}

        def pruned(c: Connection, space: str) -> int:
            return len(c.rows("prune_contexts", {**names, "space": space}))

        return sum(in_each_space(self._database, None, ("spaces_told", {}), pruned).values())


def forget_told(c: Connection, space: str, erased: Mapping[str, str]) -> None:
    """Take what is erased out of all that was told of it, and the questions that quote it.

    `erased` are references, each with the stems of what it said.
    """
    gone = [frozenset(stems.split()) for stems in erased.values()]
    every = frozenset[str]().union(*gone)

    # Pages and summaries are made anew all the time: a word in common says nothing.
    least = 1 if next(iter(erased), "")[:1] in ("F", "R") else 2

    def is_quoted(asked: Collection[str], said: frozenset[str]) -> bool:
        both = len(said.intersection(asked))
        return both >= least and both > QUOTED_SHARE * len(asked)

    for context_id, refs, *_, query in c.rows("all_refs", {"space": space}) if gone else ():
        if erased.keys().isdisjoint(entries_in(refs)):
            asked = asked_stems(query)
            if not is_quoted(asked, every) or not any(is_quoted(asked, said) for said in gone):
                continue
        own = {"space": space, "id": context_id}
        kept = c.row("get_context", own)
        assert kept is not None
        left = _reduced(_kept(kept), erased)
        c.run("reduce_context", {**own, "query": "", "refs": left.refs, "told": left.told})


def _add(c: Connection, space: str, kept: Sequence[KeptContext]) -> None:
    # Whoever erases holds it: what is there now is found by them, or was erased before.
    c.row("hold_memory", {"space": space})
    wanted = {ref for each in kept for ref in entries_in(each.refs)}
    keys = sorted({key for letter in _NAMED for key in keys_in(wanted, letter)})
    there = {f"{letter}{key:x}" for letter, key in c.rows("refs_there", _by_keys(space, keys))}
    gone = {ref for ref in wanted if ref[:1] in _NAMED} - there
    sessions = {each.session_id for each in kept} - {None}
    forgotten: set[str] = set()
    if sessions:
        ids = json.dumps(sorted(filter(None, sessions)))
        forgotten = {row[0] for row in c.rows("sessions_gone", {"space": space, "ids": ids})}
    left = [
        replace(each, query="") if each.session_id in forgotten else each
        for each in (_reduced(each, gone) for each in kept)
    ]
    c.run_many(
        "insert_context",
        [
            {
                "space": space,
                "id": each.id,
                "reader": storable(each.reader),
                "session_id": each.session_id,
                "query": storable(each.query),
                "refs": each.refs,
                "told": each.told,
                "now": to_micros(each.at),
            }
            for each in left
        ],
    )


def _reduced(kept: KeptContext, gone: Collection[str]) -> KeptContext:
    found = read_reference(kept.told).without(kept.refs, gone.__contains__) if gone else None
    if found is None:
        return kept
    return replace(kept, query="", refs=found[0], told=found[1].packed())


_kept = reader(KeptContext)


def _by_keys(space: str, keys: Sequence[int]) -> Params:
    return {"space": space, "keys": json.dumps(keys)}


def _versions(c: Connection, space: str, refs: Collection[str]) -> dict[str, EntryVersions]:
    found: dict[str, EntryVersions] = {}
    for letter, name in _NAMED.items():
        if keys := keys_in(refs, letter):
            names = _by_keys(space, keys)
            earlier: dict[int, list[str]] = defaultdict(list)
            for key, text in c.rows(_EARLIER[letter], names) if letter in _EARLIER else ():
                earlier[key].append(text)
            sources = _sources(c, names) if letter == "F" else {}
            for row in c.rows(name, names):
                each = _version(letter, row, earlier[row[0]])
                its = sources.get(row[0], each.sources)
                found[f"{letter}{row[0]:x}"] = replace(each, sources=its)
    for ref in refs:
        if ref.startswith(STATEMENT):
            asked = {"space": space, "first": ref[1:], "last": f"{ref[1:]}{STATEMENT_END}"}
            texts = tuple(row[0] for row in c.rows("statement_told", asked))
            if texts:
                found[ref] = EntryVersions(id="", texts=texts)
    return found


def _version(letter: str, row: Row, earlier: Sequence[str]) -> EntryVersions:
    match letter:
        case "R":
            _, session_id, seq, text, name, role = row
            source = Source(session_id=session_id, seq=seq, seq_to=seq)
            return EntryVersions(
                id=f"{session_id}:{seq}", texts=(text,), speaker=name or role, sources=(source,)
            )
        case "F":
            _, entry_id, text, deleted_at, superseded_by, now, _ = row
            state = LineState.SAME if superseded_by is None else LineState.REPLACED
        case "D":
            _, entry_id, text, deleted_at = row
            state, now = LineState.SAME, None
        case _:
            _, entry_id, summary, memory = row
            return EntryVersions(
                id=entry_id,
                texts=(f"{summary}\n{memory}", summary),
                sources=(Source(session_id=entry_id, seq=1, seq_to=1),),
            )
    return EntryVersions(
        id=entry_id,
        texts=tuple(dict.fromkeys((text, *earlier))),
        state=state if deleted_at is None else LineState.DELETED,
        now=now or "",
    )


def _sources(c: Connection, names: Params) -> dict[int, tuple[Source, ...]]:
    found: dict[int, tuple[Source, ...]] = defaultdict(tuple)
    for key, *its in c.rows("sources_told", names):
        found[key] += (source(its),)
    return found
