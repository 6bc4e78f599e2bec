"""A backend for Anthropic's memory tool (memory_20250818): a subtree of documents as `/memories`.

A model was trained on what this tool answers, so results and errors are worded as its documentation
says. A page is the file `x.md`, and with pages below it also the directory `x`; a name with another
ending keeps that. Nothing outside the holder's root can be named, in whatever encoding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.documents.changeset import Changeset
from recollect.documents.editing import Editor, OnReferences
from recollect.documents.paths import (
    EXTENSION,
    PATH_CHARS_MAX,
    DocumentPath,
    read_path,
    without_extension,
)
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import (
    DocumentExists,
    InvalidPath,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
)
from recollect.session import LIST_MAX
from recollect.types.pages import Author, AuthorKind, Document, Node

ROOT = "/memories"
LINES_MAX = 999_999
LEVELS_SHOWN = 2

_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_UNITS = ("K", "M", "G")
PATH_CHARS_SHOWN = 200
PASSAGE_CHARS_SHOWN = 2000
LISTED_MAX = 998  # lines of a directory at once
NODES_MAX = 20_000  # of a directory that is listed page by page
SNIPPET_LINES = 4  # before and after what was replaced
HITS_SHOWN = 20  # of a passage that is there several times
_AGENT = Author(kind=AuthorKind.AGENT, name="assistant")


class _Refused(Exception):
    """What a model is told instead of a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What stands at a path of the tool."""

    document: Document
    is_directory: bool  # and not the page of the same name


class MemoryTool:
    """Answers the commands of one model: `tool(block.input)` is the text of the tool result."""

    def __init__(
        self, documents: Documents, *, author: Author = _AGENT, root: str = "~/memory"
    ) -> None:
        self._root = read_path(root)
        self._documents = documents.held_by(Holder(author=author, root=self._root))
        self._commands: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def __call__(self, command: Mapping[str, Any]) -> str:
        return self.handle(command)

    def handle(self, command: Mapping[str, Any]) -> str:
        """Carry out one command. What the model did wrong is said in the text, never raised."""
        name = command.get("command") if isinstance(command, Mapping) else None
        carry_out = self._commands.get(name) if isinstance(name, str) else None
        if carry_out is None:
            return f"Error: Unknown command: {name!r}. Use one of {', '.join(self._commands)}."
        try:
            return carry_out(command)
        except _Refused as refused:
            return str(refused)
        except NotAllowed:
            return f"Error: {_named(command)} cannot be changed: memory itself writes that part."
        except StaleVersion:
            return f"Error: {_named(command)} is being changed by others. Please try again."
        except (DocumentExists, InvalidValue, NotFound) as error:
            return f"Error: {error}"

    # view

    def _view(self, command: Mapping[str, Any]) -> str:
        path = _text(command, "path")
        missing = f"The path {path} does not exist. Please provide a valid path."
        target = self._target(path)
        found = self._find(path, target)
        if found is None and target.key != self._root.key:
            raise _Refused(missing)
        if found is None or found.is_directory:
            return self._listing(path, target, command)
        lines = read_lines(found.document.body)
        if len(lines) > LINES_MAX:
            return f"File {path} exceeds maximum line limit of {LINES_MAX:,} lines."
        first, last = _range(command, len(lines))
        shown = numbered(lines[first - 1 : last], first)
        return "\n".join([f"Here's the content of {path} with line numbers:", *shown])

    def _listing(self, path: str, target: DocumentPath, command: Mapping[str, Any]) -> str:
        """A directory, or of a large one the lines that are asked for."""
        whole = directory_lines(self._nodes(target), target, path.rstrip("/"))
        first, last = _range(command, len(whole), "directory")
        last = min(last, first + LISTED_MAX - 1)
        head = (
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden "
            "items and node_modules:"
        )
        lines = [head, *whole[first - 1 : last]]
        if last < len(whole):
            until = min(last + LISTED_MAX, len(whole))
            lines.append(
                f"(There are {len(whole) - last:,} more: view it with view_range "
                f"[{last + 1}, {until}], or one of the directories below.)"
            )
        return "\n".join(lines)

    def _nodes(self, target: DocumentPath) -> list[Node]:
        """All that is in a directory, if that is not too much, or else two levels of it."""
        found = self._documents.tree(target.text, limit=LISTED_MAX + 1)
        if len(found) <= LISTED_MAX:
            return found
        found, after = [], None
        while len(found) < NODES_MAX:
            page = self._documents.tree(target.text, depth=2, limit=LIST_MAX, after=after)
            if not page:
                break
            found += page
            after = page[-1].path
        return found

    # create and edit

    def _create(self, command: Mapping[str, Any]) -> str:
        path, body = _text(command, "path"), _text(command, "file_text")
        target = self._target(path)
        if target.key == self._root.key:
            raise _Refused(f"Error: {path} is a directory")
        if self._find(path, target) is not None:
            raise _Refused(f"Error: File {path} already exists")
        page = self._page(target)  # of a directory it may be there, and say nothing
        known = 0 if page is None else page.document.version
        try:
            self._documents.write(target.text, body, expected_version=known)
        except (DocumentExists, StaleVersion):
            raise _Refused(f"Error: File {path} already exists") from None
        return f"File created successfully at: {path}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        path, old = _text(command, "path"), _text(command, "old_str")
        new = _text(command, "new_str") if "new_str" in command else ""

        def replaced(body: str) -> str:
            count = body.count(old) if old else 0
            named = old[:PASSAGE_CHARS_SHOWN]
            if not count:
                raise _Refused(
                    f"No replacement was performed, old_str `{named}` did not appear verbatim in "
                    f"{path}."
                )
            if count > 1:
                raise _Refused(
                    f"No replacement was performed. Multiple occurrences of old_str `{named}` in "
                    f"lines: {_lines_of(body, old)}. Please ensure it is unique"
                )
            return body.replace(old, new)

        missing = f"Error: The path {path} does not exist. Please provide a valid path."
        before, after = self._rewrite(path, replaced, missing)
        at = before.count("\n", 0, before.index(old))
        first = max(0, at - SNIPPET_LINES)
        last = at + new.count("\n") + 1 + SNIPPET_LINES
        snippet = numbered(read_lines(after)[first:last], first + 1)
        return "\n".join(["The memory file has been edited.", *snippet])

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, text = _text(command, "path"), _text(command, "insert_text")
        at = command.get("insert_line")

        def inserted(body: str) -> str:
            lines = read_lines(body) if body else []
            if type(at) is not int or not 0 <= at <= len(lines):
                raise _Refused(
                    f"Error: Invalid `insert_line` parameter: {at}. It should be within the range "
                    f"of lines of the file: [0, {len(lines)}]"
                )
            ends = body.endswith("\n") or (text.endswith("\n") and at == len(lines))
            lines[at:at] = text.removesuffix("\n").split("\n")
            return "\n".join(lines) + ("\n" if ends else "")

        self._rewrite(path, inserted, f"Error: The path {path} does not exist")
        return f"The file {path} has been edited."

    def _rewrite(self, path: str, change: Callable[[str], str], missing: str) -> tuple[str, str]:
        """Change a page as it is when it is our turn; what it said, and says now."""
        found = self._find(path, self._target(path))
        if found is None or found.is_directory:
            raise _Refused(missing)
        before = [found.document.body]

        def noted(body: str) -> str:
            before[0] = body
            return change(body)

        try:
            after = self._documents.rewrite(found.document.path, noted)
        except NotFound:
            raise _Refused(missing) from None
        return before[0], after.body

    # delete and rename

    def _delete(self, command: Mapping[str, Any]) -> str:
        path = _text(command, "path")
        target = self._target(path)
        if target.key == self._root.key:
            raise _Refused(f"Error: {path} is the root of memory and cannot be deleted")
        found = self._find(path, target)
        if found is None:
            raise _Refused(f"Error: The path {path} does not exist")
        document = found.document
        reason, leave = f"deleted {path[:PATH_CHARS_SHOWN]}", OnReferences.LEAVE
        if found.is_directory and document.body:  # the file beside it was not named
            edits = self._documents.changeset(reason)
            for child in self._children(target):
                edits.delete(child.path, below=True, references=leave)
            edits.commit()
        elif found.is_directory or not self._has_children(target):
            self._documents.delete(target.text, below=True, references=leave, reason=reason)
        else:
            _empty(self._documents, document, reason)
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = _text(command, "old_path"), _text(command, "new_path")
        source, target = self._target(old), self._target(new)
        if source.key == self._root.key:
            raise _Refused(f"Error: {old} is the root of memory and cannot be renamed")
        found = self._find(old, source)
        if found is None:
            raise _Refused(f"Error: The path {old} does not exist")
        is_there = self._page(target) if found.is_directory else self._find(new, target)
        if is_there is not None and (target.key != source.key or target.text == source.text):
            raise _Refused(f"Error: The destination {new} already exists")
        if target.key != source.key and target.is_within(source):
            raise _Refused(f"Error: {old} cannot be moved into itself")
        reason = f"renamed from {old[:PATH_CHARS_SHOWN]}"
        edits = self._documents.changeset(reason)
        document, version = found.document, found.document.version
        is_same = target.key == source.key
        is_whole = found.is_directory or not self._has_children(source)
        if found.is_directory and document.body and not is_same:
            for child in self._children(source):
                edits.move(child.path, f"{target.text}/{child.path.rpartition('/')[2]}")
        elif is_same or (self._page(target) is None and is_whole):
            self._documents.move(
                document.path, target.text, expected_version=version, reason=reason
            )
        else:
            self._carry(edits, document, target)
        edits.commit()
        return f"Successfully renamed {old} to {new}"

    def _carry(self, edits: Changeset, document: Document, target: DocumentPath) -> None:
        """A page moves without what is below it, or to where there already is a directory."""
        is_named_by_path = document.title == document.slug
        edits.write(
            target.text,
            document.body,
            title=target.slug if is_named_by_path else document.title,
            description=document.description,
            tags=document.tags,
            links=document.links,
        )
        if self._has_children(read_path(document.path)):
            _empty(edits, document)
        else:
            edits.delete(
                document.path, references=OnReferences.LEAVE, expected_version=document.version
            )

    # finding

    def _target(self, path: str) -> DocumentPath:
        try:
            return read_memory_path(path, self._root)
        except InvalidPath as error:
            named = path[:PATH_CHARS_SHOWN]
            raise _Refused(f"Error: {named} is not a path below {ROOT}: {error}") from error

    def _page(self, target: DocumentPath) -> _Found | None:
        """What stands exactly there; where something stood before, there is nothing."""
        found = self._documents.find(target.text)
        if found is None or read_path(found.path).key != target.key:
            return None
        return _Found(document=found, is_directory=False)

    def _find(self, path: str, target: DocumentPath) -> _Found | None:
        """The same, as a file or as a directory, whichever the path names."""
        found = self._page(target)
        if found is None:
            return None
        has_children = target.key == self._root.key or self._has_children(target)
        if path.endswith(EXTENSION):  # no directory has it
            return None if has_children and not found.document.body else found
        return _Found(document=found.document, is_directory=has_children)

    def _children(self, target: DocumentPath) -> Iterator[Node]:
        """What stands directly below a page."""
        after: str | None = target.text
        while page := self._documents.tree(target.text, depth=1, limit=LIST_MAX, after=after):
            yield from page
            after = page[-1].path

    def _has_children(self, target: DocumentPath) -> bool:
        nodes: Sequence[object] = self._documents.tree(target.text, depth=1, limit=2)
        return len(nodes) > 1


def _empty(edits: Editor, document: Document, reason: str = "") -> None:
    """What is left of a page when its file goes and its directory stays: the name."""
    edits.write(
        document.path,
        "",
        title=document.slug,
        description="",
        tags=(),
        links=(),
        expected_version=document.version,
        reason=reason,
    )


def _named(command: Mapping[str, Any]) -> str:
    """What a command is about, as the model named it."""
    return str(command.get("path", f"{command.get('old_path')} or {command.get('new_path')}"))


def _text(command: Mapping[str, Any], name: str) -> str:
    value = command.get(name)
    if not isinstance(value, str):
        raise _Refused(f"Error: {command['command']} needs `{name}`, a text. Please give it.")
    return value


def _range(command: Mapping[str, Any], lines: int, of: str = "file") -> tuple[int, int]:
    """The lines wanted, counted from 1; -1 at the end is the last one."""
    given = command.get("view_range")
    if given is None:
        return 1, lines
    match given:
        case [int(first), int(last)] if 1 <= first <= lines and (last == -1 or last >= first):
            return first, lines if last == -1 else min(last, lines)
    raise _Refused(
        f"Error: Invalid `view_range` parameter: {given}. It should be two line numbers within "
        f"the range of lines of the {of}: [1, {lines}], or -1 as the second"
    )


def _lines_of(body: str, old: str) -> str:
    """The numbers of the lines where a passage begins, the first of them."""
    numbers: dict[int, None] = {}
    at, line, done = body.find(old), 1, 0
    while at >= 0 and len(numbers) <= HITS_SHOWN:
        line += body.count("\n", done, at)
        numbers[line] = None
        at, done = body.find(old, at + len(old)), at
    shown = ", ".join(map(str, list(numbers)[:HITS_SHOWN]))
    return f"{shown} and more" if len(numbers) > HITS_SHOWN else shown


# documents as files: names, sizes, numbered lines


def read_memory_path(path: str, root: DocumentPath) -> DocumentPath:
    """The document that a path of the tool names. InvalidPath: it names none below the root."""
    if len(path) > PATH_CHARS_MAX:
        raise InvalidPath(f"a path has at most {PATH_CHARS_MAX:,} characters")
    top, *names = path.removesuffix("/").split("/")[1:] or [""]
    if not path.startswith("/") or top != ROOT.removeprefix("/"):
        raise InvalidPath(f"every path begins with {ROOT}")
    target = root
    for name in names:
        target = target.child(without_extension(name))
    return target


def file_name(slug: str, *, is_directory: bool) -> str:
    """A page's name as a file: beside a directory of its name it always has our ending."""
    is_whole = _ENDING.search(slug) is not None and not is_directory
    return slug if is_whole else slug + EXTENSION


def read_lines(body: str) -> list[str]:
    return body.removesuffix("\n").split("\n")


def numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:>6}\t{line}" for number, line in enumerate(lines, start=first)]


def directory_lines(nodes: Sequence[Node], target: DocumentPath, shown: str) -> list[str]:
    """Size and path of a directory, its files and its directories; it is the sum of those."""
    depth = len(target.slugs)
    inside = [(node, node.path.split("/")[1 + depth :]) for node in nodes]
    sizes: Counter[str] = Counter()
    for node, slugs in inside:
        for end in range(len(slugs)):
            sizes["/".join(slugs[:end])] += node.body_chars
    lines = [f"{size(sizes[''])}\t{shown}"]
    for node, slugs in inside:
        if not 1 <= len(slugs) <= LEVELS_SHOWN:
            continue  # of a directory, the page is a file beside it
        where = "/".join((shown, *slugs))
        if node.has_children:
            lines.append(f"{size(sizes['/'.join(slugs)])}\t{where}")
        if node.body_chars or not node.has_children:
            name = file_name(slugs[-1], is_directory=node.has_children)
            lines.append(f"{size(node.body_chars)}\t{'/'.join((shown, *slugs[:-1], name))}")
    return lines


def size(chars: int) -> str:
    """As people read sizes: 0, 512, 4.0K, 12K, 1.5M."""
    amount, unit = float(chars), ""
    for larger in _UNITS:
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}{unit}" if unit and amount < 10 else f"{amount:.0f}{unit}"
