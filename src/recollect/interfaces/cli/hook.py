"""`recollect hook`: the commands that coding agents call on their events, and their installation.

No agent is ever blocked: any failure here is a line in a log and exit code 0, within the time
allowed. Wrong usage exits with 1, because 2 tells an agent to stop what it is doing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

import recollect
from recollect.errors import InvalidSetting, StoreError
from recollect.hooks.events import (
    ASKING,
    PAYLOAD_BYTES_MAX,
    Agent,
    Event,
    Moment,
    Unusable,
    answer,
    read_event,
)
from recollect.hooks.process import (
    Deadline,
    Journal,
    ShownIds,
    absolute,
    expect_one_place,
    hook_folder,
    log_folder,
    project,
    token,
)
from recollect.interfaces.cli.commands import Opt, Target, command, help_of
from recollect.interfaces.cli.groups import target_options
from recollect.interfaces.cli.output import note

TIMEOUT_SECONDS = 2.0
CAPTURE_SECONDS = 600.0
PROMPT_TOKENS, TOKENS_MAX = 400, 2000  # an agent cuts what is over some ten thousand characters
WRONG_USAGE = 1
INSTALLING = ("install", "uninstall")
LEARNING = frozenset({Moment.STOP, Moment.COMPACT, Moment.END})
LEARNING_NAME = "learning"  # of the lock: one process learns, and one is next


@contextmanager
def _harmless_usage_errors(context: click.Context) -> Iterator[None]:
    """Wrong usage blocks nobody: 2 would tell an agent to stop what it is doing."""
    try:
        yield
    except click.UsageError as error:
        note(f"Error: {error.format_message()}")
        context.exit(WRONG_USAGE)


class HookCommand(click.Command):
    """A command whose wrong usage blocks nobody."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _harmless_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _harmless_usage_errors(ctx):
            return super().invoke(ctx)


class HookGroup(click.Group):
    """Knows the agents; one that it does not know, from settings of another version, passes by."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            note(f"Error: {error.format_message()}")
            ctx.exit(WRONG_USAGE)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*INSTALLING, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in INSTALLING:
            return super().get_command(ctx, cmd_name)
        from recollect.interfaces.cli import setup

        return setup.install if cmd_name == "install" else setup.uninstall

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        with _harmless_usage_errors(ctx):
            return super().resolve_command(ctx, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOptions:
    """The options of a hook.

    Options:
      max_tokens: The size of the context. Default: `recap_tokens` at the start of a session, 400 at
        a prompt.
      timeout: After this time the agent goes on without an answer.
      vectors: Recall by meaning too, which loads an embedder.
      skills: Link what was learned as a skill to where the agent looks for skills.
      verbose: Say on standard error what goes wrong.
    """

    max_tokens: Annotated[
        int | None, Opt(metavar="N", at_least=0, at_most=TOKENS_MAX, clamp=True)
    ] = None
    timeout: Annotated[float, Opt(metavar="SECONDS", at_least=0.05, at_most=60.0, clamp=True)] = (
        TIMEOUT_SECONDS
    )
    vectors: bool = False
    learn: Annotated[
        bool,
        Opt("Learn from what is due, in the background (the default).", name="--learn/--no-learn"),
    ] = True
    skills: bool = False
    verbose: bool = False
    errand: Annotated[bool, Opt(hidden=True)] = False  # the rest, in a process of its own

    @property
    def seconds(self) -> float:
        return CAPTURE_SECONDS if self.errand else self.timeout


def _hook() -> None:
    """Give coding agents their memory: context when they begin, and capture while they work.

    `install` writes the hooks into an agent's settings, and shows what it changes; from then on the
    agent calls `recollect hook AGENT` by itself. That reads what the agent sends from standard
    input, prints context for it or nothing, and does the rest in the background. It never fails
    the agent: what goes wrong is a line in hooks.log in the data directory.

    Examples:
      recollect hook install claude-code
      recollect hook install codex --project --dry-run
      echo '{"event": "start", "session": "1", "cwd": "/src/atlas"}' | recollect hook generic
    """


hook = HookGroup("hook", help=help_of(_hook), params=target_options())


def _add_agent(agent: Agent, summary: str) -> None:
    def run(at: Target, payload: str | None = None, *, options: HookOptions) -> None:
        _run(agent, at, payload, options)

    run.__doc__ = f"""{summary}

    Reads one JSON object from standard input, or from PAYLOAD. Prints one line of JSON, or nothing
    where there is nothing to say.

    Example:
      recollect hook {agent} --verbose < payload.json
    """
    command(hook, name=agent.value, kind=HookCommand)(run)


def _run(agent: Agent, at: Target, payload: str | None, options: HookOptions) -> None:
    """Do what there is to do; whatever happens, the agent goes on."""
    settings: recollect.Settings | None = None

    def tell(reason: str) -> None:
        line = Journal(log_folder(settings, os.environ), agent.value).note(reason)
        if options.verbose:
            note(line)

    try:
        with Deadline(options.seconds, lambda: tell("the time was over")) as deadline:
            try:
                given = _given(payload)  # first and all of it: an agent may fail that cannot write
                at = at.anywhere()
                settings = at.settings()
                event = read_event(agent, given)
                if isinstance(event, Unusable):
                    tell(event.reason)
                elif not settings.is_memory_enabled(agent.value):
                    pass  # it is told as little as is kept of it
                else:
                    expect_one_place(settings)
                    if options.errand:
                        _capture(at, event, options, tell)
                    else:
                        _attend(at, event, options, given, deadline)
            except Exception as error:  # the agent has its own work to do
                tell(_reason(error))
    except RuntimeError as error:  # no thread to watch the time: better nothing than no limit
        tell(_reason(error))


def _reason(error: Exception) -> str:
    """Why it failed: in words where those are about the machine, never in those of a message."""
    if isinstance(error, StoreError | InvalidSetting | OSError):
        return f"{type(error).__name__}: {error}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {trace.tb_frame.f_code.co_name}, {trace.tb_lineno}"
    return f"{type(error).__name__}{place}"


def _given(payload: str | None) -> bytes:
    if payload is not None:
        return payload.encode(errors="surrogatepass")
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    given = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    while len(given) > PAYLOAD_BYTES_MAX and sys.stdin.buffer.read(PAYLOAD_BYTES_MAX):
        pass  # what is too much is taken all the same
    return given


def _attend(
    at: Target, event: Event, options: HookOptions, given: bytes, deadline: Deadline
) -> None:
    """Output at once, then send somebody for the rest."""
    try:
        if event.moment in ASKING:
            _tell(at, event, options, deadline)
    finally:
        if event.leaves_something:
            _send(at, event, options, given)


def _tell(at: Target, event: Event, options: HookOptions, deadline: Deadline) -> None:
    is_start = event.moment is Moment.START
    overrides = {} if options.vectors else {"embedder": "none"}
    with at.open(event.agent.value, **overrides) as memory:
        name = token(at.space_name, event.agent.value, event.session)
        shown = ShownIds(hook_folder(memory.settings), name)
        known = [] if is_start else shown.ids()
        block = _block(memory, at.space_name, event, options.max_tokens, known)
        if block and deadline.speak(lambda: _say(answer(event, block.text))):
            shown.keep([*known, *(citation.hit.id for citation in block.citations)])
        elif is_start:
            shown.forget()


def _block(
    memory: recollect.Memory, space_name: str, event: Event, tokens: int | None, known: list[str]
) -> recollect.Context:
    from recollect.hooks import context as unasked
    from recollect.hooks.events import conversation

    space = memory.space(space_name)
    session = conversation(space, event)
    beside = None if session is None else session.id
    if event.moment is Moment.START:
        return unasked.at_start(
            memory,
            space_name,
            project(event),
            max_tokens=tokens,
            beside=beside,
            reader=event.agent.value,
        )
    return unasked.at_prompt(
        memory,
        space_name,
        project(event),
        event.prompt,
        max_tokens=PROMPT_TOKENS if tokens is None else tokens,
        beside=beside,
        shown=known,
        reader=event.agent.value,
    )


def _say(line: str) -> None:
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        # The reader is gone. Python would try again at exit, and fail the process for it.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _send(at: Target, event: Event, options: HookOptions, given: bytes) -> None:
    """Have the conversation captured by a process of its own."""
    from recollect.hooks.process import send

    environment = dict(os.environ)
    if at.store is not None:  # not on the command line: it may have a password
        environment["RECOLLECT_STORE"] = absolute(at.store)
    arguments = ["hook", event.agent.value, "--errand", "--space", at.space_name]
    arguments += ["--skills"] * options.skills + ["--no-learn"] * (not options.learn)
    send(arguments, given, environment)


def _capture(at: Target, event: Event, options: HookOptions, tell: Callable[[str], None]) -> None:
    from recollect.hooks.capturing import capture
    from recollect.hooks.process import alone, tidy

    is_end = event.moment is Moment.END
    with at.open(event.agent.value) as memory:
        folder = hook_folder(memory.settings)
        if folder is None:
            return
        name = token(at.space_name, event.agent.value, event.session)
        waits = is_end or event.moment is Moment.COMPACT or bool(event.said)
        with alone(folder, name, waits=waits) as is_alone:
            if not is_alone:
                return  # the next call reads what is new as well
            refused = capture(memory, at.space_name, event, os.environ, Path.home())
        if refused:
            tell(f"{refused} messages could not be kept")
        if is_end:
            ShownIds(folder, name).forget()
            tidy(folder)
        if options.learn and event.moment in LEARNING:
            with alone(folder, LEARNING_NAME, waits=False) as is_alone:
                if is_alone:
                    _learn(memory, at.space_name, event.agent, is_linked=options.skills)


def _learn(memory: recollect.Memory, space: str, agent: Agent, *, is_linked: bool) -> None:
    """Do what is due, also for sessions that never said that they ended; then link skills.

    The deadline of the process bounds it: a lease that is left runs out, and the next one goes on.
    """
    memory.pipeline.sweep(space)
    memory.worker().drain()
    published = memory.pipeline.published(space) if is_linked else None
    if published is not None:
        from recollect.hooks.installing import SettingsScope, link_skills, places_of

        places = places_of(agent, SettingsScope.USER, os.environ, Path.home(), Path.cwd())
        if places.skills is not None:
            link_skills(published / "skills", places.skills)


for _agent, _summary in (
    (Agent.CLAUDE_CODE, "What Claude Code calls (SessionStart, UserPromptSubmit, Stop, …)."),
    (Agent.CODEX, "What Codex calls (its hooks, or its `notify` with PAYLOAD)."),
    (Agent.GEMINI_CLI, "What Gemini CLI calls (SessionStart, BeforeAgent, AfterAgent, …)."),
    (Agent.GENERIC, "For any other agent (an object with event, session, cwd, prompt, messages)."),
):
    _add_agent(_agent, _summary)
