"""Parses paths: the only module that turns a text into a checked path of the tree, or InvalidPath.

A path is `~/memory/people/Ana`: `~`, then slugs. Slugs keep their case and are unique without it. A
slug that could mean another place on some file system, look like another name, or be hidden is
refused.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache

from recollect.errors import InvalidPath
from recollect.types.pages import PATH_BYTES_MAX, Place

HOME = "~"
MEMORY = "memory"
DEPTH_MAX = 16
SLUG_CHARS_MAX = 100
SLUG_BYTES_MAX = 200  # with an ending it still is a file name
PATH_CHARS_MAX = PATH_BYTES_MAX  # a character is a byte at least
EXTENSION = ".md"

KEY_SEPARATOR = "\x01"  # sorts before every character a slug has
# Not in any slug: what separates paths, what links, shells and Windows read as something else, and
# `%`, so that nothing is ever decoded.
_FORBIDDEN = frozenset('/\\:*?"<>|%#[]^`${}!;&=~\x7f')
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# What looks like a slash or backslash, what shows nothing, and what some file systems leave out
# when they compare names.
_LOOKALIKES = frozenset("\u2044\u2215\u29f8\u2571\u27cb\u2216\u29f5\u29f9\u2572\u27cd")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "clock$", "conin$", "conout$"}
    | {f"{name}{number}" for name in ("com", "lpt") for number in "0123456789¹²³"}
)


@dataclass(frozen=True)
class DocumentPath:
    """A checked path below `~`, as its slugs."""

    slugs: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "/".join((HOME, *self.slugs))

    @cached_property
    def key(self) -> str:
        return KEY_SEPARATOR.join(map(slug_key, self.slugs))

    @property
    def slug(self) -> str:
        return self.slugs[-1]

    @property
    def parent(self) -> DocumentPath | None:
        return DocumentPath(self.slugs[:-1]) if len(self.slugs) > 1 else None

    @property
    def parents(self) -> tuple[DocumentPath, ...]:
        """What stands above it, from the top."""
        return tuple(DocumentPath(self.slugs[:end]) for end in range(1, len(self.slugs)))

    @property
    def place(self) -> Place:
        return Place(text=self.text, key=self.key, depth=len(self.slugs))

    def is_within(self, root: DocumentPath) -> bool:
        """Whether it is the root, or stands below it."""
        return self.key == root.key or self.key.startswith(root.key + KEY_SEPARATOR)

    def child(self, slug: str) -> DocumentPath:
        return _checked((*self.slugs, unicodedata.normalize("NFC", slug)))

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)  # the same slugs are compared over and over
def slug_key(slug: str) -> str:
    """What makes two slugs the same one: what they are without case, in any normal form."""
    decomposed = unicodedata.normalize("NFD", slug)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", decomposed.casefold()))


def read_path(text: str) -> DocumentPath:
    """A path as somebody wrote it: `~/memory/a/b`, or `a/b` and `/a/b` for the same thing.

    An ending `.md` is how files are called and not part of the slug.
    """
    if not isinstance(text, str):
        raise InvalidPath(f"a path is text, not {type(text).__name__}")
    if len(text) > PATH_CHARS_MAX:
        raise InvalidPath(f"a path has at most {PATH_CHARS_MAX:,} characters: {text[:40]!r}…")
    given = unicodedata.normalize("NFC", text)
    if given in (HOME, HOME + "/"):
        raise InvalidPath(f"{text!r} is the root of all documents, not a document")
    if given.startswith(HOME + "/"):
        slugs = given.removeprefix(HOME + "/").removesuffix("/").split("/")
    else:
        rest = given.removeprefix("/").removesuffix("/")
        if not rest:
            raise InvalidPath(f"{text!r} names no document; the root is ~/memory")
        slugs = [MEMORY, *rest.split("/")]
    slugs[-1] = without_extension(slugs[-1])
    return _checked(tuple(slugs))


def stored_path(text: str) -> DocumentPath:
    """The path of a document as a store has it: checked when it was made."""
    return DocumentPath(tuple(text.split("/")[1:]))


def memory_root() -> DocumentPath:
    return DocumentPath((MEMORY,))


def without_extension(name: str) -> str:
    has_extension = name.casefold().endswith(EXTENSION)
    return (has_extension and name[: -len(EXTENSION)]) or name


def _checked(slugs: tuple[str, ...]) -> DocumentPath:
    if len(slugs) > DEPTH_MAX:
        raise InvalidPath(f"a path has at most {DEPTH_MAX} parts, this has {len(slugs)}")
    for slug in slugs:
        problem = _problem(slug)
        if problem:
            raise InvalidPath(f"{slug[:SLUG_CHARS_MAX]!r} cannot be part of a path: {problem}")
    path = DocumentPath(slugs)
    if max(len(path.text.encode()), len(path.key.encode())) > PATH_BYTES_MAX:
        raise InvalidPath(f"a path has at most {PATH_BYTES_MAX:,} bytes: {path.text[:40]!r}…")
    return path


@lru_cache(maxsize=4096)  # the same slugs are read over and over
def _problem(slug: str) -> str:
    """Why it cannot be a slug; empty if it can."""
    if not slug:
        return "it is empty"
    if len(slug) > SLUG_CHARS_MAX or len(slug.encode(errors="surrogatepass")) > SLUG_BYTES_MAX:
        return f"it has more than {SLUG_CHARS_MAX} characters or {SLUG_BYTES_MAX} bytes"
    bad = next((c for c in slug if _is_forbidden(c)), "")
    if bad:
        return f"the character {bad!a} is not allowed"
    if "  " in slug or any(c.isspace() and c != " " for c in slug):
        return "words are separated by one plain space"
    if unicodedata.category(slug[0]).startswith("M"):
        return "it begins with a mark that belongs to a letter"
    # What reads as a dot, a slash or a hidden name once a font or a file system has had its way.
    return _problem_of_form(unicodedata.normalize("NFKC", slug))


@lru_cache(maxsize=4096)
def _is_forbidden(c: str) -> bool:
    return (
        c in _FORBIDDEN
        or c in _LOOKALIKES
        or c in _INVISIBLE
        or any(ord(c) in span for span in _VARIATION_SELECTORS)
        or unicodedata.category(c) in _FORBIDDEN_CATEGORIES
    )


def _problem_of_form(folded: str) -> str:
    if any(c in _FORBIDDEN for c in folded):
        return "it has a character that is equivalent to one that is not allowed"
    if folded.startswith((".", " ", "-")) or folded.endswith((".", " ")):
        return "it begins or ends with a dot, a dash or a space"
    if folded.casefold().endswith(EXTENSION):
        return f"{EXTENSION} is how files end, and not part of a name"
    if folded.casefold().split(".")[0].rstrip() in _RESERVED:
        return "some systems keep this name for themselves"
    return ""
