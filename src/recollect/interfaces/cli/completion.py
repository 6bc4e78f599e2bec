"""`recollect completion`: the script that lets a shell complete commands, options and names."""

from __future__ import annotations

import sys
from typing import Annotated

import click
from click.shell_completion import FishComplete, ShellComplete, ZshComplete

from recollect.interfaces.cli.commands import Answer, Arg, Target, command
from recollect.interfaces.cli.output import note, write

VARIABLE = "_RECOLLECT_COMPLETE"

# As click's own, but for keys such as telegram:42:main: bash takes a line apart at colons and
# equals signs, so that its words are put together again, and what it took away is cut off answers.
BASH = """\
_recollect_completion() {
    local IFS=$'\\n' word type value glue="" prefix="" response
    local -a words=()
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -gt 0 && ( -n $glue || $word == [:=] ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        glue=""
        [[ $word == [:=] ]] && glue=yes
    done
    word=${words[${#words[@]}-1]}
    [[ $word == -*=* ]] && word=${word#*=}
    [[ $COMP_WORDBREAKS == *:* ]] && prefix=${word%"${word##*:}"}
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]}-1)) \\
        _RECOLLECT_COMPLETE=bash_complete "$1" 2>/dev/null)
    while IFS=, read -r type value; do
        case $type in
            plain) COMPREPLY+=("${value#"$prefix"}") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done <<< "$response"
}

complete -o nosort -F _recollect_completion recollect
"""

INSTRUCTIONS = {
    "bash": "recollect completion bash > ~/.local/share/bash-completion/completions/recollect",
    "zsh": 'recollect completion zsh > "${fpath[1]}/_recollect"',
    "fish": "recollect completion fish > ~/.config/fish/completions/recollect.fish",
}


@command()
def completion(
    _target: Target, shell: Annotated[str, Arg("SHELL", choices=tuple(INSTRUCTIONS))]
) -> Answer | None:
    """Print a completion script for SHELL: bash (4.4 or newer), zsh or fish.

    Tab then completes commands, options and their values, and the names in a store: spaces, session
    keys, paths of pages. The store is that of --store on the line, else of RECOLLECT_STORE and the
    settings. Only an existing SQLite file is looked into, and only for a moment; nothing is created
    or changed, and no server is asked.

    Examples:
      recollect completion bash > ~/.local/share/bash-completion/completions/recollect
      recollect completion zsh > "${fpath[1]}/_recollect"
      recollect completion fish > ~/.config/fish/completions/recollect.fish
      eval "$(recollect completion bash)"      # for this shell alone

    It takes effect in shells that are started afterwards.
    """
    write(_script(shell).rstrip())
    if sys.stdout.isatty():
        note(f"To install it: {INSTRUCTIONS[shell]}")
    return None


def _script(shell: str) -> str:
    """What a shell has to read, with how to install it as a comment."""
    comment = f"# To install it: {INSTRUCTIONS[shell]}\n"
    if shell == "bash":
        return comment + BASH
    kinds: dict[str, type[ShellComplete]] = {"zsh": ZshComplete, "fish": FishComplete}
    root = click.get_current_context().find_root().command
    source = kinds[shell](root, {}, "recollect", VARIABLE).source()
    first, _, rest = source.partition("\n")  # zsh wants #compdef on the first line
    return f"{first}\n{comment}{rest}" if first.startswith("#compdef") else comment + source
