"""Tab: what a shell is offered, by the protocol that shells speak; and a real bash at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from recollect.interfaces.cli.main import cli


def offered(*line: str) -> list[str]:
    """What is offered for the last word of a line."""
    complete = BashComplete(cli, {}, "recollect", "_RECOLLECT_COMPLETE")
    return [item.value for item in complete.get_completions(list(line[:-1]), line[-1])]


def test_commands_and_options_are_offered() -> None:
    assert offered("com") == ["completion"]
    assert "read" in offered("docs", "r")
    assert offered("recall", "--kin") == ["--kind"]
    assert offered("recall", "--kind", "f") == ["fact"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_it_is_installed(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert f"recollect completion {shell} >" in result.output
    assert f"_RECOLLECT_COMPLETE={shell}_complete" in result.output
    if shell == "zsh":
        assert result.output.startswith("#compdef recollect\n")


def test_bash_is_offered_what_the_command_offers() -> None:
    script = CliRunner().invoke(cli, ["completion", "bash"]).output
    asking = """
    ask() { COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _recollect_completion recollect
            printf '%s\\n' "${COMPREPLY[*]}"; }
    ask recollect com
    ask recollect recall --kind su
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "--norc", "-c", script + asking],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("completion\nsummary\n", "")
