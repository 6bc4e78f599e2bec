"""Documents as the files of Anthropic's memory tool: names, sizes, numbered lines. Pure.

The one place that reads a `/memories` path. What is below the root is checked slug by slug like any
path of a document; nothing is ever decoded, so that `..` has no encoding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from recollect.documents.paths import EXTENSION, PATH_CHARS_MAX, DocumentPath, without_extension
from recollect.errors import InvalidPath
from recollect.types.pages import Node

ROOT = "/memories"
LINES_MAX = 999_999
LEVELS_SHOWN = 2

_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_UNITS = ("K", "M", "G")


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


def names_page(path: str) -> bool:
    """Whether a path can only mean a file, as the directory has no such ending."""
    return path.endswith(EXTENSION)


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
