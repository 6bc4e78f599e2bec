"""What keeps agents unharmed: the time limit, the log that stays small, one process for a file."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import pytest

from recollect.hooks import process
from recollect.hooks.process import Deadline, Journal, ShownIds, token


def test_when_the_time_is_over_it_says_so_and_leaves_and_nothing_is_said_any_more() -> None:
    said: list[str] = []
    left = threading.Event()
    with Deadline(0.01, lambda: said.append("late"), leave=left.set) as deadline:
        assert left.wait(30)
        assert not deadline.speak(lambda: said.append("answer"))
    assert said == ["late"]


def test_an_answer_in_time_is_said_and_nobody_leaves() -> None:
    said: list[str] = []
    left = threading.Event()
    with Deadline(30, lambda: said.append("late"), leave=left.set) as deadline:
        assert deadline.speak(lambda: said.append("answer"))
    assert not left.is_set()
    assert said == ["answer"]


def test_a_log_that_hangs_keeps_nobody() -> None:
    left, never = threading.Event(), threading.Event()

    def hang() -> None:
        never.wait(30)

    with Deadline(0.01, hang, leave=left.set):
        assert left.wait(10)
    never.set()


def test_the_log_has_one_line_for_each_reason_and_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BYTES_MAX", 2000)
    log = Journal(tmp_path / "data", "claude-code")
    for number in range(100):
        log.note(f"reason {number}\nin two\x1b[31m lines" + "x" * 10_000)
    files = sorted((tmp_path / "data").iterdir())
    assert {file.name for file in files} <= {"hooks.log", "hooks.log.1"}
    assert "reason 99" in files[0].read_text() + files[-1].read_text()
    assert all(file.stat().st_size < 2000 + 2 * process.LINE_CHARS_MAX for file in files)
    text = (tmp_path / "data" / "hooks.log.1").read_text()
    assert "\x1b" not in text
    assert all("claude-code" in line for line in text.splitlines())


def test_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "reason" in Journal(tmp_path / "file" / "below", "codex").note("reason")
    assert "reason" in Journal(None, "codex").note("reason")


def test_one_is_at_a_conversation_one_is_next_and_a_third_is_not_needed(tmp_path: Path) -> None:
    """What was said when the third one came is read by the next one: nothing is left lying."""
    name = token("default", "claude-code", "s")
    had_a_turn: queue.Queue[bool] = queue.Queue()

    def come(waits: bool) -> threading.Thread:
        def take() -> None:
            with process.alone(tmp_path, name, waits=waits) as is_mine:
                had_a_turn.put(is_mine)

        thread = threading.Thread(target=take)
        thread.start()
        return thread

    with process.alone(tmp_path, name, waits=False) as first:
        assert first
        others = [come(waits=False), come(waits=False), come(waits=True)]
        assert had_a_turn.get(timeout=30) is False  # of the two that need not wait
        assert had_a_turn.empty()
        with process.alone(
            tmp_path, token("default", "claude-code", "t"), waits=False
        ) as elsewhere:
            assert elsewhere
    assert [had_a_turn.get(timeout=30) for _ in range(2)] == [True, True]
    for thread in others:
        thread.join()


def test_names_of_files_do_not_mix_up_their_parts() -> None:
    assert token("ab", "c") != token("a", "bc")


def test_old_files_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOCKS_MAX", 3)
    for number in range(6):
        ShownIds(tmp_path, str(number)).keep([str(number)])
    process.tidy(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    process.tidy(tmp_path / "missing")


def test_what_was_shown_is_kept_bounded_and_forgotten(tmp_path: Path) -> None:
    shown = ShownIds(tmp_path, "s")
    assert shown.ids() == []
    shown.keep(["a", "b", "a", *map(str, range(1000))])
    assert shown.ids()[-1] == "999"
    assert len(shown.ids()) == 500
    (tmp_path / "s.json").write_bytes(b"\xff[")
    assert shown.ids() == []
    (tmp_path / "s.json").write_text('{"a": 1}')
    assert shown.ids() == []
    shown.forget()
    shown.forget()
    assert list(tmp_path.iterdir()) == []
    off = ShownIds(None, "s")
    off.keep(["a"])
    assert off.ids() == []
