"""How good the facts of the extractor without a model are, on conversations with known questions.

`make bench ARGS="--only quality --data DIR"` reads every `locomo*.json` and `longmemeval*.json` of
DIR. Each turn is a record. Covered is a turn that questions need and that a fact names as its
source; beside it stands the random line: a quarter of the turns by chance covers a quarter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import recollect
from bench.report import Line, skipped
from bench.settings import Run
from recollect.extraction.grounding import stems
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules import RuleExtractor
from recollect.messages import Role
from recollect.types.facts import NewFact
from recollect.types.records import Mode, SessionState

OPENED = datetime(2023, 1, 1, tzinfo=UTC)  # what a session says of itself; nothing reads it
SHARES = (0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50)
TARGET_SHARE = 0.25
TARGET_TIMES_RANDOM = 1.8
SHARED_WORDS_MIN = 2  # with a question and its answer, for a fact to be of use to it
JUNK_RULE = (
    "names no turn that a question needs and shares fewer than"
    f" {SHARED_WORDS_MIN} telling words with every question asked of its conversation"
)
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_WEEKDAY = re.compile(r" \(\w+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: its telling words, and the turns it needs, by session and number."""

    words: frozenset[str]
    needs: frozenset[tuple[str, int]]


@dataclass(slots=True, kw_only=True)
class Played:
    """One session of a data set, as records."""

    id: str
    piece: Piece
    turns: int
    questions: list[Asked] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DataSet:
    """Sessions and the questions about them."""

    name: str
    sessions: list[Played]
    questions: list[Asked]

    @property
    def turns(self) -> int:
        return sum(session.turns for session in self.sessions)

    @property
    def needed(self) -> frozenset[tuple[str, int]]:
        present = {
            (session.id, seq) for session in self.sessions for seq in range(1, session.turns + 1)
        }
        return frozenset(turn for each in self.questions for turn in each.needs) & present


def read_sets(directory: Path) -> list[DataSet]:
    """The data sets of a directory; none where the files are not there."""
    found = [(path, _read_locomo) for path in sorted(directory.glob("locomo*.json"))]
    found += [(path, _read_longmemeval) for path in sorted(directory.glob("longmemeval*.json"))]
    return [read(path) for path, read in found]


def _read_locomo(path: Path) -> DataSet:
    sessions: list[Played] = []
    questions: list[Asked] = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        asked = [
            Asked(words=_words(entry), needs=_evidence(sample["sample_id"], entry))
            for entry in sample["qa"]
            if entry["category"] != 5 and entry.get("evidence")
        ]
        questions += asked
        numbers = sorted(int(name[8:]) for name in talk if re.fullmatch(r"session_\d+", name))
        for number in numbers:
            said_at = datetime.strptime(
                talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"
            ).replace(tzinfo=UTC)
            turns = talk[f"session_{number}"]
            blocks = [b for seq, turn in enumerate(turns, 1) for b in _spoken(turn, seq, said_at)]
            name = f"{sample['sample_id']}/{number}"
            sessions.append(_played(name, blocks, len(turns), asked))
    return DataSet(name=path.stem, sessions=sessions, questions=questions)


def _evidence(sample: str, entry: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    found = _EVIDENCE.findall(" ".join(entry["evidence"]))
    return frozenset((f"{sample}/{int(number)}", int(turn)) for number, turn in found)


def _spoken(turn: Mapping[str, Any], seq: int, said_at: datetime) -> Iterator[Block]:
    """A turn of one of two people, and what the picture with it shows."""
    yield Block(
        seq=seq,
        at=said_at,
        role=Role.USER,
        kind=BlockKind.SAID,
        text=turn["text"],
        speaker=turn["speaker"],
    )
    if turn.get("blip_caption"):
        yield Block(
            seq=seq,
            at=said_at,
            role=Role.USER,
            kind=BlockKind.ATTACHMENT,
            text=f"image {turn['blip_caption']}",
            speaker=turn["speaker"],
        )


def _read_longmemeval(path: Path) -> DataSet:
    sessions: dict[str, Played] = {}
    questions: list[Asked] = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        if entry["question_id"].endswith("_abs"):
            continue
        needs: set[tuple[str, int]] = set()
        ids, dates = entry["haystack_session_ids"], entry["haystack_dates"]
        for name, date, turns in zip(ids, dates, entry["haystack_sessions"], strict=True):
            needs |= {(name, seq) for seq, turn in enumerate(turns, 1) if turn.get("has_answer")}
            if name not in sessions:
                said_at = datetime.strptime(f"{_WEEKDAY.sub('', date)} +0000", "%Y/%m/%d %H:%M %z")
                blocks = [
                    Block(
                        seq=seq,
                        at=said_at,
                        role=Role(turn["role"]),
                        kind=BlockKind.SAID,
                        text=turn["content"],
                    )
                    for seq, turn in enumerate(turns, 1)
                ]
                sessions[name] = _played(name, blocks, len(turns), [])
        if needs:
            asked = Asked(words=_words(entry), needs=frozenset(needs))
            questions.append(asked)
            for name in ids:
                sessions[name].questions.append(asked)
    return DataSet(name=path.stem, sessions=list(sessions.values()), questions=questions)


def _played(name: str, blocks: list[Block], turns: int, asked: list[Asked]) -> Played:
    piece = Piece(
        session=make_session(name), blocks=tuple(blocks), first=1, upto=turns, previous=None
    )
    return Played(id=name, piece=piece, turns=turns, questions=asked)


def make_session(name: str) -> SessionState:
    return SessionState(
        id=name,
        space="bench",
        key=name,
        agent_id="bench",
        rotation=0,
        source="bench",
        project=None,
        parent=None,
        ephemeral=False,
        mode=Mode.ENABLED,
        remembered=True,
        last_seq=0,
        invalidated_at=None,
        processed_until=None,
        marked_at=None,
        marked_by=None,
        created_at=OPENED,
        last_activity_at=OPENED,
        ended_at=None,
        ended_by=None,
    )


def _words(entry: Mapping[str, Any]) -> frozenset[str]:
    return stems(f"{entry['question']} {entry.get('answer', '')}")


def measure_quality(run: Run) -> Iterator[Line]:
    """The curve, the default, and the junk, per data set."""
    if run.data is None:
        yield skipped("quality of the extractor without a model", "all of it", "add --data DIR")
        return
    for each in read_sets(run.data):
        yield from _curve(each)
        yield from _by_default(each)
        yield from _played_twice(each)


def _curve(each: DataSet) -> Iterator[Line]:
    """Turns in the order of the surest fact about them, and what the first of them cover."""
    sure: dict[tuple[str, int], float] = {}
    extractor = RuleExtractor(threshold=0.0)
    for session in each.sessions:
        for fact in extractor.extract(session.piece).facts:
            for seq in range(fact.seq, fact.seq_to + 1):
                turn = (session.id, seq)
                sure[turn] = max(sure.get(turn, 0.0), float(fact.metadata["confidence"]))
    ranked = sorted(sure, key=lambda turn: -sure[turn])
    needed, group = each.needed, f"{each.name}: coverage of the turns that questions need"
    for share in SHARES:
        count = int(each.turns * share)
        covered = len(needed.intersection(ranked[:count])) / len(needed)
        threshold = f"confidence from {sure[ranked[count]]:.2f}" if count < len(ranked) else "all"
        yield Line(
            group=group,
            name=f"{share:.0%} of the turns kept, against random",
            measured=100 * covered,
            limit=100 * share,
            unit="%",
            note=threshold,
        )
        if share == TARGET_SHARE:
            yield Line(
                group=group,
                name=f"random against {share:.0%} of the turns kept",
                measured=100 * share,
                limit=100 * covered,
                unit="%",
                target=1 / TARGET_TIMES_RANDOM,
                note=f"at least {TARGET_TIMES_RANDOM} × random",
            )


def _by_default(each: DataSet) -> Iterator[Line]:
    extractor = RuleExtractor()
    facts = [
        (session, fact)
        for session in each.sessions
        for fact in extractor.extract(session.piece).facts
    ]
    kept = {
        (session.id, seq) for session, fact in facts for seq in range(fact.seq, fact.seq_to + 1)
    }
    needed, group = each.needed, f"{each.name}: what is kept by default"
    shares = [len(asked.needs & kept) / len(asked.needs) for asked in each.questions if asked.needs]
    whole = [asked for asked in each.questions if asked.needs and asked.needs <= kept]
    yield _shown(group, "turns kept", 100 * len(kept) / each.turns, "%")
    yield _shown(group, "needed turns covered", 100 * len(needed & kept) / len(needed), "%")
    yield _shown(group, "needed turns covered, mean over questions", 100 * _mean(shares), "%")
    yield _shown(group, "questions with all they need", 100 * len(whole) / len(shares), "%")
    yield _shown(group, "facts per 1,000 turns", 1000 * len(facts) / each.turns, "")
    junk = sum(_is_junk(fact, session) for session, fact in facts)
    yield _shown(
        group, "facts that no question could need", 100 * junk / len(facts), "%", JUNK_RULE
    )


def _played_twice(each: DataSet) -> Iterator[Line]:
    """Everything goes through a real store, and then once more as if it were said again."""
    with recollect.open(":memory:", settings={"extractor": "rules"}) as memory:
        space = memory.space()
        counts = []
        for time in (1, 2):
            for session in each.sessions:
                _play(space.session(f"{time}:{session.id}", agent="assistant"), session)
            memory.work(all=True)
            counts.append(space.facts.count(as_of=datetime.max.replace(tzinfo=UTC)))
    yield Line(
        group=f"{each.name}: what is kept by default",
        name="facts more when everything is played twice",
        measured=counts[1] - counts[0],
        target=0,
        is_ratio=False,
        note=f"{counts[0]:,} facts in a store after the first time",
    )


def _play(stored: recollect.Session, session: Played) -> None:
    messages = [
        recollect.Message(
            message={"role": block.role.value, "content": block.text}
            | ({} if block.speaker is None else {"name": block.speaker}),
            at=block.at,
        )
        for block in session.piece.blocks
        if block.kind is BlockKind.SAID
    ]
    for start in range(0, len(messages), 1000):
        stored.append_many(messages[start : start + 1000])


def _is_junk(fact: NewFact, session: Played) -> bool:
    turns = {(session.id, seq) for seq in range(fact.seq, fact.seq_to + 1)}
    names = {block.speaker.lower() for block in session.piece.blocks if block.speaker}
    words = stems(fact.content) - frozenset(word for name in names for word in stems(name))
    return not any(
        asked.needs & turns or len(asked.words & words) >= SHARED_WORDS_MIN
        for asked in session.questions
    )


def _shown(group: str, name: str, measured: float, unit: str, note: str = "") -> Line:
    return Line(group=group, name=name, measured=measured, unit=unit, is_ratio=False, note=note)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
