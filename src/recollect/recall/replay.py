"""What was told, shown again: a block byte for byte, or what became of each of its lines.

Reads only. A line is made anew from what its entry says or said, and compared with what was told;
nothing is guessed: where the text is not kept, the line says what became of it instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from recollect.collection import check_id
from recollect.errors import NotFound
from recollect.recall.usage import without_citations
from recollect.references import (
    LETTERS,
    RestoredLine,
    digest_of,
    entries_in,
    read_reference,
    restored,
)
from recollect.runtime import Runtime
from recollect.stemming import asked_stems, stems
from recollect.types.recall import EntryVersions, KeptContext, LineState, Replay, ToldLine

BLOCKS_LOOKED_AT = 20  # for a line of an answer
SAID_SHARE = 0.5  # of the words of a statement that a line has which it came from
_MARK = re.compile(r"\[?(m[1-9][0-9]{0,2})\]?")
_ANSWER_PIECE = re.compile(r"\n+|(?<=[.!?])\s+")
_NAMES = {"F": "a fact", "D": "a document", "S": "a session's summary", "R": "a record"}
_GONE = LineState.ERASED


def replay(runtime: Runtime, space: str, context_id: str | None = None) -> Replay:
    """A block that was told, by its id; without one the latest. NotFound: none is kept."""
    return _replayed(runtime, space, _kept(runtime, space, context_id))


def why(runtime: Runtime, space: str, about: str, context_id: str | None = None) -> Replay:
    """The lines of a block that are meant: by a mark, or by the words of an answer; else all."""
    about, contexts = about.strip(), runtime.store.contexts
    named = contexts.get(space, about) if context_id is None and about else None
    if named is not None:
        return _replayed(runtime, space, named)
    is_answer = context_id is None and about and _MARK.fullmatch(about) is None
    tried = contexts.list(space, BLOCKS_LOOKED_AT) if is_answer else []
    blocks = map(partial(_replayed, runtime, space), tried or [_kept(runtime, space, context_id)])
    told = first = next(blocks)
    while about and not (told := _meant(told, about)).lines:
        following = next(blocks, None)
        if following is None:
            return replace(first, lines=())
        told = following
    return told


def _kept(runtime: Runtime, space: str, context_id: str | None) -> KeptContext:
    contexts = runtime.store.contexts
    if context_id is not None:
        kept = contexts.get(space, check_id(context_id))
        if kept is None:
            raise NotFound(f"space {space!r} keeps no block {context_id!r}")
        return kept
    latest = contexts.list(space, 1)
    if not latest:
        raise NotFound(f"space {space!r} keeps nothing that was told (see contexts_kept)")
    return latest[0]


def _meant(told: Replay, about: str) -> Replay:
    marks = set(without_citations(about).marks) | {*_MARK.findall(about)}
    if marks := {each.mark for each in told.lines} & marks:
        return replace(told, lines=tuple(each for each in told.lines if each.mark in marks))
    pieces = [asked_stems(each) for each in _ANSWER_PIECE.split(about)]
    said = [({*stems(each.text or "")}, each) for each in told.lines]
    found: dict[int, ToldLine] = {}
    for words in filter(None, pieces):
        shares = [
            (len(has.intersection(words)) / len(words), -at) for at, (has, _) in enumerate(said)
        ]
        best, at = max(shares, default=(0.0, 0))
        if best >= SAID_SHARE:
            found[-at] = said[-at][1]
    return replace(told, lines=tuple(found[at] for at in sorted(found)))


def _replayed(runtime: Runtime, space: str, kept: KeptContext) -> Replay:
    reference = read_reference(kept.told)
    versions = runtime.store.contexts.versions(space, entries_in(kept.refs))
    made = list(restored(kept.refs, reference, versions))
    lines = [_told(each, versions) for each in made if each.number]
    named = iter(lines)
    text = "\n".join(_shown(each, next(named) if each.number else None) for each in made)
    return Replay(
        id=kept.id,
        at=kept.at,
        reader=kept.reader,
        session_id=kept.session_id,
        query=kept.query,
        settings=reference.settings,
        is_identical=digest_of(text) == reference.digest,
        text=text,
        lines=tuple(lines),
    )


def _shown(line: RestoredLine, told: ToldLine | None) -> str:
    if line.text is not None:
        return line.text
    assert told is not None
    mark = f" [{line.mark}]" if line.mark else ""
    return f"- ({_NAMES[line.refs[0][0]]}: {told.state.value}){mark}"


def _told(line: RestoredLine, versions: Mapping[str, EntryVersions]) -> ToldLine:
    ref = line.refs[0]
    entry = versions.get(ref)
    kind = LETTERS[ref[0]]
    if entry is None:
        return ToldLine(mark=line.mark, kind=kind, id="", text=None, state=_GONE)
    state, now = entry.state, entry.now
    if state is LineState.SAME and (line.text is None or line.version):
        state = LineState.CORRECTED if ref[0] == "F" else LineState.REWRITTEN
        now = entry.texts[0] if ref[0] == "F" else ""
    if line.text is None and len(line.refs) > 1 and line.refs[1] not in versions:
        state = _GONE  # it named what had taken its place
    return ToldLine(
        mark=line.mark,
        kind=kind,
        id=entry.id,
        text=line.text,
        state=state,
        now=now,
        reasons=line.reasons,
        sources=entry.sources,
    )
