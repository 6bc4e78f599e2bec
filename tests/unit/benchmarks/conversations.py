"""Small files in the shapes of LoCoMo and LongMemEval, for tests that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def locomo_sample(name: str = "conv-1") -> dict[str, Any]:
    """Two sessions of two people; four questions, of which two have evidence and count."""
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a greyhound on Monday."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely! What is its name?"},
                {"speaker": "Ana", "dia_id": "D1:3", "text": "Comet."},
            ],
            "session_2_date_time": "10:04 am on 19 August, 2023",
            "session_2": [
                {"speaker": "Ben", "dia_id": "D2:1", "text": "My pottery class began today."},
                {
                    "speaker": "Ana",
                    "dia_id": "D2:2",
                    "text": "Look at this.",
                    "blip_caption": "a photo of a red kite on a beach",
                },
            ],
        },
        "qa": [
            {
                "question": "What did Ana adopt?",
                "answer": "A greyhound",
                "category": 4,
                "evidence": ["D1:1"],
            },
            {
                "question": "When did the pottery class begin?",
                "answer": 2023,
                "category": 2,
                "evidence": ["D2:1"],
            },
            {"question": "Did Ben adopt a cat?", "category": 5, "evidence": ["D1:1"]},
            {"question": "What is Ben like?", "category": 3, "evidence": []},
        ],
    }


def longmemeval_samples() -> list[dict[str, Any]]:
    """Two questions with a session of their own each and one that both have; one unanswerable."""
    tea: list[dict[str, Any]] = [
        {"role": "user", "content": "My favourite tea is oolong.", "has_answer": True},
        {"role": "assistant", "content": "Oolong is partly oxidised."},
    ]
    bicycle: list[dict[str, Any]] = [
        {"role": "user", "content": "I keep my bicycle in the cellar.", "has_answer": True},
        {"role": "assistant", "content": "A cellar may be damp."},
    ]
    filler: list[dict[str, Any]] = [
        {"role": "user", "content": "How do I boil an egg?"},
        {"role": "assistant", "content": "In water, for six minutes; with tea it goes well."},
    ]

    def sample(name: str, question: str, session: str, turns: list[dict[str, Any]]) -> Any:
        return {
            "question_id": name,
            "question_type": "single-session-user",
            "question": question,
            "answer": session,
            "question_date": "2023/05/30 (Tue) 23:40",
            "haystack_session_ids": [session, "filler"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/10 (Wed) 09:00"],
            "haystack_sessions": [turns, filler],
            "answer_session_ids": [session],
        }

    return [
        sample("q1", "Which tea do I like best?", "tea", tea),
        sample("q2", "Where is my bicycle?", "bicycle", bicycle),
        sample("q3_abs", "Where is my car?", "bicycle", bicycle),
    ]


def write_locomo(directory: Path, name: str = "locomo-dev.json", *conversations: str) -> Path:
    samples = [locomo_sample(each) for each in conversations or ("conv-1",)]
    return _write(directory / name, samples)


def write_longmemeval(directory: Path, name: str = "longmemeval-held-out.json") -> Path:
    return _write(directory / name, longmemeval_samples())


def write_market_days(directory: Path, question: str) -> Path:
    """The same was said on three days; asked on 30 May, it is about the one two weeks before.

    The third is later than the question, as it happens where sessions are pooled.
    """
    days = {
        "first": "2023/05/01 (Mon) 10:00",
        "second": "2023/05/16 (Tue) 10:00",
        "third": "2023/06/20 (Tue) 10:00",
    }
    turn = {"role": "user", "content": "I went to the market to buy something."}
    sample = {
        "question_id": "q1",
        "question_type": "temporal-reasoning",
        "question": question,
        "question_date": "2023/05/30 (Tue) 12:00",
        "haystack_session_ids": list(days),
        "haystack_dates": list(days.values()),
        "haystack_sessions": [[turn | {"has_answer": name == "second"}] for name in days],
        "answer_session_ids": ["second"],
    }
    return _write(directory / "longmemeval.json", [sample])


def _write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
