"""The tools of an agent, and the only way to call them.

What a model asks for is checked here, when it is run: a name that is not on the list, arguments
that are none, a tool that fails. All of that goes back to the model as a text. What is wrong with
the store is not the model's to mend, and is raised.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.documents.tools import tool_definitions
from recollect.errors import RecollectError, StoreClosed, StoreError, UsageError
from recollect.messages import ToolCall
from recollect.models.protocol import ToolDefinition

OUTPUT_CHARS_MAX = 50_000  # of one answer; what is longer is cut, and says so

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something an agent can do: how a model is told of it, and what is run."""

    definition: ToolDefinition
    run: Callable[[Mapping[str, Any]], object]  # a text, or what JSON can hold

    @property
    def name(self) -> str:
        return self.definition.name


def document_definitions(names: Collection[str]) -> tuple[ToolDefinition, ...]:
    """Some of the document tools, as they are described to a model."""
    return tuple(
        ToolDefinition(
            name=each["name"], description=each["description"], parameters=each["input_schema"]
        )
        for each in tool_definitions("anthropic")
        if each["name"] in names
    )


def brief_definition(definition: ToolDefinition, parameters: Sequence[str]) -> ToolDefinition:
    """A definition in few tokens: its first sentence, and some of its parameters by type alone."""
    schema = definition.parameters
    kinds = {name: {"type": schema["properties"][name]["type"]} for name in parameters}
    required = [name for name in parameters if name in schema["required"]]
    return ToolDefinition(
        name=definition.name,
        description=f"{definition.description.partition('. ')[0].rstrip('.')}.",
        parameters={"type": "object", "properties": kinds, "required": required},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The result of a call."""

    text: str
    is_error: bool = False


class Toolbox:
    """Tools by name. With `allowed`, no other is shown to a model or run for it."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        allowed: Collection[str] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools if allowed is None or tool.name in allowed}
        self._redact = redact

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition for tool in self._tools.values())

    def call(self, call: ToolCall) -> ToolAnswer:
        """Do what a model asks for, or say what it has to do instead."""
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return _error(f"there is no tool {call.name[:100]!r} here; there are: {known}")
        arguments = _arguments(call.arguments)
        if isinstance(arguments, str):
            return _error(f"{arguments}; call {tool.name} again with a JSON object")
        try:
            given = tool.run(arguments)
            text = given if isinstance(given, str) else json.dumps(given, default=str)
        except (StoreError, StoreClosed):
            raise
        except UsageError as error:
            return _error(self._redact(str(error)))
        except RecollectError:
            raise
        except Exception as error:
            _log.warning("tool %s failed: %s", tool.name, type(error).__name__)
            return _error(self._redact(f"{tool.name} failed: {type(error).__name__}: {error}"))
        return ToolAnswer(text=_bounded(text), is_error=text.startswith("Error: "))


def _error(text: str) -> ToolAnswer:
    return ToolAnswer(text=_bounded(f"Error: {text}"), is_error=True)


def _arguments(given: object) -> Mapping[str, Any] | str:
    """The arguments as a mapping, or what is wrong with them."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return "the arguments are no JSON"
    if not isinstance(given, Mapping):
        return f"the arguments are a JSON object, not {type(given).__name__}"
    return given


def _bounded(text: str) -> str:
    if len(text) <= OUTPUT_CHARS_MAX:
        return text
    left_out = len(text) - OUTPUT_CHARS_MAX
    return f"{text[:OUTPUT_CHARS_MAX]}\n[{left_out:,} characters more were left out]"
