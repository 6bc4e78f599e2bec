"""What a provider's protocol has to say for itself, and what a server was found to understand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from recollect.models.answers import Gathering
from recollect.models.faults import Fault
from recollect.models.protocol import ChatRole, Request


class Structured(StrEnum):
    """How an answer is kept in form, the strictest way first."""

    SCHEMA = "schema"
    JSON = "json"
    LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server understands. It starts out with everything and learns what to leave out."""

    structured: Structured = Structured.SCHEMA
    is_structured_fixed: bool = False  # the settings say how; nothing else is tried
    token_limit: str = "max_tokens"
    has_temperature: bool = True
    has_usage_option: bool = True
    has_stream: bool = True

    @classmethod
    def of(cls, structured: str) -> Dialect:
        if structured == "auto":
            return cls()
        return cls(structured=Structured(structured), is_structured_fixed=True)

    def without_temperature(self) -> Dialect:
        return dataclasses.replace(self, has_temperature=False)

    def with_structured(self, structured: Structured) -> Dialect:
        return dataclasses.replace(self, structured=structured)


class Wire(Protocol):
    """One provider's protocol: how a request is put, how its answer is read."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str | None: ...

    def headers(self) -> Mapping[str, str]:
        """What the protocol wants, and the key where there is one."""
        ...

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]: ...

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        """Take one object of the answer: an event, or all of it."""
        ...

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:
        """The dialect without what the server objects to; None if that is not the matter."""
        ...


def system_text(request: Request, dialect: Dialect) -> str:
    """The system prompt, with the schema in it where the server does not enforce one.

    System messages of the conversation join it: one protocol has no other place for them, and
    with the other many a model takes one only, at the front.
    """
    own = [each.text for each in request.messages if each.role is ChatRole.SYSTEM]
    system = "\n\n".join(text for text in (request.system, *own) if text)
    if request.schema is None or dialect.structured is Structured.SCHEMA:
        return system
    schema = json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"))
    asked = (
        "Answer with one JSON object and nothing else: no words around it, no code fence. "
        f"It has to follow this JSON schema:\n{schema}"
    )
    return f"{system}\n\n{asked}" if system else asked
