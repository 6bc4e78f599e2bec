"""Recollect: durable memory for AI agents. Start with `recollect.open("memory.db")`.

A public name is loaded when it is first asked for, with the module it lives in: an agent waits for
every hook it calls, and a hook uses a few names of all there are.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect import aio as aio
    from recollect import compat as compat
    from recollect.collection import Message
    from recollect.config import Settings
    from recollect.errors import RecollectError
    from recollect.facts import Facts
    from recollect.memory import AgentMemories, Memory, open, open_agents
    from recollect.messages import Attachment, Role, ToolCall, ToolResult
    from recollect.recall.usage import CitationStream, without_citations
    from recollect.session import Session
    from recollect.space import Space
    from recollect.types.facts import (
        Call,
        Draft,
        Extraction,
        Fact,
        FactChange,
        FactTag,
        NewFact,
        Receipt,
        Source,
        Spent,
        Trust,
    )
    from recollect.types.generations import ConsolidationState, Generation
    from recollect.types.recall import Citation, Context, EntryKind, Filters, Hit, Omission
    from recollect.types.records import (
        Job,
        JobState,
        MarkCause,
        Mode,
        Outcome,
        Record,
        SessionState,
    )
    from recollect.types.status import Status
    from recollect.worker import Processor, Verdict, Work, Worker, WorkReport

__version__ = "0.1.0"

__all__ = [
    "AgentMemories",
    "Attachment",
    "Call",
    "Citation",
    "CitationStream",
    "ConsolidationState",
    "Context",
    "Draft",
    "EntryKind",
    "Extraction",
    "Fact",
    "FactChange",
    "FactTag",
    "Facts",
    "Filters",
    "Generation",
    "Hit",
    "Job",
    "JobState",
    "MarkCause",
    "Memory",
    "Message",
    "Mode",
    "NewFact",
    "Omission",
    "Outcome",
    "Processor",
    "Receipt",
    "RecollectError",
    "Record",
    "Role",
    "Session",
    "SessionState",
    "Settings",
    "Source",
    "Space",
    "Spent",
    "Status",
    "ToolCall",
    "ToolResult",
    "Trust",
    "Verdict",
    "Work",
    "WorkReport",
    "Worker",
    "open",
    "open_agents",
    "without_citations",
]

_HOMES = {
    "collection": "Message",
    "config": "Settings",
    "types.records": "Job JobState MarkCause Mode Outcome Record SessionState",
    "errors": "RecollectError",
    "facts": "Facts",
    "types.generations": "ConsolidationState Generation",
    "types.facts": (
        "Call Draft Extraction Fact FactChange FactTag NewFact Receipt Source Spent Trust"
    ),
    "memory": "AgentMemories Memory open open_agents",
    "messages": "Attachment Role ToolCall ToolResult",
    "recall.usage": "CitationStream without_citations",
    "types.recall": "Citation Context EntryKind Filters Hit Omission",
    "session": "Session",
    "space": "Space",
    "types.status": "Status",
    "worker": "Processor Verdict Work WorkReport Worker",
}
_PARTS = ("aio", "compat")  # modules to be used by these names, as in recollect.aio.open()
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # checkers go by the imports above, and see a name that is not there

    def __getattr__(name: str) -> object:
        if name in _HOMES or name in _PARTS:  # `recollect.errors` asks for no import of its own
            return import_module(f"{__name__}.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = found  # from now on it is found without asking here
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
