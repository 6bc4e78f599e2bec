"""Documents that cannot rot: examples run, links lead somewhere, commands exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.tables import every_row

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?P<fence>```+|~~~+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?(?P<target>[^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)"
)
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?(?P<target>\S+?)>?\s*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*\s*$", re.MULTILINE)
ANCHOR = re.compile(r"<a\s+(?:id|name)=[\"'](?P<name>[^\"']+)[\"']")
CODE_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: in which document, at which line, in which language."""

    document: Path
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link to somewhere inside the project."""

    document: Path
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}:{self.target}"


def documents() -> list[Path]:
    """Every Markdown file of the project; hidden and built directories are not its own."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name[0] != "." and name not in ("build", "dist")]
        found += [Path(folder) / name for name in names if name.endswith(".md")]
    return sorted(found)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(
            document=document,
            line=line_of(text, match.start("body")),
            language=match["info"].strip().split(" ")[0].lower(),
            code=match["body"],
        )


def prose(document: Path) -> str:
    """A document without its fenced blocks, every line where it was."""
    text = document.read_text(encoding="utf-8")
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def links(document: Path) -> Iterator[Link]:
    # A code span is no link; blanked at its length, so that lines and columns stay.
    text = CODE_SPAN.sub(lambda match: "`" + " " * len(match[1]) + "`", prose(document))
    for pattern in (LINK, REFERENCE):
        for match in pattern.finditer(text):
            target = match["target"]
            if not re.match(r"[a-z][a-z0-9+.\-]*:", target, re.IGNORECASE):
                yield Link(document=document, line=line_of(text, match.start()), target=target)


def anchors(document: Path) -> set[str]:
    """The anchors a reader's site makes of the headings, numbered where a title comes twice."""
    found: set[str] = set()
    text = prose(document)
    for match in HEADING.finditer(text):
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match["title"]).lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        count = sum(
            name == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", name) is not None
            for name in found
        )
        found.add(f"{slug}-{count}" if count else slug)
    return found | {match["name"] for match in ANCHOR.finditer(text)}


DOCUMENTS = documents()
# These are followed from top to bottom, in test_walks: each block goes on where the last one ended.
WALKED = [
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "how-to" / "agent-in-20-lines.md",
    ROOT / "docs" / "how-to" / "backup.md",
    ROOT / "docs" / "how-to" / "deletion.md",
]
EXAMPLES = [
    block
    for document in DOCUMENTS
    if document == ROOT / "README.md" or document.is_relative_to(ROOT / "docs")
    if document not in WALKED
    for block in blocks(document)
    if block.language in ("python", "py")
]
LINKS = [link for document in DOCUMENTS for link in links(document)]


def broken(link: Link) -> str | None:
    """Why a link leads nowhere, or None."""
    path, _, anchor = link.target.partition("#")
    target = (link.document.parent / unquote(path)).resolve() if path else link.document
    if not target.exists():
        return f"there is no {path}"
    if not target.is_relative_to(ROOT):
        return f"{path} lies outside the project"
    if anchor and unquote(anchor) not in anchors(target):
        return f"{target.name} has no heading #{anchor}"
    return None


def commands(document: Path) -> set[str]:
    """The targets of every `make …` in a code span or at the start of a line of a console."""
    spans = CODE_SPAN.findall(prose(document))
    lines = [line for block in blocks(document) for line in block.code.splitlines()]
    code = "\n".join([*spans, *lines])
    return set(re.findall(r"^(?:\$ )?make ([a-z][\w-]*)", code, re.MULTILINE))


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_example_runs(example: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("platformdirs.user_config_dir", lambda _name: str(tmp_path / "no"))
    monkeypatch.chdir(tmp_path)
    padded = "\n" * (example.line - 1) + example.code  # so that a traceback shows its line
    exec(compile(padded, str(example.document), "exec"), {"__name__": "__main__"})


@every_row("link", LINKS)
def test_the_link_leads_somewhere(link: Link) -> None:
    assert broken(link) is None


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_command_that_is_mentioned_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    mentioned = commands(ROOT / name)
    assert mentioned
    assert mentioned <= targets


def test_the_index_leads_to_every_document() -> None:
    index = ROOT / "docs" / "README.md"
    led = {(index.parent / link.target.partition("#")[0]).resolve() for link in links(index)}
    below = {document for document in DOCUMENTS if document.is_relative_to(ROOT / "docs")}
    assert below - led == {index}


def test_the_readme_has_an_example_and_links() -> None:
    assert any(example.document == ROOT / "README.md" for example in EXAMPLES)
    assert any(link.document == ROOT / "README.md" for link in LINKS)


# the rules themselves


def test_what_is_in_a_fence_is_code_and_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / "x.md"
    document.write_text(
        "# One `two`, three\n\n[a](b.md) and `[c](d.md)`\n\n```python\n# [e](f.md)\nx = 1\n```\n\n"
        "[g](https://example.org) [h](#one-two-three)\n\n## Again\n## Again\n"
    )
    assert [(block.language, block.line) for block in blocks(document)] == [("python", 6)]
    assert [(link.target, link.line) for link in links(document)] == [
        ("b.md", 3),
        ("#one-two-three", 10),
    ]
    assert anchors(document) == {"one-two-three", "again", "again-1"}


def test_a_link_that_leads_nowhere_is_found() -> None:
    readme = ROOT / "README.md"

    def problem(target: str) -> str | None:
        return broken(Link(document=readme, line=1, target=target))

    assert problem("README.md") is None
    assert problem("src") is None
    assert problem("no-such-file.md") == "there is no no-such-file.md"
    assert problem("#no-such-heading") == "README.md has no heading #no-such-heading"
    assert problem("..") == ".. lies outside the project"


def test_a_command_in_prose_is_no_command(tmp_path: Path) -> None:
    document = tmp_path / "x.md"
    document.write_text(
        "make sure that `make one` works\n\n```console\n$ make two  # make three\n```\n"
    )
    assert commands(document) == {"one", "two"}
