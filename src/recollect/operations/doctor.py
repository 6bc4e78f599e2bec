"""Examination: everything that can be asked of a store, what is wrong with it, and safe repairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.clock import to_micros
from recollect.errors import StoreCorrupt
from recollect.operations import checks_postgres, checks_sqlite
from recollect.operations.checks import (
    CHECKS,
    STALE_SECONDS,
    WAITING_SECONDS,
    Defect,
    Gravity,
    Mending,
    ask,
)
from recollect.operations.migrating import whole_of
from recollect.store.protocol import Store
from recollect.store.whole import Access, Whole
from recollect.types.records import StoreDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, and what was put right on the way."""

    store: StoreDescription
    findings: tuple[Defect, ...]
    repaired: tuple[Defect, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not any(finding.gravity is Gravity.WRONG for finding in self.findings)


def examine(store: Store, now: datetime) -> Diagnosis:
    """Look at everything at one moment, and change nothing."""
    findings: list[Defect] = []
    try:
        with whole_of(store).whole(Access.READ) as whole:
            findings.extend(_findings(whole, now))
    except StoreCorrupt as error:  # so damaged that it cannot even be asked
        findings.append(_damaged(str(error)))
    return Diagnosis(store=store.describe(), findings=tuple(findings))


def repair(store: Store, now: datetime) -> Diagnosis:
    """Put right what can be without losing anything, and look again."""
    before = examine(store, now)
    mended = [finding for finding in before.findings if finding.mending is not Mending.NONE]
    statements = [text for finding in mended for text in finding.repairs]
    if statements:
        with whole_of(store).whole(Access.WRITE) as whole:
            for text in statements:
                whole.run(text)
    if any(finding.mending is Mending.REVIVE for finding in mended):
        store.leases.revive(None, None)
    after = examine(store, now)
    left = {(finding.check, finding.says) for finding in after.findings}
    repaired = tuple(each for each in mended if (each.check, each.says) not in left)
    return Diagnosis(store=after.store, findings=after.findings, repaired=repaired)


def _findings(whole: Whole, now: datetime) -> Iterator[Defect]:
    values = {
        "stale": to_micros(now - timedelta(seconds=STALE_SECONDS)),
        "waiting": to_micros(now - timedelta(seconds=WAITING_SECONDS)),
    }
    match whole.dialect:
        case "sqlite":
            yield from checks_sqlite.examine(whole)
        case "postgres":
            yield from checks_postgres.examine(whole)
    for check in CHECKS:
        found = ask(whole, check, values)
        if found is not None:
            yield found


def _damaged(detail: str) -> Defect:
    return Defect(
        check="damaged-file",
        gravity=Gravity.WRONG,
        count=1,
        says="the store is damaged",
        examples=(detail,),
        advice="restore a backup: recollect restore",
        mending=Mending.NONE,
    )
