"""Tests for a memory: questions, with what has to be in the block and what must not be.

Reads only, and keeps nothing of the blocks. The pages that a run has staged can be put in the place
of those in the store, so that a generation is tested before it is published.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, cast

from recollect.config.sources import parsed_file
from recollect.errors import InvalidValue, NotFound
from recollect.recall.recaller import Recaller
from recollect.runtime import Runtime
from recollect.stemming import indexed
from recollect.store.protocol import Store
from recollect.types.facts import FactChange, Trust
from recollect.types.pages import Document, Place
from recollect.types.recall import Context, Entry, EntryKind, Filters, Found, Hit, Reach, Sought

CASES_MAX = 10_000
CASES = "cases"  # where a file has them, if it is no list of them


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """A question, and what the block has to say and must not. Case and blanks do not count."""

    ask: str
    expect: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    max_tokens: int | None = None
    speaker: str | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenLine:
    """A line that says what must not be said: what it is from, and why it is there."""

    said: str
    line: str
    hit: Hit | None  # none: it is from no entry that can be cited


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of a case: what is missing, and the lines that must not be there."""

    case: CheckCase
    missing: tuple[str, ...]
    forbidden: tuple[ForbiddenLine, ...]
    token_count: int
    text: str

    @property
    def is_passed(self) -> bool:
        return not self.missing and not self.forbidden


class StagedTexts(Protocol):
    """Pages that are not in the store yet."""

    @property
    def touched(self) -> set[str]: ...

    def find(self, path: str) -> Document | None: ...


def read_cases(given: str | Path | Iterable[CheckCase | Mapping[str, Any]]) -> list[CheckCase]:
    """The cases in a file (YAML, TOML or JSON), or as they are given. InvalidValue: no cases."""
    content: Any = parsed_file(Path(given)) if isinstance(given, str | Path) else given
    if isinstance(content, Mapping):
        content = content.get(CASES)
    if isinstance(content, str | None) or not isinstance(content, Iterable):
        raise InvalidValue(f"cases are a list, or stand under {CASES!r}, each with what to ask")
    cases = [_case(number, each) for number, each in enumerate(content, start=1)]
    if len(cases) > CASES_MAX:
        raise InvalidValue(f"there are at most {CASES_MAX:,} cases (got {len(cases):,})")
    return cases


def _case(number: int, given: object) -> CheckCase:
    if isinstance(given, CheckCase):
        return given
    known = {each.name for each in fields(CheckCase)}
    if not isinstance(given, Mapping) or given.keys() - known:
        raise InvalidValue(f"case {number} has some of {', '.join(sorted(known))}: {given!r}")
    named = {name: value for name, value in given.items() if value is not None}
    for name in ("expect", "forbid"):
        value = named.get(name, ())
        named[name] = (value,) if isinstance(value, str) else tuple(value)
    texts = (named.get("ask"), *named["expect"], *named["forbid"])
    if not all(isinstance(each, str) for each in texts):
        raise InvalidValue(f"case {number}: ask, expect and forbid are texts: {given!r}")
    if not named["expect"] and not named["forbid"]:
        raise InvalidValue(f"case {number} says neither what to expect nor what to forbid")
    return CheckCase(**named)


def check(
    runtime: Runtime, space: str, cases: Iterable[CheckCase], staged: StagedTexts | None = None
) -> list[Checked]:
    """What comes of each case of a space; with `staged`, as if those pages were published."""
    store = runtime.store if staged is None else cast(Store, _StagedStore(runtime.store, staged))
    recaller = Recaller(runtime, store, space)
    return [_checked(recaller, case) for case in cases if case.space in (None, space)]


def broken_by(
    runtime: Runtime, space: str, cases: Iterable[CheckCase], staged: StagedTexts
) -> list[int]:
    """The cases, by number, that hold now and would not with these pages."""
    own = {n: each for n, each in enumerate(cases, start=1) if each.space in (None, space)}
    now = check(runtime, space, own.values())
    then = check(runtime, space, own.values(), staged)
    pairs = zip(own, now, then, strict=True)
    return [number for number, one, other in pairs if one.is_passed and not other.is_passed]


def _checked(recaller: Recaller, case: CheckCase) -> Checked:
    if case.ask.strip():
        block = recaller.context(case.ask, case.max_tokens, speaker=case.speaker)
    else:
        block = recaller.recapper.context(case.max_tokens)
    lines = [(_plain(line), line) for line in block.text.split("\n")]
    whole = _plain(block.text)
    return Checked(
        case=case,
        missing=tuple(each for each in case.expect if _plain(each) not in whole),
        forbidden=tuple(
            ForbiddenLine(said=each, line=line, hit=_hit_of(block, line))
            for each in case.forbid
            for plain, line in lines
            if _plain(each) in plain
        ),
        token_count=block.token_count,
        text=block.text,
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _hit_of(block: Context, line: str) -> Hit | None:
    return next((each.hit for each in block.citations if f"[{each.mark}]" in line), None)


# what a correction says


def proposed(runtime: Runtime, space: str, fact_id: str) -> CheckCase:
    """A case that holds a correction: what a fact says now is expected, what it said before is not.

    It asks what was asked when it was told last; else what it said. NotFound: nobody changed it.
    """
    runtime.told.flush()
    ask = runtime.store.contexts.asked(space, fact_id)
    history = runtime.store.facts.history(space, fact_id)
    said = [each.content for each in history if each.content]
    if len({*said}) < 2 and not _is_deleted(history):
        raise NotFound(f"nobody has corrected a fact {fact_id!r} here: edit or delete it first")
    if _is_deleted(history):
        return CheckCase(ask=ask or said[-1], forbid=(said[-1],))
    now = said[-1]
    before = next(each for each in reversed(said) if each != now)
    return CheckCase(ask=ask or before, expect=(_new_words(before, now),), forbid=(before,))


def _is_deleted(history: Sequence[FactChange]) -> bool:
    return bool(history) and history[-1].event == "deleted"


def _new_words(before: str, now: str) -> str:
    """The longest run of words that only the new statement has."""
    old, new = before.split(), now.split()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    runs = [new[b:d] for op, _, _, b, d in matcher.get_opcodes() if op in ("insert", "replace")]
    longest: list[str] = max(runs, key=len, default=new)
    return " ".join(longest).strip(" .!?,;:") or now


def added_to(file: Path, case: CheckCase) -> None:
    """Write a case behind the others in a file, or into a new one; comments stay."""
    given = {
        each.name: value
        for each in fields(case)
        if (value := getattr(case, each.name)) not in (None, ())
    }
    cases = read_cases(file) if file.exists() else []
    if case in cases:
        return
    if file.suffix == ".json":
        content: Any = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        (content[CASES] if isinstance(content, dict) else content).append(given)
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    is_toml = file.suffix == ".toml"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(as_toml(given) if is_toml else as_yaml(given))
    read_cases(file)  # it fails where the file had another form: then mend it by hand


def as_yaml(given: Mapping[str, Any]) -> str:
    """A case as an item of a list."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]
    return "- " + "\n  ".join(lines) + "\n"


def as_toml(given: Mapping[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]
    return "\n".join([f"\n[[{CASES}]]", *lines]) + "\n"


# pages that are not in the store yet


class _StagedStore:
    """A store, with staged pages in the place of its own; everything else is as it has it."""

    def __init__(self, under: Store, staged: StagedTexts) -> None:
        self._under = under
        self._pages = {path: staged.find(path) for path in sorted(staged.touched)}
        self.search = self
        self.documents = self

    def __getattr__(self, name: str) -> Any:
        search = self._under.search
        return getattr(search if hasattr(search, name) else self._under, name)

    def find(self, space: str, place: Place) -> Document | None:
        staged = place.text in self._pages
        return self._pages[place.text] if staged else self._under.documents.find(space, place)

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        found = self._under.search.candidates(space, sought, filters, now, reach)
        entries = [each for each in found.entries if each.id not in self._pages]
        if EntryKind.DOCUMENT in filters.kinds:
            entries += [each for each in self._entries() if _has(each, sought.stems)]
        return replace(found, entries=tuple(entries))

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> list[Entry]:
        wanted = set(keys.get(EntryKind.DOCUMENT, ()))
        stored = {kind: [key for key in each if key > 0] for kind, each in keys.items()}
        found = list(self._under.search.load(space, stored, filters, now))
        return [*found, *(each for each in self._entries() if each.key in wanted)]

    def _entries(self) -> list[Entry]:
        pages = (page for page in self._pages.values() if page is not None)
        return [
            Entry(
                kind=EntryKind.DOCUMENT,
                key=-number,
                id=page.path,
                text=page.body or page.description or page.title,
                stems=indexed(f"{page.title} {page.description} {page.body}"),
                at=page.updated_at,
                trust=Trust.AGENT,
                title=page.title,
                sources=page.sources,
            )
            for number, page in enumerate(pages, start=1)
        ]


def _has(entry: Entry, stems: Sequence[str]) -> bool:
    return not frozenset(entry.stems.split()).isdisjoint(stems)
