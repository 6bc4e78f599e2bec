"""What a handler gets and what it answers; neither knows how it travels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect.compat.mem0 import Memory as Mem0Memory
from recollect.interfaces.http.hosting import Hosts
from recollect.memory import Memory
from recollect.space import Space
from recollect.store.key_protocol import ApiKey

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, let in: to whom it goes, whose it is, and on which conditions."""

    memory: Memory
    mem0: Mem0Memory  # the same one, by mem0's verbs
    hosts: Hosts  # to whom messages for agents go
    space: Space  # of the path; the default one where the path names none
    key: ApiKey
    expected_version: int | None = None  # by If-Match; 0 by If-None-Match
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer: content that becomes JSON, or text as it is."""

    content: Any
    status: int = 200
    media_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()  # of what was done, where a retry reads it again by them

    def encoded(self) -> bytes:
        if isinstance(self.content, str) and self.media_type != JSON_TYPE:
            return self.content.encode()
        made = _ENCODER.encode(self.content)
        # Half a character, which no UTF-8 has, becomes the very escape that JSON has for it.
        return made.encode(errors="backslashreplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer as it goes out."""

    status: int
    media_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer that goes on: what changes in a space, as it does."""

    space: str


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
