"""`recollect forget`: erases something for good, with a receipt of everything that went with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

import click

from recollect.descriptors import agent_label
from recollect.errors import NotFound
from recollect.forgetting import read_record
from recollect.interfaces.cli.commands import Output, Target, command, read_agent
from recollect.interfaces.cli.facts import told_notes
from recollect.interfaces.cli.output import counted, one_line, shortened
from recollect.interfaces.cli.parameters import (
    Agent,
    KeyOrId,
    TreePath,
    Yes,
    confirm,
    find_session,
    progress_shown,
)
from recollect.types.facts import Receipt
from recollect.types.records import SessionState

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgettable:
    """The options of which exactly one says what is to be forgotten.

    Options:
      session: A session: its id, or its key.
      record ID:SEQ: A record: its session's id and its number.
      fact ID: A fact, with its history.
      document: A document and what is below it, with every version.
      agent_sessions NAME: All sessions of an agent, and its inbox.
      source NAME: All sessions from a source, such as claude-code.
      everything: Everything that the space holds.
    """

    session: KeyOrId | None = None
    record: str | None = None
    fact: str | None = None
    document: TreePath | None = None
    agent_sessions: str | None = None
    source: str | None = None
    everything: bool = False

    @property
    def chosen(self) -> tuple[str, Any]:
        """The one that was given."""
        given = [each.name for each in fields(self) if getattr(self, each.name)]
        if len(given) != 1:
            known = ", ".join(f"--{each.name.replace('_', '-')}" for each in fields(self))
            raise click.UsageError(f"Say what to forget with exactly one of {known}.")
        return given[0], getattr(self, given[0])


@command()
def forget(
    at: Target,
    *,
    what: Forgettable,
    agent: Agent = None,
    pages: Literal["keep", "erase"] = "keep",
    yes: Yes = False,
) -> Output:
    """Erase one thing for good: a session, a record, a fact, a document, or many at once.

    Everything that rests on it alone goes with it: facts, summaries, lines on pages, whole pages
    that a model wrote from it, published files. Facts that other sessions support as well stay,
    without this source. Pages that people or other agents wrote from it stay and are named, unless
    --pages erase is given; so is text elsewhere that uses the same words.

    A KEY stands for its current session; earlier ones are forgotten by their ids. A forgotten fact
    is not learned again from the sessions it came from, which still say it. If the command is
    interrupted, run it again: it continues where it was.

    Options:
      pages: What to do with pages that people or other agents wrote from it; kept ones are named.

    Examples:
      recollect forget --session telegram:42:main
      recollect forget --record 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10:3
      recollect forget --everything --space alice
    """
    name, value = what.chosen
    confirm("", yes=yes)
    words, wanted, state = _meant(at, name, value, agent)
    confirm(f"Forget {words}", yes=yes)
    with progress_shown(at):
        receipt = at.space.forget(**wanted, pages=pages)
    notes = list(_left(receipt))
    if state is not None and value == state.key and state.rotation > 1:
        earlier = f"Earlier sessions of {one_line(state.key)!r} stay"
        notes.insert(0, f"{earlier}; recollect sessions lists them.")
    return Output(receipt, [f"Forgot {words}.", _receipt_in_words(receipt)], notes)


def _left(receipt: Receipt) -> Iterator[str]:
    if receipt.left:
        yield (
            f"Left, and may still say it: {', '.join(map(one_line, receipt.left))}. Forget pages"
            " that people wrote with --document; recollect work removes it from the others; delete"
            " files by hand."
        )
    elif not receipt.is_complete:
        yield "Somebody is reading the store: its log is emptied when they are done."
    if receipt.may_remain:
        yield f"Uses the same words, so check it: {', '.join(map(one_line, receipt.may_remain))}."
    yield from told_notes(receipt.told)
    if receipt.name_in:
        yield f"The name of the space stays in: {', '.join(receipt.name_in)}."


def _meant(
    at: Target, name: str, value: Any, agent: str | None
) -> tuple[str, dict[str, Any], SessionState | None]:
    """What is to be forgotten: in words, as arguments, and the session if it is one."""
    space, state, shown = at.space, None, one_line(str(value))
    redact = at.memory.runtime.redactor().keyed(space.name).redact

    def said(text: str) -> str:
        # Redacted whole, and then shortened: half a secret is not known for one.
        return shortened(redact(text), SHOWN_CHARS)

    wanted: dict[str, Any] = {"agent" if name == "agent_sessions" else name: value}
    match name:
        case "session":
            state = find_session(space, value, agent)
            wanted = {"session": state.id}
            who = f"{one_line(state.key)}, {one_line(agent_label(state.agent_id))}"
            words = f"session {state.id} ({who}, {counted(state.last_seq, 'record')})"
        case "record":
            session_id, seq = read_record(value)
            found = space.sessions.records(session_id, max(seq - 1, 0), 1)
            if not found or found[0].seq != seq:
                where = f"in space {space.name!r}; recollect history lists them"
                raise NotFound(f"no record {value!r} {where}")
            words = f"record {shown} ({found[0].role}: {said(found[0].content)})"
        case "fact":
            fact = space.facts.get(value)  # one that was deleted can be forgotten as well
            words = f"fact {shown}" + ("" if fact is None else f" ({said(fact.content)})")
        case "document":
            words = f"{shown} and what is below it, with every version"
        case "agent_sessions" | "source":
            wanted = {"agent": read_agent(value)} if name == "agent_sessions" else wanted
            whose = "from" if name == "source" else "of"
            words = f"all sessions {whose} {shown} up to now, and what was learned from them alone"
        case _:
            words = f"everything in space {one_line(space.name)}: sessions, facts and documents"
    return words, wanted, state


def _receipt_in_words(receipt: Receipt) -> str:
    is_one = receipt.session_id is not None or receipt.record is not None
    words = [
        counted(receipt.records, "record"),
        counted(receipt.facts, "fact") + (" that rested on it alone" if is_one else ""),
        counted(receipt.sources, "source"),
        counted(receipt.extractions, "extraction"),
        counted(receipt.summaries, "summary", "summaries"),
    ]
    if receipt.sessions and receipt.session_id is None:
        words.insert(0, counted(receipt.sessions, "session"))
    if receipt.documents:
        versions = counted(receipt.versions, "version")
        words.append(f"{counted(receipt.documents, 'document')} in {versions}")
    if receipt.items:
        words.append(counted(receipt.items, "waiting message"))
    return f"Erased: {', '.join(words)}."
