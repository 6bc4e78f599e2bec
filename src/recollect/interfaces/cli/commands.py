"""Makes a command of a function: its parameters from the signature, its help from the docstring.

All that commands share is here: the store and space they work on, the printing of answers for
people or programs, and the handling of errors.
"""

from __future__ import annotations

import functools
import inspect
import os
import pwd
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

import recollect
from recollect import config
from recollect.errors import InvalidSetting, InvalidValue, NotFound, RecollectError
from recollect.interfaces.cli.groups import LINE, TARGET_NAMES, CommandGroup, target_options
from recollect.interfaces.cli.output import json_line, note, one_line, write, write_json
from recollect.observing.actors import acting
from recollect.store.address import path_of, without_password

if TYPE_CHECKING:
    from recollect.space import Space

Reader = Callable[[str], Any]
_CLAUSE = re.compile(r"[.:;] ")  # where the part of a help that a list shows ends
_TOLD = re.compile(
    r"(?P<name>\w+)(?:, (?P<flag>--\S+))?(?: (?P<metavar>[A-Z]\S*?))?: (?P<help>.+)", re.DOTALL
)


# Parameters


@dataclass(frozen=True, slots=True)
class Opt:
    """What a type cannot say about an option or an argument.

    Its help, its name where that is not the parameter's and the word for its value may stand in the
    docstring as well, below `Options:`, as in `tags, --tag T: With this tag.`
    """

    help: str = ""
    metavar: str | None = None
    name: str = ""
    read: Reader | None = None  # makes a value of a text; InvalidValue: it is wrong
    choices: Iterable[str] = ()
    at_least: float | None = None
    at_most: float | None = None
    envvar: str | None = None
    hidden: bool = False
    clamp: bool = False
    exists: bool = False  # a path that has to be there
    is_file: bool = False  # a path that cannot be a directory


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """The parameters that a function's signature asks for, in its order.

    Those that are keyword-only are options; a dataclass is the options that its fields are.
    """
    found = []
    for owner, name, default, is_option in _asked_for(function):
        hint = get_type_hints(owner, include_extras=True)[name]
        found.append(_parameter(name, default, hint, _told_of(owner).get(name), is_option))
    return found


def _asked_for(function: Callable[..., Any]) -> Iterator[tuple[Any, str, Any, bool]]:
    """Yield each parameter's owner, name and default, and whether it is an option."""
    hints = get_type_hints(function)
    for each in list(inspect.signature(function).parameters.values())[1:]:
        kind = hints[each.name]
        if is_dataclass(kind):
            for part in fields(kind):
                is_required = part.default is MISSING
                default = inspect.Parameter.empty if is_required else part.default
                yield kind, part.name, default, True
        else:
            is_option = each.kind is inspect.Parameter.KEYWORD_ONLY
            yield function, each.name, each.default, is_option


def _told_of(owner: Any) -> Mapping[str, Mapping[str, str | None]]:
    """What a docstring says of parameters."""
    _, _, listed = (inspect.getdoc(owner) or "").partition("Options:\n")
    entries = re.split(r"\n  (?! )", "\n" + listed.partition("\n\n")[0])[1:]
    found = (_TOLD.fullmatch(" ".join(each.split())) for each in entries)
    return {each["name"]: each.groupdict() for each in found if each is not None}


def _gathered(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function, with its dataclasses made of the options that they are."""
    hints = get_type_hints(function)
    made = {}
    for name in list(inspect.signature(function).parameters)[1:]:
        kind: Any = hints[name]
        is_made = is_dataclass(kind)
        parts = {each.name: given[each.name] for each in fields(kind)} if is_made else {}
        made[name] = kind(**parts) if is_made else given[name]
    return made


def _parameter(
    name: str, default: Any, hint: Any, told: Mapping[str, str | None] | None, is_option: bool
) -> click.Parameter:
    kind, spec = _unwrapped(hint)
    if told is not None:
        flag, metavar = told["flag"] or spec.name, told["metavar"] or spec.metavar
        spec = replace(spec, help=told["help"] or "", name=flag, metavar=metavar)
    is_many = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if is_many:
        kind, inner = _unwrapped(get_args(kind)[0])
        spec = replace(spec, read=spec.read or inner.read, metavar=spec.metavar or inner.metavar)
    read = spec.read or (kind if isinstance(kind, type) and issubclass(kind, Enum) else None)
    given: dict[str, Any] = {
        "type": _type(kind, spec),
        "callback": _reading(read, is_many=is_many) if read else None,
        "metavar": spec.metavar,
        "required": default is inspect.Parameter.empty,
    }
    if not given["required"] and not (is_many and not default):
        given["default"] = default.value if isinstance(default, Enum) else default
    if is_option:
        return _option(name, kind, spec, given, is_many=is_many)
    return click.Argument([name], nargs=-1 if is_many else 1, **given)


def _unwrapped(hint: Any) -> tuple[Any, Opt]:
    """A type without its None and its annotations, and what they say."""
    spec = Opt()
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *extras = get_args(hint)
            spec = next((each for each in reversed(extras) if isinstance(each, Opt)), spec)
        elif origin in (Union, UnionType):
            hint = next(each for each in get_args(hint) if each is not NoneType)
        else:
            return hint, spec


def _option(
    name: str, kind: Any, spec: Opt, given: dict[str, Any], *, is_many: bool
) -> click.Option:
    flag = spec.name or f"--{name.rstrip('_').replace('_', '-')}"
    default = given.get("default")
    if kind is bool:
        given |= {"type": None, "is_flag": True}
        given["show_default"] = "/" in flag and default is not None
    else:
        given["show_default"] = default not in (None, "", ())
    return click.Option(
        [flag, name],
        help=spec.help,
        envvar=spec.envvar,
        hidden=spec.hidden,
        multiple=is_many,
        **given,
    )


def _type(kind: Any, spec: Opt) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(list(get_args(kind)))
    is_enum = isinstance(kind, type) and issubclass(kind, Enum)
    if choices := spec.choices or ([each.value for each in kind] if is_enum else ()):
        return click.Choice([str(each) for each in choices], case_sensitive=False)
    if spec.read is not None:
        return str
    if get_origin(kind) is tuple:  # of a pair of values, as one option
        return get_args(kind)
    if kind in (int, float):
        ranged: Any = click.IntRange if kind is int else click.FloatRange
        return ranged(spec.at_least, spec.at_most, clamp=spec.clamp)
    if kind is Path:
        return click.Path(exists=spec.exists, dir_okay=not spec.is_file, path_type=Path)
    return click.File("rb") if kind is BinaryIO else str


def _reading(read: Reader, *, is_many: bool) -> Callable[..., Any]:
    def callback(context: click.Context, parameter: click.Parameter, given: Any) -> Any:
        try:
            if is_many:
                return tuple(map(read, given or ()))
            return read(given) if isinstance(given, str) else given
        except InvalidValue as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return callback


# Where a command works


@dataclass(slots=True, kw_only=True)
class Target:
    """Where a command works and for whom it prints; None is what nobody said.

    The store is opened by the first who asks for it: what is wrong with the line is said before.
    """

    store: str | None
    named_space: str | None
    as_json: bool
    directory: Path | None = None  # where settings are looked for; none: the working directory
    agent: str | None = None  # whose store it is, where each agent has its own
    makes_store: bool = False
    _memory: recollect.Memory | None = field(default=None, init=False, repr=False)

    @property
    def memory(self) -> recollect.Memory:
        """The memory, opened; reading commands open only a store that is there."""
        if self._memory is None:
            open_ = self.open if self.makes_store else self.open_existing
            self._memory = open_(self.agent)
        return self._memory

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    @property
    def space_name(self) -> str:
        return config.DEFAULT_SPACE if self.named_space is None else self.named_space

    @property
    def space(self) -> Space:
        return self.memory.space(self.space_name)

    @property
    def scope(self) -> str | None:
        """The space that was named, for commands that otherwise concern all of them."""
        return None if self.named_space is None else self.memory.space(self.named_space).name

    @property
    def quoted_space(self) -> str:
        return repr(one_line(self.space_name))

    def anywhere(self) -> Self:
        """The same without the settings of the working directory, for what agents start.

        They start it in whatever they work on, and a file in there is somebody else's: it could
        name the store that everything is kept in, or the model that everything is sent to.
        """
        return replace(self, directory=config.user_config_dir())

    @property
    def arguments(self) -> str:
        """The options that lead another command to the same place, to be put into advice."""
        store = None if self.store is None else without_password(self.store)
        given = {"--store": store, "--space": self.named_space}
        return "".join(
            f" {option} {shlex.quote(one_line(value))}" for option, value in given.items() if value
        )

    def settings(self, **options: Any) -> recollect.Settings:
        """The settings, with those on top that options of a command set; None is not given."""
        given = {"store": self.store, **options}
        explicit = {name: value for name, value in given.items() if value is not None}
        return config.load(explicit, directory=self.directory)

    def open(self, agent: str | None = None, **options: Any) -> recollect.Memory:
        """The memory to work on; where every agent has its own, the one of this agent."""
        settings = self.settings(**options)
        if self.store is not None or settings.database != "per-agent":
            return recollect.open(self.store, settings=settings)
        if agent is None:
            raise InvalidSetting(
                "database is per-agent, so each agent has a store of its own: name it with --store"
                " (or the agent with --agent, where the command takes one)"
            )
        return recollect.open_agents(settings).memory(_agent_name(agent))

    def open_existing(self, agent: str | None = None) -> recollect.Memory:
        """The memory of a store that exists. NotFound: the file is not there."""
        path = self._file(agent)
        if path is not None and _is_missing(path):
            raise NotFound(
                f"there is no store at {path}; recollect append makes one. If one should be there,"
                " check --store, or RECOLLECT_STORE and the settings that recollect config shows"
            )
        return self.open(agent)

    def address(self) -> str:
        """The store that is meant, without opening it: it may not exist yet."""
        settings = self.settings()
        if self.store is None and settings.store is None and settings.database == "per-agent":
            raise InvalidSetting("database is per-agent: name the store with --store")
        return self.store or address_of(settings) or ":memory:"  # where nothing is kept

    def _file(self, agent: str | None) -> Path | None:
        settings = self.settings()
        if self.store is None and settings.database == "per-agent":
            return None if agent is None else settings.agent_path(_agent_name(agent))
        return path_of(self.address())

    def ignores_space(self, why: str) -> None:
        """Say that --space has no effect, if it was given."""
        if self.named_space is not None:
            self.warn(f"--space is ignored: {why}.")

    def warn(self, text: str) -> None:
        """A remark on standard error, also for programs."""
        note(json_line({"note": text}) if self.as_json else text)


def address_of(settings: config.Settings) -> str | None:
    """The store that settings mean; none: each agent has its own, or nothing is kept."""
    if settings.store is not None:
        return settings.store
    is_one = settings.database != "per-agent" and (settings.data_dir or settings.sqlite_path)
    return str(settings.path()) if is_one else None


def program() -> list[str]:
    """Return the command that starts this program from anywhere."""
    script = Path(sys.executable).with_name("recollect")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "recollect"]


def _is_missing(path: Path) -> bool:
    """Whether nothing has this name; of what cannot be looked at, opening it says why."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def read_agent(name: str | None) -> str | Mapping[str, str] | None:
    """An agent as the user writes it: a name, or `/type/name` as `sessions` shows it."""
    if name is None or not name.startswith("/"):
        return name
    _, type_name, agent_id = (*name.split("/", 2), "")[:3]
    return {"type": type_name, "id": agent_id}


def _agent_name(agent: str) -> str:
    read = read_agent(agent)
    name = read if isinstance(read, str) else (read or {}).get("id")
    if not name:
        raise InvalidValue(f"not an agent: {agent!r}")
    return name


# Commands


@dataclass(frozen=True, slots=True)
class Output:
    """What a command answers: a value for programs, lines for people, and advice beside them."""

    value: Any
    lines: str | Iterable[str] = ()
    notes: str | Iterable[str] = ()  # on standard error, and only for people
    before: str = ""  # a note that stands above the lines
    exit_code: int = 0


def listed(
    at: Target,
    found: Sequence[Any],
    lines: Iterable[str],
    nothing: str = "",
    *,
    limit: int,
    after: object = None,
    cursor: str = "--after",
    by: str = "id",
) -> Output:
    """A page of a list: with the command that shows the next one, or why there is nothing.

    The next page begins after the last thing, which the option `cursor` names by its field `by`.
    """
    if found and len(found) >= limit:
        last = one_line(str(getattr(found[-1], by)))
        return Output(found, lines, f"There may be more: {_again(at, cursor, last)}")
    return Output(found, lines if found else (), nothing if not found and after is None else "")


def _again(at: Target, option: str, value: str) -> str:
    """The command that was given, with another value for one of its options."""
    context = click.get_current_context()
    given, kept = iter(context.meta.get(LINE, ())), list[str]()
    for word in given:
        name, sign, _ = word.partition("=")
        if name not in (option, "--store", "--space"):
            kept.append(word)
        elif not sign:
            next(given, None)
    names = context.command_path.split()
    for name in set(names[1:]) & set(kept):
        kept.remove(name)
    end = kept.index("--") if "--" in kept else len(kept)
    kept[end:end] = [option, value]
    return f"{shlex.join([*names, *map(one_line, kept)])}{at.arguments}"


def group(*, lists: str | None = None) -> Callable[[Callable[[], None]], CommandGroup]:
    """A group of commands; `lists` is the one that it is without a verb."""

    def make(function: Callable[[], None]) -> CommandGroup:
        def nothing(**_given: object) -> None:
            """What was given is read from the context."""

        made = CommandGroup(
            function.__name__, callback=nothing, help=help_of(function), default=lists
        )
        made.params = target_options()
        return made

    return make


def command(
    of: click.Group | None = None,
    *,
    name: str = "",
    makes_store: bool = False,
    kind: type[click.Command] = click.Command,
) -> Callable[[Callable[..., Output | None]], click.Command]:
    """A command of a function that takes a Target and what its annotations ask for.

    `makes_store` has it open a store that is not there yet. The name is that of the function.
    """

    def make(function: Callable[..., Output | None]) -> click.Command:
        made = kind(
            name or function.__name__.rstrip("_").replace("_", "-"),
            callback=_run(function, makes_store=makes_store),
            params=[*parameters_of(function), *target_options()],
            help=help_of(function),
            short_help=_first_sentence(function),
        )
        if of is not None:
            of.add_command(made)
        return made

    return make


def help_of(function: Callable[..., Any]) -> str:
    """The docstring without its options, with examples and tables kept as they are."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(
        f"\b\n{each}" if each.startswith(("Example", "  ")) else each
        for each in paragraphs
        if not each.startswith("Options:")
    )


def _first_sentence(function: Callable[..., Any]) -> str:
    paragraph = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    return f"{_CLAUSE.split(paragraph)[0].rstrip('.')}."


def _run(function: Callable[..., Output | None], *, makes_store: bool) -> Callable[..., None]:
    @functools.wraps(function)
    def run(**given: Any) -> None:
        context = click.get_current_context()
        target = _read_target(context, makes_store=makes_store)
        own = {name: value for name, value in given.items() if name not in TARGET_NAMES}
        target.agent = own.get("agent")
        if _first_word(context) != "hook":
            for name in config.unknown_variables(os.environ):
                target.warn(f"{one_line(name)} is ignored: there is no such setting.")
        with reported(target):
            try:
                with acting(functools.partial(_actor, context)):
                    answer = function(target, **_gathered(function, own))
                    if answer is not None:
                        say(target, answer)
            finally:
                target.close()
        if answer is not None and answer.exit_code:
            context.exit(answer.exit_code)

    return run


@contextmanager
def reported(target: Target) -> Iterator[None]:
    """Turn a RecollectError into one line on standard error and exit code 1."""
    try:
        yield
    except RecollectError as error:
        if target.as_json:
            write_json({"error": error_view(error)}, to_stderr=True)
        else:
            note(f"{click.style('Error:', fg='red')} {one_line(str(error))}")
        click.get_current_context().exit(1)


def error_view(error: RecollectError) -> dict[str, Any]:
    """An error for programs."""
    return {
        "type": type(error).__name__,
        "message": str(error),
        "retry_helps": error.retry_helps,
        "mended_by": error.mended_by.value,
    }


def say(target: Target, answer: Output) -> None:
    """Print an answer."""
    if target.as_json:
        write_json(answer.value)
        return
    for line in _each(answer.before):
        note(line)
    for line in _each(answer.lines):
        write(line)
    for line in _each(answer.notes):
        note(line)


def _each(lines: str | Iterable[str]) -> Iterable[str]:
    return ([lines] if lines else []) if isinstance(lines, str) else lines


def _actor(context: click.Context) -> str:
    """In whose name a command works: an agent's, or that of the user of this machine."""
    word = _first_word(context)
    if word in ("mcp", "hook"):
        return word
    try:
        return f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:  # a container's user need not have a name
        return f"cli:{os.getuid()}"


def _first_word(context: click.Context) -> str:
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return context.info_name or ""


def _read_target(context: click.Context, *, makes_store: bool) -> Target:
    """What was said nearest to the command wins: after its name, then before it."""
    chain: list[Mapping[str, Any]] = []
    current: click.Context | None = context
    while current is not None:
        chain.append(current.params)
        current = current.parent

    def nearest(name: str) -> str | None:
        return next((given[name] for given in chain if given.get(name) is not None), None)

    for name in ("store", "space"):
        if nearest(name) == "":
            raise click.UsageError(f"--{name} is empty.", ctx=context)
    return Target(
        store=nearest("store"),
        named_space=nearest("space"),
        as_json=any(given.get("as_json") for given in chain),
        makes_store=makes_store,
    )
