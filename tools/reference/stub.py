"""Writes src/recollect/aio.pyi: what type checkers know of the classes that are made at import.

Signatures are those of the synchronous methods, by their annotations as they are written; a class
that has a twin stands for that twin.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from recollect import aio
from recollect.coroutines import Twin

HEAD = "# Type information of recollect.aio; make docs writes it.\n# ruff: noqa: A002, ASYNC109\n"


class _Words(str):
    """Source text, which a signature shows as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def render() -> str:
    """The stub, formatted as the rest of the source is."""
    written = _Written()
    classes = [written.twin(made) for made in sorted(_twins(), key=lambda made: made.__name__)]
    opening = written.method(aio.open, "open", in_class=False)
    lines = [HEAD, *sorted(written.imports), "", opening, *classes]
    return _formatted("\n".join(lines))


def _twins() -> Iterator[type[Twin]]:
    for value in vars(aio).values():
        if inspect.isclass(value) and issubclass(value, Twin) and value is not Twin:
            yield value


class _Written:
    """What is written so far, and what it has to import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self._homes: dict[str, str] = {}
        self._local = {made.__name__ for made in _twins()}

    def twin(self, made: type[Twin]) -> str:
        core = next(core for core, twin in Twin.twins.items() if twin is made)
        self.imports.add(f"import {core.__module__}")
        body = [
            "    @property",
            f"    def sync(self) -> {core.__module__}.{core.__qualname__}: ...",
        ]
        if "__init__" not in vars(made):
            body.append(f"    def __init__(self, sync: {core.__module__}.{core.__qualname__}): ...")
        for name, member in vars(made).items():
            if name == "sync" or not _is_shown(name):
                continue
            if inspect.isfunction(member):
                body.append(self.method(member, name))
            elif isinstance(member, property):
                body += ["    @property", f"    def {name}(self) -> {self._hint(made, name)}: ..."]
        return f"class {made.__name__}:\n" + "\n".join(body) + "\n"

    def _hint(self, made: type[Twin], name: str) -> str:
        return self.known(vars(made)[name].fget.__annotations__["return"], aio)

    def method(self, method: Callable[..., Any], name: str, *, in_class: bool = True) -> str:
        home = sys.modules[inspect.unwrap(method).__module__]
        signature = inspect.signature(method)
        shown = signature.replace(
            parameters=[self._parameter(each, home) for each in signature.parameters.values()],
            return_annotation=_Words(self.known(signature.return_annotation, home)),
        )
        starts = "async def" if inspect.iscoroutinefunction(method) else "def"
        return f"{'    ' * in_class}{starts} {name}{shown}: ..."

    def _parameter(self, given: inspect.Parameter, home: ModuleType) -> inspect.Parameter:
        if given.annotation is not inspect.Parameter.empty:
            given = given.replace(annotation=_Words(self.known(given.annotation, home)))
        if given.default is not inspect.Parameter.empty:
            given = given.replace(default=_Words("..."))
        return given

    def known(self, annotation: str, home: ModuleType) -> str:
        """The same annotation, with all its names imported."""
        for node in ast.walk(ast.parse(annotation)):
            if not isinstance(node, ast.Name) or node.id in self._local:
                continue
            if not hasattr(builtins, node.id):
                line = _imports(home).get(node.id) or f"from {home.__name__} import {node.id}"
                first = self._homes.setdefault(node.id, line)
                assert _imported(first) is _imported(line), f"two are called {node.id}"
                self.imports.add(first)
        return annotation


def _is_shown(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__", "__aenter__", "__aexit__")


@cache
def _imports(module: ModuleType) -> dict[str, str]:
    """What a module imports under which name, also for type checkers alone."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            found |= {
                each.asname or each.name: f"from {node.module} import {ast.unparse(each)}"
                for each in node.names
            }
        elif isinstance(node, ast.Import):
            found |= {each.name: f"import {each.name}" for each in node.names}
    return found


def _imported(line: str) -> object:
    names: dict[str, object] = {}
    exec(line, names)  # noqa: S102 - a line of imports, which this has made
    return names.popitem()[1]


def _formatted(source: str) -> str:
    for command in (["check", "--fix", "--select", "I"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", "aio.pyi"]
        made = subprocess.run(
            [*ruff, "-"], input=source, capture_output=True, text=True, check=True
        )
        source = made.stdout
    return source
