"""The rules of the house, each a function from a source tree to the list of its offences."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from tests.tidy.source_tree import Function, Module, SourceTree, docstring_lines, dotted_references

FUNCTION_LINES_MAX = 59

BANNED_WORDS = frozenset(
    {"util", "utils", "helper", "helpers", "common", "manager", "managers"}
    | {"base", "service", "services"}
)

TIME_READERS = frozenset(
    {
        f"time.{name}"
        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    }
    | {f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time")}
    | {"time.thread_time_ns", "time.gmtime", "time.localtime", "time.ctime", "time.clock_gettime"}
    | {"time.clock_gettime_ns", "time.strftime", "os.times"}
    | {f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")}
    | {"datetime.date.today"}
)

# Reading an id that is there already (uuid.UUID) is free; making one is not.
RANDOM_SOURCES = re.compile(
    r"(random|secrets)\..+|uuid\.(uuid\d|getnode)|os\.(urandom|getrandom)|tempfile\.mktemp"
)

# Put together so that this file does not offend itself.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.\-/}$])/(?:root|home|work|Users)/(?=[\w.])")
REGISTRY = re.compile(
    r"--(?:extra-)?index-url|--find-links|--trusted-host|^\s*-[if]\s|\b(?:https?|file):",
    re.MULTILINE,
)

Offences = list[str]


def misplaced_modules(tree: SourceTree, layers: Sequence[Collection[str]]) -> Offences:
    """Modules that have no place in the layers."""
    placed = {name for layer in layers for name in layer}
    present = {tree.top_level(name) for name in tree.modules}
    return [f"{name} has no place in the layers" for name in sorted(present - placed)]


def layer_violations(tree: SourceTree, layers: Sequence[Collection[str]]) -> Offences:
    """Imports that point to a layer further right."""
    rank = {name: number for number, layer in enumerate(layers) for name in layer}
    offences = []
    for module in tree.modules.values():
        own = rank.get(tree.top_level(module.name))
        for site in tree.internal_imports(module):
            other = rank.get(tree.top_level(site.target))
            if own is not None and other is not None and other > own:
                offences.append(
                    f"{module}:{site.line} imports {site.target}, which stands above it"
                )
    return offences


def import_cycles(tree: SourceTree) -> Offences:
    """Circles of imports between modules, each reported once."""
    edges = {
        name: sorted(
            {site.target for site in tree.internal_imports(module)} & set(tree.modules) - {name}
        )
        for name, module in tree.modules.items()
    }
    done: set[str] = set()
    cycles: Offences = []
    for name in edges:
        _follow(name, edges, [], done, cycles)
    return cycles


def _follow(
    name: str, edges: Mapping[str, list[str]], path: list[str], done: set[str], cycles: Offences
) -> None:
    if name in path:
        cycles.append(" -> ".join([*path[path.index(name) :], name]))
        return
    if name in done:
        return
    for target in edges[name]:
        _follow(target, edges, [*path, name], done, cycles)
    done.add(name)


def hidden_imports(tree: SourceTree, allowed: Collection[tuple[str, str]]) -> Offences:
    """Imports inside functions that nobody allowed, and permissions that nobody uses."""
    used: set[tuple[str, str]] = set()
    offences = []
    for module in tree.modules.values():
        for site in tree.imports(module):
            pair = (module.name, site.target)
            if not site.in_function:
                continue
            if pair in allowed:
                used.add(pair)
            else:
                offences.append(f"{module}:{site.line} hides the import of {site.target}")
    unused = sorted(set(allowed) - used)
    return offences + [f"{name} no longer hides {target}" for name, target in unused]


def banned_names(tree: SourceTree) -> Offences:
    """Modules and classes whose name says nothing."""
    offences = []
    for module in tree.modules.values():
        if BANNED_WORDS & set(module.name.rpartition(".")[2].lower().split("_")):
            offences.append(f"{module} is a banned name")
        offences += [
            f"{module}:{node.lineno} {node.name} is a banned name"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef) and BANNED_WORDS & set(_camel_words(node.name))
        ]
    return offences


def _camel_words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def time_readers(tree: SourceTree, allowed: Collection[str]) -> Offences:
    """Whoever reads a clock outside the modules that may."""
    return _references(tree, allowed, TIME_READERS.__contains__, "reads the time")


def random_makers(tree: SourceTree, allowed: Collection[str]) -> Offences:
    """Whoever makes ids or random numbers outside the modules that may."""
    return _references(
        tree, allowed, lambda name: RANDOM_SOURCES.fullmatch(name) is not None, "makes randomness"
    )


def _references(
    tree: SourceTree, allowed: Collection[str], offends: Callable[[str], bool], does: str
) -> Offences:
    found = {
        f"{module}:{line} {does}: {name}"
        for module in tree.modules.values()
        if module.name not in allowed
        for line, name in dotted_references(module)
        if offends(name)
    }
    return sorted(found)


def broad_excepts(tree: SourceTree, allowed: Collection[str]) -> Offences:
    """Handlers that swallow everything; one that ends in a bare ``raise`` swallows nothing."""
    return [
        f"{module}:{node.lineno} catches everything"
        for module in tree.modules.values()
        if module.name not in allowed
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler | ast.Call) and _swallows_everything(node)
    ]


def _swallows_everything(node: ast.AST) -> bool:
    match node:
        case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
            return False
        case ast.ExceptHandler(type=caught):
            return caught is None or _is_broad(caught)
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
            return any(_is_broad(argument) for argument in args)
        case _:
            return False


def _is_broad(caught: ast.expr) -> bool:
    match caught:
        case ast.Name(id="Exception" | "BaseException"):
            return True
        case ast.Tuple(elts=elements):
            return any(_is_broad(element) for element in elements)
        case _:
            return False


def undocumented_modules(tree: SourceTree) -> Offences:
    """Modules that do not open with a sentence on what they are responsible for."""
    return [
        f"{module} has no docstring"
        for module in tree.modules.values()
        if not ast.get_docstring(module.tree)
    ]


def overgrown(tree: SourceTree) -> Offences:
    """Functions that have taken on a second job."""
    offences = []
    for module in tree.modules.values():
        offences += [
            f"{module}:{node.lineno} {node.name} has {_body_lines(node)} lines"
            f" (at most {FUNCTION_LINES_MAX})"
            for node in module.functions
            if _body_lines(node) > FUNCTION_LINES_MAX
        ]
    return offences


def _body_lines(node: Function) -> int:
    # Without its signature: that of a command is as long as it has options.
    first = node.body[0].lineno
    return (node.end_lineno or first) - first + 1 - docstring_lines(node)


def shared_class_names(tree: SourceTree, elsewhere: Collection[str]) -> Offences:
    """Classes with the name of another; `elsewhere` are modules that name theirs on purpose so."""
    found: dict[str, list[Module]] = {}
    for module in tree.modules.values():
        if module.name not in elsewhere:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(module)
    return [
        f"{name} is a class in {', '.join(sorted(map(str, modules)))}"
        for name, modules in sorted(found.items())
        if len(modules) > 1
    ]


def size(tree: SourceTree) -> dict[str, int]:
    """How much there is of a tree: its lines, its modules, and those that one module imports."""
    importers: dict[str, set[str]] = {name: set() for name in tree.modules}
    for module in tree.modules.values():
        for site in tree.internal_imports(module):
            if site.target in importers and site.target != module.name:
                importers[site.target].add(module.name)
    inner = [name for name, module in tree.modules.items() if not module.is_package]
    return {
        "lines": sum(module.text.count("\n") for module in tree.modules.values()),
        "modules": len(tree.modules),
        "with one importer": sum(len(importers[name]) == 1 for name in inner),
    }


def exports(module: Module) -> set[str] | None:
    """The names in a module's ``__all__``, or None when it has no literal one."""
    for node in module.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return set(ast.literal_eval(value))
            case _:
                pass
    return None


def unfinished(files: Iterable[Path], root: Path) -> Offences:
    """Notes to self that were left behind."""
    return _matching_lines(files, root, UNFINISHED, "leaves a note to self")


def machine_paths(files: Iterable[Path], root: Path) -> Offences:
    """Paths of one particular machine."""
    return _matching_lines(files, root, MACHINE_PATH, "names a path of one machine")


def registry_addresses(files: Iterable[Path], root: Path) -> Offences:
    """Addresses and index options where only names, versions and hashes belong."""
    return _matching_lines(files, root, REGISTRY, "holds an address")


def _matching_lines(
    files: Iterable[Path], root: Path, pattern: re.Pattern[str], does: str
) -> Offences:
    return [
        f"{path.relative_to(root)}:{number} {does}: {line.strip()}"
        for path in files
        for number, line in enumerate(_text_lines(path), start=1)
        if pattern.search(line)
    ]


def _text_lines(path: Path) -> list[str]:
    """The lines of a text file; a binary one has none."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []


def unpinned_requirements(text: str) -> Offences:
    """Requirements without an exact version or without a hash."""
    joined = text.replace("\\\n", " ")
    entries = [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]
    return [
        f"{entry.split()[0]} is not pinned by version and hash"
        for entry in entries
        if not re.match(r"[\w.\-]+(\[[\w,\-]+\])?==\S+", entry) or "--hash=sha256:" not in entry
    ]


def undescribed_targets(makefile: str) -> Offences:
    """Make targets meant for people that have no ``##`` comment for ``make help``."""
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    names = [name for line in targets for name in line.split()]
    return [
        f"make {name} is not described"
        for name in names
        if not re.search(rf"^{re.escape(name)}:.*## \S", makefile, re.MULTILINE)
    ]
