"""In whose name something is done."""

from __future__ import annotations

import threading

import pytest

from recollect.observing.actors import ACTOR_CHARS_MAX, LIBRARY, acting, actor


def test_it_is_the_library_where_nobody_said() -> None:
    assert actor() == LIBRARY


def test_the_innermost_acts_and_the_others_go_on_after_it() -> None:
    with acting("worker:one"):
        with acting(lambda: "key:" + "7" * ACTOR_CHARS_MAX):
            assert actor().startswith("key:77")
            assert len(actor()) == ACTOR_CHARS_MAX
        assert actor() == "worker:one"
    with pytest.raises(RuntimeError), acting("mcp"):
        raise RuntimeError
    assert actor() == LIBRARY


def test_another_thread_acts_for_itself() -> None:
    seen: list[str] = []
    with acting("mcp"):
        thread = threading.Thread(target=lambda: seen.append(actor()))
        thread.start()
        thread.join()
    assert seen == [LIBRARY]
