"""The `recollect` command: the list of its commands, and the start and end of the process."""

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

# Each command with its module and its summary. The others of its section are what a help refers to.
SECTIONS = {
    "Conversations": {
        "demo": ("demo", "Play sample conversations and show what is learned from them."),
        "append": ("history", "Add a message, or a file of messages, to a session."),
        "history": ("history", "Show the messages of a session."),
        "import": ("import_", "Import other programs' logs, exports and notes, each message once."),
        "watch": ("import_", "Follow a coding agent's logs as they grow."),
        "sessions": ("sessions", "List sessions; show, mark, reset, put to sleep or end one."),
        "agents": ("sessions", "List the agents that live in a store, and their state."),
    },
    "Memory": {
        "recall": ("recall", "Search everything that is remembered, and explain the ranking."),
        "about": ("facts", "Show everything known of a person, a project or a thing."),
        "context": ("recall", "Print what is remembered about a text as a block for a prompt."),
        "why": ("told", "Say what a line that was told came from, and why it was told."),
        "replay": ("told", "Show a block that was told again, or what became of it."),
        "check": ("told", "Test what a memory tells, against a file of cases."),
        "chat": ("chat", "Talk to an agent that has this memory."),
        "remember": ("facts", "Store what you say, and see what it replaces."),
        "facts": ("facts", "List, search, add, edit and delete facts."),
        "review": ("facts", "Accept, edit or reject what was learned and waits for a yes."),
        "docs": ("docs", "Read, write, move and search pages, and see their history."),
        "forget": ("forget", "Erase a session, a record, a fact, a page or more, for good."),
    },
    "Learning": {
        "status": ("status", "Show what is due, what is waiting and why, results and cost."),
        "work": ("work", "Process what is due now, then stop."),
        "worker": ("work", "Process sessions as they are marked, until stopped."),
        "retry": ("status", "Make parked and paused jobs due again."),
        "sweep": ("status", "Mark sessions that have been idle."),
        "consolidate": ("generations", "Make the next generation of memory now, or preview it."),
        "generations": ("generations", "List, show, compare and restore generations; pause them."),
    },
    "Serving": {
        "setup": ("setup", "Give a coding agent this memory: hooks, tools, skills, learning."),
        "serve": ("serving", "Serve the HTTP API and the web page."),
        "keys": ("serving", "Create, list and revoke keys of the HTTP API."),
        "mcp": ("serving", "Serve this memory over the Model Context Protocol."),
        "hook": ("hook", "Give coding agents context, and record what they do."),
    },
    "Stores": {
        "spaces": ("store", "List the spaces of a store with their contents."),
        "audit": ("store", "Show who did what, if that is being recorded."),
        "export": ("store", "Write a space, or all of them, to a portable archive."),
        "load": ("store", "Load spaces from an archive."),
        "migrate": ("store", "Copy a whole store into another one, SQLite or PostgreSQL."),
        "backup": ("store", "Copy a store while it is in use."),
        "restore": ("store", "Create a store from a backup."),
        "doctor": ("store", "Check a store for damage, and repair what is safe to repair."),
    },
    "Recollect": {
        "config": ("store", "Show every setting, its value and where it comes from."),
        "models": ("store", "List the language models that answer on this machine."),
        "verbs": ("store", "List every operation, and where each surface has it."),
        "completion": ("completion", "Print a shell completion script."),
        "bench": (
            "recollect.benchmarks.commands",
            "Measure recall, and the answers it allows, on public data.",
        ),
    },
}

# A command loads much that stays: looked through every so many new objects, and not once more when
# it all goes at the end.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


@click.group(
    "recollect",
    cls=RootGroup,
    sections=SECTIONS,
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
      recollect work --all
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
