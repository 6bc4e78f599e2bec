"""Writes tests/contract: the surfaces as users, adapters and clients meet them, one thing a line.

python tools/contract.py

Each is asked for from outside where it can be: the description that `recollect serve` serves, the
tools that `recollect mcp` lists for a client.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, the project itself is not on the path

import anyio  # noqa: E402
import click  # noqa: E402
import httpx2  # noqa: E402
from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

import recollect  # noqa: E402
from recollect import errors  # noqa: E402
from recollect.interfaces.cli.main import cli  # noqa: E402
from tools.reference.python import annotated, default_of, members, signature, type_of  # noqa: E402

CONTRACT = ROOT / "tests" / "contract"
RECOLLECT = [sys.executable, "-c", "from recollect.interfaces.cli.main import main; main()"]
STOP_SECONDS = 30

# Of a parameter of a command: what a caller depends on. What is empty or false is left out.
TOLD_OF_PARAMETERS = frozenset(
    {"required", "nargs", "multiple", "default", "envvar", "prompt", "is_flag", "count", "hidden"}
)
TOLD_OF_TYPES = frozenset(
    {"name", "choices", "min", "max", "min_open", "max_open", "dir_okay", "file_okay", "exists"}
)

# What can be imported, by the module that documents or examples import it from; no names: all that
# the module defines and does not hide.
IMPORTED: Mapping[str, str] = {
    "recollect": " ".join(recollect.__all__),
    "recollect.aio": "",
    "recollect.compat.mem0": "Memory AsyncMemory",
    "recollect.adapters.anthropic_memory": "MemoryTool",
    "recollect.adapters.langgraph_store": "RecollectStore",
    "recollect.adapters.openai_agents": "RecollectSession",
    "recollect.agents.profile": "AgentProfile Hooks",
    "recollect.agents.toolbox": "Tool",
    "recollect.clock": "Clock SystemClock ManualClock",
    "recollect.descriptors": "",
    "recollect.types.pages": "Author AuthorKind",
    "recollect.documents.paths": "read_path",
    "recollect.documents.scope": "Holder",
    "recollect.embedding.protocol": "Embedder Embedded",
    "recollect.importers.generic": "GenericJsonl",
    "recollect.importers.running": "Importing",
    "recollect.models.protocol": "ChatMessage ChatRole Completion Model Request"
    " ToolDefinition Usage",
    "recollect.observing.actors": "acting",
    "recollect.redaction": "load_redactor",
}
# What is handed out and nobody has to import: it may live elsewhere tomorrow.
HANDED_OUT: Mapping[str, str] = {
    "recollect.session": "Sessions",
    "recollect.types.records": "Range SessionProgress",
    "recollect.types.facts": "FactEvent CallOutcome",
    "recollect.types.status": "ModelUse",
    "recollect.extraction.plan": "WorkPlan",
    "recollect.documents.tree": "Documents",
    "recollect.documents.reading": "Links",
    "recollect.documents.changeset": "Changeset",
    "recollect.documents.publish": "Publication",
    "recollect.documents.load": "Loading",
    "recollect.types.pages": "Document Version Reference Node DeletedDocument Purged",
    "recollect.consolidation.generations": "Generations GenerationChange",
    "recollect.consolidation.run": "Preview",
    "recollect.types.generations": "Waiting",
    "recollect.operations.archive": "Exported Loaded",
    "recollect.operations.migrating": "Migrated",
    "recollect.types.access": "AuditEntry",
    "recollect.agents.system": "AgentSystem",
    "recollect.agents.reply": "Reply Ticket",
    "recollect.types.agents": "AgentState",
}
# What these are made with is no caller's business; nor is it with what is handed out.
NOT_MADE_BY_CALLERS = frozenset({"Facts", "Memory", "Session", "Space", "Worker"})
SPECIAL = (
    *("__init__", "__call__", "__len__", "__bool__", "__iter__", "__next__", "__contains__"),
    *("__getitem__", "__enter__", "__exit__", "__await__", "__aenter__", "__aexit__", "__aiter__"),
)


def main() -> None:
    CONTRACT.mkdir(exist_ok=True)
    for name, made in FILES.items():
        (CONTRACT / name).write_text(made(), encoding="utf-8", newline="\n")


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


# HTTP


def openapi() -> str:
    """What `recollect serve` says of itself; its version is told of elsewhere."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as directory:
        place: dict[str, Any] = {"cwd": directory, "env": _environment(directory)}
        keys = [*RECOLLECT, "keys", "create", "reader", "--all-spaces", "--scope", "read"]
        made = subprocess.run(keys, capture_output=True, text=True, check=True, **place)
        serve = [*RECOLLECT, "serve", "--port", "0", "--no-work", "--json"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, **place) as server:
            assert server.stdout is not None
            try:
                ready = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
                headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
                answer = httpx2.get(f"{ready['url']}/v1/openapi.json", headers=headers)
            finally:
                server.terminate()
                server.wait(STOP_SECONDS)
    described = answer.raise_for_status().json()
    del described["info"]["version"]
    return _as_json(described)


def _environment(directory: str) -> dict[str, str]:
    """No settings but these reach a process."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": directory,
        "XDG_CONFIG_HOME": directory,
        "RECOLLECT_STORE": str(Path(directory) / "memory.db"),
    }


# MCP


def mcp() -> str:
    """What a client of `recollect mcp` is offered."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as directory:
        server = StdioServerParameters(
            command=RECOLLECT[0],
            args=[*RECOLLECT[1:], "mcp", "--no-work"],
            env=_environment(directory),
            cwd=directory,
        )

        async def listed() -> list[dict[str, Any]]:
            async with Client(stdio_client(server)) as client:
                tools = (await client.list_tools()).tools
            return [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
            ]

        return _as_json({tool.pop("name"): tool for tool in anyio.run(listed)})


# The command line


def commands() -> str:
    """Every command with its arguments and options; what is said about them is in the reference."""
    tree = cli.to_info_dict(click.Context(cli, **cli.context_settings))
    return "\n\n".join("\n".join(_command(*each)) for each in _commands(tree, "recollect")) + "\n"


def _commands(command: Mapping[str, Any], words: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield words, command
    for name, inner in command.get("commands", {}).items():
        yield from _commands(inner, f"{words} {name}")


def _command(words: str, command: Mapping[str, Any]) -> Iterator[str]:
    yield words + (" (hidden)" if command["hidden"] else "")
    helped = command["short_help"] or (command["help"] or "").partition("\n\n")[0]
    yield f"    {' '.join(helped.split())}"
    parameters = command["params"]
    options = [each for each in parameters if each["param_type_name"] == "option"]
    for argument in parameters:
        if argument not in options:
            yield f"    {argument['name']} {_told(argument)}"
    for option in sorted(options, key=lambda each: str(each["opts"])):
        flags = " ".join((*option["opts"], *option["secondary_opts"]))
        yield f"    {flags} {_told(option)}"


def _told(parameter: Mapping[str, Any]) -> str:
    kind = {name: value for name, value in parameter["type"].items() if name in TOLD_OF_TYPES}
    kind["type"] = kind.pop("name")
    told = {name: value for name, value in parameter.items() if name in TOLD_OF_PARAMETERS}
    shown = {name: value for name, value in (kind | told).items() if value not in (None, False, [])}
    if shown["nargs"] == 1:
        del shown["nargs"]
    return json.dumps(shown, ensure_ascii=False)


# Python


def python() -> str:
    """Every public name with its signature, methods and fields."""
    parts = [
        part
        for module, names in IMPORTED.items()
        for part in (f"# from {module}", *_names_of(module, names))
    ]
    parts += ["# handed out", *(part for each in HANDED_OUT.items() for part in _names_of(*each))]
    parts += ["# from recollect.errors", *map(_error, _own_classes(errors))]
    return "\n\n".join(parts) + "\n"


def _names_of(module: str, names: str) -> Iterator[str]:
    held = importlib.import_module(module)
    hidden = NOT_MADE_BY_CALLERS if module == "recollect" else ()
    is_handed_out = module in HANDED_OUT or module == "recollect.aio"
    for name in names.split() or sorted(_own(held)):
        yield _named(name, getattr(held, name), is_made=not is_handed_out and name not in hidden)


def _own(module: Any) -> Iterator[str]:
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", None) == module.__name__
        is_shown = inspect.isclass(value) or inspect.isfunction(value)
        if is_own and is_shown and not name.startswith("_"):
            yield name


def _own_classes(module: Any) -> list[type]:
    found = (getattr(module, name) for name in sorted(_own(module)))
    return [each for each in found if inspect.isclass(each)]


def _named(name: str, value: Any, *, is_made: bool = True) -> str:
    if not inspect.isclass(value):
        return _function(name, value)
    if issubclass(value, Enum):
        lines = [f"{each} = {member.value!r}" for each, member in value.__members__.items()]
    else:
        lines = [*_fields(value), *_special(value, is_made), *_methods(value)]
    indented = [f"    {line}" for text in lines for line in text.splitlines()]
    return "\n".join([f"class {name}:", *indented])


def _error(kind: type) -> str:
    parents = ", ".join(parent.__name__ for parent in kind.__bases__)
    return _named(kind.__name__, kind).replace(":", f"({parents}):", 1)


def _fields(value: type) -> Iterator[str]:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                default = default_of(field).strip("`")
                yield f"{field.name}: {type_of(field)}" + (f" = {default}" if default else "")


def _special(value: type, is_made: bool) -> Iterator[str]:
    for name in SPECIAL:
        found = next((vars(owner)[name] for owner in value.__mro__ if name in vars(owner)), None)
        is_ours = (getattr(found, "__module__", None) or "").startswith("recollect")
        is_shown = name != "__init__" or (is_made and not dataclasses.is_dataclass(value))
        if is_ours and is_shown:
            yield _function(name, found)


def _methods(value: type) -> Iterator[str]:
    for name, member in sorted(members(value)):
        kind = type(inspect.getattr_static(value, name))
        if not callable(member):
            yield f"@property\n{name} -> {annotated(member)}"
        elif kind in (classmethod, staticmethod):
            yield f"@{kind.__name__}\n{_function(name, member)}"
        else:
            yield _function(name, member)


def _function(name: str, function: Any) -> str:
    written = signature(function)
    is_async = inspect.iscoroutinefunction(function)
    return f"{'async ' if is_async else ''}{name}{written[written.index('(') :]}"


FILES: Mapping[str, Callable[[], str]] = {
    "openapi.json": openapi,
    "commands.txt": commands,
    "mcp_tools.json": mcp,
    "python.txt": python,
}

if __name__ == "__main__":
    main()
