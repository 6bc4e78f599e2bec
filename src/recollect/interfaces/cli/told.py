"""`recollect why`, `replay` and `check`: what was told and why, and whether that is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import click

from recollect.interfaces.cli.commands import Opt, Output, Target, command
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.output import counted, harmless, moment, one_line
from recollect.interfaces.cli.parameters import Words
from recollect.recall.checking import Checked, added_to, as_yaml, proposed, read_cases
from recollect.types.recall import REASONS, LineState, Replay, ToldLine

INDENT = "    "
_BECAME = {
    LineState.CORRECTED: "corrected since",
    LineState.REPLACED: "replaced since",
    LineState.DELETED: "deleted since",
    LineState.REWRITTEN: "rewritten since",
    LineState.ERASED: "erased since",
}


@command()
def why(at: Target, about: Words = (), *, block: str | None = None) -> Output:
    """Say what a line that was told came from, and why it ranked there.

    ABOUT is the id of a block, a mark of it such as m3, or a line of an answer, which is looked for
    in the blocks told last. Without it, every line of the latest block is explained. A line says
    what became of it since: corrected, replaced, deleted, rewritten or erased.

    Options:
      block ID: Look in this block. Default: the latest.

    Examples:
      recollect why
      recollect why m3
      recollect why "She moved to Lisbon in May."
    """
    told = at.space.why(" ".join(about), block=block)
    nothing = "" if told.lines else "No line that was told lately says this."
    return Output(told, _reasons(told), nothing, exit_code=0 if told.lines else 1)


@command()
def replay(at: Target, block: str | None = None) -> Output:
    """Show a block that was told again, byte for byte, or what became of its lines.

    BLOCK is the id of a block: see recollect context --json, or recollect why. Without it, the
    latest. A line whose text is gone is replaced by what became of it; others that are not so any
    more are shown as they were told, and named on standard error.

    Examples:
      recollect replay
      recollect replay 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    told = at.space.replay(block)
    return Output(told, harmless(told.text), _changes(told))


def _reasons(told: Replay) -> Iterator[str]:
    said = f" about {one_line(told.query)!r}" if told.query else ""
    where = f", session {told.session_id}" if told.session_id else ""
    to = f"{moment(told.at)} to {one_line(told.reader)}{where}"
    yield click.style(f"Block {told.id}, told {to}{said}", dim=True)
    for line in told.lines:
        yield ""
        yield one_line(line.text) if line.text else f"{line.mark}: {_BECAME[line.state]}"
        yield f"{INDENT}{line.kind.value} {one_line(line.id)}".rstrip()
        for reason in line.reasons:
            yield f"{INDENT}{reason}: {REASONS[reason]}"
        for source in line.sources:
            yield f"{INDENT}from {source_in_words(source, {})}"
        if line.state is not LineState.SAME:
            yield f"{INDENT}{_state(line)}"


def _changes(told: Replay) -> Iterator[str]:
    if told.is_identical:
        yield "The same bytes as were told."
    for number, line in enumerate(told.lines, start=1):
        if line.state is not LineState.SAME:
            yield f"{line.mark or number}: {_state(line)}"


def _state(line: ToldLine) -> str:
    now = f"; now: {one_line(line.now)}" if line.now else ""
    return click.style(f"{_BECAME[line.state]}{now}", fg="yellow")


@command()
def check(
    at: Target,
    file: Annotated[Path | None, Opt(metavar="FILE", is_file=True)] = None,
    *,
    propose: Annotated[str | None, Opt(metavar="FACT")] = None,
) -> Output:
    """Test what a memory tells: questions, and what the block has to say and must not.

    FILE is YAML, TOML or JSON: a list, or a list under `cases`, each with `ask`, and texts to
    `expect` and to `forbid`; `max_tokens`, `speaker` and `space` may be given. Case and blanks do
    not count. No model is asked, and nothing is kept. Exits with 1 if a case fails.

    Options:
      propose FACT: Make a case of a fact that was edited or deleted, and add it to FILE; without
        FILE, print it.

    Examples:
      recollect check memory-checks.yaml
      recollect check memory-checks.yaml --propose 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    if propose is not None:
        return _proposal(at, file, propose)
    if file is None:
        raise click.UsageError("Give a FILE of cases, or --propose FACT.")
    cases = read_cases(file)
    names = dict.fromkeys(case.space or at.space_name for case in cases)
    found = [
        each
        for name in names
        for each in at.memory.space(name).check(
            [case for case in cases if (case.space or at.space_name) == name]
        )
    ]
    failed = [each for each in found if not each.is_passed]
    passed = f"{counted(len(found) - len(failed), 'case')} of {len(found):,} passed."
    return Output(found, _failures(failed), passed, exit_code=1 if failed else 0)


def _proposal(at: Target, file: Path | None, fact_id: str) -> Output:
    case = proposed(at.memory.runtime, at.space_name, fact_id)
    if file is None:
        given = {each.name: value for each in fields(case) if (value := getattr(case, each.name))}
        return Output(case, as_yaml(given).rstrip())
    added_to(file, case)
    return Output(case, f"Added to {file}: {one_line(case.ask)}")


def _failures(failed: Sequence[Checked]) -> Iterator[str]:
    for each in failed:
        yield click.style(f"Failed: {one_line(each.case.ask) or '(recap)'}", fg="red")
        for missing in each.missing:
            yield f"{INDENT}not there: {one_line(missing)}"
        for line in each.forbidden:
            yield f"{INDENT}must not be there: {one_line(line.said)}"
            yield f"{INDENT * 2}{one_line(line.line)}"
            if line.hit is not None:
                reasons = sorted(line.hit.why.items(), key=lambda part: -part[1])
                why = ", ".join(f"{name} {value:.2f}" for name, value in reasons)
                said = ", ".join(source_in_words(source, {}) for source in line.hit.sources[:3])
                yield f"{INDENT * 2}{line.hit.kind.value} {one_line(line.hit.id)}, from {said}"
                yield f"{INDENT * 2}because of {why}" if why else ""
