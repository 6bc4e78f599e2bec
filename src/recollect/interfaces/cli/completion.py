"""`recollect completion`: the script that lets a shell complete commands, options and values."""

from __future__ import annotations

import sys
from typing import Literal

import click
from click.shell_completion import get_completion_class

from recollect.interfaces.cli.commands import Target, command
from recollect.interfaces.cli.output import note, write

VARIABLE = "_RECOLLECT_COMPLETE"
INSTRUCTIONS = {
    "bash": "recollect completion bash > ~/.local/share/bash-completion/completions/recollect",
    "zsh": 'recollect completion zsh > "${fpath[1]}/_recollect"',
    "fish": "recollect completion fish > ~/.config/fish/completions/recollect.fish",
}


@command()
def completion(_target: Target, shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a completion script for SHELL: bash (4.4 or newer), zsh or fish.

    Tab then completes commands, options and their values, in shells that are started afterwards.

    Examples:
      recollect completion bash > ~/.local/share/bash-completion/completions/recollect
      eval "$(recollect completion bash)"      # for this shell alone
    """
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    script = made(root, {}, "recollect", VARIABLE).source().rstrip()
    first, line, rest = script.partition("\n")
    comment = f"# To install it: {INSTRUCTIONS[shell]}\n"
    # zsh wants #compdef on the first line.
    is_zsh = first.startswith("#compdef")
    write(f"{first}{line}{comment}{rest}" if is_zsh else comment + script)
    if sys.stdout.isatty():
        note(f"To install it: {INSTRUCTIONS[shell]}")
