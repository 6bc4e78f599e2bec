"""`recollect hook install` and `uninstall`: changes to an agent's settings."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import click

from recollect import config
from recollect.hooks.events import Agent
from recollect.hooks.installing import (
    INSTALLABLE,
    FileEdit,
    SettingsScope,
    apply,
    plan_install,
    plan_uninstall,
    settings_file,
)
from recollect.hooks.process import absolute
from recollect.interfaces.cli.commands import Opt, Output, Target, address_of, command, program
from recollect.interfaces.cli.output import harmless, one_line, write
from recollect.interfaces.cli.parameters import DryRun
from recollect.store.address import without_password

AgentName = Annotated[str, Opt(choices=tuple(agent.value for agent in INSTALLABLE))]
InProject = Annotated[
    bool,
    Opt("For you (the default), or for all who work in this directory.", name="--project/--user"),
]


@command()
def install(
    at: Target,
    agent: AgentName,
    *,
    project: InProject = False,
    dry_run: DryRun = False,
    yes: bool = False,
    learn: bool = False,
) -> Output:
    """Let AGENT call `recollect hook` at its turning points.

    Everything else in its settings keeps its meaning and its order; the original file is kept
    beside it. A second run changes nothing. --store and --space become part of what is written and,
    unless it is for a --project, so does a store that only RECOLLECT_STORE or a recollect.toml in
    this directory names: agents call from anywhere, and may not know it.

    Options:
      yes: Do not ask.
      learn: Learn from sessions as soon as they end.

    Examples:
      recollect hook install claude-code --project --dry-run
      recollect hook install codex --space work --learn --yes
    """
    known, scope = Agent(agent), SettingsScope.PROJECT if project else SettingsScope.USER
    words = _command(at, known, scope, learn=learn)
    plan = plan_install(_file(known, scope), known, words)
    return _carry_out(at, plan, dry_run=dry_run, yes=yes, done="Installed in")


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
    plan = plan_uninstall(
        _file(known, SettingsScope.PROJECT if project else SettingsScope.USER), known
    )
    return _carry_out(at, plan, dry_run=dry_run, yes=yes, done="Removed from")


def _file(agent: Agent, scope: SettingsScope) -> Path:
    return settings_file(agent, scope, os.environ, Path.home(), Path.cwd())


def _command(at: Target, agent: Agent, scope: SettingsScope, *, learn: bool) -> str:
    """What the agent's shell runs. For others too it cannot be a path of this machine."""
    words = ["recollect"] if scope is SettingsScope.PROJECT else program()
    words += ["hook", agent.value]
    store = _store(at, scope)
    if store is not None:
        words += ["--store", store]
    if at.named_space is not None:
        words += ["--space", at.named_space]
    return shlex.join(words + ["--learn"] * learn)


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


def _carry_out(at: Target, plan: FileEdit, *, dry_run: bool, yes: bool, done: str) -> Output:
    diff, path = list(_diff(plan)), one_line(str(plan.path))
    lines, notes = [f"{path}: nothing to change."], list[str]()
    is_wanted = plan.changes and not dry_run
    if plan.changes and not at.as_json:
        for line in diff:
            write(click.style(harmless(line), fg={"+": "green", "-": "red"}.get(line[:1])))
        lines = []
        if is_wanted and not yes and sys.stdin.isatty():
            is_wanted = click.confirm("Write this?", default=True, err=True)
            notes = [] if is_wanted else ["Nothing was changed."]
    backup = apply(plan) if is_wanted else None
    if is_wanted:
        lines = [f"{done} {path}."]
    if backup is not None:
        notes.append(f"As it was: {one_line(str(backup))}")
    value = {"path": plan.path, "changed": is_wanted, "diff": diff, "backup": backup}
    return Output(value, lines, notes)


def _diff(plan: FileEdit) -> list[str]:
    before, after = ((each or b"").decode().splitlines() for each in (plan.before, plan.after))
    name = str(plan.path)
    return list(difflib.unified_diff(before, after, name, name, lineterm=""))
