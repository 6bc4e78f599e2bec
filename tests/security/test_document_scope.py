"""A8, G8, P9: no combination of arguments reads, changes or betrays what is outside a scope.

Every verb and every tool is called with every kind of argument at every place where a path or an id
can stand: inside, outside, by id, by an old path that leads out, deleted, in other spellings. What
is outside holds canary texts; and what is there is answered exactly like what is not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.documents.editing import Editor
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.tools import DocumentTools
from recollect.documents.tree import Documents
from recollect.errors import RecollectError
from recollect.types.pages import Author, AuthorKind

PART = "~/memory/agents/a"
CANARY = "canary"
UNKNOWN_ID = "01999999-9999-7999-8999-999999999999"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION = re.compile(r"version[= ]\d+")


class World:
    """A space in which somebody holds one part, and everything else bears a canary."""

    def __init__(self, memory: recollect.Memory, name: str) -> None:
        self.space = memory.space(name)
        self.owner = self.space.documents
        agent = Author(kind=AuthorKind.AGENT, name="a")
        self.agent = self.owner.held_by(Holder(author=agent, root=read_path(PART)))
        write = self.owner.write
        write("~/memory/agents", f"{CANARY} above", description=f"{CANARY} d")
        write(PART, "The root of the part.")
        write(f"{PART}/mine", "Words inside. See [[~/memory/private/page]].")
        write(f"{PART}/deleted", "Deleted inside.")
        self.owner.delete(f"{PART}/deleted")
        write(f"{PART}/left", "Words inside.")
        self.owner.move(f"{PART}/left", "~/memory/private/left")
        write("~/memory/private/left", f"{CANARY} left")
        write("~/memory/agents/ab/page", f"{CANARY} sibling", title=f"{CANARY} title")
        write("~/memory/private/page", f"{CANARY} private words")
        write(f"~/memory/private/{CANARY}", f"See [[{PART}/mine]] and [[{PART}/came]].")
        write("~/memory/private/gone", f"{CANARY} gone")
        self.gone = self.owner.delete("~/memory/private/gone").id
        write("~/memory/private/came", f"{CANARY} draft")
        write("~/memory/private/came", "Clean words.")
        self.owner.move("~/memory/private/came", f"{PART}/came")
        write("~/desk/page", f"{CANARY} desk words")
        self.outside = [
            self.owner.read(path).id
            for path in (
                "~/memory/agents",
                "~/memory/agents/ab/page",
                "~/memory/private",
                "~/memory/private/page",
                f"~/memory/private/{CANARY}",
                "~/memory/private/left",
                "~/desk/page",
            )
        ] + [self.gone]

    def fingerprint(self) -> list[object]:
        """All that is outside, deleted things and every version included.

        Whatever was changed and changed back shows in it, so that one look sees many calls.
        """
        live = [node.path for top in ("~/memory", "~/desk") for node in self.owner.tree(top)]
        kept = [path for path in live if not read_path(path).is_within(read_path(PART))]
        return [kept, *(self.owner.history(document_id) for document_id in self.outside)]


Kind = Callable[[World], str]

KINDS: Mapping[str, Kind] = {
    "inside": lambda world: f"{PART}/mine",
    "inside by id": lambda world: world.owner.read(f"{PART}/mine").id,
    "the root of the part": lambda world: PART,
    "free inside": lambda world: f"{PART}/free/page",
    "deleted inside": lambda world: f"{PART}/deleted",
    "came from outside": lambda world: f"{PART}/came",
    "came, by its old path": lambda world: "~/memory/private/came",
    "left, by its old path": lambda world: f"{PART}/left",
    "left, by id": lambda world: world.owner.read("~/memory/private/left").id,
    "outside": lambda world: "~/memory/private/page",
    "outside in another case": lambda world: "~/MEMORY/Private/PAGE",
    "outside in short": lambda world: "private/page",
    "outside as a file": lambda world: "/private/page.md",
    "outside by id": lambda world: world.owner.read("~/memory/private/page").id,
    "outside of memory": lambda world: "~/desk/page",
    "above": lambda world: "~/memory/agents",
    "the root of memory": lambda world: "~/memory",
    "the root of memory by id": lambda world: world.owner.read("~/memory").id,
    "a sibling that begins alike": lambda world: "~/memory/agents/ab/page",
    "deleted outside": lambda world: "~/memory/private/gone",
    "deleted outside by id": lambda world: world.gone,
    "through dots": lambda world: f"{PART}/../../private/page",
    "through encoded dots": lambda world: f"{PART}/%2e%2e/%2e%2e/private/page",
    "home": lambda world: "~",
    "nothing": lambda world: "",
}

Call = Callable[..., object]

VERBS: Mapping[str, tuple[int, Call]] = {
    "read": (1, lambda d, p: d.read(p)),
    "find": (1, lambda d, p: d.find(p)),
    "tree": (1, lambda d, p: d.tree(p)),
    "tree after": (1, lambda d, p: d.tree(after=p)),
    "search below": (1, lambda d, p: d.search(CANARY, below=p)),
    "links": (1, lambda d, p: d.links(p)),
    "history": (1, lambda d, p: d.history(p)),
    "version 1": (1, lambda d, p: d.version(p, 1)),
    "diff": (1, lambda d, p: d.diff(p, 1)),
    "write": (1, lambda d, p: d.write(p, "mine")),
    "write new": (1, lambda d, p: d.write(p, "mine", expected_version=0)),
    "write over": (1, lambda d, p: d.write(p, "mine", expected_version=1)),
    "append": (1, lambda d, p: d.append(p, "mine")),
    "patch": (1, lambda d, p: d.patch(p, "words", "mine")),
    "link to": (1, lambda d, p: d.links(d.write(f"{PART}/new", f"[[{p}]]").path)),
    "link explicitly to": (
        1,
        lambda d, p: d.links(d.write(f"{PART}/new", "x", links=[p]).path),
    ),
    "delete": (1, lambda d, p: d.delete(p)),
    "delete all": (1, lambda d, p: d.delete(p, below=True, references="leave")),
    "delete and unlink": (1, lambda d, p: d.delete(p, below=True, references="unlink")),
    "restore": (1, lambda d, p: d.restore(p)),
    "restore a version": (1, lambda d, p: d.restore(p, 1)),
    "move": (2, lambda d, p, q: d.move(p, q)),
    "move, then read": (2, lambda d, p, q: (d.move(p, q), d.read(q), d.read(p))),
    "move and restore": (2, lambda d, p, q: (d.move(p, q), d.delete(q), d.restore(q))),
}

TOOLS: Mapping[str, tuple[int, Call]] = {
    "document_read": (1, lambda t, p: t("document_read", path=p)),
    "document_read a version": (1, lambda t, p: t("document_read", path=p, version=1)),
    "document_read lines": (1, lambda t, p: t("document_read", path=p, from_line=1, to_line=1)),
    "document_write": (1, lambda t, p: t("document_write", path=p, body="mine")),
    "document_write new": (
        1,
        lambda t, p: t("document_write", path=p, body="mine", expected_version=0),
    ),
    "document_write links": (
        1,
        lambda t, p: (
            t("document_write", path=f"{PART}/new", body=f"[[{p}]]", links=[p]),
            t("document_read", path=f"{PART}/new"),
        ),
    ),
    "document_write over": (
        1,
        lambda t, p: t("document_write", path=p, body="mine", expected_version=1),
    ),
    "document_append": (1, lambda t, p: t("document_append", path=p, text="mine")),
    "document_patch": (1, lambda t, p: t("document_patch", path=p, old="words", new="mine")),
    "document_tree": (1, lambda t, p: t("document_tree", path=p)),
    "document_tree after": (1, lambda t, p: t("document_tree", after=p)),
    "document_tree of, after": (2, lambda t, p, q: t("document_tree", path=p, after=q)),
    "document_search": (1, lambda t, p: t("document_search", query=p)),
    "document_search below": (1, lambda t, p: t("document_search", query=CANARY, below=p)),
}


def outcome(call: Call, *arguments: object) -> str:
    """What a caller gets to see, whichever way it comes."""
    try:
        return repr(call(*arguments))
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"


def tool_of(documents: Editor) -> Callable[..., str]:
    tools = DocumentTools(documents)
    return lambda name, **arguments: tools.call(name, arguments)


@pytest.fixture(params=[":memory:", pytest.param("postgres", marks=pytest.mark.postgres)])
def memory(request: pytest.FixtureRequest) -> Iterator[recollect.Memory]:
    is_postgres = request.param == "postgres"
    url = request.getfixturevalue("lent_store_url") if is_postgres else request.param
    with recollect.open(url, clock=ManualClock()) as opened:
        yield opened


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_says_what_is_outside(memory: recollect.Memory, name: str) -> None:
    """In a changeset, so that each combination finds everything as the one before did."""
    places, call = VERBS[name]
    world = World(memory, "one")
    before = world.fingerprint()
    for kinds in itertools.product(KINDS, repeat=places):
        edits = world.agent.changeset()
        said = outcome(call, edits, *(KINDS[kind](world) for kind in kinds))
        assert CANARY not in said, (kinds, said)
    assert world.fingerprint() == before


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_changes_what_is_outside(memory: recollect.Memory, name: str) -> None:
    """On the tree itself: each kind, and for two places each kind at either of them."""
    places, call = VERBS[name]
    other = (f"{PART}/other",) * (places - 1)
    worlds = (World(memory, str(number)) for number in itertools.count())
    world = next(worlds)
    before, inside = world.fingerprint(), world.agent.tree()
    for kind in KINDS:
        argument = KINDS[kind](world)
        for arguments in sorted({(argument, *other), (*other, argument)}):
            said = outcome(call, world.agent, *arguments)
            assert CANARY not in said, (kind, said)
            assert world.fingerprint() == before, kind
        if world.agent.tree() != inside:
            world = next(worlds)  # the next kind finds everything as this one did
            before, inside = world.fingerprint(), world.agent.tree()


def test_no_purge_reaches_outside(memory: recollect.Memory) -> None:
    world = World(memory, "one")
    before = world.fingerprint()
    for kind, argument in [(kind, KINDS[kind](world)) for kind in KINDS]:
        outcome(Documents.purge, world.agent, argument)
        assert world.fingerprint() == before, kind


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_reads_or_changes_what_is_outside(memory: recollect.Memory, name: str) -> None:
    """The tools, on the tree itself: what they write inside stays, and matters to none of this."""
    places, call = TOOLS[name]
    world = World(memory, name)
    before = world.fingerprint()
    for kinds in itertools.product(KINDS, repeat=places):
        arguments = [KINDS[kind](world) for kind in kinds]
        said = outcome(call, tool_of(world.agent), *arguments)
        assert CANARY not in said, (kinds, said)
    assert world.fingerprint() == before


# what is there, and what is not: the same answer

TWINS: Mapping[str, tuple[Kind, Kind]] = {
    "outside": (KINDS["outside"], lambda world: "~/memory/private/none"),
    "outside of memory": (KINDS["outside of memory"], lambda world: "~/desk/none"),
    "a sibling": (
        KINDS["a sibling that begins alike"],
        lambda world: "~/memory/agents/ab/none",
    ),
    "an id": (KINDS["outside by id"], lambda world: UNKNOWN_ID),
    "the id of what left": (KINDS["left, by id"], lambda world: UNKNOWN_ID),
    "the id of what is deleted": (KINDS["deleted outside by id"], lambda world: UNKNOWN_ID),
    "what is deleted": (KINDS["deleted outside"], lambda world: "~/memory/private/none"),
    "the old path of what left": (KINDS["left, by its old path"], lambda world: f"{PART}/lent"),
    "the old path of what came": (
        KINDS["came, by its old path"],
        lambda world: "~/memory/private/none",
    ),
}


def anonymous(said: str, argument: str) -> str:
    """An answer without the name that was asked for, and without ids that were made for it.

    What is made where something stood before, inside, has a higher version: no secret of others.
    """
    slug = argument.rpartition("/")[2]
    said = _VERSION.sub("version", said.replace(argument, "<it>").replace(slug, "<slug>"))
    return _UUID.sub("<id>", said)


def assert_twins_are_answered_alike(memory: recollect.Memory, ask: Call) -> None:
    world = World(memory, "one")
    for name, twins in TWINS.items():
        said = []
        for twin in twins:
            argument = twin(world)
            said.append(anonymous(outcome(ask, world.agent.changeset(), argument), argument))
        assert said[0] == said[1], name


@pytest.mark.parametrize("name", [name for name in VERBS if VERBS[name][0] == 1])
def test_what_is_outside_is_answered_like_what_is_not(memory: recollect.Memory, name: str) -> None:
    assert_twins_are_answered_alike(memory, VERBS[name][1])


@pytest.mark.parametrize(
    "name", [name for name in TOOLS if TOOLS[name][0] == 1 and name != "document_search"]
)
def test_a_tool_answers_what_is_outside_like_what_is_not(
    memory: recollect.Memory, name: str
) -> None:
    call = TOOLS[name][1]
    assert_twins_are_answered_alike(memory, lambda edits, path: call(tool_of(edits), path))


@pytest.mark.parametrize("other", [f"{PART}/mine", f"{PART}/free"])
@pytest.mark.parametrize("end", ["source", "destination"])
def test_neither_end_of_a_move_says_what_is_outside(
    memory: recollect.Memory, end: str, other: str
) -> None:
    """Source and destination are checked, whichever of them is at fault."""
    if end == "source":
        assert_twins_are_answered_alike(memory, lambda edits, path: edits.move(path, other))
    else:
        assert_twins_are_answered_alike(memory, lambda edits, path: edits.move(other, path))


# the memory tool

COMMANDS: list[dict[str, Any]] = [
    {"command": "view"},
    {"command": "create", "file_text": "mine"},
    {"command": "str_replace", "old_str": "words", "new_str": "mine"},
    {"command": "insert", "insert_line": 0, "insert_text": "mine"},
    {"command": "delete"},
    {"command": "rename", "new_path": "/memories/new.md"},
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["command"])
def test_the_memory_tool_stays_inside(memory: recollect.Memory, command: dict[str, Any]) -> None:
    world = World(memory, "one")
    tool = world.space.memory_tool("a", root=PART)
    before = world.fingerprint()
    for argument in [kind(world) for kind in KINDS.values()]:
        for path in (
            argument,
            f"/memories/{argument}",
            f"/memories{argument.removeprefix('~')}",
            f"/memories/../{argument.removeprefix('~/')}",
            f"/memories{argument.removeprefix(PART)}",
        ):
            said = tool({**command, "path": path, "old_path": path})
            assert CANARY not in said, (path, said)
            if command["command"] == "rename":
                said = tool({**command, "old_path": "/memories/mine.md", "new_path": path})
                assert CANARY not in said, (path, said)
        assert world.fingerprint() == before, argument
