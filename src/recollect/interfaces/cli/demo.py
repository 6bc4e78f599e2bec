"""`recollect demo`: where the demonstration takes place, and how it is told."""

from __future__ import annotations

import dataclasses
import tempfile
import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import click

import recollect
from recollect import demo
from recollect.clock import ManualClock
from recollect.descriptors import agent_label
from recollect.documents.links import unlinked
from recollect.domain import SessionState
from recollect.errors import InvalidValue
from recollect.interfaces.cli.arguments import session_keys
from recollect.interfaces.cli.fact_lines import history_lines, source_in_words, standing
from recollect.interfaces.cli.history import digest, indented
from recollect.interfaces.cli.output import counted, harmless, number, one_line, write, write_json
from recollect.interfaces.cli.session_report import mark_in_words, state_in_words
from recollect.interfaces.cli.status import overview_lines, overview_shape, read_overview
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view

WIDTH = 88
SHOWN_MAX = 100


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False),
    metavar="PATH",
    help="Keep the store in this SQLite file, to look around afterwards.",
)
@with_target
def command(target: Target, keep: str | None) -> None:
    """Play sample sessions of two agents into a temporary store, watch the marks appear, kill a
    worker in the middle of its work, and see what was learned and from where, what it comes to,
    and how it is forgotten.

    Offline, in seconds, and nothing is left behind; RECOLLECT_STORE is not touched. With --keep or
    --store the sessions stay there, in a space that was empty before: demo, demo-2, …

    \b
    Examples:
      recollect demo
      recollect demo --keep demo.db && recollect facts --store demo.db --space demo
    """
    if keep is not None and target.store is not None:
        raise click.UsageError("Give --keep or --store, not both.")
    if keep is not None or target.store is not None:
        where = dataclasses.replace(target, store=keep or target.store)
        _run(where, dataclasses.replace(where.settings(), **demo.SETTINGS, agents={}))
        return
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as directory:
        where = dataclasses.replace(target, store=str(Path(directory) / "memory.db"))
        _run(where, recollect.Settings(**demo.SETTINGS), is_temporary=True)


def _run(target: Target, settings: recollect.Settings, *, is_temporary: bool = False) -> None:
    clock = ManualClock(demo.START)
    with recollect.open(target.store, settings=settings, clock=clock) as memory:
        space = _empty_space(memory, target.space)
        stage = demo.Stage(memory=memory, space=space, clock=clock)
        assert target.store is not None
        steps = demo.play(stage, target.store)
        if target.as_json:
            shapes = view(list(steps))
            status = overview_shape(read_overview(memory, space.name, SHOWN_MAX))
            write_json({"space": space.name, "steps": shapes, "status": status})
            return
        target = dataclasses.replace(target, space=space.name)
        for line in _told(space, steps):
            write(line)
        write(click.style("In the end, recollect status says:", bold=True))
        for line in overview_lines(read_overview(memory, space.name, SHOWN_MAX), target):
            write(f"  {line}")
    write()
    for line in _what_next(target, is_temporary):
        write(line)


def _empty_space(memory: recollect.Memory, asked: str | None) -> recollect.Space:
    """The space that was asked for, else the first of demo, demo-2, … that holds nothing."""
    if asked is not None:
        space = memory.space(asked)
        if space.sessions.list(1):
            raise InvalidValue(f"space {asked!r} holds sessions; the demo needs an empty space")
        return space
    names = ("demo" if turn == 1 else f"demo-{turn}" for turn in count(1))
    return next(space for space in map(memory.space, names) if not space.sessions.list(1))


def _told(space: recollect.Space, steps: Iterator[demo.Step]) -> Iterator[str]:
    yield click.style("Recollect: a memory that never loses a message", bold=True)
    yield from _wrapped(
        "Two agents, assistant and coder, talk with people. Every message is stored when append "
        "returns. A session with enough to learn from gets a mark: the number of the record up to "
        "which it is to be processed. The cursor says how far it has been. Workers process what is "
        "marked: each record once, whoever dies. What they learn are facts with their sources."
    )
    for turn, step in enumerate(steps, start=1):
        yield ""
        yield click.style(f"{turn}. {step.title}", fg="cyan", bold=True)
        yield from _wrapped(step.story)
        yield ""
        yield from map(_said_line, step.said)
        yield from ("  " + click.style(result, dim=True) for result in map(one_line, step.results))
        for change in step.changes:
            yield from _change_lines(change)
        yield from _learned_lines(space, step)
    yield ""


def _wrapped(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH - 2):
        yield f"  {line}"


def _said_line(record: recollect.Record) -> str:
    speaker = record.name or record.role.value
    words = one_line("  ".join(map(digest, record.parts)))
    return (
        f"    {record.seq}  {speaker:<9}  {textwrap.shorten(words, WIDTH - 18, placeholder=' …')}"
    )


def _change_lines(change: demo.Change) -> Iterator[str]:
    yield f"  {one_line(change.after.key)} ({agent_label(change.after.agent_id)})"
    yield f"    before  {_state_line(change.before)}"
    yield f"    after   {click.style(_state_line(change.after), fg='green')}"


def _learned_lines(space: recollect.Space, step: demo.Step) -> Iterator[str]:
    """What a step shows of memory: facts with their sources, a summary, a history."""
    keys = session_keys(space, step.facts)
    for fact in step.facts:
        yield f"  {click.style(one_line(fact.content), fg='green')}"
        yield f"    {one_line(', '.join((*fact.tags, fact.trust.value)))}"
        for source in fact.sources:
            yield f"    {source_in_words(source, keys)}: “{one_line(source.quote)}”"
        yield from (f"    {line}" for line in standing(fact))
    if step.extraction is not None:
        yield f"  {one_line(step.extraction.rollout_slug or '')}"
        yield indented(harmless(step.extraction.rollout_summary))
    for entry in step.history:
        yield from (f"  {line}" for line in history_lines(entry))
    for page in step.pages:
        yield f"  {click.style(one_line(page.path), fg='green')}"
        body = harmless(unlinked(page.body, lambda _path: True))
        yield from (f"    {line}" for line in body.splitlines() if line)


def _state_line(state: SessionState) -> str:
    return (
        f"{counted(state.last_seq, 'record'):<10}  mark {mark_in_words(state):<14}"
        f"  cursor {number(state.processed_until):<3}  {state_in_words(state)}"
    )


def _what_next(target: Target, is_temporary: bool) -> Iterator[str]:
    yield click.style("What to try next", bold=True)
    if is_temporary:
        yield "  recollect demo --keep demo.db        the same, and the store stays to look around"
        yield '  recollect append my:first:chat "Hi"  start a session of your own'
        yield "  recollect history my:first:chat      read it back"
        yield "  recollect status                     what is marked, and what waits"
        yield "  recollect work --all                 process it now"
        yield "  recollect facts                      what was learned, and from where"
        yield '  recollect recall "what did I say?"   ask it, with the reasons: --explain'
        yield "  recollect docs read MEMORY           the handbook of it all"
        yield "  recollect serve                      the same on a web page, and over HTTP"
    else:
        yield f"  recollect facts{target.arguments}"
        yield f'  recollect recall "Where does Ana live now?"{target.arguments}'
        yield f"  recollect docs read MEMORY{target.arguments}"
        yield f"  recollect generations{target.arguments}"
        yield f"  recollect sessions{target.arguments}"
        yield f"  recollect sessions show telegram:42:main{target.arguments}"
        yield f"  recollect history cli:recollect:main --rotations --agent coder{target.arguments}"
        yield f"  recollect status{target.arguments}"
        served = dataclasses.replace(target, space=None)
        yield f"  recollect serve{served.arguments}    # all of it on a web page"
