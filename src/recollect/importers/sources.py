"""The sources by name. What one of them needs is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from recollect.errors import InvalidValue
from recollect.importers.items import Source

MARKDOWN = "markdown"  # notes become documents, and are no messages

_MODULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "claude-code": ("claude_code", "ClaudeCode"),
        "codex": ("codex", "Codex"),
        "chatgpt": ("chatgpt", "ChatGPT"),
        "claude": ("claude_export", "ClaudeExport"),
        "openai": ("message_lists", "OpenAIMessages"),
        "anthropic": ("message_lists", "AnthropicMessages"),
        "mem0": ("mem0", "Mem0"),
        "jsonl": ("generic", "GenericJsonl"),
    }
)
NAMES = (*_MODULES, MARKDOWN)


def source_named(name: str) -> Source:
    """A source of messages or facts. InvalidValue: there is none of that name."""
    if name not in _MODULES:
        raise InvalidValue(f"there is no source {name!r}; there are {', '.join(_MODULES)}")
    module, kind = _MODULES[name]
    return cast("Source", getattr(import_module(f"recollect.importers.{module}"), kind)())
