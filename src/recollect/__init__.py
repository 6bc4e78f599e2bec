"""Recollect: durable memory for AI agents. Start with `recollect.open("memory.db")`."""

from recollect.collection import Message
from recollect.config import Settings
from recollect.domain import Job, JobState, MarkCause, Mode, Outcome, Record, SessionState
from recollect.errors import RecollectError
from recollect.facts import Facts
from recollect.generation import ConsolidationState, Generation
from recollect.knowledge import (
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
from recollect.memory import Memory, open
from recollect.messages import Attachment, Role, ToolCall, ToolResult
from recollect.recall.citations import CitationStream, without_citations
from recollect.recollection import Citation, Context, EntryKind, Filters, Hit, Omission
from recollect.resolver import AgentMemories, open_agents
from recollect.session import Session
from recollect.space import Space
from recollect.status import Status
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
