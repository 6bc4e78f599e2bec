"""A source tree as the tidy rules see it: modules, their syntax trees and what they import.

Nothing is imported or executed, so that the rules also work on broken and on made-up trees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

DYNAMIC = "<dynamic>"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSite:
    """One imported module: where, what, and whether inside a function."""

    line: int
    target: str
    in_function: bool


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the tree, with its dotted name."""

    name: str
    path: Path
    is_package: bool

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def absolute(self, node: ast.ImportFrom) -> str:
        """The module a ``from … import`` names, with leading dots resolved."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        dropped = node.level - 1 if self.is_package else node.level
        kept = parts[: len(parts) - dropped]
        return ".".join([*kept, node.module] if node.module else kept)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class SourceTree:
    """Every module of one package below a source directory."""

    root: Path
    package: str

    @cached_property
    def modules(self) -> dict[str, Module]:
        found = (self._module(path) for path in sorted((self.root / self.package).rglob("*.py")))
        return {module.name: module for module in found}

    def _module(self, path: Path) -> Module:
        parts = list(path.relative_to(self.root).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        return Module(name=name, path=path, is_package=is_package)

    def top_level(self, name: str) -> str:
        """The first name below the package: ``store`` for ``recollect.store.sqlite``."""
        parts = name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    def imports(self, module: Module) -> Iterator[ImportSite]:
        """Everything the module imports, wherever it stands, type checking and calls included."""
        yield from self._imports(module, module.tree, in_function=False)

    def internal_imports(self, module: Module) -> Iterator[ImportSite]:
        """The imports of modules of this very tree."""
        return (site for site in self.imports(module) if self._is_internal(site.target))

    def _is_internal(self, target: str) -> bool:
        return target == self.package or target.startswith(f"{self.package}.")

    def _imports(self, module: Module, node: ast.AST, *, in_function: bool) -> Iterator[ImportSite]:
        for child in ast.iter_child_nodes(node):
            for target in self._targets(module, child):
                yield ImportSite(line=child.lineno, target=target, in_function=in_function)  # type: ignore[attr-defined]
            inside = in_function or isinstance(child, Function | ast.Lambda)
            yield from self._imports(module, child, in_function=inside)

    def _targets(self, module: Module, node: ast.AST) -> list[str]:
        match node:
            case ast.Import(names=names):
                return [alias.name for alias in names]
            case ast.ImportFrom(names=names):
                origin = module.absolute(node)
                return sorted({self._from_target(origin, alias.name) for alias in names})
            case ast.Call(func=func, args=args) if _is_import_call(func):
                first = args[0] if args else None
                known = isinstance(first, ast.Constant) and isinstance(first.value, str)
                return [str(first.value) if known else DYNAMIC]  # type: ignore[union-attr]
            case _:
                return []

    def _from_target(self, origin: str, name: str) -> str:
        """``from recollect import errors`` names the module recollect.errors, if there is one."""
        deeper = f"{origin}.{name}"
        return deeper if deeper in self.modules else origin


def _is_import_call(func: ast.expr) -> bool:
    match func:
        case ast.Name(id="__import__" | "import_module"):
            return True
        case ast.Attribute(attr="import_module"):
            return True
        case _:
            return False


def docstring_lines(node: Function) -> int:
    """How many lines of a function are its docstring."""
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None or first.end_lineno is None:
        return 0
    return first.end_lineno - first.lineno + 1


def dotted_references(module: Module) -> Iterator[tuple[int, str]]:
    """Every name used in the module that an import brought in, spelled out in full.

    With ``import datetime as dt``, ``dt.datetime.now`` is ``datetime.datetime.now``.
    """
    origins = _imported_names(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            origin = module.absolute(node)
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Name | ast.Attribute):
            dotted = _spelled_out(node, origins)
            if dotted is not None:
                yield node.lineno, dotted


def _imported_names(module: Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    local = alias.asname or alias.name.partition(".")[0]
                    names[local] = alias.name if alias.asname else local
            case ast.ImportFrom(names=aliases):
                origin = module.absolute(node)
                for alias in aliases:
                    names[alias.asname or alias.name] = f"{origin}.{alias.name}"
            case _:
                pass
    return names


def _spelled_out(node: ast.expr, origins: dict[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return origins.get(name)
        case ast.Attribute(value=value, attr=attr):
            owner = _spelled_out(value, origins)
            return None if owner is None else f"{owner}.{attr}"
        case _:
            return None
