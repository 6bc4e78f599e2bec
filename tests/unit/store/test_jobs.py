"""What makes jobs due goes through one function, which wakes workers: nothing gets past it."""

from __future__ import annotations

import re
from pathlib import Path

import recollect.store.relational
from recollect.store.sql import queries

SOURCES = Path(recollect.store.relational.__file__).parent
CHANGES_JOBS = re.compile(r"^(?:INSERT INTO|UPDATE) jobs\b")
SETS_STATE = re.compile(r"state = (?:'due'|CASE)|VALUES \([^;]*'due'|SELECT [^;]*'due'", re.DOTALL)


def making_due() -> set[str]:
    """The statements after which a job may be due that was not."""
    return {
        name
        for name, text in queries("postgres").items()
        if CHANGES_JOBS.match(text) and SETS_STATE.search(text.partition("\nWHERE")[0])
    }


def test_the_statements_that_make_jobs_due_are_known_as_such() -> None:
    known = {"make_extract_due", "make_consolidation_due", "make_agent_due", "give_back"}
    assert known | {"fail_claim", "revoke_runs", "request_passes"} <= making_due()
    assert not {"renew_claim", "rest_extract", "finish_pass"} & making_due()


def test_what_makes_jobs_due_is_run_where_workers_are_woken() -> None:
    text = "".join(each.read_text(encoding="utf-8") for each in SOURCES.glob("*.py"))
    for name in making_due():
        used = re.findall(rf'([\w.]+)\([^()]*"{name}"', text)
        assert used, f"{name} is not used"
        assert set(used) <= {"make_due", "self._changed"}, f"{name} wakes nobody: {used}"


def test_what_makes_jobs_due_says_in_which_state_they_are() -> None:
    for name in making_due():
        assert "RETURNING state" in queries("postgres")[name], name
