"""D3 and part 5 of the documents: a hundred thousand hostile paths, each refused or harmless.

Harmless means: it reads back as the same place, as a file it stays below its root on every system,
nothing that decodes names finds another one in it, and no other place has its files.
"""

from __future__ import annotations

import html
import posixpath
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Literal
from urllib.parse import unquote

from recollect.documents.paths import EXTENSION, DocumentPath, read_path
from recollect.errors import InvalidPath

SEED = 20261115
PATHS = 100_000
ROOT = "/srv/published"

# Most of a path is harmless, so that what is not gets as far as it can.
PREFIXES = (
    *("", "/", "~/", "~/memory/") * 6,
    *("~", "//", "./", "../", "~/../", "/etc/", "~root/", "C:", "C:\\", "c:/", "\\\\?\\"),
    *("\\\\host\\share\\", "//host/share/", "file:///", "\\", "\x00"),
)
SEPARATORS = (
    *("/",) * 90,
    *("//", "/./", "/../", "\\", "\\..\\", "%2f", "%2F", "%5c", "%252f", "%c0%af", "%e0%80%af"),
    *("&#47;", "&sol;", "\\u002f", ":", "\x00", "\x01", "\uff0f", "\u2044", "\u2215", "\u29f8"),
    *("\u2571", "\uff3c", "\ufe68", "\u2216", "\u29f5", "\u2100"),
)
DOTS = (
    *("..", ".", "...", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "%c0%ae%c0%ae", "%u002e%u002e"),
    *("&#46;&#46;", "&period;.", "\\u002e\\u002e", "..;", "..%00", "..\x00", ". .", ".. ", " .."),
    *("\uff0e\uff0e", "\uff0e.", "\u2024\u2024", "\u2025", "\u2026", "\ufe52\ufe52", "\ufe52."),
    *("\u3002\u3002", "\ua4f8\ua4f8", "\u0660\u0660", "..\u200b", "\u200b..", ".\u00ad."),
    *(".\u034f.", "..\ufe0f", "~", "~~", ".git", ".ssh", "\uff0egit", "\u2024env", "-rf", "--help"),
    *("a.", "a "),
)
NAMES = (
    *("con", "CON", "prn", "aux", "nul", "NUL.txt", "com1", "com¹", "COM0.a", "lpt3", "LPT²"),
    *("clock$", "conin$", "con .x", "nul ", "aux.", "ｃｏｎ", "ⓒⓞⓝ", "con\u200b", "desktop.ini"),
    *("a.md", "a.MD", "a.Md", "a.md.md", "a.ⅿⅾ", "a.mD ", ".md", "md", "amd", "a.m\u200bd"),
    *(
        "x.md.x",
        "MEMORY",
        "memory_summary",
        "skills",
        "Skills",
        "index",
        "INDEX",
        "memory",
        "manifest",
    ),
)
# Pairs and triples of what some system takes for the same.
LETTERS = (
    *("a", "A", "b", "B", "s", "S", "ß", "\u1e9e", "ss", "ſ", "k", "\u212a", "å", "\u212b", "Å"),
    *("a\u030a", "é", "e\u0301", "É", "E\u0301", "i", "I", "ı", "İ", "i\u0307", "ﬁ", "fi", "ﬀ"),
    *("ff", "ǰ", "j\u030c", "Σ", "σ", "ς", "ΐ", "\u1fd3", "ι\u0308\u0301", "ᾳ", "αι", "α\u0345"),
    *("\u1fbc", "ŉ", "ʼn", "և", "եւ", "가", "\u1100\u1161", "각", "क़", "क\u093c", "日", "語"),
    *(
        "\u2f83",
        "自",
        "🙂",
        "1",
        "2",
        "½",
        "①",
        "²",
        " ",
        "-",
        "_",
        "'",
        "(",
        ")",
        ",",
        "+",
        "@",
        ".",
    ),
)
UNSEEN = tuple(
    chr(code)
    for code in (
        *(*range(0x20), *range(0x7F, 0xA1), 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5),
        *(*range(0x180B, 0x1810), *range(0x2000, 0x2010), *range(0x2028, 0x2030)),
        *(*range(0x205F, 0x2070), 0x2800, 0x3000, 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
        *(*range(0xFFF9, 0x10000), 0xD800, 0xDFFF, 0xE000, 0x1D173, 0xE0001, 0xE0041, 0xE0100),
        0x10FFFF,
    )
)
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
RESERVED = {"con", "prn", "aux", "nul"} | {f"{n}{d}" for n in ("com", "lpt") for d in range(10)}
# All characters but the great blocks of ideographs and syllables, which mean themselves.
CHARACTERS = (
    *(*range(0x3400), *range(0xA490, 0xAC10), *range(0xD780, 0x13000), *range(0x1B000, 0x20010)),
    *(*range(0x2F800, 0x2FB00), *range(0xE0000, 0xE0200), 0x10FFFF),
)


class Maker:
    """Makes hostile paths, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._choice = random.Random(seed)
        self._parts: tuple[Callable[[], str], ...] = (
            lambda: self._choice.choice(DOTS),
            lambda: self._choice.choice(NAMES),
            *(self._word,) * 12,
            lambda: self._word() + self._choice.choice(UNSEEN) + self._word(),
            lambda: self._choice.choice(NAMES) + self._choice.choice(LETTERS),
            lambda: chr(self._choice.randrange(0x110000)),
            lambda: self._word() + chr(self._choice.randrange(0x20, 0x3000)),
            lambda: self._choice.choice(LETTERS) * self._choice.choice((50, 100, 101, 200, 300)),
        )

    def _word(self) -> str:
        word = "".join(self._choice.choices(LETTERS, k=self._choice.randint(1, 4)))
        match self._choice.randrange(4):
            case 0:
                return word.upper()
            case 1:
                return unicodedata.normalize(self._choice.choice(FORMS), word)
            case _:
                return word

    def path(self) -> str:
        pieces = [self._choice.choice(PREFIXES)]
        for number in range(self._choice.choice((1, 1, 2, 2, 3, 4, 15, 17))):
            pieces += [self._choice.choice(SEPARATORS)] if number else []
            pieces.append(self._choice.choice(self._parts)())
        return "".join(pieces)


@dataclass
class FileSystem:
    """Which place has which file and directory, where names have no case and are taken apart."""

    files: dict[str, str] = field(default_factory=dict)
    directories: dict[str, str] = field(default_factory=dict)

    def add(self, path: DocumentPath) -> None:
        for end in range(1, len(path.slugs) + 1):
            part = DocumentPath(path.slugs[:end])
            folded = folded_name("/".join(part.slugs))
            assert self.directories.setdefault(folded, part.key) == part.key, part
            file = folded + EXTENSION
            assert self.files.setdefault(file, part.key) == part.key, part

    def check(self) -> None:
        assert not self.files.keys() & self.directories.keys()


def folded_name(name: str) -> str:
    """A name as a file system compares it that ignores case and keeps letters taken apart."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def assert_harmless(path: DocumentPath) -> None:
    again = read_path(path.text)
    assert (again, again.key) == (path, path.key)
    file = posixpath.join(ROOT, *path.slugs) + EXTENSION
    assert posixpath.normpath(file) == file
    assert PurePosixPath(file).relative_to(ROOT).parts[:-1] == path.slugs[:-1]
    on_windows = PureWindowsPath("C:\\srv").joinpath(*path.slugs[:-1], path.slug + EXTENSION)
    assert on_windows.parts == ("C:\\", "srv", *path.slugs[:-1], path.slug + EXTENSION)
    for slug in path.slugs:
        assert_means_itself(slug)


def assert_means_itself(slug: str) -> None:
    assert unquote(slug) == html.unescape(slug) == slug
    assert slug.isprintable()
    assert slug == slug.strip()
    seen = unicodedata.normalize("NFKC", slug)
    assert seen.casefold().partition(".")[0].rstrip() not in RESERVED
    assert not seen.startswith((".", "-", "~"))
    assert not seen.endswith((".", " "))
    assert not set(seen) & set('/\\:*?"<>|\x00')
    assert len((slug + EXTENSION).encode()) <= 255


def test_a_hundred_thousand_hostile_paths_are_refused_or_harmless() -> None:
    print(f"seed {SEED}")
    maker, system = Maker(SEED), FileSystem()
    refused, accepted = 0, set()
    for _ in range(PATHS):
        given = maker.path()
        try:
            path = read_path(given)
        except InvalidPath:
            refused += 1
            continue
        if path.text not in accepted:
            accepted.add(path.text)
            assert_harmless(path)
            system.add(path)
    system.check()
    print(f"{refused:,} refused, {len(accepted):,} places with {len(system.files):,} files")
    assert refused > PATHS // 2
    assert len(accepted) > PATHS // 10


def test_every_character_there_is_is_refused_in_a_name_or_harmless() -> None:
    system = FileSystem()
    for text in (text for code in CHARACTERS for text in (f"a{chr(code)}b", chr(code))):
        try:
            path = read_path(text)
        except InvalidPath:
            continue
        assert_harmless(path)
        system.add(path)
    system.check()
    assert len(system.files) > 40_000
