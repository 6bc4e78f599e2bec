"""A command from a function: its parameters from the signature, its help from the docstring.

What every command shares is here: which store and space it works on, how its answer is printed for
people or for programs, and how it fails.
"""

from __future__ import annotations

import functools
import inspect
import os
import pwd
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self, get_args, get_origin, get_type_hints

import click

import recollect
from recollect import config
from recollect.errors import InvalidSetting, InvalidValue, NotFound, RecollectError
from recollect.interfaces.cli.groups import TARGET_NAMES, CommandGroup, Completer, target_options
from recollect.interfaces.cli.output import json_line, note, one_line, write, write_json
from recollect.interfaces.views import without_none
from recollect.observing.actors import acting
from recollect.space import Space
from recollect.store.address import path_of, without_password

Reader = Callable[[str], Any]


# Parameters


@dataclass(frozen=True, slots=True)
class Opt:
    """What an annotation cannot say about an option."""

    help: str
    metavar: str | None = None
    name: str = ""  # where it is not that of the parameter: --session, --work/--no-work
    read: Reader | None = None  # makes a value of a text; InvalidValue: it is wrong
    complete: Completer | None = None
    choices: Iterable[str] = ()
    at_least: float | None = None
    at_most: float | None = None
    envvar: str | None = None
    hidden: bool = False
    clamp: bool = False
    exists: bool = False  # a path that has to be there


@dataclass(frozen=True, slots=True)
class Arg:
    """What an annotation cannot say about an argument."""

    metavar: str | None = None
    read: Reader | None = None
    complete: Completer | None = None
    choices: Iterable[str] = ()
    at_least: float | None = None
    exists: bool = False
    is_file: bool = False  # and cannot be a directory


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """The arguments and options that a function's signature asks for, in its order.

    A parameter that is a dataclass is the options that its fields are.
    """
    hints = get_type_hints(function, include_extras=True)
    found = []
    for each in list(inspect.signature(function).parameters.values())[1:]:
        if is_dataclass(hints[each.name]):
            found += _options_of(hints[each.name])
        else:
            found.append(_parameter(each.name, each.default, hints[each.name]))
    return found


def _options_of(kind: Any) -> list[click.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        _parameter(
            each.name,
            inspect.Parameter.empty if each.default is MISSING else each.default,
            hints[each.name],
        )
        for each in fields(kind)
    ]


def _gathered(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function, with its dataclasses made of the options that they are."""
    hints = get_type_hints(function)
    made = {}
    for name in list(inspect.signature(function).parameters)[1:]:
        kind = hints[name]
        if is_dataclass(kind):
            assert isinstance(kind, type)
            made[name] = kind(**{each.name: given[each.name] for each in fields(kind)})
        else:
            made[name] = given[name]
    return made


def _parameter(name: str, default: Any, hint: Any) -> click.Parameter:
    if get_origin(hint) is not Annotated:
        hint = Annotated[hint, Arg()]
    kind, *extras = get_args(hint)
    kind, _ = without_none(kind)
    spec = next(each for each in reversed(extras) if isinstance(each, Opt | Arg))
    is_many = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if is_many:
        kind = get_args(kind)[0]
    is_required = default is inspect.Parameter.empty
    given: dict[str, Any] = {
        "type": _type(kind, spec),
        "callback": _reading(spec.read, is_many=is_many) if spec.read else None,
        "shell_complete": spec.complete,
        "metavar": spec.metavar,
        "required": is_required,
    }
    if not is_required and not (is_many and not default):
        given["default"] = default
    if isinstance(spec, Arg):
        if is_many:
            given["nargs"] = -1
        return click.Argument([name], **given)
    return _option(name, kind, spec, given, is_many=is_many)


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


def _type(kind: Any, spec: Opt | Arg) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(list(get_args(kind)))
    if spec.choices:
        return click.Choice([str(each) for each in spec.choices], case_sensitive=False)
    if spec.read is not None:
        return str
    if get_origin(kind) is tuple:  # of a pair of values, as one option
        return get_args(kind)
    at_most = getattr(spec, "at_most", None)
    clamp = getattr(spec, "clamp", False)
    if kind in (int, float):
        ranged: Any = click.IntRange if kind is int else click.FloatRange
        return ranged(spec.at_least, at_most, clamp=clamp)
    if kind is Path:
        is_file = getattr(spec, "is_file", False)
        return click.Path(exists=spec.exists, dir_okay=not is_file, path_type=Path)
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

    def address(self) -> str | Path:
        """The store that is meant, without opening it: it may not exist yet."""
        settings = self.settings()
        if self.store is not None:
            return self.store
        if settings.database == "per-agent":
            raise InvalidSetting("database is per-agent: name the store with --store")
        if settings.store is None and not (settings.data_dir or settings.sqlite_path):
            return ":memory:"  # nothing is kept
        return settings.store or settings.path()

    def _file(self, agent: str | None) -> Path | None:
        settings = self.settings()
        if self.store is None and settings.database == "per-agent":
            return None if agent is None else settings.agent_path(_agent_name(agent))
        return path_of(self.address())

    def ignores_space(self, why: str) -> None:
        """Say that --space has no effect, if one was named all the same."""
        if self.named_space is not None:
            self.warn(f"--space is ignored: {why}.")

    def warn(self, text: str) -> None:
        """A remark on standard error, also for programs."""
        note(json_line({"note": text}) if self.as_json else text)


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
class Answer:
    """What a command answers: a value for programs, lines for people, and advice beside them."""

    value: Any
    lines: str | Iterable[str] = ()
    notes: str | Iterable[str] = ()  # on standard error, and only for people
    exit_code: int = 0


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
    summary: str = "",
    makes_store: bool = False,
    kind: type[click.Command] = click.Command,
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """A command of a function that takes a Target and what its annotations ask for.

    `makes_store` has it open a store that is not there yet. The name is that of the function.
    """

    def make(function: Callable[..., Answer | None]) -> click.Command:
        made = kind(
            name or function.__name__.rstrip("_").replace("_", "-"),
            callback=_run(function, makes_store=makes_store),
            params=[*parameters_of(function), *target_options()],
            help=help_of(function),
            short_help=summary or None,
        )
        if of is not None:
            of.add_command(made)
        return made

    return make


def help_of(function: Callable[..., Any]) -> str:
    """The docstring, with examples and tables kept as they are."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(
        f"\b\n{each}" if each.startswith(("Example", "  ")) else each for each in paragraphs
    )


def _run(function: Callable[..., Answer | None], *, makes_store: bool) -> Callable[..., None]:
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


def say(target: Target, answer: Answer) -> None:
    """Print an answer."""
    if target.as_json:
        write_json(answer.value)
        return
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
