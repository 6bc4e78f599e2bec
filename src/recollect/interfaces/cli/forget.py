"""`recollect forget`: something is erased for good, and a receipt says what went with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from recollect.descriptors import agent_label
from recollect.domain import SessionState
from recollect.errors import NotFound
from recollect.forgetting import ERASE, KEEP, read_record
from recollect.interfaces.cli.arguments import find_session, read_given_path
from recollect.interfaces.cli.options import known_keys, known_paths
from recollect.interfaces.cli.output import counted, note, one_line, shortened, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, read_agent, with_target
from recollect.interfaces.views import view
from recollect.knowledge import Receipt
from recollect.space import Space

SHOWN_CHARS = 60
_SO_FAR = "up to now, and what was learned from them alone"


@click.command("forget")
@click.option(
    "--session",
    metavar="KEY-OR-ID",
    shell_complete=known_keys,
    help="A session: its id, or its key.",
)
@click.option("--record", metavar="ID:SEQ", help="A record: its session's id and its number.")
@click.option("--fact", metavar="ID", help="A fact, with its history.")
@click.option(
    "--document",
    metavar="PATH",
    callback=read_given_path,
    shell_complete=known_paths,
    help="A document and what is below it, with every version.",
)
@click.option("--agent-sessions", metavar="NAME", help="All sessions of an agent, and its inbox.")
@click.option("--source", metavar="NAME", help="All sessions from a source, such as claude-code.")
@click.option("--everything", is_flag=True, help="All that the space holds.")
@click.option("--agent", metavar="NAME", help="Whose session; needed if several agents use KEY.")
@click.option(
    "--pages",
    type=click.Choice([KEEP, ERASE]),
    default=KEEP,
    help="What becomes of pages that people or other agents wrote on it; they are named if kept.",
)
@click.option("--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@with_target
def command(target: Target, /, agent: str | None, pages: str, yes: bool, **options: Any) -> None:
    """Erase one thing for good: a session, a record, a fact, a document, or much at once.

    What rests on it alone goes with it: facts, summaries, lines on pages, whole pages that a model
    wrote from it, published files. Facts that other sessions bear out as well stay, without this
    source. Pages that people or other agents wrote on it stay and are named, unless --pages erase
    is given; so is what has the same words elsewhere. What was spent stays in the books.

    A KEY is its current session; the ones before it are forgotten by their ids. In the place of a
    record an empty note stays. A fact that is forgotten is not learned again from the sessions it
    came from, which still say it. If it is interrupted, run it again: it goes on where it was, and
    clears the pages, the files and the log of changes of what was gone already.

    \b
    Examples:
      recollect forget --session telegram:42:main
      recollect forget --record 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10:3
      recollect forget --source claude-code --yes --json
      recollect forget --everything --space alice
    """
    given = [name for name, value in options.items() if value]
    if len(given) != 1:
        known = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"Say what is to be forgotten with one of {known}.")
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise click.UsageError("This cannot be undone. Say --yes, or run it on a terminal.")
    [name] = given
    with target.open_existing(agent) as memory:
        space = memory.space(target.space_name)
        redact = memory.runtime.redactor().keyed(space.name).redact
        words, wanted, state = _meant(space, name, options[name], agent, redact)
        if not yes:
            click.confirm(f"Forget {words}? This cannot be undone", abort=True, err=True)
        with progress_shown(target):
            receipt = space.forget(**wanted, pages=pages)
    if target.as_json:
        write_json(view(receipt))
        return
    write(f"Forgot {words}.")
    write(_receipt_in_words(receipt))
    if state is not None and options[name] == state.key and state.rotation > 1:
        note(f"Earlier sessions of {one_line(state.key)!r} stay; recollect sessions lists them.")
    _tell_what_is_left(receipt)


def _tell_what_is_left(receipt: Receipt) -> None:
    if receipt.left:
        note(
            f"Left, and may still say it: {', '.join(map(one_line, receipt.left))}. Forget pages "
            "that people wrote with --document; recollect work takes it off the others; remove "
            "files by hand."
        )
    elif not receipt.is_complete:
        note("Somebody reads the store: its log of changes is emptied when they are done.")
    if receipt.may_remain:
        note(f"Has the same words, so look at it: {', '.join(map(one_line, receipt.may_remain))}.")
    if receipt.name_in:
        note(f"The name of the space stays in: {', '.join(receipt.name_in)}.")


def _meant(
    space: Space, name: str, value: Any, agent: str | None, redact: Callable[[str], str]
) -> tuple[str, dict[str, Any], SessionState | None]:
    """What is to be forgotten: in words, as it is asked for, and the session if it is one."""
    match name:
        case "session":
            state = find_session(space, value, agent)
            return _in_words(state), {"session": state.id}, state
        case "record":
            return _record_in_words(space, value, redact), {"record": value}, None
        case "fact":
            fact = space.facts.get(value)  # one that was deleted can be forgotten as well
            said = "" if fact is None else f" ({shortened(redact(fact.content), SHOWN_CHARS)})"
            return f"fact {one_line(value)}{said}", {"fact": value}, None
        case "document":
            words = f"{one_line(value)} and what is below it, with every version"
            return words, {"document": value}, None
        case "agent_sessions":
            words = f"all sessions of {one_line(value)} {_SO_FAR}"
            return words, {"agent": read_agent(value)}, None
        case "source":
            return f"all sessions from {one_line(value)} {_SO_FAR}", {"source": value}, None
        case _:
            words = f"everything in space {one_line(space.name)}: sessions, facts and documents"
            return words, {"everything": True}, None


def _in_words(state: SessionState) -> str:
    who = f"{one_line(state.key)}, {one_line(agent_label(state.agent_id))}"
    return f"session {state.id} ({who}, {counted(state.last_seq, 'record')})"


def _record_in_words(space: Space, value: str, redact: Callable[[str], str]) -> str:
    session_id, seq = read_record(value)
    found = [
        each for each in space.sessions.records(session_id, max(seq - 1, 0), 1) if each.seq == seq
    ]
    if not found:
        raise NotFound(f"no record {value!r} in space {space.name!r}; recollect history lists them")
    # Whole, and then shortened: half a secret is not known for one.
    said = shortened(redact(found[0].content), SHOWN_CHARS)
    return f"record {one_line(value)} ({found[0].role}: {said})"


def _receipt_in_words(receipt: Receipt) -> str:
    is_one = receipt.session_id is not None or receipt.record is not None
    words = [
        counted(receipt.records, "record"),
        counted(receipt.facts, "fact") + (" that rested on it alone" if is_one else ""),
        counted(receipt.sources, "source"),
        counted(receipt.extractions, "extraction"),
        "1 summary" if receipt.summaries == 1 else f"{receipt.summaries:,} summaries",
    ]
    if receipt.sessions and receipt.session_id is None:
        words.insert(0, counted(receipt.sessions, "session"))
    if receipt.documents:
        versions = counted(receipt.versions, "version")
        words.append(f"{counted(receipt.documents, 'document')} in {versions}")
    if receipt.items:
        words.append(counted(receipt.items, "waiting message"))
    return f"Erased: {', '.join(words)}."
