"""Validates a generation that a model wrote, before it is published.

Owns the half of G9 that looks before anything is kept: what has to be there is there and within its
limits, every link leads somewhere, no secret is shown, every claim names a source that exists, and
nothing of what was removed is left (G11). Reads the staged tree and changes nothing; what it reads
is bounded by the limits and by what was removed, not by what exists.

A claim is a line of a list with the lines that go on with it; lines that open with a link are an
index, lines that end with a colon head others. What only removed texts said is known by runs of
words that nothing kept says, without case, accents and punctuation; where a script puts no blanks
between words, characters are compared, and more of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice

from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY
from recollect.documents.links import find_links, unlinked
from recollect.documents.paths import DocumentPath, read_path, stored_path
from recollect.documents.reading import TreeReader
from recollect.documents.scope import is_of_consolidation
from recollect.documents.staged import StagedPages
from recollect.extraction.transcript import one_line
from recollect.pages.markdown import shown
from recollect.session import LIST_MAX
from recollect.stemming import words
from recollect.types.generations import Removed
from recollect.types.pages import Document, Node

SKILL = "SKILL"

PROBLEMS_MAX = 40
QUOTES_MAX = 8  # of one problem
QUOTE_CHARS = 240
CITED_MIN = 4  # sources that a handbook has to have had before most of them can be lost
TEMPLATE_LINK = f"[[{SUMMARIES}/<name>|<day>]]"

PROSE_WORDS_MAX = 40  # of a paragraph that introduces rather than claims
RUN_WORDS = 7  # that two texts do not have in common by chance
RUN_CHARACTERS = 14
SAYING_WORDS_MIN = 3  # fewer are nobody's words in particular

# Thai, Lao, Burmese, Khmer, kana and ideographs.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_BULLET = re.compile(r"[ \t]*(?:(?P<dash>[-*+])|\d{1,4}[.)])[ \t]+(?P<text>\S.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_PLACEHOLDER = re.compile(r"_.*_|(?:and )?\d[\d,]* more")

_SUMMARIES = read_path(SUMMARIES)
_SKILL_NAME = re.compile(r"[a-z0-9-]{1,64}")
_ID = re.compile(r"[\w-]{8,}")
_SOURCES = re.compile(r"(?:^|\s)Sources: ?\[\[")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """Limits of a generation."""

    summary_chars: int = 4_000
    memory_bytes: int = 65_536
    skill_bytes: int = 24_576
    skill_lines: int = 500
    skills: int = 50


LIMITS = WrittenLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationGrounds:
    """What a generation may rest on, and what it may not any more.

    `before` is the tree as it is, where
    the removed memories' pages are read. `kept` gives every text of what is selected: summaries,
    raw memories and the facts they support; it is asked only where a page says what a removed
    memory said. `by_hand` are facts that no summary stands behind: what somebody added.
    """

    selected: int
    before: TreeReader
    removed: tuple[Removed, ...] = ()
    kept: Callable[[], Iterable[str]] = tuple
    by_hand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageProblem:
    """What is wrong and what to do about it, in a sentence without text from memory.

    `quotes` are the passages that are meant: for the model or person that repairs them, never for
    a log.
    """

    text: str
    quotes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.text, *(f"  > {quote}" for quote in self.quotes)])


def problems(
    staged: StagedPages,
    grounds: GenerationGrounds,
    *,
    redact: Callable[[str], str],
    limits: WrittenLimits = LIMITS,
) -> list[PageProblem]:
    """Everything that keeps a staged generation from being published; the first of too many."""
    examined = _Examined(staged=staged, grounds=grounds)
    found = chain(
        _touched(staged),
        _required(examined, limits),
        _skills(examined, limits),
        _sources(examined),
        _links(examined),
        _secrets(examined, redact),
        _forgotten(examined),
    )
    return list(islice(found, PROBLEMS_MAX))


def losses(staged: StagedPages, grounds: GenerationGrounds) -> list[PageProblem]:
    """Whether most of what a handbook rested on is gone from it, although it is still selected.

    What a model was talked into; rules may have found better things to say.
    """
    was = _Examined(staged=grounds.before, grounds=grounds)
    now = _Examined(staged=staged, grounds=grounds)
    known = {each.id for each in was.cited if now.standing(each) is not None}
    lost = known - {each.id for each in now.cited}
    if len(known) < CITED_MIN or 2 * len(lost) <= len(known):
        return []
    return [
        PageProblem(
            text=f"{MEMORY} and the skills cited {len(known):,} summaries that are still selected, "
            f"and {len(lost):,} of them are cited no more: read these pages again as they were, "
            "and put back what they taught"
        )
    ]


@dataclass(frozen=True, kw_only=True)
class _Examined:
    """The pages of a generation that say something, read once."""

    staged: TreeReader
    grounds: GenerationGrounds
    found: dict[str, Document | None] = field(default_factory=dict)  # by the key of a link

    @cached_property
    def memory(self) -> Document | None:
        return self._at(MEMORY)

    @cached_property
    def summary(self) -> Document | None:
        return self._at(SUMMARY)

    @cached_property
    def raw(self) -> Document | None:
        return self._at(RAW)

    @cached_property
    def skill_nodes(self) -> list[Node]:
        return self.staged.tree(SKILLS, limit=LIST_MAX)[1:]

    @cached_property
    def skills(self) -> list[Document]:
        """The skills that stand where they are looked for."""
        paths = (each.path for each in self.skill_nodes if _is_skill(each))
        return [page for page in map(self._at, paths) if page is not None]

    @property
    def claiming(self) -> list[Document]:
        """The pages whose lines are claims."""
        return [page for page in (self.memory, *self.skills) if page is not None]

    @property
    def spoken(self) -> list[Document]:
        """The pages that were written from others."""
        return [page for page in (self.memory, self.summary, *self.skills) if page is not None]

    @cached_property
    def gone(self) -> frozenset[str]:
        """The keys of where the removed memories' pages stand."""
        paths = (each.path for each in self.grounds.removed)
        return frozenset(read_path(path).key for path in paths if path is not None)

    @property
    def cited(self) -> Iterator[Document]:
        """The summaries that claims rest on and that may be cited; some more than once."""
        for page in self.claiming:
            yield from filter(None, map(self.source, _linked(page)))

    def source(self, path: DocumentPath) -> Document | None:
        """The summary that a claim may rest on; none: there is none at that path."""
        target = self.target(path)
        if target is None or self.is_gone(target):
            return None
        where = stored_path(target.path)
        is_summary = where.is_within(_SUMMARIES) and where.key != _SUMMARIES.key
        return target if is_summary else None

    def target(self, path: DocumentPath) -> Document | None:
        if path.key not in self.found:
            root = self.staged.holder.root
            is_seen = root is None or path.is_within(root)
            self.found[path.key] = self.staged.find(path.text) if is_seen else None
        return self.found[path.key]

    def is_gone(self, page: Document) -> bool:
        return stored_path(page.path).key in self.gone

    def standing(self, page: Document) -> Document | None:
        """A page of another tree, if it stands in this one."""
        return self.source(stored_path(page.path))

    def _at(self, path: str) -> Document | None:
        found = self.staged.find(path)
        is_here = found is not None and stored_path(found.path).key == read_path(path).key
        return found if is_here else None


# what is there


def _touched(staged: StagedPages) -> Iterator[PageProblem]:
    for path in (edit.place.text for edit in staged.edits):
        if not is_of_consolidation(read_path(path)):
            yield PageProblem(text=f"{path} belongs to agents and people: leave it as it is")


def _required(examined: _Examined, limits: WrittenLimits) -> Iterator[PageProblem]:
    pages = {MEMORY: examined.memory, SUMMARY: examined.summary, RAW: examined.raw}
    for path, page in pages.items():
        if examined.grounds.selected and (page is None or not page.body.strip()):
            yield PageProblem(text=f"{path} is missing or says nothing: write it")
    memory, summary = examined.memory, examined.summary
    if memory is not None and _size(memory) > limits.memory_bytes:
        yield _too_long(memory, f"{_size(memory):,} bytes", f"{limits.memory_bytes:,}")
    if summary is not None and len(summary.body) > limits.summary_chars:
        yield _too_long(summary, f"{len(summary.body):,} characters", f"{limits.summary_chars:,}")


def _skills(examined: _Examined, limits: WrittenLimits) -> Iterator[PageProblem]:
    named = {stored_path(page.path).slugs[-2]: page for page in examined.skills}
    folders = [each for each in examined.skill_nodes if len(_below_skills(each)) == 1]
    if len(folders) > limits.skills:
        yield PageProblem(
            text=f"there are {len(folders):,} skills, and at most {limits.skills} may be kept: "
            "delete the least useful, or merge those that belong together"
        )
    for folder in folders:
        (name,) = _below_skills(folder)
        if name not in named:
            yield PageProblem(
                text=f"{folder.path} has no page {SKILL}: write it, or delete the skill"
            )
    for node in examined.skill_nodes:
        if len(_below_skills(node)) > 1 and not _is_skill(node):
            yield PageProblem(
                text=f"{node.path} is not where skills are kept: a skill is one page, "
                f"{SKILLS}/<name>/{SKILL}; put what it says there and delete the rest"
            )
    for name, page in named.items():
        yield from _skill(name, page, examined, limits)


def _skill(
    name: str, page: Document, examined: _Examined, limits: WrittenLimits
) -> Iterator[PageProblem]:
    if _SKILL_NAME.fullmatch(name) is None:
        yield PageProblem(
            text=f"{page.path}: a skill's name has 1 to 64 letters a to z, digits and dashes; "
            "write it under such a name and delete this one"
        )
    if page.title != name:
        yield PageProblem(text=f"{page.path}: its title has to be its name, {name}")
    if not page.description.strip():
        yield PageProblem(text=f"{page.path} has no description: say in one when to use the skill")
    if not page.body.strip():
        yield PageProblem(text=f"{page.path} says nothing: write it, or delete the skill")
    elif not any(map(examined.source, _linked(page))):
        yield PageProblem(
            text=f"{page.path} cites no summary: link those in which the procedure worked, as in "
            f"{TEMPLATE_LINK}, or delete the skill"
        )
    if _size(page) > limits.skill_bytes:
        yield _too_long(page, f"{_size(page):,} bytes", f"{limits.skill_bytes:,}")
    lines = len(page.body.splitlines())
    if lines > limits.skill_lines:
        yield _too_long(page, f"{lines:,} lines", f"{limits.skill_lines:,}")


def _below_skills(node: Node) -> tuple[str, ...]:
    return stored_path(node.path).slugs[2:]


def _is_skill(node: Node) -> bool:
    below = _below_skills(node)
    return len(below) == 2 and below[1] == SKILL


def _size(page: Document) -> int:
    return len(page.body.encode())


def _too_long(page: Document, size: str, most: str) -> PageProblem:
    return PageProblem(
        text=f"{page.path} has {size}, and may have {most}: shorten it, the least useful first"
    )


# what it rests on


def _sources(examined: _Examined) -> Iterator[PageProblem]:
    by_hand = examined.grounds.by_hand
    known = [spoken(text) for text in dict.fromkeys((*by_hand, *map(shown, by_hand)))]
    for page in examined.claiming:
        cited = [link.start for link in find_links(page.body) if examined.source(link.path)]
        without = [
            block
            for block, end in _with_ends(page.body)
            # The steps of a skill have the sources of their page.
            if block.is_claim
            and not (block.is_step and page is not examined.memory)
            and bisect_left(cited, block.start) == bisect_left(cited, end)
            and not is_quoted(block.text, known)
        ]
        if without:
            yield PageProblem(
                text=f"{page.path}: {_counted(len(without), 'claim')} without a source: end each, "
                f"or the part below its heading, with links to the summaries it was taken from, as "
                f"in {TEMPLATE_LINK}, or take it out",
                quotes=_quoted(f"line {block.line}: {block.text}" for block in without),
            )


def _with_ends(body: str) -> Iterator[tuple[PageBlock, int]]:
    """The blocks of a page, each with where its sources end: with it, or below its heading.

    A line of links at the end of the part below a heading is about all that stands in the part.
    """
    part: list[PageBlock] = []
    for block in (*blocks(body), None):
        if block is None or block.text.startswith("#"):
            closing = part[-1] if part and _SOURCES.search(part[-1].text) else None
            yield from ((each, (closing or each).end) for each in part)
            part = []
        if block is not None:
            part.append(block)


def _linked(page: Document) -> Iterator[DocumentPath]:
    return (link.path for link in find_links(page.body))


def _links(examined: _Examined) -> Iterator[PageProblem]:
    for page in examined.spoken:
        linked = {path.key: path for path in _linked(page)}
        linked |= {path.key: path for path in map(read_path, page.links)}
        nowhere, removed = [], []
        for path in linked.values():
            target = examined.target(path)
            if target is None:
                nowhere.append(path.text)
            elif examined.is_gone(target):
                removed.append(path.text)
        if nowhere:
            yield PageProblem(
                text=f"{page.path}: {_counted(len(nowhere), 'link')} to what is not there: mend "
                "each, or take it out",
                quotes=_quoted(nowhere),
            )
        if removed:
            yield PageProblem(
                text=f"{page.path}: {_counted(len(removed), 'link')} to memories that were "
                "removed: take them out, and with them every claim that no other source bears out",
                quotes=_quoted(removed),
            )


# what it must not say


def _secrets(examined: _Examined, redact: Callable[[str], str]) -> Iterator[PageProblem]:
    for page in (*examined.spoken, *((examined.raw,) if examined.raw else ())):
        if redact(_text(page)) != _text(page):
            yield PageProblem(text=f"{page.path} holds what looks like a secret: take it out")


def _forgotten(examined: _Examined) -> Iterator[PageProblem]:
    grounds = examined.grounds
    if not grounds.removed:
        return
    pages = {page.path: _text(page) for page in examined.spoken}
    ids = {each.session_id for each in grounds.removed}
    for path, text in pages.items():
        named = len(ids.intersection(_ID.findall(text)))
        if named:
            yield PageProblem(
                text=f"{path} names {_counted(named, 'session')} that was removed: take the id out"
            )
    found = echoes(pages, _gone_texts(grounds), lambda: chain(grounds.by_hand, grounds.kept()))
    for path, passages in found.items():
        yield PageProblem(
            text=f"{path}: {_counted(len(passages), 'passage')} that only removed memories said: "
            "take out what no kept summary bears out, and say the rest in the words of one that is "
            "kept",
            quotes=_quoted(passages),
        )


def _gone_texts(grounds: GenerationGrounds) -> Iterator[str]:
    """What the removed memories' pages say, one after the other."""
    for each in grounds.removed:
        page = None if each.path is None else grounds.before.find(each.path)
        if page is not None:
            yield _text(page)


def _text(page: Document) -> str:
    return "\n".join((page.title, page.description, " ".join(page.tags), page.body))


# in words


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _quoted(passages: Iterable[str]) -> tuple[str, ...]:
    shown = [one_line(each, QUOTE_CHARS) for each in passages]
    more = len(shown) - QUOTES_MAX
    return tuple(shown if more <= 0 else [*shown[:QUOTES_MAX], f"and {more:,} more"])


# claims, and what is said again


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBlock:
    """A line of a page with those that go on with it, and where in the body they stand.

    `bullet` is what follows the mark of a list; none: it is in no list. `is_step`: the mark is a
    number.
    """

    text: str
    line: int
    start: int
    end: int
    bullet: str | None
    is_step: bool

    @property
    def is_claim(self) -> bool:
        """Whether it says something that needs a source."""
        if self.bullet is None:
            return len(self.text.split()) > PROSE_WORDS_MAX
        said = self.bullet.strip()
        is_index = said.startswith("[[") or said.endswith(":")
        has_words = any(map(str.isalpha, without_remarks(said)))
        return has_words and not is_index and _PLACEHOLDER.fullmatch(said) is None


def without_remarks(text: str) -> str:
    """A line without what stands in brackets behind it: its day, its scope, how far to trust it."""
    left = text.rstrip()
    while left.endswith(")"):
        start = left.rfind("(")
        if start < 0 or ")" in left[start:-1]:
            break
        left = left[:start].rstrip()
    return left


def blocks(body: str) -> Iterator[PageBlock]:
    """The lines of a page outside code, each with those that are only its continuation."""
    begun: PageBlock | None = None
    fence, at = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if is_code or not line.strip() else _block(line, number, at)
        if begun is not None and found is not None and _goes_on(begun, found):
            found = _joined(begun, found)
        elif begun is not None:
            yield begun
        begun = found
        at += len(line) + 1
    if begun is not None:
        yield begun


def _block(line: str, number: int, at: int) -> PageBlock:
    found = _BULLET.match(line)
    return PageBlock(
        text=line.strip(),
        line=number,
        start=at,
        end=at + len(line),
        bullet=None if found is None else found["text"],
        is_step=found is not None and found["dash"] is None,
    )


def _goes_on(begun: PageBlock, found: PageBlock) -> bool:
    is_heading = begun.text.startswith("#") or found.text.startswith("#")
    return found.bullet is None and not is_heading and not found.text.startswith("|")


def _joined(begun: PageBlock, found: PageBlock) -> PageBlock:
    bullet = None if begun.bullet is None else f"{begun.bullet} {found.text}"
    return replace(begun, text=f"{begun.text} {found.text}", end=found.end, bullet=bullet)


def echoes(
    pages: Mapping[str, str],
    gone: Iterable[str],
    kept: Callable[[], Iterable[str]],
) -> dict[str, list[str]]:
    """The passages of each page, by its name, that stand in a text that is gone and in none kept.

    Of the texts only one is held at a time, and those that are kept are looked at only where
    something is suspected.
    """
    spoken = {name: list(_spoken(text)) for name, text in pages.items()}
    said = {run for tokens in spoken.values() for _, run in _runs(tokens)}
    suspected: set[str] = set()
    for text in gone:
        suspected.update(said.intersection(_runs_of(text)))
    for text in kept() if suspected else ():
        suspected.difference_update(_runs_of(text))
        if not suspected:
            break
    if not suspected:
        return {}
    found = {name: _passages(tokens, suspected) for name, tokens in spoken.items()}
    return {name: passages for name, passages in found.items() if passages}


def is_quoted(line: str, texts: Iterable[str]) -> bool:
    """Whether a line says one of the texts, or nothing but a part of one; each as `spoken`."""
    said, bare = spoken(line), spoken(without_remarks(line))
    return any(
        (text in said and text.count(" ") > SAYING_WORDS_MIN) or (bare.strip() and bare in text)
        for text in texts
    )


def spoken(text: str) -> str:
    """The words of a text between blanks, so that one is found in another."""
    return f" {' '.join(_spoken(text))} "


def missing_from(body: str, texts: Iterable[str]) -> list[str]:
    """Those of the texts that a body does not say word for word."""
    said = spoken(body)
    return [text for text in texts if spoken(text) not in said]


def _spoken(text: str) -> Iterator[str]:
    """The words that a reader sees: of a link, those that it shows."""
    for word in words(unlinked(text, lambda _: True)).split():
        if word.isascii() or _UNSPACED.search(word) is None:
            yield word
        else:
            yield from word


def _runs(tokens: list[str]) -> Iterator[tuple[int, str]]:
    """Every run of words long enough, with where it begins."""
    for at in range(len(tokens)):
        end = at + _length(tokens[at])
        if end <= len(tokens):
            yield at, " ".join(tokens[at:end])


def _runs_of(text: str) -> Iterator[str]:
    return (run for _, run in _runs(list(_spoken(text))))


def _length(token: str) -> int:
    return RUN_CHARACTERS if _UNSPACED.match(token) else RUN_WORDS


def _passages(tokens: list[str], suspected: set[str]) -> list[str]:
    """Runs that overlap are one passage."""
    spans: list[tuple[int, int]] = []
    for at, run in _runs(tokens):
        if run not in suspected:
            continue
        end = at + _length(tokens[at])
        if spans and at <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((at, end))
    return [" ".join(tokens[start:end]) for start, end in spans]
