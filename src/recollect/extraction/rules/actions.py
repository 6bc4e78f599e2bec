"""Reads what was done with tools: commands and edits, how each ended, and what went wrong.

Tools name their arguments as they like and digests may be cut short, so everything here is a best
reading: what cannot be read is no action. What a tool answered is only ever looked at, and quoted
in one bounded line; it is never taken for a statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from recollect.extraction.piece import Block, BlockKind
from recollect.extraction.rules.rulebook import Rulebook
from recollect.quarantine import is_quarantined
from recollect.types.facts import Trust

COMMAND_CHARS_MAX = 180
ERROR_CHARS_MAX = 160
FILES_PER_CALL_MAX = 10

_COMMAND_KEYS = ("command", "cmd", "script", "commandline")
_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "target_file", "filepath", "file")
_TEXT_KEYS = ("input", "patch", "diff")
_LOOKS = ("view", "read", "undo_edit")
_CUT_ARGUMENT = re.compile(r'"(command|cmd|file_path|path)": ?"((?:[^"\\]|\\.)*)"')
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (\S.{0,200})$", re.MULTILINE)
_LEFT_OUT = "characters left out"
_GOING_THERE = re.compile(r"^(?:(?:cd|pushd) [^&;|]{1,200}(?:&&|;)\s*)+")
_TRIMMINGS = re.compile(
    r"(?:\s*(?:2>&1|[12]?>{1,2}\s*\S+|\|\s*(?:tail|head|grep|less|cat|tee|sed|awk|wc|sort)\b[^|]*"
    r"|;\s*echo\b.*|&&\s*echo\b.*))+\s*$"
)
_PARTS = re.compile(r"\s*(?:&&|;)\s*")
_SPACE = re.compile(r"\s+")
_ONLY_NAMES = re.compile(
    r"(?:git|gh|rm|cp|mv|mkdir|touch|curl|wget|vim?|nano|code|chmod|ln|p?kill|export|sed|perl|open)\b"
)


class Ending(StrEnum):
    """How an action ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"  # nothing came back, or nothing that says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A command that was run, or files that were edited."""

    seq: int
    seq_to: int  # of what came back
    block: Block
    command: str = ""  # without what only leads there or trims its output; empty: an edit
    kind: str = ""  # test, build, …; empty: any other command
    is_look: bool = False  # a command that changes nothing
    files: tuple[str, ...] = ()
    ending: Ending = Ending.UNKNOWN
    error: str = ""


class ToolReader:
    """Knows the tools that run commands and edit files, from the rule file."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book

    def actions(self, blocks: Sequence[Block], project: str | None = None) -> list[Action]:
        """The commands and edits among some blocks, in order, each with its result.

        Files of the project are named from its root.
        """
        root = project.rstrip("/") + "/" if project else ""
        waiting: dict[str, int] = {}
        found: list[Action] = []
        for block in blocks:
            if block.kind is BlockKind.CALL:
                for action in self._called(block):
                    waiting[block.call_id or f" {block.tool}"] = len(found)
                    files = tuple(file.removeprefix(root) for file in action.files)
                    found.append(replace(action, files=files) if files else action)
            elif block.kind is BlockKind.RESULT and waiting:
                place = waiting.pop(block.call_id or f" {block.tool}", None)
                if place is not None:
                    found[place] = self._ended(found[place], block)
        return found

    def kind_of(self, command: str) -> str:
        """What a command does; one that only looks at something or names it does nothing."""
        phrase = self._book.phrase
        done = [part for part in parts_of(command) if not phrase("looks").match(part)]
        for kind in self._book.command_kinds:
            if any(_is_run(phrase(f"command_{kind}"), part) for part in done):
                return kind
        return ""

    def _called(self, block: Block) -> Iterator[Action]:
        tool = re.split(r"__|[.:/]", (block.tool or "").lower())[-1]
        arguments = _arguments(block.text)
        files = _files(arguments, block.text) if tool in self._book.edit_tools else ()
        if files:
            yield Action(seq=block.seq, seq_to=block.seq, block=block, files=files)
        elif tool not in self._book.edit_tools and (
            tool in self._book.shell_tools or any(key in arguments for key in _COMMAND_KEYS[:2])
        ):
            patched = tuple(_PATCHED.findall(block.text.replace("\\n", "\n")))
            if patched:
                yield Action(
                    seq=block.seq, seq_to=block.seq, block=block, files=patched[:FILES_PER_CALL_MAX]
                )
            elif command := plain_command(_command(arguments)):
                yield Action(
                    seq=block.seq,
                    seq_to=block.seq,
                    block=block,
                    command=command,
                    kind=self.kind_of(command),
                    is_look=all(map(self._book.phrase("looks").match, parts_of(command))),
                )

    def _ended(self, action: Action, result: Block) -> Action:
        has_failed = result.is_error or self._book.phrase("exited").search(result.text)
        if not has_failed and action.kind:  # any other command may well print the word "error"
            has_failed = self._book.phrase("failed").search(result.text)
        return replace(
            action,
            seq_to=max(action.seq, result.seq),
            ending=Ending.FAILED if has_failed else Ending.PASSED,
            error=self._error_line(result.text) if has_failed else "",
        )

    def _error_line(self, text: str) -> str:
        """Return the line that says what went wrong; none if it reads like a command."""
        lines = [found["line"] for found in self._book.phrase("error_line").finditer(text)][:20]
        named = [line for line in lines if "Error" in line or "Exception" in line]
        for line in named + lines:
            line = _SPACE.sub(" ", line).strip().replace("`", "'")[:ERROR_CHARS_MAX]
            if line and not is_quarantined(line, Trust.TOOL):
                return line
        return ""


def _is_run(pattern: re.Pattern[str], part: str) -> bool:
    """Whether a command runs a program, and does not only have its name in an argument."""
    found = pattern.search(part)
    if found is None:
        return False
    return found.start() == 0 or _ONLY_NAMES.match(part) is None


def plain_command(command: str) -> str:
    """A command on one line without going there first and trimming its output; else nothing."""
    command = command.strip()
    if not command or "\n" in command or _LEFT_OUT in command or "<<" in command:
        return ""
    command = _TRIMMINGS.sub("", _GOING_THERE.sub("", command[: 4 * COMMAND_CHARS_MAX])).strip()
    return "" if len(command) > COMMAND_CHARS_MAX or "`" in command else command


def parts_of(command: str) -> list[str]:
    """The commands of a chain."""
    return [part for part in _PARTS.split(command) if part]


def _arguments(text: str) -> Mapping[str, Any]:
    """The arguments of a call, as far as the digest still has them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {key: _unescaped(value) for key, value in _CUT_ARGUMENT.findall(text)}
    return value if isinstance(value, dict) else {}


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _command(arguments: Mapping[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        match arguments.get(key):
            case str() as command:
                return command
            case [*words] if words and all(isinstance(word, str) for word in words):
                is_wrapped = len(words) > 2 and words[-2] in ("-c", "-lc", "/c")
                return str(words[-1]) if is_wrapped else " ".join(map(str, words))
            case _:
                continue
    return ""


def _files(arguments: Mapping[str, Any], text: str) -> tuple[str, ...]:
    if arguments.get("command") in _LOOKS:
        return ()
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and 0 < len(path) <= 200 and "\n" not in path:
            return (path,)
    texts = [arguments[key] for key in _TEXT_KEYS if isinstance(arguments.get(key), str)]
    for source in texts or [text.replace("\\n", "\n")]:
        if found := _PATCHED.findall(source):
            return tuple(dict.fromkeys(found))[:FILES_PER_CALL_MAX]
    return ()
