"""The evidence of a generation: a page per session, and one page of all their memories. Pure.

The name of a session's page is made of what does not change: the day it began, its short name, and
a few digits of its id. The same memories give the same bytes, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256

from recollect.clock import to_micros
from recollect.consolidation.pages import RAW, RAW_BYTES_MAX, SUMMARIES, Page, distinct_sources
from recollect.documents.checking import TITLE_CHARS_MAX
from recollect.documents.front_matter import heading
from recollect.documents.paths import memory_root
from recollect.errors import InvalidPath
from recollect.extraction.rules.texts import read_outline
from recollect.extraction.rules.wording import slug
from recollect.pages.markdown import evidence, label, link, shown
from recollect.quarantine import bare, commands
from recollect.types.facts import Source
from recollect.types.generations import Memo

MEMORY_BYTES_MAX = 16_000  # of one memory among the raw ones
SHORT_CHARS_MAX = 400  # of a session, where a model is told what there is
SLUG_BYTES_MAX = 120
NAME_DIGITS = 8
UNNAMED = "session"
NOTHING_RAW = "There are no memories of sessions."

_FRONT_KEYS = ("task_group", "task_outcome", "cwd", "keywords")
_FRAME = re.compile(r"\s*(?:#|[-*]?\s*outcome:|\W*$)", re.IGNORECASE)
_UNSPECIFIC = frozenset({"", "chat", "conversation", "none", "other"})
_NOTE_BYTES = 400  # for what is said about those left out


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizedSession:
    """A session and the page of its summary.

    `short` is what it came to, in few words; `subject` what it was about, where it has no project;
    `state` which of its states that is.
    """

    session_id: str
    path: str
    day: date
    title: str
    project: str | None = None
    short: str = ""
    subject: str = ""
    state: tuple[int, int] = (0, 0)  # when it was last heard, and how often that was distilled

    @property
    def source(self) -> Source:
        return Source(session_id=self.session_id, seq=0, seq_to=0)


def summary_name(memo: Memo) -> str:
    """Return the name of a session's page: `2026-05-03-deploy-script-1a2b3c4d`."""
    digest = sha256(memo.extraction.session_id.encode(errors="surrogatepass")).hexdigest()
    words = slug(memo.extraction.rollout_slug or "")
    words = words.encode(errors="ignore")[:SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    day = _day(memo.began_at).isoformat()
    try:
        name = f"{day}-{words or UNNAMED}-{digest[:NAME_DIGITS]}"
        return memory_root().child(name).slug
    except InvalidPath:
        return f"{day}-{UNNAMED}-{digest[:NAME_DIGITS]}"


def summary_path(memo: Memo) -> str:
    return f"{SUMMARIES}/{summary_name(memo)}"


def summary_page(memo: Memo, path: str) -> Page:
    """What a session came to, below what is known about it."""
    extraction = memo.extraction
    text = evidence(_without_title(extraction.rollout_summary), below=1)
    return Page(
        path=path,
        title=title_of(memo),
        description=_description(memo),
        body="\n\n".join(part for part in (_head(memo), text) if part),
        sources=(_source(memo),),
    )


def summarized(memo: Memo, path: str) -> SummarizedSession:
    """A session as the pages of memory list it."""
    front = read_outline(memo.extraction.raw_memory).front
    group = label(front.get("task_group", ""))
    return SummarizedSession(
        session_id=memo.extraction.session_id,
        path=path,
        day=_day(memo.extraction.source_updated_at),
        title=title_of(memo),
        project=memo.project,
        short=_short(memo, front.get("keywords", "")),
        subject="" if group.casefold() in _UNSPECIFIC else group,
        state=(to_micros(memo.extraction.source_updated_at), memo.revision),
    )


def _short(memo: Memo, keywords: str) -> str:
    """The first words of a summary, without its title and headings."""
    lines = bare(_without_title(memo.extraction.rollout_summary)).splitlines()
    told = (line.strip().removeprefix("- ") for line in lines if not _FRAME.match(line))
    return shown(" ".join(told), SHORT_CHARS_MAX) or label(keywords, SHORT_CHARS_MAX)


def title_of(memo: Memo) -> str:
    """What its summary is called, else what is known of it."""
    extraction = memo.extraction
    heading_text = _title(extraction.rollout_summary)
    described = read_outline(extraction.raw_memory).front.get("description", "")
    for text in (heading_text, described, (extraction.rollout_slug or "").replace("-", " ")):
        if title := label(text, TITLE_CHARS_MAX // 2):
            return title
    return f"Session of {_day(memo.began_at)}"


def raw_memories(
    memos: Sequence[Memo],
    *,
    places: Mapping[str, str],
    bytes_max: int = RAW_BYTES_MAX,
    others: int = 0,
) -> Page:
    """What the sessions came to in one page, the newest first, as many as fit.

    `others` are memories that were not even read for it, all of them older.
    """
    newest = sorted(memos, key=lambda memo: memo.extraction.session_id)
    newest.sort(key=lambda memo: memo.extraction.source_updated_at, reverse=True)
    parts: list[str] = []
    size = _NOTE_BYTES
    for memo in newest:
        part = _raw(memo, places.get(memo.extraction.session_id))
        size += len(part.encode()) + 2
        if size > bytes_max:
            break
        parts.append(part)
    kept = newest[: len(parts)]
    left = len(newest) - len(kept) + others
    if left:
        parts.append(_left_out(left, is_all=not kept))
    return Page(
        path=RAW,
        title="Raw memories",
        description="What each session came to, the newest first: evidence for the handbook.",
        body="\n\n".join(parts) if parts else NOTHING_RAW,
        sources=distinct_sources(map(_source, kept)),
    )


def _left_out(count: int, *, is_all: bool) -> str:
    older = "" if is_all else " older"
    count_text = f"1{older} memory is" if count == 1 else f"{count:,}{older} memories are"
    whose = "its summary is" if count == 1 else "their summaries are"
    return f"{count_text} left out here; {whose} below {SUMMARIES}."


def raw_memory(memo: Memo) -> str:
    """What a session came to, below its title and what is known about it."""
    front_lines, text = _read_raw(memo)
    return "\n\n".join(filter(None, (title_of(memo), "\n".join(front_lines), text)))


def _raw(memo: Memo, path: str | None) -> str:
    title = f"{_day(memo.extraction.source_updated_at)} {title_of(memo)}"
    name = link(path, title) if path else label(title)
    front_lines, text = _read_raw(memo)
    session = f"- session: {shown(memo.extraction.session_id)}"
    head = "\n".join([f"## {name}", "", session, *front_lines])
    return f"{head}\n\n{text}" if text else head


def _read_raw(memo: Memo) -> tuple[list[str], str]:
    front, memory = _parted(memo.extraction.raw_memory)
    front_lines = [f"- {key}: {shown(front[key])}" for key in _FRONT_KEYS if front.get(key)]
    return front_lines, evidence(_cut(memory, MEMORY_BYTES_MAX), below=2)


def _parted(raw_memory: str) -> tuple[Mapping[str, str], str]:
    """What stands at the head of a memory, and the memory."""
    lines = raw_memory.strip().split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        return {}, raw_memory
    return read_outline(raw_memory).front, "\n".join(lines[lines.index("---", 1) + 1 :])


def _cut(text: str, bytes_max: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= bytes_max:
        return text
    kept = data[:bytes_max].decode(errors="ignore").rpartition("\n")[0]
    return f"{kept}\n…"


def _head(memo: Memo) -> str:
    first, last = _day(memo.began_at), _day(memo.extraction.source_updated_at)
    known = {
        "session": memo.extraction.session_id,
        "key": memo.key,
        "agent": memo.agent_id,
        "project": memo.project or "",
        "day": str(first) if first >= last else f"{first} to {last}",
    }
    lines = [(name, shown(value)) for name, value in known.items()]
    return "\n".join(f"- {name}: {value}" for name, value in lines if value)


def _description(memo: Memo) -> str:
    keywords = read_outline(memo.extraction.raw_memory).front.get("keywords", "")
    about = "" if commands(keywords) else label(keywords, 200)
    where = f" in {label(memo.project)}" if memo.project else ""
    day = _day(memo.extraction.source_updated_at)
    return f"A session of {day}{where}{': ' if about else ''}{about}"


def _title(text: str) -> str:
    """The heading of a summary, not that of a part of it."""
    return (heading(text) or "") if text.lstrip().startswith("# ") else ""


def _without_title(text: str) -> str:
    """A summary without the heading that is the title of its page."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("# ") else text


def _source(memo: Memo) -> Source:
    upto = max(0, memo.extraction.upto)
    return Source(session_id=memo.extraction.session_id, seq=min(1, upto), seq_to=upto)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
