"""The extractor without a model: what a record costs, and that it costs the same however many.

On talk of its own making; with `--data DIR` on the data sets as well.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.measure import take_turns
from bench.quality import make_session, read_sets
from bench.report import Line
from bench.settings import Run
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules import RuleExtractor
from recollect.messages import Role
from recollect.types.facts import Draft, Extraction

SEED = 20_260_501
START = datetime(2026, 5, 1, 9, tzinfo=UTC)
GROUP = "extraction without a model, one core (CPU)"
RECORDS_PER_SECOND = 5_000  # the target
PIECE_RECORDS = 500  # what a worker hands over at once
GROWN_BY = 10

PEOPLE = ("Ana", "Luis", "Mara", "Tom", "Ines")
TOWNS = ("Lisbon", "Porto", "Oslo", "Leeds", "Turin")
THINGS = ("tea", "chess", "long hikes", "crime novels", "olives")
SAID = (
    "I moved to {town} last month and I still can't find the good bakeries.",
    "My sister {person} works at the hospital, she is the one who taught me to cook.",
    "Could you tell me how long the train to {town} takes on Sundays?",
    "Thanks, that helps a lot!",
    "I really love {thing}, but not in the morning.",
    "Please always answer in two sentences. I read this on my phone.",
    "What would you do if it rains the whole weekend?",
    "We went to {town} two weeks ago with {person} and {person} and it was wonderful.",
    "Hm, I see. That makes sense, I suppose, although it is more than I wanted to pay.",
    "I have an appointment with {person} next Friday, remind me to bring the papers.",
    "No, not that one. The second one, with the blue cover.",
    "It was a long day: three meetings, a broken printer and no lunch.",
    "Can you look at this again and say which of the two is cheaper?",
    "I decided to take the job in {town}. It starts in September.",
    "ok",
)
ANSWERED = (
    "Of course. The train takes three hours. On Sundays there are fewer, so look at the timetable.",
    "Congratulations! Let me know if you want help with the letter.",
    "Three options:\n\n1. The cheapest.\n2. The quickest.\n3. The best view.\n\nWhich suits you?",
    "I am glad that it helped.",
)


def make_blocks(count: int) -> tuple[Block, ...]:
    """A talk between a person and an agent, a record every few minutes, the same in every run."""
    rng = random.Random(SEED)
    return tuple(_block(rng, seq) for seq in range(1, count + 1))


def _block(rng: random.Random, seq: int) -> Block:
    is_user = seq % 2 == 1
    text = rng.choice(SAID if is_user else ANSWERED)
    while "{" in text:
        word = {"{town}": TOWNS, "{person}": PEOPLE, "{thing}": THINGS}
        for mark, names in word.items():
            text = text.replace(mark, rng.choice(names), 1)
    return Block(
        seq=seq,
        at=START + timedelta(minutes=3 * seq),
        role=Role.USER if is_user else Role.ASSISTANT,
        kind=BlockKind.SAID,
        text=text,
    )


def make_piece(blocks: Sequence[Block], previous: Extraction | None = None) -> Piece:
    return Piece(
        session=make_session("offline"),
        blocks=tuple(blocks),
        first=blocks[0].seq,
        upto=blocks[-1].seq,
        previous=previous,
    )


def as_extraction(draft: Draft, at: datetime, before: Extraction | None) -> Extraction | None:
    """A draft as the next piece would get it; one that says nothing changes nothing."""
    if draft.is_empty:
        return before
    return Extraction(
        session_id="offline",
        space="bench",
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        extractor=RuleExtractor.name,
        pass_number=1,
        upto=draft.upto,
        source_updated_at=at,
        generated_at=at,
        usage_count=0,
        last_usage=None,
        selected_for_phase2=False,
        selected_for_phase2_source_updated_at=None,
    )


def measure_offline(run: Run) -> Iterator[Line]:
    """The cost of a record, of two and four times as many, and of a session that grew a little."""
    repetitions = run.scaled(9, 3)
    yield from _speed(repetitions)
    yield from _slope(repetitions)
    yield from _growth(repetitions)
    if run.data is not None:
        yield from _on_data(run.data, repetitions)


def _speed(repetitions: int) -> Iterator[Line]:
    extractor, piece = RuleExtractor(), make_piece(make_blocks(PIECE_RECORDS))
    cost = take_turns(
        {"extract": lambda: extractor.extract(piece)}, repetitions=repetitions, calls=4
    )["extract"]
    yield _per_record(f"a record, in pieces of {PIECE_RECORDS}", cost.cpu_us / PIECE_RECORDS)


def _per_record(name: str, micros: float) -> Line:
    return Line(
        group=GROUP,
        name=name,
        unit="µs",
        measured=micros,
        target=1e6 / RECORDS_PER_SECOND,
        is_ratio=False,
        note=f"{1e6 / micros:,.0f} records/s; at least {RECORDS_PER_SECOND:,}",
    )


def _slope(repetitions: int) -> Iterator[Line]:
    extractor, blocks = RuleExtractor(), make_blocks(4 * PIECE_RECORDS)
    sizes = (PIECE_RECORDS, 2 * PIECE_RECORDS, 4 * PIECE_RECORDS)
    pieces = {size: make_piece(blocks[:size]) for size in sizes}
    costs = take_turns(
        {
            str(size): (lambda piece=piece: extractor.extract(piece))  # type: ignore[misc]
            for size, piece in pieces.items()
        },
        repetitions=repetitions,
        calls=1,
    )
    one = costs[str(sizes[0])].cpu_us
    for times, size in ((2, sizes[1]), (4, sizes[2])):
        yield Line(
            group=GROUP,
            name=f"{size:,} records in one piece, against {sizes[0]:,}",
            unit="µs",
            measured=costs[str(size)].cpu_us,
            limit=one,
            target=times * 1.2,
            note=f"linear would be {times}",
        )


def _growth(repetitions: int) -> Iterator[Line]:
    """A long session that grew by ten records, against the ten alone."""
    extractor, blocks = RuleExtractor(), make_blocks(5_000 + GROWN_BY)
    previous: Extraction | None = None
    for start in range(0, 5_000, PIECE_RECORDS):
        part = blocks[start : start + PIECE_RECORDS]
        previous = as_extraction(
            extractor.extract(make_piece(part, previous)), part[-1].at, previous
        )
    alone = make_piece(blocks[5_000:])
    grown = dataclasses.replace(alone, previous=previous)
    costs = take_turns(
        {"grown": lambda: extractor.extract(grown), "alone": lambda: extractor.extract(alone)},
        repetitions=repetitions,
        calls=20,
    )
    yield Line(
        group=GROUP,
        name=f"5,000 records that grew by {GROWN_BY}, against the {GROWN_BY} alone",
        unit="µs",
        measured=costs["grown"].cpu_us,
        limit=costs["alone"].cpu_us,
        target=2.0,
        note="the texts so far are read and grown; all 5,010 would be 501 ×",
    )


def _on_data(data: Path, repetitions: int) -> Iterator[Line]:
    extractor = RuleExtractor()
    for each in read_sets(data):
        pieces = [session.piece for session in each.sessions]
        cost = take_turns(
            {"all": lambda pieces=pieces: [extractor.extract(piece) for piece in pieces]},  # type: ignore[misc]
            repetitions=max(2, repetitions // 3),
            calls=1,
        )["all"]
        yield _per_record(f"a record of {each.name}", cost.cpu_us / each.turns)
