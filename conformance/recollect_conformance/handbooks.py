"""Short words for cases about consolidation: memories, runs that publish, and what they left."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

from recollect.messages import Role
from recollect.store.protocol import Store
from recollect.types.agents import DocumentChanges
from recollect.types.facts import NewFact
from recollect.types.generations import (
    ConsolidationState,
    Generation,
    GenerationDocument,
    GenerationDraft,
    Outdated,
    Pick,
    Published,
    Removed,
    RemovedBecause,
    Selection,
    SelectionPolicy,
    Waiting,
)
from recollect.types.pages import Author, AuthorKind, Because, Edit
from recollect.types.recall import UsageKind
from recollect.types.records import (
    BackedOff,
    Claim,
    Job,
    JobKind,
    JobState,
    LeasePolicy,
    NewRecord,
    Parked,
    Recorded,
    StaleClaim,
)
from recollect_conformance.findings import SUMMARY, entries, use
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.lessons import claim, draft, learn, lesson, record, statement
from recollect_conformance.pages import LIMITS, MANY, deleting, find, paths, writing

DAY = 86_400.0
COOLDOWN = 3600.0
PATIENCE = 600.0
POLICY = LeasePolicy(
    lease_seconds=60,
    failures_max=3,
    takeovers_max=2,
    running_max=64,
    consolidates=True,
    patience_seconds=PATIENCE,
)
WIDE = SelectionPolicy(top_n=100, max_unused_days=30)
HANDBOOK = "memory/MEMORY"
BECAUSE = Because(author=Author(AuthorKind.CONSOLIDATION, "consolidation"), reason="consolidated")


# what there is to remember


def remember(
    store: Harness, key: str, *facts: NewFact, memory: str = "", space: str = SPACE
) -> str:
    """One more record in a session, and what the session comes to now; the id of the session."""
    text = memory or f"what {key} came to"
    return learn(store, lesson(draft(*facts, memory=text, summary=f"{key} told")), key, space=space)


def remember_said(store: Harness, key: str, at: datetime) -> str:
    """A session that was spoken in at some time, and is distilled now."""
    ref = store.key(key)
    said_then = NewRecord(role=Role.USER, content="word", said_at=at)
    store.say(ref, said_then, policy=NEVER)
    store.sleep(ref)
    claimed = claim(store)
    made = lesson(draft(memory=f"what {key} came to", summary=f"{key} told"))
    assert isinstance(record(store, claimed, made), Recorded)
    return claimed.key


def empty(store: Harness, key: str, *, space: str = SPACE) -> str:
    """A run over a whole session that finds nothing worth remembering in it."""
    made = lesson(draft(memory="", summary=""), is_whole=True)
    return learn(store, made, key, space=space)


def use_memory(
    store: Harness, session_id: str, times: int = 1, *, kind: UsageKind = UsageKind.CITED
) -> None:
    """Somebody used what a session came to, in that many turns."""
    found = entries(store, "told", SUMMARY)
    [entry] = [each for each in found if each.session_id == session_id]
    for number in range(times):
        assert use(store, f"{session_id} {number} at {store.now()}", entry, kind=kind) == 1


def forget(store: Harness, session_id: str, *, space: str = SPACE) -> None:
    assert store.handle.erasure.forget_session(space, session_id, store.now()) is not None


def mark(store: Harness, key: str = "new", *, space: str = SPACE) -> None:
    """A session that is to be distilled."""
    ref = store.key(key, space=space)
    store.say(ref, store.text(), policy=NEVER)
    store.sleep(ref)


# runs


def claims(store: Harness, owner: str = "a", policy: LeasePolicy = POLICY) -> Claim | None:
    """What a worker that consolidates is given now, if anything."""
    claimed = store.handle.leases.claim(owner, policy, store.now())
    return claimed if isinstance(claimed, Claim) else None


def begin(store: Harness, owner: str = "a") -> tuple[Claim, Selection]:
    """A claim on the one space that is due, and what is selected from it."""
    claimed = claims(store, owner)
    assert claimed is not None, "no space is due"
    assert (claimed.kind, claimed.key) == (JobKind.CONSOLIDATE, claimed.space)
    return claimed, select(store, space=claimed.space)


def demand(store: Harness, owner: str = "a", *, space: str = SPACE) -> Claim:
    """A claim on a space, whatever it waits for."""
    claimed = store.handle.leases.claim_consolidation(owner, space, POLICY, store.now())
    assert claimed is not None, "somebody holds it, or it is paused"
    return claimed


def select(
    store: Harness,
    policy: SelectionPolicy = WIDE,
    *,
    space: str = SPACE,
    at: datetime | None = None,
) -> Selection:
    return store.handle.generations.select(space, policy, at or store.now())


def drafted(
    store: Harness, selection: Selection, *, cooldown_seconds: float = 0.0, kept: int = 20
) -> GenerationDraft:
    """A generation as a run would make it: a page for each memory, and one of all of them."""
    written = {pick.session_id: summary_path(pick) for pick in selection.added}
    removed = [each.path for each in selection.removed if each.path is not None]
    kept_paths = {f"~/{path}" for path in written.values()}
    edits: list[Edit] = [
        writing(summary_path(pick), said(store, selection.space, pick)) for pick in selection.added
    ]
    if selection.added or selection.removed:
        every = sorted(selection.picks, key=lambda pick: pick.session_id)
        lines = [said(store, selection.space, pick) for pick in every]
        edits.append(writing(HANDBOOK, "\n".join(lines)))
    edits += [
        deleting(path.removeprefix("~/"), leaves_broken=True)
        for path in removed
        if path not in kept_paths
    ]
    return GenerationDraft(
        made_by="rules",
        selection=selection,
        changes=DocumentChanges(edits=tuple(edits), because=BECAUSE, limits=LIMITS),
        digest=digest(selection),
        note=f"{len(selection.picks)} memories",
        summaries=tuple((session_id, f"~/{path}") for session_id, path in written.items()),
        cooldown_seconds=cooldown_seconds,
        kept=kept,
    )


def summary_path(pick: Pick) -> str:
    return f"memory/rollout_summaries/{pick.session_id}"


def said(store: Harness, space: str, pick: Pick) -> str:
    """What a memory says; nothing, if it is gone by now."""
    found = store.handle.generations.memos(space, [pick.session_id])
    return found[0].extraction.raw_memory if found else ""


def digest(selection: Selection) -> str:
    return json.dumps(sorted((pick.session_id, pick.revision) for pick in selection.picks))


def publish(
    store: Harness, claimed: Claim, made: GenerationDraft, *, handle: Store | None = None
) -> Published | Outdated | StaleClaim:
    generations = (handle or store.handle).generations
    return generations.publish(claimed, made, store.now(), store.new_id)


def published(store: Harness, claimed: Claim, made: GenerationDraft) -> Published:
    """What was published; it has to be."""
    outcome = publish(store, claimed, made)
    assert isinstance(outcome, Published), outcome
    return outcome


def consolidate(
    store: Harness,
    policy: SelectionPolicy = WIDE,
    *,
    space: str = SPACE,
    cooldown_seconds: float = 0.0,
    kept: int = 20,
) -> Generation:
    """A whole run, whatever the space waits for; there has to be something to publish."""
    claimed = demand(store, space=space)
    selection = select(store, policy, space=space)
    made = drafted(store, selection, cooldown_seconds=cooldown_seconds, kept=kept)
    generation = published(store, claimed, made).generation
    assert generation is not None, "nothing had changed"
    return generation


def rested(store: Harness, cooldown_seconds: float = COOLDOWN) -> str:
    """A space that was just consolidated; its session."""
    session = remember(store, "one", statement("likes tea"))
    consolidate(store, cooldown_seconds=cooldown_seconds)
    assert job(store).state is JobState.IDLE
    return session


def fail(store: Harness, delay: float = 30.0, *, is_final: bool = False) -> BackedOff | Parked:
    outcome = store.handle.leases.fail(
        demand(store), "it broke", delay, POLICY, store.now(), is_final=is_final
    )
    assert not isinstance(outcome, StaleClaim)
    return outcome


def restoring(store: Harness, number: int, *, space: str = SPACE) -> GenerationDraft:
    """What makes the current generation what an earlier one was."""
    current = select(store, space=space).generation
    wanted = store.handle.generations.documents(space, number)
    known = {each.document_id for each in wanted}
    before = {each.document_id: version_of(store, each, space) for each in wanted}
    edits: list[Edit] = [writing(path, body) for path, body in before.values()]
    edits += [
        deleting(version_of(store, each, space)[0], leaves_broken=True)
        for each in store.handle.generations.documents(space, current)
        if each.document_id not in known
    ]
    selection = select(store, space=space)
    return GenerationDraft(
        made_by="user",
        selection=replace(selection, added=(), retained=(), removed=(), revision=0),
        changes=DocumentChanges(edits=tuple(edits), because=BECAUSE, limits=LIMITS),
        digest=selection.digest or "",
        summaries=tuple(
            (each.session_id, f"~/{before[each.document_id][0]}")
            for each in wanted
            if each.session_id is not None
        ),
        restored_from=number,
    )


def version_of(store: Harness, document: GenerationDocument, space: str) -> tuple[str, str]:
    """Where a version of a document stood, and what it said."""
    found = store.handle.documents.history(space, document.document_id, None, MANY)
    [version] = [each for each in found if each.number == document.version]
    return version.path.removeprefix("~/"), version.body


def restore(store: Harness, number: int) -> Generation:
    made = restoring(store, number)
    return store.handle.generations.restore(SPACE, made, store.now(), store.new_id)


# looking at things


def sessions(picks: tuple[Pick, ...] | tuple[Removed, ...]) -> list[str]:
    return [each.session_id for each in picks]


def gone(selection: Selection) -> dict[str, RemovedBecause]:
    return {each.session_id: each.because for each in selection.removed}


def handbook(store: Harness, *, space: str = SPACE) -> list[str]:
    """What the published handbook says, line by line; nothing, if there is none."""
    found = find(store, HANDBOOK, space)
    return [] if found is None else found.body.splitlines()


def job(store: Harness, *, space: str = SPACE) -> Job:
    found = store.handle.leases.get(space, JobKind.CONSOLIDATE, space)
    assert found is not None, "nothing was ever learned in the space"
    return found


def state(store: Harness, *, space: str = SPACE) -> ConsolidationState:
    [found] = store.handle.generations.states(space, 10, "", store.now())
    return found


def waits(store: Harness) -> Waiting:
    return state(store).waits_for(store.now())


def is_due(store: Harness, *, space: str = SPACE) -> bool:
    """Whether the space could be claimed now, but for what is left to distil."""
    found = job(store, space=space)
    is_waiting = found.due_at is not None and found.due_at > store.now()
    return found.state is JobState.DUE and not is_waiting


def generation(store: Harness, number: int, *, space: str = SPACE) -> Generation:
    found = store.handle.generations.get(space, number)
    assert found is not None, f"there is no generation {number}"
    return found


def versions(store: Harness, number: int, *, space: str = SPACE) -> dict[str, int]:
    """Which version of what a generation has."""
    found = store.handle.generations.documents(space, number)
    return {each.document_id: each.version for each in found}


def sights(store: Harness) -> list[object]:
    """All that publishing changes."""
    return [
        store.handle.generations.list(SPACE, 100, None),
        paths(store, "memory"),
        handbook(store),
        store.handle.extractions.list(SPACE, 100, None),
        store.handle.extractions.revision(SPACE),
        [versions(store, number) for number in range(4)],
        select(store).removed,
    ]
