"""`recollect demo`: chooses the store of the demonstration and prints its scenes."""

from __future__ import annotations

import dataclasses
import tempfile
import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import click

import recollect
from recollect import demo as demonstration
from recollect.clock import ManualClock
from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Target, command
from recollect.interfaces.cli.output import harmless, write, write_json
from recollect.interfaces.views import view

NEXT = (
    ("demo --full", "every scene: marks, retries, consolidation"),
    ("demo --keep demo.db", "the same, and the store stays to look around"),
    ('append my:first:chat "I live in …"', "start a session of your own"),
    ("work --all && recollect facts", "what was learned from it, and from where"),
    ('recall "where do I live?"', "ask it; --explain for the reasons"),
    ("serve", "the same on a web page, and over HTTP"),
)


@command()
def demo(at: Target, *, full: bool = False, keep: str | None = None) -> None:
    """Play sample conversations into a temporary store, kill a worker in the middle of its work,
    ask what was learned, correct it, and forget a session with a receipt.

    Offline, in seconds, and nothing is left behind; RECOLLECT_STORE is not touched. With --keep or
    --store the sessions stay there, in a space that was empty before: demo, demo-2, …

    Options:
      full: Every scene, not only the short form.
      keep PATH: Keep the store in this SQLite file, to look around afterwards.

    Examples:
      recollect demo
      recollect demo --keep demo.db && recollect facts --store demo.db --space demo
    """
    if keep is not None and at.store is not None:
        raise click.UsageError("Give --keep or --store, not both.")
    if keep is not None or at.store is not None:
        where = dataclasses.replace(at, store=keep or at.store)
        _run(
            where,
            dataclasses.replace(where.settings(), **demonstration.SETTINGS, agents={}),
            full=full,
        )
        return
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as directory:
        where = dataclasses.replace(at, store=str(Path(directory) / "memory.db"))
        _run(where, recollect.Settings(**demonstration.SETTINGS), full=full, is_temporary=True)


def _run(
    at: Target, settings: recollect.Settings, *, full: bool, is_temporary: bool = False
) -> None:
    clock = ManualClock(demonstration.START)
    with recollect.open(at.store, settings=settings, clock=clock) as memory:
        space = _empty_space(memory, at.named_space)
        stage = demonstration.DemoStage(memory=memory, space=space, clock=clock)
        assert at.store is not None
        scenes = demonstration.play(stage, at.store, full=full)
        if at.as_json:
            write_json({"space": space.name, "scenes": view(list(scenes))})
            return
        write(
            click.style("Recollect: memory for agents, here offline and without a model", bold=True)
        )
        for line in _lines(scenes):
            write(line)
        at = dataclasses.replace(at, named_space=space.name)
    write()
    for line in _next(at, is_temporary):
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


def _lines(scenes: Iterator[demonstration.Scene]) -> Iterator[str]:
    for turn, scene in enumerate(scenes, start=1):
        yield ""
        yield click.style(f"{turn}. {scene.title}", fg="cyan", bold=True)
        yield from (f"   {line}" for line in textwrap.wrap(scene.story, demonstration.WIDTH - 3))
        for line in scene.lines:
            yield f"   {harmless(line)}"


def _next(at: Target, is_temporary: bool) -> Iterator[str]:
    yield click.style("Next", bold=True)
    if is_temporary:
        width = max(len(words) for words, _ in NEXT)
        for words, does in NEXT:
            yield f"   recollect {words:<{width}}  {does}"
        return
    question = f'recall "{demonstration.QUESTION}"'
    for words in ("facts", question, "docs read MEMORY", "sessions", "status"):
        yield f"   recollect {words}{at.arguments}"
