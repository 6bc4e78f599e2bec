"""The `recollect` command: which commands there are, and how the process starts and ends."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys

import click

import recollect
from recollect.interfaces.cli.groups import RootGroup, target_options
from recollect.interfaces.cli.output import CannotPrintError, report_unprinted, watch_output

COMMANDS = {
    "demo": "Play sample conversations into a temporary store and show what is learned.",
    "append": "Add a message, or a file of messages, to a session.",
    "history": "Show the messages of a session.",
    "import": "Import other programs' logs, exports and notes, each message once.",
    "watch": "Follow a coding agent's logs as they grow.",
    "sessions": "List sessions; show, mark, reset, put to sleep or end one.",
    "agents": "List the agents that live in a store, and their state.",
    "recall": "Search everything that is remembered, and explain the ranking.",
    "context": "Print what is remembered about a text as a block for a prompt.",
    "chat": "Talk to an agent that has this memory.",
    "facts": "List, search, add, edit and delete facts.",
    "quarantine": "Review text from tools that reads like an instruction.",
    "docs": "Read, write, move and search pages; every version is kept.",
    "status": "Show what is due, what is waiting and why, results and cost.",
    "work": "Process what is due now, then stop.",
    "worker": "Process sessions as they are marked, until stopped.",
    "retry": "Make parked and paused jobs due again.",
    "consolidate": "Make the next generation of memory now, or preview it.",
    "generations": "List, show, compare and restore generations; pause and resume.",
    "serve": "Serve the HTTP API and the web page.",
    "keys": "Create, list and revoke keys of the HTTP API.",
    "hook": "Give coding agents context, and record what they do.",
    "sweep": "Mark sessions that have been idle.",
    "mcp": "Serve this memory over the Model Context Protocol.",
    "forget": "Erase a session, a record, a fact, a page or more, for good.",
    "audit": "Show who did what, if that is being recorded.",
    "spaces": "List the spaces of a store with their contents.",
    "export": "Write a space, or all of them, to a portable archive.",
    "load": "Load spaces from an archive.",
    "migrate": "Copy a whole store into another one, SQLite or PostgreSQL.",
    "backup": "Copy a store while it is in use.",
    "restore": "Create a store from a backup.",
    "doctor": "Check a store for damage, and repair what can be repaired safely.",
    "bench": "Measure recall, and the answers it allows, on public data.",
    "verbs": "List every operation, and where each surface has it.",
    "config": "Show every setting, its value and where it comes from.",
    "completion": "Print a shell completion script.",
}

_NEIGHBOURS = {
    "demo": "append work facts recall",
    "append": "history sessions import work",
    "history": "append sessions recall",
    "import": "watch hook work",
    "watch": "import hook worker",
    "sessions": "history status facts",
    "agents": "chat status sessions",
    "recall": "context facts docs",
    "context": "recall hook mcp",
    "chat": "recall status",
    "facts": "recall quarantine forget",
    "quarantine": "facts forget",
    "docs": "recall generations forget",
    "status": "work retry doctor",
    "work": "worker status consolidate",
    "worker": "work status serve",
    "retry": "status work",
    "consolidate": "generations work docs",
    "generations": "consolidate docs",
    "serve": "keys worker mcp",
    "keys": "serve",
    "hook": "import mcp context",
    "sweep": "worker status",
    "mcp": "hook serve",
    "forget": "facts docs export",
    "audit": "serve keys",
    "spaces": "status export forget",
    "export": "load backup",
    "load": "export import",
    "migrate": "export backup doctor",
    "backup": "restore export",
    "restore": "backup doctor",
    "doctor": "status retry backup",
    "bench": "recall",
    "verbs": "status",
    "config": "status",
    "completion": "config",
}
SEE_ALSO = {name: tuple(others.split()) for name, others in _NEIGHBOURS.items()}

# The module of a command, where it is not called like the command.
MODULES = {
    "quarantine": "facts",
    "append": "history",
    "agents": "sessions",
    "context": "recall",
    "retry": "status",
    "sweep": "status",
    "worker": "work",
    "consolidate": "generations",
    "bench": "recollect.benchmarks.commands",
    "import": "import_",
    "watch": "import_",
    "serve": "serving",
    "keys": "serving",
    "mcp": "serving",
    "audit": "store",
    "spaces": "store",
    "export": "store",
    "load": "store",
    "migrate": "store",
    "backup": "store",
    "restore": "store",
    "doctor": "store",
    "verbs": "store",
    "config": "store",
}

# A command loads much that stays: looked through every so many new objects, and not once more when
# it all goes at the end.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


@click.group(
    "recollect",
    cls=RootGroup,
    summaries=COMMANDS,
    modules=MODULES,
    see_also=SEE_ALSO,
    params=target_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)
@click.version_option(recollect.__version__, prog_name="recollect", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, /, **_given: object) -> None:
    """Durable memory for AI agents: every message is kept, marked when there is enough to learn
    from, and turned into facts with their sources, exactly once, even if a process dies.

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
