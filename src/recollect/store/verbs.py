"""Every verb of a store, by aggregate, and what each does to what is remembered.

What is neither listed as a read nor as upkeep is a write, so that a verb that is new is on the side
of caution until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import FunctionType

from recollect.observing.seam import Kind, StoreVerb
from recollect.store import protocol
from recollect.store.audit_protocol import Audit
from recollect.store.vector_protocol import VectorSearch

AGGREGATES: Mapping[str, type] = {
    "sessions": protocol.Sessions,
    "records": protocol.Records,
    "marks": protocol.Marks,
    "leases": protocol.Leases,
    "extractions": protocol.Extractions,
    "facts": protocol.Facts,
    "ledger": protocol.Ledger,
    "documents": protocol.Documents,
    "search": protocol.Search,
    "vectors": protocol.Vectors,
    "agents": protocol.Agents,
    "generations": protocol.Generations,
    "imports": protocol.Imports,
    "api_keys": protocol.ApiKeys,
    "erasure": protocol.Erasure,
    "audit": Audit,
    "vector_search": VectorSearch,
}

_READS: Mapping[str, str] = {
    "sessions": "key_agents find_key current get list rotations spaces",
    "records": "recent recent_with_summary after all_rotations count summary",
    "marks": "find_invalidated max_seq count_since ranges marked waiting",
    "leases": "load jobs get",
    "extractions": "get list progress",
    "facts": "get list search search_metadata history",
    "ledger": "calls",
    "documents": "find get find_deleted tree history search deleted references_from references_to"
    " references_naming broken orphans",
    "search": "candidates latest load revisions usage",
    "vectors": "pending",  # its texts go to whoever makes vectors
    "agents": "ref item find_record get list",
    "generations": "select memos standings list get documents",
    "api_keys": "list",
    "erasure": "moment forgettable",
    "audit": "list",
    "vector_search": "nearest similarities",
}
_UPKEEP: Mapping[str, str] = {
    "marks": "counts bound_activity mark_idle waiting_newest",
    "leases": "claim claim_consolidation renew defer fail release ensure_recurring make_due"
    " finish_recurring counts",
    "extractions": "revision count_due",
    "facts": "count",
    "ledger": "reserve settle spent spent_by_purpose spent_daily",
    "documents": "render unrendered",  # says no more than the facts do
    "search": "catch_up prune",
    "vectors": "put changes use delete_others tend search",
    "agents": "due_signals next_signal_at counts fail release",
    "generations": "states hurry expire note_edits files_published without_files",
    "imports": "known cursor",
    "api_keys": "find used",  # whoever comes in is named with what is done then
    "audit": "begin end prune",
    "vector_search": "additions usual",
}
KEEP = StoreVerb(name="store.keep", kind=Kind.UPKEEP, parameters=("name", "value"))
READ_WHOLE = StoreVerb(name="store.read_whole", kind=Kind.READ, parameters=())
WRITE_WHOLE = StoreVerb(name="store.write_whole", kind=Kind.WRITE, parameters=())


@cache
def verbs_of(aggregate: str) -> Mapping[str, StoreVerb]:
    """The verbs of an aggregate by the name of their method."""
    methods = vars(AGGREGATES[aggregate])
    return {
        name: StoreVerb(
            name=f"{aggregate}.{name}",
            kind=_kind(aggregate, name),
            parameters=method.__code__.co_varnames[1 : method.__code__.co_argcount],
        )
        for name, method in methods.items()
        if isinstance(method, FunctionType) and not name.startswith("_")
    }


def _kind(aggregate: str, name: str) -> Kind:
    if name in _READS.get(aggregate, "").split():
        return Kind.READ
    return Kind.UPKEEP if name in _UPKEEP.get(aggregate, "").split() else Kind.WRITE
