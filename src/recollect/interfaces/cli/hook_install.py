"""`recollect hook install` and `uninstall`: an agent's settings, changed before your eyes."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from recollect import config
from recollect.hooks.events import Agent
from recollect.hooks.installing import (
    INSTALLABLE,
    Plan,
    Scope,
    apply,
    plan_install,
    plan_uninstall,
    settings_file,
)
from recollect.hooks.places import absolute
from recollect.interfaces.cli.output import harmless, note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.store.address import without_password

_AGENT = click.argument("agent", type=click.Choice([agent.value for agent in INSTALLABLE]))
_USER = click.option(
    "--user", "scope", flag_value=Scope.USER.value, default=True, help="For you. The default."
)
_PROJECT = click.option(
    "--project", "scope", flag_value=Scope.PROJECT.value, help="For all who work in this directory."
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show what would change.")
_YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("install", short_help="Write the hooks into an agent's settings.")
@_AGENT
@_USER
@_PROJECT
@_DRY_RUN
@_YES
@click.option("--learn", is_flag=True, help="Have sessions learned from as soon as they end.")
@with_target
def install(
    target: Target, /, agent: str, scope: str, dry_run: bool, yes: bool, learn: bool
) -> None:
    """Let AGENT call `recollect hook` at its turning points.

    Everything else in its settings stays as it is, byte for byte; the file as it was before the
    first time is kept beside it. A second time changes nothing. --store and --space become part of
    what is written and, unless it is for a --project, so does a store that only RECOLLECT_STORE or
    a recollect.toml in this directory names: agents call from anywhere, and may not know it.

    \b
    Examples:
      recollect hook install claude-code
      recollect hook install claude-code --project --dry-run
      recollect hook install codex --space work --learn --yes
    """
    known, where = Agent(agent), Scope(scope)
    command = _command(target, known, where, learn=learn)
    plan = plan_install(_file(known, where), known, command)
    _carry_out(target, plan, dry_run=dry_run, yes=yes, done="Installed in")


@click.command("uninstall", short_help="Take them out again, and nothing else.")
@_AGENT
@_USER
@_PROJECT
@_DRY_RUN
@_YES
@with_target
def uninstall(target: Target, /, agent: str, scope: str, dry_run: bool, yes: bool) -> None:
    """Take the hooks of `recollect` out of AGENT's settings, and nothing else.

    \b
    Examples:
      recollect hook uninstall claude-code
      recollect hook uninstall gemini-cli --project --dry-run
    """
    known = Agent(agent)
    plan = plan_uninstall(_file(known, Scope(scope)), known)
    _carry_out(target, plan, dry_run=dry_run, yes=yes, done="Removed from")


def _file(agent: Agent, scope: Scope) -> Path:
    return settings_file(agent, scope, os.environ, Path.home(), Path.cwd())


def _command(target: Target, agent: Agent, scope: Scope, *, learn: bool) -> str:
    """What the agent's shell runs. For others too it cannot be a path of this machine."""
    words = ["recollect"] if scope is Scope.PROJECT else _program()
    words += ["hook", agent.value]
    store = _store(target, scope)
    if store is not None:
        words += ["--store", store]
    if target.space is not None:
        words += ["--space", target.space]
    return shlex.join(words + ["--learn"] * learn)


def _store(target: Target, scope: Scope) -> str | None:
    """The store that is meant here, where a hook would not find it by itself from anywhere.

    Others who share the settings of a project have their own, unless an option names one.
    """
    if target.store is not None:
        if target.store != without_password(target.store):
            raise click.UsageError(
                "A password does not belong into an agent's settings: set RECOLLECT_STORE instead."
            )
        return absolute(target.store)
    meant = None if scope is Scope.PROJECT else _address(target.settings())
    if meant is None or meant == ":memory:" or meant != without_password(meant):
        return None
    found = _address(config.load(environ={}, directory=config.user_config_dir()))
    return None if absolute(meant) == found else absolute(meant)


def _address(settings: config.Settings) -> str | None:
    """None: there is no store, or there is one for each agent."""
    if settings.store is not None:
        return settings.store
    is_one = settings.database != "per-agent" and (settings.data_dir or settings.sqlite_path)
    return str(settings.path()) if is_one else None


def _program() -> list[str]:
    """How this very program is started from anywhere."""
    beside = shutil.which("recollect", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-P", "-m", "recollect"]


def _carry_out(target: Target, plan: Plan, *, dry_run: bool, yes: bool, done: str) -> None:
    diff = list(_diff(plan))
    if target.as_json:
        backup = apply(plan) if plan.changes and not dry_run else None
        write_json(
            {
                "path": str(plan.path),
                "changed": plan.changes and not dry_run,
                "diff": diff,
                "backup": None if backup is None else str(backup),
            }
        )
        return
    if not plan.changes:
        write(f"{one_line(str(plan.path))}: nothing to change.")
        return
    for line in diff:
        write(click.style(harmless(line), fg={"+": "green", "-": "red"}.get(line[:1])))
    if dry_run:
        return
    if not yes and sys.stdin.isatty() and not click.confirm("Write this?", default=True, err=True):
        note("Nothing was changed.")
        return
    backup = apply(plan)
    write(f"{done} {one_line(str(plan.path))}.")
    if backup is not None:
        note(f"As it was: {one_line(str(backup))}")


def _diff(plan: Plan) -> list[str]:
    before, after = ((each or b"").decode().splitlines() for each in (plan.before, plan.after))
    name = str(plan.path)
    return list(difflib.unified_diff(before, after, name, name, lineterm=""))
