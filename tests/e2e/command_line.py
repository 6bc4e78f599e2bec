"""How these tests use the command line: in this process, or as one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner, Result

import recollect
from recollect.interfaces.cli.main import cli

ENTRY_POINT = "from recollect.interfaces.cli.main import main; main()"


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin, catch_exceptions=False)


def run_json(*arguments: str, stdin: str | None = None) -> Any:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def process(
    *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", ENTRY_POINT, *arguments],
        input=stdin,
        capture_output=True,
        env=environment,
        check=False,
    )


def fill(url: str, *keys: str, space: str = "default") -> dict[str, str]:
    """A marked session of one record behind each key; their ids by key."""
    with recollect.open(url) as memory:
        found = {}
        for key in keys:
            session = memory.space(space).session(key)
            session.append("user", f"remember {key}")
            found[key] = session.sleep().id
        return found


@contextmanager
def started(
    *arguments: str, before: str = "", stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """A running command; `before` is what its process does first."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{before}\n{ENTRY_POINT}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def line_with(stream: Any, words: bytes) -> bytes:
    """The next line that has these words in it."""
    for line in stream:
        if words in line:
            return bytes(line)
    raise AssertionError(f"the stream ended without {words!r}")
