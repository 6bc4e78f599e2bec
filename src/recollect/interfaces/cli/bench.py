"""`recollect bench`: how good memory is, measured on public data through a real store."""

from __future__ import annotations

import click

from recollect.interfaces.cli.bench_answers import answers
from recollect.interfaces.cli.bench_recall import recall
from recollect.interfaces.cli.target import Target, with_target


@click.group("bench")
@with_target
def command(target: Target) -> None:
    """Measure Recollect on this machine, on data of your own choice.

    \b
    Examples:
      recollect bench recall --data locomo-dev.json
      recollect bench recall --data datasets --embedder local --plot recall.svg
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl
    """


command.add_command(recall)
command.add_command(answers)
