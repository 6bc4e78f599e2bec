"""Texts that do not say any more what was corrected or taken back. Row T4, promise P11."""

from __future__ import annotations

import pytest

from recollect.restating import SessionTexts, Withdrawn, restated
from recollect.types.facts import content_key

HOME, QUOTE, NEW = "Ana lives in Lisbon.", "I live in Lisbon.", "Ana lives in Faro."


def texts(memory: str = "", summary: str = "", slug: str | None = None) -> SessionTexts:
    return SessionTexts(raw_memory=memory, rollout_summary=summary, rollout_slug=slug)


def left(text: str, instead: str = "", *kept: str) -> str:
    gone = Withdrawn(statements=(HOME,), quotes=(QUOTE,), instead=instead)
    return restated(texts(summary=text), [gone], kept).rollout_summary


@pytest.mark.parametrize(
    ("text", "deleted", "corrected"),
    [
        ("- Ana lives in Lisbon. [#1, user]", "", "- Ana lives in Faro. [#1, user]"),
        ("1. **ana lives  in Lisbon**", "", "1. **Ana lives in Faro**"),
        ("Hi. Ana lives in Lisbon! Bye.", "Hi. Bye.", "Hi. Ana lives in Faro! Bye."),
        (
            "Since May Ana lives in Lisbon, with Ben.",
            "",
            "Since May Ana lives in Faro, with Ben.",
        ),
        ("So Lisbon is where the user lives.", "", NEW),
        ("- I live in Lisbon. [#1]\n- Ana lives in Lisbon.", "", "- Ana lives in Faro."),
        ("# I live in Lisbon\n\nShe sings.", "She sings.", "# Ana lives in Faro\n\nShe sings."),
        (
            "## Task 1: I live in Lisbon\noutcome: fail",
            "## Task 1: …\noutcome: fail",
            "## Task 1: Ana lives in Faro\noutcome: fail",
        ),
        ("task: I live in Lisbon\ncwd: /x", "cwd: /x", "task: Ana lives in Faro\ncwd: /x"),
        ("She told me “I live in\nLisbon”.", "She told me “I live in\nLisbon”.", None),
        ("安娜住在里斯本。Ana lives in Lisbon。好。", "安娜住在里斯本。好。", None),
        ("Ana lives in Porto. Lisbon is far.", "Ana lives in Porto. Lisbon is far.", None),
    ],
)
def test_a_sentence_that_states_it_goes_or_says_what_is_said_now(
    text: str, deleted: str, corrected: str | None
) -> None:
    assert left(text) == deleted
    if corrected is not None:
        assert left(text, NEW) == corrected


def test_a_heading_goes_with_all_that_stood_below_it_and_others_stay() -> None:
    text = f"# Talk\n\n## Asked\n- {QUOTE} [#1]\n\n## Points\n### Home\n- {HOME}\n\n## Rest\n- Tea."
    assert left(text) == "# Talk\n\n## Rest\n- Tea."


def test_what_else_holds_stays_whatever_it_shares() -> None:
    near = "Ana lives in Lisbon in summer."
    assert left(f"- {HOME}\n- {near} [#2, user]", "", near) == f"- {near} [#2, user]"
    assert left(f"{HOME} {near}", NEW, near) == f"{NEW} {near}"


def test_a_text_without_it_is_left_as_it_is_to_the_letter() -> None:
    text = "\n\n# Odd \n\n\n\n-   spaced  out\n\n```\ncode\n```\n\n"
    assert left(text) == text


def test_a_statement_that_was_cut_off_is_known_by_its_beginning() -> None:
    long = "Ana said that " + "on and on " * 60
    gone = Withdrawn(statements=(long,))
    cut = f"- {' '.join(long.split())[:299]}… [#1, user]"
    assert restated(texts(f"{cut}\n- Tea."), [gone], ()).raw_memory == "- Tea."


def test_a_statement_of_several_sentences_is_known_among_others() -> None:
    gone = Withdrawn(statements=("Wait. Then deploy it twice.",), instead="Deploy it once.")
    told = texts(summary="So: first, wait. Then deploy it twice. Wait. Then deploy it twice. Bye.")
    after = restated(told, [gone], ()).rollout_summary
    assert after == "Deploy it once. Deploy it once. Bye."


def test_of_what_is_known_by_its_key_alone_the_sentence_goes() -> None:
    gone = Withdrawn(keys=frozenset({content_key(HOME), content_key(QUOTE)}))
    told = texts(f"task: {QUOTE}\n- {HOME} [#1, user]\n- Tea.", f"Hm. {HOME} So.", "lisbon-tea")
    assert restated(told, [gone], ()) == texts("- Tea.", "Hm. So.", None)


def test_keywords_and_the_short_name_go_with_the_words_that_nothing_says_any_more() -> None:
    memory = f"---\nkeywords: lisbon, lives, tea\n---\n\n- {HOME}\n- Ben lives here.\n- Tea."
    gone = Withdrawn(statements=(HOME,), quotes=(QUOTE,))
    told = restated(texts(memory, "", "ana-in-lisbon"), [gone], ())
    assert told.raw_memory == "---\nkeywords: lives, tea\n---\n\n- Ben lives here.\n- Tea."
    assert told.rollout_slug is None
    assert restated(texts(memory, "", "tea-time"), [gone], ()).rollout_slug == "tea-time"


def test_what_is_said_again_as_it_was_learned_is_not_gone() -> None:
    gone = Withdrawn(statements=(HOME, NEW, HOME), quotes=(QUOTE,), instead=HOME)
    told = texts(f"- {NEW}\n- {QUOTE} [#1]")
    assert restated(told, [gone], ()).raw_memory == f"- {HOME}\n- {QUOTE} [#1]"
