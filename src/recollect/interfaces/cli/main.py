"""The `recollect` command: which commands there are, and how the process starts and ends."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys

import click

import recollect
from recollect.interfaces.cli.groups import RootGroup
from recollect.interfaces.cli.options import target_options
from recollect.interfaces.cli.output import CannotPrintError, report_unprinted, watch_output

SEE_ALSO: dict[str, tuple[str, ...]] = {
    "demo": ("append", "work", "facts", "recall"),
    "append": ("history", "sessions", "import", "work"),
    "history": ("append", "sessions", "recall"),
    "import": ("watch", "hook", "work"),
    "watch": ("import", "hook", "worker"),
    "sessions": ("history", "status", "facts"),
    "agents": ("chat", "status", "sessions"),
    "recall": ("context", "facts", "docs"),
    "context": ("recall", "hook", "mcp"),
    "chat": ("recall", "status"),
    "facts": ("recall", "quarantine", "forget"),
    "quarantine": ("facts", "forget"),
    "docs": ("recall", "generations", "forget"),
    "status": ("work", "retry", "doctor"),
    "work": ("worker", "status", "consolidate"),
    "worker": ("work", "status", "serve"),
    "retry": ("status", "work"),
    "consolidate": ("generations", "work", "docs"),
    "generations": ("consolidate", "docs"),
    "serve": ("keys", "worker", "mcp"),
    "keys": ("serve",),
    "hook": ("import", "mcp", "context"),
    "sweep": ("worker", "status"),
    "mcp": ("hook", "serve"),
    "forget": ("facts", "docs", "export"),
    "audit": ("serve", "keys"),
    "spaces": ("status", "export", "forget"),
    "export": ("load", "backup"),
    "load": ("export", "import"),
    "migrate": ("export", "backup", "doctor"),
    "backup": ("restore", "export"),
    "restore": ("backup", "doctor"),
    "doctor": ("status", "retry", "backup"),
    "bench": ("recall",),
    "config": ("status",),
    "verbs": ("status",),
    "completion": ("config",),
}


def advice(command: str) -> str | None:
    """The last line of a command's help; none for one that stands alone."""
    others = SEE_ALSO.get(command, ())
    named = ", ".join(f"recollect {other}" for other in others)
    return f"See also: {named}. Exit codes and environment: recollect --help." if others else None


COMMANDS = {
    "demo": "Play sample sessions into a temporary store, and see what is learned.",
    "append": "Add a message, or a file of messages, to a session.",
    "history": "Show what was said in a session.",
    "import": "Read other programs' logs, exports and notes, each once.",
    "watch": "Keep up with a coding agent's logs as they grow.",
    "sessions": "List sessions; show, mark, reset or end one.",
    "agents": "List the agents that live in a store, and how each is doing.",
    "recall": "Find what is remembered about any text, and why.",
    "context": "The same as a block to put before a model.",
    "chat": "Talk to an agent that has this memory.",
    "facts": "List what was learned; add, edit, delete and search it.",
    "quarantine": "List what tools said that reads like a command; approve or reject it.",
    "docs": "The tree of documents: read, write, move, search; every version is kept.",
    "status": "Say what is due, what waits and for what, what came of it and what it took.",
    "work": "Process what is due now, then stop.",
    "worker": "Process sessions as they are marked, until told to stop.",
    "retry": "Give parked and paused sessions another chance.",
    "consolidate": "Make the next generation of memory now, or see what it would be.",
    "generations": "List, show, compare and restore generations; pause and resume.",
    "serve": "Serve the HTTP API, with keys bound to spaces.",
    "keys": "Make, list and revoke the keys of the HTTP API.",
    "hook": "Context and capture for coding agents that call hooks.",
    "sweep": "Mark the sessions that were left without a word.",
    "mcp": "Give agents this memory over the Model Context Protocol.",
    "forget": "Erase a session, record, fact or document, or much at once, for good.",
    "audit": "Show who did what, where it is written down.",
    "spaces": "List the spaces of a store, and how much each holds.",
    "export": "Write a space, or all, into one portable archive.",
    "load": "Take in the spaces of an archive.",
    "migrate": "Copy everything into another store, SQLite or PostgreSQL.",
    "backup": "Copy a store as it is now, while others write.",
    "restore": "Make a store from a backup.",
    "doctor": "Examine a store, say what is wrong, and repair what is safe to.",
    "bench": "Measure recall, and answers from it, on public data.",
    "verbs": "List everything that can be asked of a memory, and where.",
    "config": "Show every setting, its value and where it came from.",
    "completion": "Print the script that lets a shell complete all this.",
}

# A command loads much that stays: looked through every so many new objects, and not once more when
# it all goes at the end.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


@click.group(
    "recollect",
    cls=RootGroup,
    package="recollect.interfaces.cli",
    summaries=COMMANDS,
    advice=advice,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)
@click.version_option(recollect.__version__, prog_name="recollect", message="%(prog)s %(version)s")
@target_options
@click.pass_context
def cli(context: click.Context, /, **_given: object) -> None:
    """Durable memory for AI agents: every message is kept, marked when there is enough to learn
    from, and turned into facts that know their sources, exactly once, whoever dies.

    \b
    Try it:
      recollect demo
      recollect append telegram:42:main "I moved to Lisbon in May."
      recollect history telegram:42:main
      recollect work --all
      recollect facts
      recollect recall when did I move

    --store, --space and --json work before and after a command's name. Settings come from options,
    then RECOLLECT_… in the environment, then recollect.toml or recollect.yaml.

    \b
    Exit codes:   0 fine, 1 the command failed, 2 wrong usage
    Environment:  RECOLLECT_STORE, and every other setting as RECOLLECT_…;
                  OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY; NO_COLOR
    """
    if os.environ.get("NO_COLOR"):
        context.color = False


def main() -> None:
    """Run the command line and leave the process: 0 fine, 1 the command failed, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # Where a character cannot be shown its number is, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    watch_output()
    try:
        cli(prog_name="recollect")
    except CannotPrintError as error:
        report_unprinted(error, as_json="--json" in sys.argv)
        sys.exit(1)
