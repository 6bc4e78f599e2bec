"""`recollect setup`, `hook install` and `uninstall`: changes to an agent's settings."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import click

from recollect import config
from recollect.errors import NotFound
from recollect.hooks.events import Agent
from recollect.hooks.installing import (
    INSTALLABLE,
    AgentPlaces,
    FileEdit,
    SettingsScope,
    apply,
    link_skills,
    places_of,
    plan_install,
    plan_server,
    plan_uninstall,
    unlink_skills,
)
from recollect.hooks.process import absolute
from recollect.interfaces.cli.commands import Opt, Output, Target, address_of, command, program
from recollect.interfaces.cli.output import harmless, one_line, write
from recollect.interfaces.cli.parameters import DryRun
from recollect.store.address import without_password

AgentName = Annotated[str, Opt(choices=tuple(agent.value for agent in INSTALLABLE))]
# The names of agents here are those of `recollect mcp --config`.
SetupName = Annotated[str, Opt(choices=("claude-code", "codex", "gemini", "cursor"))]
HOOKED = {"claude-code": Agent.CLAUDE_CODE, "codex": Agent.CODEX, "gemini": Agent.GEMINI_CLI}
InProject = Annotated[
    bool,
    Opt("For you (the default), or for all who work in this directory.", name="--project/--user"),
]
Learn = Annotated[
    bool, Opt("Learn from sessions in the background (the default).", name="--learn/--no-learn")
]


@command()
def setup(
    at: Target,
    agent: SetupName,
    *,
    project: InProject = False,
    learn: Learn = True,
    undo: bool = False,
    dry_run: DryRun = False,
    yes: bool = False,
) -> Output:
    """Give a coding agent this memory: hooks, learning, the tools of MCP, and learned skills.

    Shows every change to the agent's settings before it is made, and keeps the original files
    beside them. Sessions then begin with a recap of their project, what is said is kept and learned
    from in the background, and the agent can search and correct what is remembered. What was
    learned as a skill is linked to where the agent looks for skills. Running it again changes
    nothing. Cursor calls no hooks: it gets the tools and the skills.

    Options:
      undo: Take out what this command put in, and nothing else. What is remembered stays.
      yes: Do not ask.

    Examples:
      recollect setup claude-code
      recollect setup codex --dry-run
      recollect setup gemini --undo
    """
    scope = SettingsScope.PROJECT if project else SettingsScope.USER
    known = HOOKED.get(agent)
    places = _places(known or agent, scope)
    with_tools = undo or find_spec("mcp") is not None
    hook = None if undo or known is None else _command(at, known, scope, learn=learn, skills=True)
    server = None if undo else _server(at, agent, scope, has_hooks=known is not None)
    plans = _plans(places, known, hook, server, with_tools=with_tools)
    skills = None if scope is SettingsScope.PROJECT else places.skills
    done = "Removed from" if undo else "Set up in"
    edited = _carry_out(at, plans, dry_run=dry_run, yes=yes, done=done)
    lines, notes = list(edited.lines), list(edited.notes)
    is_refused = any(plan.changes for plan in plans) and not edited.changed
    if skills is not None and not is_refused and not dry_run:
        lines += _linked(at, agent, skills, undo=undo)
    if not with_tools:
        notes.append("Without its tools: pip install 'recollect[mcp]', then run this again.")
    elif edited.changed and not undo:
        notes.append(f"Restart {agent}; recollect status says what was kept and learned.")
    value = {"files": edited.files, "changed": edited.changed, "diff": edited.diff}
    return Output(value, lines, notes)


@command()
def install(
    at: Target,
    agent: AgentName,
    *,
    project: InProject = False,
    dry_run: DryRun = False,
    yes: bool = False,
    learn: Learn = True,
) -> Output:
    """Let AGENT call `recollect hook` at its turning points.

    Everything else in its settings keeps its meaning and its order; the original file is kept
    beside it. A second run changes nothing. --store and --space become part of what is written and,
    unless it is for a --project, so does a store that only RECOLLECT_STORE or a recollect.toml in
    this directory names: agents call from anywhere, and may not know it. `recollect setup` does
    this and more.

    Options:
      yes: Do not ask.

    Examples:
      recollect hook install claude-code --project --dry-run
      recollect hook install codex --space work --yes
    """
    known, scope = Agent(agent), SettingsScope.PROJECT if project else SettingsScope.USER
    words = _command(at, known, scope, learn=learn)
    plan = plan_install(_hooks(known, scope), known, words)
    return _of_hooks(_carry_out(at, [plan], dry_run=dry_run, yes=yes, done="Installed in"))


@command()
def uninstall(
    at: Target,
    agent: AgentName,
    *,
    project: InProject = False,
    dry_run: DryRun = False,
    yes: bool = False,
) -> Output:
    """Remove the hooks of `recollect` from AGENT's settings, and nothing else.

    Options:
      yes: Do not ask.

    Example:
      recollect hook uninstall gemini-cli --project --dry-run
    """
    known = Agent(agent)
    scope = SettingsScope.PROJECT if project else SettingsScope.USER
    plan = plan_uninstall(_hooks(known, scope), known)
    return _of_hooks(_carry_out(at, [plan], dry_run=dry_run, yes=yes, done="Removed from"))


def _places(agent: str, scope: SettingsScope) -> AgentPlaces:
    return places_of(agent, scope, os.environ, Path.home(), Path.cwd())


def _hooks(agent: Agent, scope: SettingsScope) -> Path:
    path = _places(agent, scope).hooks
    assert path is not None  # it is installable
    return path


def _plans(
    places: AgentPlaces,
    agent: Agent | None,
    hook: str | None,
    server: Sequence[str] | None,
    *,
    with_tools: bool,
) -> list[FileEdit]:
    """A plan for each file; without a hook and a server, what takes them out."""
    plans = []
    if agent is not None and places.hooks is not None:
        plans.append(
            plan_uninstall(places.hooks, agent)
            if hook is None
            else plan_install(places.hooks, agent, hook)
        )
    if with_tools:
        base = next((plan for plan in plans if plan.path == places.servers), None)
        plans = [plan for plan in plans if plan is not base]
        plans.append(plan_server(places.servers, server, base))
    return plans


def _server(at: Target, agent: str, scope: SettingsScope, *, has_hooks: bool) -> list[str]:
    """What starts the server; where hooks learn, it only answers."""
    words = ["recollect"] if scope is SettingsScope.PROJECT else program()
    words += ["mcp", *_where(at, scope), "--agent", agent]
    return words + ["--no-work"] * has_hooks


def _linked(at: Target, agent: str, folder: Path, *, undo: bool) -> list[str]:
    """Link the skills of the space, or remove the links; say how many."""
    try:
        with at.open_existing(HOOKED.get(agent, agent)) as memory:
            published = memory.pipeline.published(at.space_name)
    except NotFound:  # nothing was learned yet
        return []
    if published is None:
        return []
    skills = published / "skills"
    if undo:
        count = unlink_skills(skills, folder)
        return [f"Removed {count} links to skills from {folder}."] if count else []
    return [f"Linked the skill {link.name} in {folder}." for link in link_skills(skills, folder)]


def _command(
    at: Target, agent: Agent, scope: SettingsScope, *, learn: bool, skills: bool = False
) -> str:
    """What the agent's shell runs. For others too it cannot be a path of this machine."""
    is_shared = scope is SettingsScope.PROJECT
    words = ["recollect"] if is_shared else program()
    words += ["hook", agent.value, *_where(at, scope)]
    words += ["--skills"] * (skills and learn and not is_shared)
    return shlex.join(words + ["--no-learn"] * (not learn))


def _where(at: Target, scope: SettingsScope) -> list[str]:
    store = _store(at, scope)
    words = [] if store is None else ["--store", store]
    return words if at.named_space is None else [*words, "--space", at.named_space]


def _store(at: Target, scope: SettingsScope) -> str | None:
    """The store that is meant here, where a hook would not find it by itself from anywhere.

    Others who share the settings of a project have their own, unless an option names one.
    """
    if at.store is not None:
        if at.store != without_password(at.store):
            raise click.UsageError(
                "A password does not belong in an agent's settings: set RECOLLECT_STORE instead."
            )
        return absolute(at.store)
    meant = None if scope is SettingsScope.PROJECT else address_of(at.settings())
    if meant is None or meant == ":memory:" or meant != without_password(meant):
        return None
    found = address_of(config.load(environ={}, directory=config.user_config_dir()))
    return None if absolute(meant) == found else absolute(meant)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedSettings:
    """What became of planned changes, for programs and for people."""

    files: list[dict[str, Path | None]]  # each with what it was copied to
    changed: bool
    diff: list[str]
    lines: list[str]
    notes: list[str]


def _of_hooks(edited: EditedSettings) -> Output:
    value = {**edited.files[0], "changed": edited.changed, "diff": edited.diff}
    return Output(value, edited.lines, edited.notes)


def _carry_out(
    at: Target, plans: Sequence[FileEdit], *, dry_run: bool, yes: bool, done: str
) -> EditedSettings:
    """Show every change, ask once, and make them; one file after the other, each whole."""
    changes = [plan for plan in plans if plan.changes]
    diff = [line for plan in changes for line in _diff(plan)]
    is_wanted, notes = bool(changes) and not dry_run, list[str]()
    if changes and not at.as_json:
        _show(diff)
        if is_wanted and not yes and sys.stdin.isatty():
            is_wanted = click.confirm("Write this?", default=True, err=True)
            notes = [] if is_wanted else ["Nothing was changed."]
    lines, files = list[str](), list[dict[str, Path | None]]()
    for plan in plans:
        path = one_line(str(plan.path))
        backup = apply(plan) if is_wanted and plan.changes else None
        files.append({"path": plan.path, "backup": backup})
        if not plan.changes:
            lines.append(f"{path}: nothing to change.")
        elif is_wanted:
            lines.append(f"{done} {path}.")
        if backup is not None:
            notes.append(f"As it was: {one_line(str(backup))}")
    return EditedSettings(files=files, changed=is_wanted, diff=diff, lines=lines, notes=notes)


def _show(diff: Iterable[str]) -> None:
    for line in diff:
        write(click.style(harmless(line), fg={"+": "green", "-": "red"}.get(line[:1])))


def _diff(plan: FileEdit) -> list[str]:
    before, after = ((each or b"").decode().splitlines() for each in (plan.before, plan.after))
    name = str(plan.path)
    return list(difflib.unified_diff(before, after, name, name, lineterm=""))
