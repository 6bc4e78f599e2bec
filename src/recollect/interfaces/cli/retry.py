"""`recollect retry`: parked and paused jobs get another chance."""

from __future__ import annotations

import click

import recollect
from recollect.domain import Job, JobKind
from recollect.errors import InvalidValue
from recollect.interfaces.cli.output import counted, note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.session import LIST_MAX


@click.command("retry")
@click.argument("session_id", required=False)
@click.option("--all", "is_all", is_flag=True, help="Everything that is parked or paused.")
@with_target
def command(target: Target, session_id: str | None, is_all: bool) -> None:
    """Give what is parked or paused another chance: one session, those of a space, or all.

    A session is parked when it failed too often, or in a way that trying again would not mend. It
    is paused when a spending cap was reached or the model's key was refused. recollect status shows
    which, and the error. Mend the cause first: it is due at once, and its failures are counted from
    zero. New messages in a parked session do the same.

    The same goes for agents, whose messages are parked one by one: SESSION_ID is then the session
    that status shows for the agent. Its messages are in its inbox again, and are answered as soon
    as somebody runs the agent, as recollect chat does; what memory-agents could not file is filed
    by any worker. Each agent counts as one job, and so does the consolidation of a space, which
    --space and --all give another chance as well.

    \b
    Examples:
      recollect retry 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
      recollect retry --space alice
      recollect retry --all
    """
    if session_id is not None and is_all:
        raise click.UsageError("Give SESSION_ID or --all, not both.")
    if session_id == "":
        raise click.UsageError("SESSION_ID is empty.")
    if session_id is None and not is_all and target.space is None:
        raise click.UsageError("Say what to retry: SESSION_ID, --space NAME or --all.")
    with target.open_existing() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        revived = _revived(memory, session_id, target.space)
        if session_id is not None and not revived:
            _say_why_not(memory, target, _job_of(memory, target, session_id))
    if target.as_json:
        write_json({"space": target.space, "session_id": session_id, "revived": revived})
    else:
        are = "is" if revived == 1 else "are"
        write(f"{counted(revived, 'job')} {are} due again.")


def _revived(memory: recollect.Memory, session_id: str | None, space: str | None) -> int:
    revived = memory.retry(session_id, space)
    if session_id is not None:
        keys = {
            str(state.ref.key_id)
            for state in memory.store.agents.list(space, LIST_MAX)
            if state.session_id == session_id
        }
        revived += sum(memory.retry(key, space) for key in keys)
    return revived


def _job_of(memory: recollect.Memory, target: Target, key: str) -> Job:
    for kind in JobKind:
        job = memory.store.leases.get(target.space, kind, key)
        if job is not None:
            return job
    where = "" if target.space is None else f" in space {target.space!r}"
    raise InvalidValue(f"no session {key!r} was ever marked{where}; recollect status lists them")


def _say_why_not(memory: recollect.Memory, target: Target, job: Job) -> None:
    if not target.as_json:
        now = memory.status(target.space, limit=0).at
        note(f"It is neither parked nor paused, but {job.state}: {one_line(job.why(now))}.")
