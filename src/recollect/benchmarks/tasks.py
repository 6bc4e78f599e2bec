"""Two public data sets as recall tasks: turns to search, questions, and what should be found.

LoCoMo's conversations are a space each; the sessions of a LongMemEval file are pooled into one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from recollect.errors import InvalidValue

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_LOCOMO_ADVERSARIAL = 5
ADVERSARIAL, ABSTENTION = "adversarial", "abstention"  # what cannot be answered, in either data set
_TURN = timedelta(minutes=1)  # sessions are dated, turns are not


class BenchTask(StrEnum):
    """What a file is."""

    LOCOMO = "LoCoMo"
    LONGMEMEVAL = "LongMemEval"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTurn:
    """One turn of a conversation as it is appended. Its id is `session:number`."""

    id: str
    session: str
    speaker: str  # a person's name; empty where the role says it all
    role: str
    said_at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question, its answer, and the turns and sessions that hold it.

    `asked_of` are the sessions that it is asked of; empty where those are all of the pool.
    """

    id: str
    text: str
    category: str
    asked_at: datetime
    turns: frozenset[str]
    sessions: frozenset[str]
    answer: str = ""
    is_answerable: bool = True
    asked_of: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What is searched as one space, in the order it was said, and what is asked of it.

    `unanswerable` are the questions that it has no answer to; nothing is to be found for them.
    """

    name: str
    turns: tuple[TaskTurn, ...]
    queries: tuple[Query, ...]
    unanswerable: tuple[Query, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One file. Its results are its own."""

    file: str
    task: BenchTask
    pools: tuple[Pool, ...]

    @property
    def turns(self) -> int:
        return sum(len(pool.turns) for pool in self.pools)

    @property
    def questions(self) -> int:
        return sum(len(pool.queries) for pool in self.pools)


def find_files(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and the LoCoMo and LongMemEval files of directories."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += [each for each in sorted(path.glob("*.json")) if _is_known(each.name)]
        else:
            found.append(path)
    if not found:
        raise InvalidValue("no locomo*.json or longmemeval*.json among the data")
    return list(dict.fromkeys(found))


def load(path: Path, second_speaker: str = "user") -> DataSet:
    """Read a file, whatever its name; what it holds says which of the two it is.

    `second_speaker` is the role of the second person of a LoCoMo conversation.
    """
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
        is_locomo = "conversation" in samples[0]
        pools = (
            tuple(_conversation(sample, second_speaker) for sample in samples)
            if is_locomo
            else (_pooled(samples, path.stem),)
        )
    except OSError as error:
        raise InvalidValue(f"{path.name} cannot be read: {error.strerror}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidValue(
            f"{path.name} is neither a LoCoMo nor a LongMemEval file"
            f" ({type(error).__name__}: {error})"
        ) from error
    return DataSet(
        file=path.name,
        task=BenchTask.LOCOMO if is_locomo else BenchTask.LONGMEMEVAL,
        pools=pools,
    )


def limited(data: DataSet, questions_max: int) -> DataSet:
    """At most so many of its questions, from all over the file; spaces nobody asks are left out."""
    total = data.questions
    if total <= questions_max:
        return data
    asked = [query.id for pool in data.pools for query in pool.queries]
    kept = {asked[number * total // questions_max] for number in range(questions_max)}
    pools = (
        replace(pool, queries=tuple(query for query in pool.queries if query.id in kept))
        for pool in data.pools
    )
    return replace(data, pools=tuple(pool for pool in pools if pool.queries))


def with_unanswerable(data: DataSet) -> DataSet:
    """The same with the questions that cannot be answered among those that are asked."""
    pools = (replace(pool, queries=pool.queries + pool.unanswerable) for pool in data.pools)
    return replace(data, pools=tuple(pools))


def _is_known(file: str) -> bool:
    return file.lower().startswith(("locomo", "longmemeval"))


def _conversation(sample: dict[str, Any], second_speaker: str) -> Pool:
    """The questions without evidence stay out; the adversarial ones have no answer."""
    conversation = sample["conversation"]
    roles = {conversation.get("speaker_b"): second_speaker}
    turns: list[TaskTurn] = []
    number = 1
    while f"session_{number}" in conversation:
        began = _spoken_date(conversation[f"session_{number}_date_time"])
        turns += [
            TaskTurn(
                id=turn["dia_id"],
                session=f"D{number}",
                speaker=turn["speaker"],
                role=roles.get(turn["speaker"], "user"),
                said_at=began + place * _TURN,
                text=_with_caption(turn),
            )
            for place, turn in enumerate(conversation[f"session_{number}"])
        ]
        number += 1
    known = {turn.id for turn in turns}
    asked_at = max(turn.said_at for turn in turns)
    asked = [
        _conversation_query(f"{sample['sample_id']}-{place}", each, known, asked_at)
        for place, each in enumerate(sample["qa"])
    ]
    return Pool(
        name=sample["sample_id"],
        turns=tuple(turns),
        queries=tuple(query for query in asked if query.is_answerable and query.turns),
        unanswerable=tuple(query for query in asked if not query.is_answerable),
    )


def _conversation_query(
    name: str, asked: dict[str, Any], known: Collection[str], asked_at: datetime
) -> Query:
    found = _EVIDENCE.findall(" ".join(asked.get("evidence", ())))
    evidence = frozenset(f"D{int(day)}:{int(turn)}" for day, turn in found).intersection(known)
    category = asked["category"]
    is_answerable = category != _LOCOMO_ADVERSARIAL
    return Query(
        id=name,
        text=asked["question"],
        category=_LOCOMO_CATEGORIES[category] if is_answerable else ADVERSARIAL,
        asked_at=asked_at,
        turns=evidence,
        sessions=frozenset(map(session_of, evidence)),
        answer=str(asked.get("answer", "")) if is_answerable else "",
        is_answerable=is_answerable,
    )


def session_of(turn_id: str) -> str:
    return turn_id.rpartition(":")[0]


def _with_caption(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [{caption}]" if caption else str(turn["text"])


def _pooled(samples: Sequence[dict[str, Any]], name: str) -> Pool:
    """Every distinct session once."""
    sessions: dict[str, list[TaskTurn]] = {}
    for sample in samples:
        for session, dated, turns in zip(
            sample["haystack_session_ids"],
            sample["haystack_dates"],
            sample["haystack_sessions"],
            strict=True,
        ):
            sessions.setdefault(session, _session(session, _slash_date(dated), turns))
    asked = [_pooled_query(sample) for sample in samples]
    by_date = sorted(filter(None, sessions.values()), key=lambda turns: turns[0].said_at)
    return Pool(
        name=name,
        turns=tuple(turn for turns in by_date for turn in turns),
        queries=tuple(query for query in asked if query.is_answerable and query.sessions),
        unanswerable=tuple(query for query in asked if not query.is_answerable),
    )


def _session(session: str, began: datetime, turns: Sequence[dict[str, Any]]) -> list[TaskTurn]:
    return [
        TaskTurn(
            id=f"{session}:{place}",
            session=session,
            speaker="",
            role=turn["role"],
            said_at=began + place * _TURN,
            text=turn["content"],
        )
        for place, turn in enumerate(turns)
    ]


def _pooled_query(sample: dict[str, Any]) -> Query:
    answers = frozenset(
        f"{session}:{place}"
        for session, turns in zip(
            sample["haystack_session_ids"], sample["haystack_sessions"], strict=True
        )
        for place, turn in enumerate(turns)
        if turn.get("has_answer")
    )
    is_answerable = not sample["question_id"].endswith("_abs")
    return Query(
        id=sample["question_id"],
        text=sample["question"],
        category=sample["question_type"] if is_answerable else ABSTENTION,
        asked_at=_slash_date(sample["question_date"]),
        turns=answers,
        sessions=frozenset(sample["answer_session_ids"]),
        answer=str(sample.get("answer", "")) if is_answerable else "",
        is_answerable=is_answerable,
        asked_of=frozenset(sample["haystack_session_ids"]),
    )


def _spoken_date(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _slash_date(text: str) -> datetime:
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
