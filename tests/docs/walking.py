"""Follows a document as its reader would: every block in order, in one directory, output compared.

    ```console        each `$ …` is run, and what stands below it has to be what it prints
    ```python         is run, with the names of the blocks before it; # name.py: kept as that file
    ```sh             not run: it needs a server, or goes on for ever; that it is understood is seen

An id, a time or a score in a document stands for whatever stands there on the day; an id that was
seen is put into the commands below it. … stands for anything on a line, and alone for any lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.testing import CliRunner

from recollect.interfaces.cli.main import cli
from tests.docs.test_documents import Block, blocks

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
# What is another on every day and machine, and what it has to look like.
VARYING = {
    "id": ID,
    "time": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "day": r"\d{4}-\d\d(?:-\d\d)?",
    "score": r"-?\d+\.\d{3}",
    "hash": r"\b[0-9a-f]{8,10}\b(?!-)",
}
TOKEN = re.compile("|".join(f"(?P<{name}>{shape})" for name, shape in VARYING.items()) + "|…")
FILE_NAME = re.compile(r"# (?P<name>[\w.-]+\.\w+)\n")
# Preparing an environment is the business of the wheel's own test.
NOT_RUN = ("pip install", "python3 -m venv", ". .venv", "git clone", "make ")
NEEDS_SHELL = re.compile(r"[|<>;&$`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command of a console, and what the document says it prints; none: it does not say."""

    line: str
    output: str


@dataclass(slots=True)
class Walk:
    """One reader: where they are, what they have defined, and which ids they have seen."""

    directory: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    ids: dict[str, str] = field(default_factory=dict)

    def follow(self, document: Path) -> int:
        """Every block of a document. How many things were run."""
        return sum(self._take(block) for block in blocks(document))

    def _take(self, block: Block) -> int:
        named = FILE_NAME.match(block.code)
        if named and block.language == "python":
            (self.directory / named["name"]).write_text(self._today(block.code), encoding="utf-8")
            return 0
        if block.language == "python":
            padded = "\n" * (block.line - 1) + self._today(block.code)
            exec(compile(padded, str(block.document), "exec"), self.names)
            return 1
        if block.language == "sh":
            lines = block.code.splitlines()
            own = [shlex.split(line) for line in lines if line.startswith("recollect ")]
            for words in own:
                understood(words[1 : words.index("&&") if "&&" in words else None])
            return len(own)
        if block.language != "console":
            return 0
        return sum(self._show(block, shown) for shown in console(block.code))

    def _show(self, block: Block, shown: Shown) -> int:
        if shown.line.startswith(NOT_RUN):
            return 0
        line = self._today(shown.line)
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            os.environ[name] = value
            return 1
        code, output = run(line, self.directory)
        where = f"{block}: {line}"
        assert code == (1 if shown.output.startswith("Error: ") else 0), f"{where}\n{output}"
        if shown.output:
            difference = self.compare(shown.output, output)
            assert difference is None, f"{where}\n{difference}\nIt printed:\n{output}"
        return 1

    def compare(self, told: str, printed: str) -> str | None:
        """Where what was printed is not what a document tells, or None; learns the ids."""
        told, printed = told.rstrip(), printed.rstrip()
        if told == "…" or self._fits(told, printed):
            return None
        # Of what was learned within one millisecond any may be listed first.
        left = items(printed)
        if not all(re.match(ID, each) for each in left):
            return f"It was to print:\n{told}"
        for item in items(told):
            if item == "…":
                return None
            found = next((each for each in left if self._fits(item, each)), None)
            if found is None:
                return f"There is nothing like:\n{item}"
            left.remove(found)
        return None if not left else "It printed more than it was to."

    def _fits(self, told: str, printed: str) -> bool:
        pattern, seen = self._pattern(told)
        match = re.fullmatch(pattern, printed)
        if match is None:
            return False
        self.ids |= {each: match[f"id{number}"] for number, each in enumerate(seen)}
        return True

    def _pattern(self, told: str) -> tuple[str, list[str]]:
        """What a told output has to match, and the new ids in it: the numbers of their groups."""
        seen: list[str] = []

        def shape(match: re.Match[str]) -> str:
            if match[0] == "…":
                return r"[^\n]*"
            if not match["id"]:
                return VARYING[match.lastgroup or ""]
            if match[0] in self.ids:
                return re.escape(self.ids[match[0]])
            if match[0] in seen:
                return f"(?P=id{seen.index(match[0])})"
            seen.append(match[0])
            return f"(?P<id{len(seen) - 1}>{ID})"

        pattern, end = "", 0
        for match in TOKEN.finditer(told):
            pattern += re.escape(told[end : match.start()]) + shape(match)
            end = match.end()
        pattern += re.escape(told[end:])
        # A line that is nothing but … stands for any number of them.
        anything = r"(?:[^\n]*\n)*?"
        whole = re.sub(r"(?m)^(?:\\ )*\[\^\\n\]\*\\?\n", lambda _: anything, pattern)
        whole = re.sub(r"\\?\n(?:\\ )*\[\^\\n\]\*\Z", lambda _: r"(?:\n[^\n]*)*", whole)
        return whole, seen

    def _today(self, text: str) -> str:
        """A text of the document with the ids of this walk in it."""
        return re.sub(ID, lambda match: self.ids.get(match[0], match[0]), text)


def console(code: str) -> Iterator[Shown]:
    """The commands of a console with what follows each; a line that ends in \\ goes on."""
    line, output = "", ""
    for each in code.replace("\\\n", " ").splitlines():
        if each.startswith("$ "):
            if line:
                yield Shown(line=line, output=output)
            line, output = without_comment(each[2:]), ""
        else:
            output += each + "\n"
    if line:
        yield Shown(line=line, output=output)


def without_comment(line: str) -> str:
    return re.sub(r"\s{2,}# .*$", "", line).strip()


def items(text: str) -> list[str]:
    """The parts of a list: a line at the margin, and what is indented below it."""
    return re.findall(r"^\S.*(?:\n[ \t]+.*)*", text, re.MULTILINE)


def run(line: str, directory: Path) -> tuple[int, str]:
    """A line as a terminal shows it: the exit code, and both streams in one."""
    words = shlex.split(line)
    if words[0] == "recollect" and not NEEDS_SHELL.search(line):
        result = CliRunner().invoke(cli, words[1:])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def understood(arguments: list[str]) -> None:
    """The command exists and takes these options, and so does what it is the group of."""
    # With its own settings: click keeps what the first context made of -h and --help.
    context = click.Context(cli, **cli.context_settings)
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments:
        name, *arguments = arguments
        inner = command.get_command(context, name)
        assert inner is not None, f"there is no {name!r}"
        command = inner
        try:
            context = command.make_context(name, list(arguments), parent=context)
        except click.BadParameter as error:
            # What would have made the file was not run either.
            if not re.search("does not exist|No such file", error.message):
                raise
            return
        arguments = [*context._protected_args, *context.args]
