"""An operation: a verb on one method of one path, with its properties for HTTP.

Its parameters are read from a signature: that of the method it calls, or of a function where HTTP
does more than call one. Path and query become one struct, the body another; msgspec checks requests
against them and describes them. Its refusals are worded without any content of the request.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect import collection
from recollect.agents.reply import Reply
from recollect.clock import from_micros, to_micros
from recollect.collection import StableKey
from recollect.compat.mem0 import Memory as Mem0Memory
from recollect.errors import InvalidValue, RecollectError
from recollect.interfaces.http.problems import JSON_TYPE, HttpAnswer
from recollect.interfaces.views import view
from recollect.memory import Memory
from recollect.recall.checking import CheckCase, Checked
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.types.access import ApiKey, AuditEntry, Scope
from recollect.types.facts import Fact, Proposal, Unchanged
from recollect.types.generations import Generation
from recollect.types.pages import DeletedDocument, Node, Version
from recollect.types.recall import About, Context, EntryKind, Hit, Replay
from recollect.types.records import Record, SessionState
from recollect.types.status import Status
from recollect.verbs import VERBS, Verb

Outcome = Reply | RecollectError | None

SPACE = "/v1/spaces/{space}"
INTEGER_MAX = 2**53 - 1  # what every reader of JSON keeps exactly
CURSOR_CHARS_MAX = 2000
FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999

Json = dict[str, Any]
Handler = Callable[..., Any]  # of a request and what was sent with it
Reader = Callable[..., Any]  # of a request and the ids of what was made
Taken = Mapping[str, tuple[Any, Any]]  # types and defaults of parameters


class ParameterPlace(Enum):
    """Where a parameter is, if its method says otherwise."""

    QUERY = "query"


Count = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Number = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
Limit = Annotated[int, Meta(ge=0, le=LIST_MAX, description="How many, at most.")]
Cursor = Annotated[
    str, Meta(max_length=CURSOR_CHARS_MAX, description="The `next` of the page before.")
]
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Tags = Annotated[list[str], Meta(max_length=1000)]
Kinds = Annotated[list[EntryKind], Meta(max_length=len(EntryKind))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedRequest:
    """A request that was let in: for whom, whose it is, and on which conditions."""

    memory: Memory
    mem0: Mem0Memory  # the same memory, by mem0's verbs
    post: Callable[..., tuple[str, Outcome]]  # a message to an agent
    space: Space  # of the path; the default one where the path names none
    key: ApiKey
    changes: Callable[[], AsyncIterator[str]]  # of the space, for a stream
    expected_version: int | None = None  # by If-Match; 0 by If-None-Match
    idempotency_key: str | None = None


class Repeat(Enum):
    """What an Idempotency-Key does."""

    PLAIN = "plain"  # nothing: it is not read
    APPEND = "append"  # it becomes the append key, and is kept with the record
    ONCE = "once"  # a retry does nothing, for a while, and is answered with what the first one made


class KeyReach(Enum):
    """The keys that may use an operation."""

    SPACE = "space"  # those of the space in the path
    OWN = "own"  # any; it answers with what the key may see
    STORE = "store"  # those of all spaces


LISTED: Mapping[str, Verb] = {place: verb for verb in VERBS for place in verb.http}


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """One method on one path, and who may ask for it."""

    method: str
    path: str
    name: str
    handler: Handler
    scope: Scope = Scope.READ
    reach: KeyReach = KeyReach.SPACE


@dataclass(frozen=True, kw_only=True)
class Operation(Guarded):
    """A verb of the list over HTTP: its name and scope are the verb's."""

    summary: str
    answer: Any  # the type of what is answered, or types by field
    taken: Taken | None = None  # what it takes, if its handler's signature does not say it
    statuses: tuple[int, ...] = (200,)
    media_type: str = JSON_TYPE
    takes_append_key: bool = False
    again: Reader | None = None  # reads what was made by the ids of the first answer
    is_conditional: bool = False
    problems: frozenset[int] = frozenset()  # besides those that every operation has

    @property
    def repeat(self) -> Repeat:
        if self.again is not None:
            return Repeat.ONCE
        return Repeat.APPEND if self.takes_append_key else Repeat.PLAIN

    @cached_property
    def inputs(self) -> OperationInputs:
        return OperationInputs(self)

    def answered(self, value: Any, now: datetime) -> HttpAnswer:
        """What its handler returned, as an answer; a version becomes an ETag."""
        if isinstance(value, HttpAnswer):
            return value
        named = getattr(value, "id", None) or getattr(value, "number", None)
        version = getattr(value, "version", None)
        is_new = version == 1 and 201 in self.statuses
        return HttpAnswer(
            content=view(value, now) if hasattr(value, "__dataclass_fields__") else value,
            status=201 if is_new else self.statuses[0],
            media_type=self.media_type,
            headers={"ETag": f'"{version}"'} if isinstance(version, int) else {},
            ids=() if named is None else (str(named),),
        )


def operation(
    place: str, *, name: str = "", answer: Any = None, **more: Any
) -> Callable[[Handler], Operation]:
    """Make an operation of a function; its answer is what it returns, if nothing else is said."""
    verb = LISTED[place]
    method, _, path = place.partition(" ")

    def make(handler: Handler) -> Operation:
        return Operation(
            method=method,
            path=path,
            handler=handler,
            name=name or verb.name.replace(".", "_"),
            summary=" ".join((handler.__doc__ or verb.says).split()),
            scope=verb.scope,
            answer=get_type_hints(handler)["return"] if answer is None else answer,
            **more,
        )

    return make


# Imported only by type checkers where methods are; their annotations cannot be read without them.
NAMES: Mapping[str, Any] = {
    "About": About,
    "AuditEntry": AuditEntry,
    "Context": Context,
    "EntryKind": EntryKind,
    "Filters": Mapping[str, Any],
    "Hit": Hit,
    "CheckCase": CheckCase,
    "Checked": Checked,
    "Path": Path,
    "Replay": Replay,
    "Status": Status,
    "datetime": datetime,
}


class MethodCall:
    """A verb's method, called with what a request has for its parameters.

    `names` are those of the request by those of the method, `bounds` narrower types of what is
    sent. What is `filled` no request sends.
    """

    def __init__(
        self,
        verb: Verb,
        names: Mapping[str, str],
        bounds: Mapping[str, Any],
        *,
        filled: Iterable[str] = (),
        limit: int | None = None,
    ) -> None:
        assert verb.method is not None
        self._name = verb.name.partition(".")[2]
        self.hints = get_type_hints(verb.method, localns=dict(NAMES), include_extras=True)
        self.parameters = dict(list(inspect.signature(verb.method).parameters.items())[1:])
        self._sent = {
            name: names.get(name, name) for name in self.parameters if name not in set(filled)
        }
        self.taken: dict[str, tuple[Any, Any]] = {}
        for name, named in self._sent.items():
            own = self.parameters[name].default
            default = limit if name == "limit" and limit else None if own == () else own
            sent = sent_type(self.hints[name], bounds.get(name))
            given = UNSET if isinstance(default, Unchanged) else default
            self.taken[named] = (sent | None if default is None else sent, given)

    def __call__(self, owner: Any, given: Mapping[str, Any], **filled: Any) -> Any:
        for name, named in self._sent.items():
            value, hint = given[named], self.hints[name]
            if value is UNSET or (value is None and type(None) not in get_args(hint)):
                continue  # it was left out
            is_key = isinstance(value, list) and hint == StableKey
            filled[name] = tuple(value) if is_key else value
        return getattr(owner, self._name)(**filled)


def sent_type(hint: Any, bound: Any = None) -> Any:
    """What is sent for a parameter of this type: JSON has fewer."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    absent = {type(None): None, Unchanged: UnsetType}
    sent: list[Any] = [absent[each] for each in kinds if each in absent]
    if bound is not None:
        return Union[(*sent, bound)]
    if datetime in kinds:
        return Union[(*sent, Moment)]
    is_named = any(_is_kind_of(each, Enum) for each in kinds)
    for each in sorted(kinds, key=lambda kind: kind is not str):
        origin = get_origin(each) or each
        if each is str and not is_named:
            sent.append(str)
        elif each is int:
            sent.append(Count)
        elif each is bool or _is_kind_of(each, Enum):
            sent.append(each)
        elif each is not str and _is_kind_of(origin, Iterable):
            sent.append(Json if issubclass(origin, Mapping) else Tags)
    return Union[tuple(sent)]  # noqa: UP007


def _is_kind_of(kind: Any, of: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


# Pages.


def paged(name: str, kind: Any) -> Json:
    """The types of a page."""
    return {name: list[kind], "next": str | None}


def page(name: str, found: Sequence[Any], limit: int) -> Json:
    """A page of a list, and where the next one begins, if there may be one."""
    is_full = bool(found) and len(found) == limit
    return {name: view(found), "next": cursor_behind(found[-1]) if is_full else None}


def cursor_behind(last: Any) -> str | None:
    """Where a page ended: by time and id, so that it goes on after the last one was deleted."""
    match last:
        case Proposal():
            return cursor_behind(last.fact)
        case Fact(created_at=at, id=name) | SessionState(created_at=at, id=name):
            return None if at is None else made_cursor(to_micros(at), name)
        case AuditEntry(at=at, id=name):
            return made_cursor(to_micros(at), name)
        case str():
            return made_cursor(last)
        case Node(path=mark) | DeletedDocument(id=mark):
            return made_cursor(mark)
        case Version(number=mark) | Generation(number=mark) | Record(seq=mark):
            return made_cursor(mark)
        case _:
            raise TypeError(f"no cursor continues after a {type(last).__name__}")


def read_mark(cursor: str | None, kind: Any, space: str = "") -> Any:
    """What a method takes to go on behind a page; `kind` is its parameter's type."""
    if cursor is None:
        return None
    if kind in (str, int):
        return read_cursor(cursor, kind)[0]
    micros, name = read_cursor(cursor, int, str)
    if not FIRST_MICROS <= micros <= LAST_MICROS:
        raise _no_cursor()
    at = from_micros(micros)
    collection.check_id(name)
    if kind is Fact:
        return Fact("", id=name, created_at=at)
    if kind is AuditEntry:
        return AuditEntry(id=name, at=at, space=space, actor="", verb="")
    assert kind is SessionState, f"nothing goes on behind a {kind}"
    others: Json = dict.fromkeys(each.name for each in fields(SessionState))
    return SessionState(**{**others, "space": space, "id": name, "created_at": at})


def made_cursor(*parts: str | int) -> str:
    """Where a page ended, as a text that says nothing to its reader."""
    encoded = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """What a cursor was made of. InvalidValue: it was not made here."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts: list[Any] = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _no_cursor() from error
    if not isinstance(parts, list) or [type(each) for each in parts] != list(kinds):
        raise _no_cursor()
    return parts


def _no_cursor() -> InvalidValue:
    return InvalidValue("query.cursor: not the `next` of a page; leave it out to start over")


# What is sent.

_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PROBLEM = re.compile(r"(?P<said>.*?)(?: - at `(?:key in )?\$(?P<at>.*)`)?", re.DOTALL)
_NAMED_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(?:\d+|\.\.\.)\]")


class OperationInputs:
    """The structs of a handler's parameters and body; `query` and `fields` say what they need."""

    def __init__(self, operation: Operation) -> None:
        name, places = operation.name, re.findall(r"{(\w+)}", operation.path)
        has_body = operation.method in ("POST", "PUT", "PATCH")
        taken = dict(
            _of_signature(operation.handler) if operation.taken is None else operation.taken
        )
        bodily = {
            each: taken.pop(each)
            for each, (hint, _) in list(taken.items())
            if has_body and each not in places and ParameterPlace.QUERY not in get_args(hint)
        }
        self.places = places
        self._named = tuple(taken)
        # A place of the path that the handler does not name: the space, which the request has.
        others = [place for place in places if place not in taken]
        outside = {**dict.fromkeys(others, (str, REQUIRED)), **taken}
        self.parameters = _struct(f"{name}_parameters", outside)
        self.body: type[Struct] | None = None
        if has_body:
            self.body = _struct(f"{name}_body", bodily, forbid_unknown_fields=True)
        needed = {each.name: each.required for each in msgspec.structs.fields(self.parameters)}
        self.query = {name: each for name, each in needed.items() if name not in places}
        sent = msgspec.structs.fields(self.body) if self.body else ()
        self.fields = {each.name: each.required for each in sent}

    def read_parameters(self, path: Mapping[str, str], query: Mapping[str, str]) -> Json:
        """The arguments that path and query give. InvalidValue: one of them is not as it should."""
        if query.keys() - self.query.keys():
            there = ", ".join(sorted(self.query)) or "none"
            raise InvalidValue(f"query: there is no such parameter; there are: {there}")
        try:
            read = msgspec.convert({**query, **path}, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise self._refused(error, self.parameters, "query") from error
        return {name: getattr(read, name) for name in self._named}

    def read_body(self, content: Any) -> Json:
        """The arguments that a body gives. InvalidValue: it is not as it should be."""
        if self.body is None:
            return {}
        try:
            read = msgspec.convert(content, self.body)
        except msgspec.ValidationError as error:
            raise self._refused(error, self.body, "body") from error
        except UnicodeEncodeError as error:
            raise InvalidValue("body: the name of a field has an unpaired surrogate") from error
        return {name: getattr(read, name) for name in self.body.__struct_fields__}

    def _refused(
        self, error: msgspec.ValidationError, kind: type[Struct], where: str
    ) -> InvalidValue:
        """What msgspec says, in words that hold nothing of what was sent but names of fields."""
        found = _PROBLEM.fullmatch(str(error))
        assert found is not None, "whatever it says fits"
        said, at = found["said"], found["at"] or ""
        steps = [step for step in _STEP.findall(at) if step]
        if where != "body" and steps[:1] and steps[0] in self.places:
            where = "path"
        if name := _NAMED_FIELD.fullmatch(said):
            is_missing = name[1].startswith("missing")
            what = f".{name[2]}: missing" if is_missing else f": has no field {name[2][:200]!r}"
            return InvalidValue(f"{where}{at}{what}")
        if said.startswith("Invalid enum value"):
            return InvalidValue(f"{where}{at}: expected one of {', '.join(_choices(kind, steps))}")
        return InvalidValue(f"{where}{at}: {_in_words(said)}")


REQUIRED = inspect.Parameter.empty


def _of_signature(handler: Handler) -> Taken:
    hints = get_type_hints(handler, include_extras=True)
    given = list(inspect.signature(handler).parameters.values())[1:]  # the request goes first
    return {each.name: (hints[each.name], each.default) for each in given}


def _struct(name: str, taken: Taken, **more: Any) -> type[Struct]:
    made: list[Any] = []
    for each, (hint, default) in taken.items():
        kind = without(hint, ParameterPlace.QUERY)
        made.append((each, kind) if default is REQUIRED else (each, kind, default))
    return msgspec.defstruct(name, made, kw_only=True, **more)


def without(hint: Any, left_out: Any) -> Any:
    """A union or an annotated type without one of its parts."""
    if isinstance(hint, dict) or left_out not in get_args(hint):
        return hint
    rest = tuple(each for each in get_args(hint) if each is not left_out)
    if len(rest) == 1:
        return rest[0]
    return Annotated[rest] if get_origin(hint) is Annotated else Union[rest]  # noqa: UP007


_BOUNDS = {"of length <=": "with a length of at most", "<=": "of at most", ">=": "of at least"}


def _in_words(said: str) -> str:
    """What msgspec says, without Python's names of types and signs."""

    def named(found: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(kind, kind) for kind in found[1].split(" | "))

    words = re.sub(r"`([^`]*)`", named, said)
    words = re.sub("(of length )?[<>]=", lambda bound: _BOUNDS[bound[0]], words)
    return words[:1].lower() + words[1:].removesuffix(".0")


def _choices(hint: Any, steps: Sequence[str]) -> list[str]:
    """What an enum at the end of these steps may be."""
    for step in steps:
        kind = next(each for each in _within(hint) if _is_kind_of(each, Struct))
        hint = get_type_hints(kind, include_extras=True)[step]
    for each in _within(hint):
        if _is_kind_of(each, Enum):
            return [str(one.value) for one in each]
        if get_origin(each) is Literal:
            return [str(one) for one in get_args(each)]
    raise TypeError(f"{hint} has no enum")


def _within(hint: Any) -> Iterator[Any]:
    """A type and all that it is made of."""
    yield hint
    for each in get_args(hint):
        yield from _within(each)
