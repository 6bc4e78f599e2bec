"""The reference of the Python names: signatures and the first thing each docstring says."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import recollect
from recollect.agents.reply import Reply, Ticket
from recollect.agents.system import AgentSystem
from recollect.consolidation.generations import Generations
from recollect.documents.tree import Documents
from recollect.session import Sessions
from tools.reference.layout import fenced, first_paragraph, page, table

WIDTH = 100  # of a signature on one line
PREFACE = """\
What `recollect` exports, and what is reached from there. The same names as coroutines are in
`recollect.aio`; everything raises the [errors](errors.md) of one tree. Examples are in the
[tutorial](../tutorial.md) and the guides.
"""
# What is not exported because nobody makes one: how it is reached.
REACHED: dict[type, str] = {
    Sessions: "`space.sessions`",
    Documents: "`space.documents`",
    Generations: "`space.generations`",
    AgentSystem: "`memory.agents()`",
    Ticket: "`agents.post(…)`",
    Reply: "`agents.ask(…)`",
}


def render() -> str:
    exported = [getattr(recollect, name) for name in recollect.__all__]
    functions = [each for each in exported if inspect.isfunction(each)]
    classes = [each for each in exported if inspect.isclass(each)]
    values = [each for each in classes if dataclasses.is_dataclass(each) or _is_enum(each)]
    working = sorted((each for each in classes if each not in values), key=_order)
    missing = {*exported} - {*functions, *classes}
    assert not missing, f"neither functions nor classes: {missing}"
    reached = [each for each in REACHED if not dataclasses.is_dataclass(each)]
    passive = [each for each in REACHED if dataclasses.is_dataclass(each)]
    return page(
        "Python",
        PREFACE,
        "## Functions",
        *(_function(each) for each in functions),
        "## Classes",
        *(part for each in (*working, *reached) for part in _class(each)),
        "## Values",
        "What is handed in and out: dataclasses, nearly all frozen, and enumerations.",
        *(part for each in (*values, *passive) for part in _value(each)),
    )


def _order(each: type) -> tuple[int, str]:
    """In the order in which a reader meets them, then by name."""
    met = ("Memory", "Space", "Session", "Facts", "Worker", "AgentMemories")
    return (met.index(each.__name__) if each.__name__ in met else len(met), each.__name__)


def _function(function: Callable[..., Any]) -> str:
    return f"### `{function.__name__}`\n\n{_signed(function)}"


def _class(each: type) -> Iterator[str]:
    title = f"### `{each.__name__}`"
    yield f"{title}\n\n{_said(each)}{_way_to(each)}"
    attributes = [
        (f"`{name}`", f"`{annotated(member)}`", first_paragraph(member.__doc__))
        for name, member in members(each)
        if not callable(member)
    ]
    if attributes:
        yield table(("attribute", "type", ""), attributes)
    for name, member in members(each):
        if callable(member):
            yield f"#### `{each.__name__}.{name}`\n\n{_signed(member)}"


def _value(each: type) -> Iterator[str]:
    yield f"### `{each.__name__}`\n\n{_said(each)}{_way_to(each)}"
    if _is_enum(each):
        values = [f"`{member.value}`" for member in each.__members__.values()]  # type: ignore[attr-defined]
        yield " · ".join(values)
        return
    rows = [
        (f"`{field.name}`", f"`{type_of(field)}`", default_of(field))
        for field in dataclasses.fields(each)
        if not field.name.startswith("_")
    ]
    if each is recollect.Settings:
        yield "Its fields are the [settings](settings.md)."
        return
    yield table(("field", "type", "default"), rows)
    for name, member in members(each):
        if inspect.isfunction(member):
            yield f"#### `{each.__name__}.{name}`\n\n{_signed(member)}"


def members(each: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, in the order of the source, those of parents last."""
    seen: set[str] = set()
    for owner in each.__mro__:
        if not owner.__module__.startswith("recollect"):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(member, staticmethod | classmethod):
                member = member.__func__
            is_shown = inspect.isfunction(member) or isinstance(member, property)
            if is_shown or type(member).__name__ == "cached_property":
                yield name, member


def _signed(function: Callable[..., Any]) -> str:
    said = inspect.cleandoc(function.__doc__ or "")
    return f"{fenced(signature(function))}\n\n{said}".rstrip()


def signature(function: Callable[..., Any]) -> str:
    name, found = getattr(function, "__name__", ""), inspect.signature(function)
    given = list(_shown(found))
    result = found.return_annotation
    arrow = "" if result is inspect.Signature.empty else f" -> {_plain(result)}"
    line = f"{name}({', '.join(given)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in given), f"){arrow}"])


def _shown(found: inspect.Signature) -> Iterator[str]:
    """The parameters as they are written in the source; annotations are texts here."""
    is_keyword_only = False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            yield "*"
        is_keyword_only |= parameter.kind is parameter.VAR_POSITIONAL
        shown = str(parameter).partition(":")[0].partition("=")[0].strip()  # with its stars
        if parameter.annotation is not parameter.empty:
            shown += f": {_plain(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            shown += f" = {_steady(parameter.default)}"
        yield shown


def _steady(default: Any) -> str:
    """A default by a text that is the same in every process."""
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, frozenset):  # in no order of its own
        return f"{{{', '.join(sorted(map(_steady, default)))}}}" if default else "frozenset()"
    text = repr(default)
    if isinstance(default, str) and '"' not in default:
        text = f'"{text[1:-1]}"'
    return "…" if " at 0x" in text else text


def _plain(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("builtins.", "")


def annotated(member: Any) -> str:
    getter = member.fget if isinstance(member, property) else member.func
    return _plain(getter.__annotations__.get("return", ""))


def type_of(field: dataclasses.Field[Any]) -> str:
    return _plain(field.type)


def default_of(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{_steady(field.default)}`"
    return "empty" if field.default_factory is not dataclasses.MISSING else ""


def _said(each: type) -> str:
    said = inspect.cleandoc(each.__doc__ or "")
    return "" if said.startswith(f"{each.__name__}(") else said  # a dataclass's own, without words


def _way_to(each: type) -> str:
    return f" Reached by {REACHED[each]}." if each in REACHED else ""


def _is_enum(each: type) -> bool:
    return issubclass(each, Enum)
