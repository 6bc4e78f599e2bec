"""`recollect context`: what is remembered about any text as a block to put before a model."""

from __future__ import annotations

from typing import Any

import click

from recollect.interfaces.cli.arguments import session_keys
from recollect.interfaces.cli.output import harmless, note, write, write_json
from recollect.interfaces.cli.recall import (
    given_filters,
    narrowing_options,
    nothing_found,
    read_query,
    speaker_option,
)
from recollect.interfaces.cli.recall_lines import block_lines
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.recall.pack import FACTS_MAX, LINES_MAX
from recollect.recollection import CONTEXT_TOKENS


@click.command("context")
@click.argument("query", nargs=-1)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help="What the whole block may take, everything counted. Default: "
    f"{CONTEXT_TOKENS}; of a recap `recap_tokens`.",
)
@click.option(
    "--max-facts",
    type=click.IntRange(0, LINES_MAX),
    default=FACTS_MAX,
    show_default=True,
    metavar="N",
    help="At most N facts; of what was said as much as fits.",
)
@speaker_option
@narrowing_options
@click.option(
    "--explain", is_flag=True, help="Say on standard error why it is in there, and what is not."
)
@with_target
def command(
    target: Target,
    /,
    query: tuple[str, ...],
    max_tokens: int | None,
    max_facts: int,
    speaker: str | None,
    explain: bool,
    **given: Any,
) -> None:
    """Print what is remembered about QUERY as a block for a prompt, and nothing else.

    An empty QUERY is answered with a recap: of the project that --project names, else of the
    person.

    The block is fenced as data, fits its budget, and each line has a mark to cite it by. Where
    nothing fits, nothing is printed; that is no error. A QUERY that is - or missing is read from
    standard input. No model is asked, and nothing is counted as used.

    \b
    Examples:
      recollect context "where does Ana live" >> prompt.txt
      recollect context "plan dinner with Ana" --max-tokens 300 --explain
      recollect context "plan dinner with Ana" --kind fact --trust user --json
      recollect context "" --project /src/atlas
      printf '%s' "$PROMPT" | recollect context -
    """
    text = read_query(query, "recollect context -")
    with target.open_existing(given["agent"]) as memory:
        space = memory.space(target.space_name)
        if max_tokens is None:
            max_tokens = CONTEXT_TOKENS if text.strip() else memory.settings.recap_tokens
        block = space.context(
            text,
            max_tokens,
            max_facts=max_facts,
            filters=given_filters(space, **given),
            speaker=speaker,
        )
        hits = [citation.hit for citation in block.citations]
        hits += [omission.hit for omission in block.omitted]
        keys = session_keys(space, hits) if explain and not target.as_json else {}
    if target.as_json:
        write_json(view(block))
        return
    if block:
        write(harmless(block.text))
    elif not hits:
        note(nothing_found(target, given))
    elif not explain:
        note("What was found is not fit to be shown here. See why: --explain")
    if explain and hits:
        for line in block_lines(block, max_tokens, keys):
            note(line)
