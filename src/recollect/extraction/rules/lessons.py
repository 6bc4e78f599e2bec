"""Learns from what was done with tools: which commands work here, and what mended an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recollect.extraction.rules.actions import Action, Ending, ToolReader, parts_of
from recollect.extraction.rules.rulebook import Rulebook
from recollect.extraction.scope import in_project, named, place_of, topic_in
from recollect.types.facts import FactTag, NewFact, Trust

LESSONS_MAX = 10  # per piece
_PROCEDURES = ("test", "lint", "types", "build", "deploy", "migrate", "run")
_MENDING = frozenset({"install", "migrate", "build"})
_PROCEDURE_CONFIDENCE = 0.7
_LESSON_CONFIDENCE = 0.75
_FILES_NAMED_MAX = 4
_SIMILAR = 0.5  # of their words, for a command to stand in for another
_NEAR_ACTIONS = 4
_STARTERS = frozenset({"npx", "uv", "poetry", "run", "pipenv", "python", "python3", "sudo", "env"})
_PATH = re.compile(r"[/\\]|::|\.\w{1,5}$")


@dataclass(slots=True, kw_only=True)
class _Failure:
    """A command that failed, and what was done about it since."""

    action: Action
    files: dict[str, None] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    actions: int = 0


class Teacher:
    """Makes facts of actions."""

    def __init__(self, book: Rulebook, tools: ToolReader) -> None:
        self._book = book
        self._tools = tools

    def facts(self, actions: Sequence[Action], project: str | None) -> list[NewFact]:
        place = place_of(project)
        lessons = list(self._lessons(actions, place))[:LESSONS_MAX]
        return [*self._procedures(actions, place), *lessons]

    def _procedures(self, actions: Sequence[Action], place: str) -> Iterator[NewFact]:
        """For each kind of command the plainest one that passed, the last of those."""
        best: dict[str, tuple[str, Action]] = {}
        for action in actions:
            if action.ending is not Ending.PASSED or not action.kind:
                continue
            for part in parts_of(action.command):
                kind = self._tools.kind_of(part)
                if kind in _PROCEDURES and (kind not in best or len(part) <= len(best[kind][0])):
                    best[kind] = (part, action)
        for kind in _PROCEDURES:
            if kind in best:
                command, action = best[kind]
                yield NewFact(
                    content=self._told("works", place, command=command, kind=kind),
                    seq=action.seq,
                    seq_to=action.seq_to,
                    valid_from=action.block.at,
                    trust=Trust.AGENT,
                    quote=command,
                    tags=(FactTag.PROCEDURE.value, kind),
                    metadata={
                        "confidence": _PROCEDURE_CONFIDENCE,
                        "rule": "command that works",
                        **in_project(place),
                    },
                    # One way to test, build, … per project: a newer one replaces it.
                    topic=topic_in(place, f"{kind}-command") if place else None,
                )

    def _lessons(self, actions: Sequence[Action], place: str) -> Iterator[NewFact]:
        failures: dict[str, _Failure] = {}
        for action in actions:
            key = action.kind or action.command.partition(" ")[0]
            if action.command and action.ending is Ending.PASSED:
                failure = _take_same(failures, key, action) or _take_similar(failures, action)
                lesson = None if failure is None else self._lesson(failure, action, place)
                if lesson is not None:
                    yield lesson
            for failure in failures.values():
                _note(failure, action)
            if action.command and action.ending is Ending.FAILED:
                failures[key] = _Failure(action=action)

    def _lesson(self, failure: _Failure, passed: Action, place: str) -> NewFact | None:
        failed = failure.action
        if not failed.error:
            return None
        words = {"command": failed.command, "error": failed.error}
        is_same = _is_same(failed.command, passed.command)
        if is_same and failure.files:
            content = self._told("mended", place, files=_files(failure.files), **words)
        elif is_same and failure.commands:
            content = self._told("mended_by", place, fix=failure.commands[-1], **words)
        elif not failure.files and _stands_in(passed.command, failed.command):
            content = self._told("instead", place, other=passed.command, **words)
        else:
            return None  # it failed and it passed: nothing says why
        return NewFact(
            content=content,
            seq=failed.seq,
            seq_to=passed.seq_to,
            valid_from=passed.block.at,
            trust=Trust.TOOL,  # the error is in a tool's words
            quote=failed.error,
            tags=(FactTag.LESSON.value,),
            metadata={
                "confidence": _LESSON_CONFIDENCE,
                "rule": "error and fix",
                **in_project(place),
            },
        )

    def _told(self, template: str, place: str, **words: str) -> str:
        name = template if place else f"{template}_anywhere"
        return self._book.templates[name].format(project=named(place), **words)


def _note(failure: _Failure, action: Action) -> None:
    failure.actions += 1
    if action.ending is Ending.FAILED:
        return
    for file in action.files:
        failure.files[file] = None
    if action.kind in _MENDING:
        failure.commands.append(action.command)


def _take_same(failures: dict[str, _Failure], key: str, passed: Action) -> _Failure | None:
    """The failure that this command mended, unless it was run on something else."""
    failure = failures.get(key)
    if failure is None:
        return None
    failed, now = _paths(failure.action.command), _paths(passed.command)
    is_other = (
        failed and now and not any(a.startswith(b) or b.startswith(a) for a in failed for b in now)
    )
    return None if is_other else failures.pop(key)


def _take_similar(failures: dict[str, _Failure], passed: Action) -> _Failure | None:
    """A failure just before that this command stands in for: the same words, another program."""
    words = set(passed.command.split())
    for key, failure in failures.items():
        others = set(failure.action.command.split())
        if (
            failure.actions < _NEAR_ACTIONS
            and len(words & others) / len(words | others) >= _SIMILAR
        ):
            return failures.pop(key)
    return None


def _stands_in(command: str, failed: str) -> bool:
    """Whether it is another command for the same purpose, not the same one for another part."""
    new, old = _words(command), _words(failed)
    is_other_program = command.partition(" ")[0] != failed.partition(" ")[0]
    return command != failed and bool(new & old) and (is_other_program or len(new ^ old) <= 2)


def _is_same(command: str, other: str) -> bool:
    """Whether both run one program for one purpose, whatever they run it on."""
    pairs = list(zip(_head(command), _head(other), strict=False))
    return bool(pairs) and all(one == two for one, two in pairs)


def _head(command: str) -> tuple[str, ...]:
    """The program and what it is to do, without what only starts it."""
    words = [word for word in command.split() if not word.startswith("-") and "=" not in word]
    while words and words[0] in _STARTERS:
        del words[0]
    return tuple(word for word in words[:2] if not _PATH.search(word))


def _paths(command: str) -> list[str]:
    return [word for word in command.split()[1:] if _PATH.search(word)]


def _words(command: str) -> set[str]:
    return {word for word in command.split() if not word.startswith(("/", "tests/", "test/"))}


def _files(files: dict[str, None]) -> str:
    names = [f"`{file}`" for file in list(files)[:_FILES_NAMED_MAX]]
    more = len(files) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
