"""Every operation below /v1: those that call one method by its signature, and those that do more.

A session in a path is named by its id and stands for its conversation: an append goes to the
current session of the key. Ending, rotating or changing a session is refused with 409 when another
has taken its place, so that no retry does it to the wrong one. A document is named by the parameter
`path` (or its id), since not every proxy keeps a path within a path; If-Match gives the version. A
message to an agent is stored when it is acknowledged, and answered by whichever process runs the
agent; a client that stops waiting asks again by the message's id.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from recollect import collection
from recollect.agents.profile import AgentProfile
from recollect.agents.reply import Reply, Ticket
from recollect.agents.runner import outcome_of
from recollect.agents.system import AgentSystem
from recollect.collection import Message
from recollect.descriptors import Descriptor, cache_key, from_cache_key, read_descriptor
from recollect.documents.paths import DEPTH_MAX, PATH_CHARS_MAX
from recollect.errors import (
    AnswerPending,
    Gone,
    InvalidValue,
    NotFound,
    TurnFailed,
    UsageError,
)
from recollect.interfaces.http.operations import (
    REQUIRED,
    SPACE,
    AdmittedRequest,
    Count,
    Cursor,
    Json,
    KeyReach,
    Kinds,
    Limit,
    MethodCall,
    Number,
    Operation,
    Outcome,
    ParameterPlace,
    cursor_behind,
    operation,
    page,
    paged,
    read_mark,
    without,
)
from recollect.interfaces.http.problems import EVENT_STREAM, HttpAnswer
from recollect.interfaces.views import public_receipt, public_status, view
from recollect.memory import Memory
from recollect.observing.actors import ACTOR_CHARS_MAX
from recollect.recall.usage import named_hit
from recollect.session import Session
from recollect.space import Space
from recollect.sweeps import sweep_idle
from recollect.types.agents import AgentState
from recollect.types.facts import Fact, Reader, Source
from recollect.types.generations import ConsolidationState, Generation
from recollect.types.pages import Document
from recollect.types.recall import Citation, Context, EntryKind, Hit, Omission
from recollect.types.records import Job, Record, SessionState
from recollect.types.status import Status
from recollect.verbs import VERBS, Verb

LONG_PAGE = 100
NOWHERE = 0  # the seq of a record that was forgotten and is not stored again
ITEMS_MAX = 1000
WAITING_MAX = 4  # requests that wait for an agent at a time; the others are told to ask again
WAIT_SECONDS_MAX = 60
CONVERSATION = "main"  # with an agent, unless another is named

_SESSION = f"{SPACE}/sessions/{{session}}"
_MESSAGES = f"{SPACE}/agents/{{agent}}/messages"
_PATH = Meta(
    max_length=PATH_CHARS_MAX, description="As in ~/memory/people/Ana, or the document's id."
)
Path = Annotated[str, _PATH]
NamedPath = Annotated[str, _PATH, ParameterPlace.QUERY]
Query = Annotated[str, Meta(max_length=10_000)]
Question = Annotated[str, Meta(max_length=100_000)]
Actor = Annotated[str, Meta(max_length=ACTOR_CHARS_MAX)]
# What any setting allows; the setting decides.
Messages = Annotated[list[Json], Meta(max_length=100_000)]

_BY_NAME = {verb.name: verb for verb in VERBS}
# In a request, by the name of a method's parameter.
_NAMES = {"fact_id": "fact", "session_id": "session", "query": "q"}
_FILLED = frozenset({"space", "expected_version", "trust", "sources", "facts"})
_BOUNDS: Mapping[str, Any] = {
    "limit": Limit,
    "query": Query,
    "path": NamedPath,
    "to": Path,
    "depth": Annotated[int, Meta(ge=0, le=DEPTH_MAX)],
    "kinds": Kinds,
    **dict.fromkeys(("version", "number", "older", "newer", "a", "b"), Number),
    **dict.fromkeys(("actor", "verb"), Actor),
}


# What a verb is asked of, and how what it made is read again.


def session_state(space: Space, session_id: str) -> SessionState:
    found = space.sessions.get(session_id)
    if found is None:
        raise NotFound(f"there is no session {session_id!r}")
    return found


def conversation(space: Space, session_id: str) -> Session:
    state = session_state(space, session_id)
    found = space.find_session(state.key, from_cache_key(state.agent_id))
    if found is None:
        raise NotFound(f"there is no session {state.id!r}")
    return found


def current_session(space: Space, session_id: str) -> Session:
    """The conversation, if the session that was named is still the one it goes on in."""
    session = conversation(space, session_id)
    current = session.id
    if current != session_id:
        raise UsageError(f"the conversation goes on in session {current}")
    return session


def _owner(name: str, request: AdmittedRequest, given: Mapping[str, Any]) -> Any:
    """What a verb's method is called on. NotFound: the session that the path names is not there."""
    if name == "session":
        return current_session(request.space, given["session"])
    if name == "sessions" and "session" in given:
        session_state(request.space, given["session"])
    return {"memory": request.memory, "space": request.space}.get(name) or getattr(
        request.space, name
    )


def _fact(request: AdmittedRequest, fact: str) -> Fact:
    found = request.space.facts.get(fact)
    if found is None:
        raise NotFound(f"this space has no fact {fact!r}")
    return found


_AGAIN: Mapping[type, Callable[..., Any]] = {
    Fact: lambda request, ids: _fact(request, ids[0]),
    Document: lambda request, ids: request.space.documents.read(ids[0]),
    SessionState: lambda request, ids: session_state(request.space, ids[0]),
    Session: lambda request, ids: session_state(request.space, ids[0]),
    Generation: lambda request, ids: request.space.generations.get(int(ids[0])),
}


# What is answered where a method returns nothing: how what it is about stands now.
_STATES: Mapping[str, tuple[type, Callable[..., Any]]] = {
    "session": (SessionState, lambda space, given: session_state(space, given["session"])),
    "sessions": (SessionState, lambda space, given: session_state(space, given["session"])),
    "generations": (ConsolidationState, lambda space, _: space.generations.state()),
}


def _method(  # noqa: PLR0913 - what HTTP adds to a method
    verb_name: str,
    field: str = "",
    *,
    answer: Any = None,
    then: Callable[..., Any] | None = None,
    missing: str = "",
    limit: int | None = None,
    pages: bool = True,
    names: Mapping[str, str] | None = None,
    bounds: Mapping[str, Any] | None = None,
    filled: Sequence[str] = (),
    **more: Any,
) -> Operation:
    """The operation that a verb's method is, taken from its signature.

    What it returns is answered as it is, or in a field; a list a page at a time, where the verb has
    pages. `then` makes an answer of the request, what was given and what was returned; `missing`
    are the words where that is nothing. A POST that makes something can be repeated by its key.
    """
    verb = _BY_NAME[verb_name]
    owner = verb_name.partition(".")[0]
    call = MethodCall(
        verb,
        {**_NAMES, **(names or {})},
        {**_BOUNDS, **(bounds or {})},
        filled=(*_FILLED, *filled, verb.pages),
        limit=limit,
    )
    returned = call.hints["return"]
    is_paged = bool(verb.pages and field and pages)
    mark = without(call.hints[verb.pages], type(None)) if is_paged else None
    is_conditional = "expected_version" in call.parameters
    kind, state = _STATES.get(owner, (None, None)) if returned is type(None) else (returned, None)

    def handle(request: AdmittedRequest, **given: Any) -> Any:
        filled: Json = {"space": request.space.name} if "space" in call.parameters else {}
        if is_conditional:
            filled["expected_version"] = request.expected_version
        if is_paged and given["cursor"] is not None:
            filled[verb.pages] = read_mark(given["cursor"], mark, request.space.name)
        if more.get("takes_append_key"):
            given["key"] = given["key"] or request.idempotency_key
            value = call(conversation(request.space, given["session"]), given, **filled)
        else:
            value = call(_owner(owner, request, given), given, **filled)
        if missing and not value:
            raise NotFound(missing.format(**given))
        if then is not None:
            return then(request, given, value)
        if state is not None:
            return state(request.space, given)
        if is_paged:
            return page(field, value, given["limit"])
        return {field: view(value) if isinstance(value, list) else value} if field else value

    problems = frozenset({409, 412} if is_conditional else {409} if owner == "session" else ())
    again = _AGAIN.get(returned) if verb.http[0].startswith("POST") else None
    answered = ({field: kind} | ({"next": str | None} if is_paged else {})) if field else kind
    made = operation(
        verb.http[0],
        answer=answer or answered,
        is_conditional=is_conditional,
        taken=_taken(call, verb, is_paged=is_paged),
        **{"problems": problems, "again": again, **more},
    )
    return made(handle)


def _taken(call: MethodCall, verb: Verb, *, is_paged: bool) -> dict[str, tuple[Any, Any]]:
    """The parameters of a request; what stands in the path is always given."""
    taken: dict[str, tuple[Any, Any]]
    taken = {"session": (str, None)} if verb.name.startswith("session.") else {}
    taken |= call.taken
    for place in re.findall(r"{(\w+)}", verb.http[0]):
        if place in taken:
            taken[place] = (without(taken[place][0], type(None)), REQUIRED)
    return {**taken, "cursor": (Cursor | None, None)} if is_paged else taken


# What finds or makes a session.
_KEYED: Mapping[str, Any] = {
    "key": Annotated[str | list[str | int], Meta(description="Text, or texts and numbers.")],
    "agent": Annotated[str | Json, Meta(description="A name or a descriptor.")],
    "source": str | None,
}
_PARTS = list[Any]
_WHOLE_QUERY = {"query": "query"}  # in a body a name is written out

_SESSIONS = (
    _method(
        "space.session",
        bounds=_KEYED,
        answer=SessionState,
        then=lambda _, __, session: session.state,
        problems=frozenset({409}),
    ),
    _method(
        "session.append",
        bounds={"parts": _PARTS, "tool_calls": _PARTS, "content": str | _PARTS},
        filled=("attachments",),
        then=lambda _, __, record: _there([record])[0],
        statuses=(201,),
        takes_append_key=True,
        problems=frozenset(),
    ),
    _method("sessions.list", "sessions"),
    _method("sessions.find_invalidated", "sessions"),
    _method("sessions.get", missing="there is no session {session!r}"),
    _method("sessions.ranges", "ranges"),
    _method("sessions.calls", "calls", pages=False),
    _method("sessions.extraction", missing="nothing was learned from session {session!r}"),
    _method("session.get_summary", "summary"),
    _method(
        "session.set_summary",
        names={"text": "summary"},
        answer={"summary": str},
        then=lambda request, given, _: {
            "summary": current_session(request.space, given["session"]).get_summary()
        },
    ),
    _method("session.set_mode"),
    _method("session.end"),
    _method("session.sleep"),
    _method("session.reset"),
    _method("session.compact"),
    _method("session.purge"),
    _method("sessions.invalidate"),
    _method(
        "sessions.mark_processed",
        answer={"is_processed": bool, "session": SessionState},
        then=lambda request, given, is_done: {
            "is_processed": is_done,
            "session": view(session_state(request.space, given["session"])),
        },
    ),
)

_CHOSEN: Mapping[str, Any] = {
    "names": {"fact_ids": "facts"},
    "bounds": {"fact_ids": Annotated[list[str], Meta(max_length=ITEMS_MAX)]},
    "problems": frozenset({409}),
}

_FACTS = (
    _method("facts.add", names={"fact": "content"}, statuses=(201,)),
    _method("facts.list", "facts"),
    _method("facts.search", "facts"),
    _method("facts.update"),
    _method("facts.get", missing="this space has no fact {fact!r}"),
    _method(
        "facts.delete",
        answer={"deleted": str, "told": list[Reader]},
        then=lambda _, given, told: {"deleted": given["fact"], "told": view(told)},
    ),
    _method("facts.told", "told"),
    _method("facts.history", "changes", missing="this space has no fact {fact!r}"),
    _method("facts.waiting", "waiting"),
    _method("facts.accept", "facts", **_CHOSEN),
    _method("facts.reject", "facts", **_CHOSEN),
)

_DOCUMENTS = (
    _method("documents.tree", "documents", limit=LONG_PAGE),
    _method("documents.deleted", "documents"),
    _method("documents.search", "documents", bounds={"below": Path}),
    _method("documents.read"),
    _method("documents.write", statuses=(200, 201)),
    _method("documents.patch"),
    _method("documents.delete"),
    _method("documents.append"),
    _method("documents.move"),
    _method("documents.restore"),
    _method("documents.history", "versions"),
    _method("documents.diff", "diff", names={"a": "older", "b": "newer"}),
    _method("documents.links", limit=LONG_PAGE),
)

_GENERATIONS = (
    _method("generations.list", "generations"),
    _method("generations.state"),
    _method("generations.pause"),
    _method("generations.resume"),
    _method("generations.get"),
    _method("generations.diff", "changes", names={"older": "number", "newer": "to"}),
    _method("generations.rollback", statuses=(201,), problems=frozenset({409})),
)

_RECALL = (
    _method("space.about", bounds={"name": Query}),
    _method("space.recall", "hits", names=_WHOLE_QUERY, bounds={"query": Question}),
    _method(
        "space.context",
        names=_WHOLE_QUERY,
        bounds={
            "query": Question,
            "max_tokens": Annotated[int, Meta(ge=0, le=1_000_000)],
            "max_facts": Annotated[int, Meta(ge=0, le=ITEMS_MAX)],
        },
    ),
)

_TOLD = (
    _method("space.why", bounds={"about": Annotated[str, Meta(max_length=ITEMS_MAX)]}),
    _method("space.replay"),
    _method(
        "space.check",
        "cases",
        bounds={"cases": Annotated[list[Json], Meta(max_length=ITEMS_MAX)]},
    ),
)

_OPERATING = (
    _method("memory.audit", "audit", limit=LONG_PAGE),
    _method(
        "space.forget",
        bounds={
            "record": Annotated[str, Meta(description="As in session_id:seq.")],
            "document": Annotated[str, Meta(description="A path, with all that is below it.")],
            "pages": Annotated[
                Literal["keep", "erase"],
                Meta(description="What to do with pages that people or other agents wrote on it."),
            ],
        },
        then=lambda _, __, receipt: public_receipt(receipt),
    ),
    _method("memory.retry", "revived", names={"key": "session"}),
)


# What is more than one method.


_ENVELOPE = {"message", "at", "key", "metadata"}
_CONVERSATION = MethodCall(_BY_NAME["space.session"], {}, _KEYED)
_RECORDS = {"session_id": str | None, "records": list[Record]}


def _appended(request: AdmittedRequest, session: Session, messages: list[Json]) -> Json:
    records = session.append_many(
        [_message(each) for each in messages], key=request.idempotency_key
    )
    session_id = _there(records)[0].session_id if records else None
    return {"session_id": session_id, "records": view(records)}


def _there(records: Sequence[Record]) -> Sequence[Record]:
    """The same. Gone: all of it was appended under this key before, and forgotten since."""
    if all(record.seq == NOWHERE for record in records):
        raise Gone("what was appended under this Idempotency-Key was forgotten since")
    return records


def _message(given: Mapping[str, Any]) -> Message | Mapping[str, Any]:
    """A provider's message as it is, or one in an envelope with its time, key and metadata."""
    if "message" not in given or "role" in given:
        return given
    if not isinstance(given["message"], dict) or given.keys() - _ENVELOPE:
        allowed = ", ".join(sorted(_ENVELOPE - {"message"}))
        raise InvalidValue(f"an envelope has a message (an object), and may have {allowed}")
    metadata = given.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InvalidValue("metadata must be an object")
    return Message(
        message=given["message"], at=given.get("at"), key=given.get("key"), metadata=metadata
    )


def _append(request: AdmittedRequest, **given: Any) -> Json:
    """Append messages under a stable key, all or none; the session is created if it is new."""
    return _appended(request, _CONVERSATION(request.space, given), given["messages"])


_APPEND = operation(
    f"POST {SPACE}/append",
    name="append",
    answer=_RECORDS,
    statuses=(201,),
    taken={"messages": (Messages, REQUIRED), **_CONVERSATION.taken},
    takes_append_key=True,
    problems=frozenset({409}),
)(_append)


@operation(f"POST {_SESSION}/records/many", answer=_RECORDS, statuses=(201,), takes_append_key=True)
def _append_records(request: AdmittedRequest, session: str, messages: Messages) -> Json:
    """Append OpenAI- or Anthropic-style messages, all or none."""
    return _appended(request, conversation(request.space, session), messages)


@operation(f"GET {_SESSION}/records", answer=paged("records", Record))
def _records(
    request: AdmittedRequest,
    session: str,
    limit: Limit = LONG_PAGE,
    cursor: Cursor | None = None,
    after: Annotated[Count, Meta(description="Only above this seq.")] = 0,
) -> Json:
    """What was said, in order."""
    state = session_state(request.space, session)
    after = after if cursor is None else read_mark(cursor, int)
    return page("records", request.space.sessions.records(state.id, after, limit), limit)


class SentSource(Struct):
    """Where a hit of a block that is sent back comes from."""

    session_id: str
    seq: Count


class SentHit(Struct):
    """A hit of a block that is sent back: what it is counts, not what it said."""

    id: str
    kind: EntryKind
    sources: Annotated[list[SentSource], Meta(max_length=ITEMS_MAX)] = []

    def hit(self) -> Hit:
        return named_hit(
            self.kind,
            collection.check_id(self.id),
            (
                Source(
                    session_id=collection.check_id(each.session_id), seq=each.seq, seq_to=each.seq
                )
                for each in self.sources
            ),
        )


class SentCitation(Struct):
    """Something that stood in a block."""

    mark: str
    hit: SentHit


class SentOmission(Struct):
    """Something that was left out of it."""

    hit: SentHit
    instead: str | None = None


class SentContext(Struct):
    """A block as it was answered."""

    id: Annotated[str, Meta(max_length=collection.KEY_BYTES_MAX)]
    citations: Annotated[list[SentCitation], Meta(max_length=ITEMS_MAX)]
    omitted: Annotated[list[SentOmission], Meta(max_length=ITEMS_MAX)] = []

    def block(self) -> Context:
        return Context(
            text="",
            id=collection.check_id(self.id),
            citations=tuple(
                Citation(mark=each.mark, hit=each.hit.hit()) for each in self.citations
            ),
            omitted=tuple(
                Omission(hit=each.hit.hit(), reason="", instead=each.instead or "")
                for each in self.omitted
            ),
        )


@operation(f"POST {SPACE}/cite", answer={"counted": int})
def _cite(
    request: AdmittedRequest,
    context: SentContext,
    used: Annotated[list[str], Meta(max_length=ITEMS_MAX)] | None = None,
    turn: str | None = None,
) -> Json:
    """Report what became of a block: send it back, and what a model used of it."""
    return {"counted": request.space.cite(context.block(), used or (), turn=turn)}


class NamedSpace(Struct, forbid_unknown_fields=True):
    """A space by its name."""

    name: str


@operation("GET /v1/spaces", answer=paged("spaces", NamedSpace), reach=KeyReach.OWN)
def _spaces(
    request: AdmittedRequest, limit: Limit = LONG_PAGE, cursor: Cursor | None = None
) -> Json:
    """The spaces that this key may see."""
    if request.key.space is not None:
        return {"spaces": [{"name": request.key.space}], "next": None}
    found = request.memory.spaces(limit, read_mark(cursor, str) or "")
    following = cursor_behind(found[-1]) if found and len(found) == limit else None
    return {"spaces": [{"name": name} for name in found], "next": following}


@operation(
    f"GET {SPACE}",
    answer={"name": str, "facts": int, "marked_count": int, "waiting_count": int},
)
def _space(request: AdmittedRequest) -> Json:
    """A space, and how much there is in it."""
    status = request.memory.status(request.space.name, limit=0)
    return {
        "name": request.space.name,
        "facts": request.space.facts.count(),
        "marked_count": status.marked_count,
        "waiting_count": status.waiting_count,
    }


@operation(f"GET {SPACE}/status", answer=Status)
def _status(request: AdmittedRequest, limit: Limit = LONG_PAGE) -> Json:
    """What is due, what waits and for what, and what it took."""
    return public_status(request.memory.status(request.space.name, limit))


@operation(f"GET {SPACE}/jobs", name="jobs", answer={"jobs": list[Job]})
def _jobs(request: AdmittedRequest, limit: Limit = LONG_PAGE) -> Json:
    """What is due, claimed or parked, first due first."""
    found = request.memory.store.leases.jobs(request.space.name, limit)
    return {"jobs": view(found, request.memory.clock.now())}


@operation(f"GET {SPACE}/events", name="events", answer=str, media_type="text/event-stream")
def _events(request: AdmittedRequest) -> HttpAnswer:
    """What changes, as it does: server-sent events named `status`."""
    return HttpAnswer(content=request.changes(), media_type=EVENT_STREAM)


@operation(
    f"POST {SPACE}/work",
    answer={"marked": int, "again": int, "consolidations": int},
    statuses=(202,),
)
def _work(request: AdmittedRequest, all: bool = False, again: bool = False) -> Json:  # noqa: A002
    """Make all pending work due now; the workers on the store start at once."""
    space, memory = request.space.name, request.memory
    marked = 0
    if all:
        marked = sweep_idle(
            memory.store, memory.clock.now(), memory.settings, space=space, all=True
        )
    return {
        "marked": marked,
        "again": memory.request_again(space) if again else 0,
        "consolidations": memory.store.generations.hurry(space),
    }


class Hosts:
    """Takes messages for agents; `names` are run here, all others by other processes."""

    def __init__(
        self, memory: Memory, names: tuple[str, ...], is_stopping: Callable[[], bool]
    ) -> None:
        self._memory = memory
        self._names = names
        self._is_stopping = is_stopping
        self._lock = threading.Lock()
        self._system: AgentSystem | None = None
        self._places = threading.BoundedSemaphore(WAITING_MAX)

    def start(self) -> None:
        """Run those that are to be run here, if there are any."""
        if self._names:
            self._agents().start(learn=False)

    def post(
        self, agent: str, words: str, *, space: str, key: str, message_id: str | None, seconds: int
    ) -> tuple[str, Outcome]:
        """A message's id, and what came of it in so many seconds; none: nothing yet.

        Gone: it was posted before, and its answer was forgotten.
        """
        ticket = self._agents().post(agent, words, space=space, key=key, id=message_id)
        if message_id is not None:
            ticket.look()  # it may have been posted before
        is_waited_for = seconds > 0 and self._places.acquire(blocking=False)
        try:
            return ticket.id, self._answer(ticket, seconds if is_waited_for else 0)
        except TurnFailed as failed:
            return ticket.id, failed
        finally:
            if is_waited_for:
                self._places.release()

    def _answer(self, ticket: Ticket, seconds: int) -> Reply | None:
        """Its answer, waited for a second at a time: a server that stops waits no longer."""
        for second in range(max(seconds, 1)):
            try:
                return ticket.result(min(1, seconds - second))
            except AnswerPending:
                if self._is_stopping():
                    break
        return None

    def _agents(self) -> AgentSystem:
        with self._lock:
            if self._system is None:
                profiles: dict[str | Descriptor, AgentProfile]
                profiles = {name: AgentProfile() for name in self._names}
                self._system = self._memory.agents(profiles, only=True)
            return self._system


_OUTCOME = {
    "id": str,
    "state": Literal["pending", "answered", "failed"],
    "reply": Reply | None,
    "error": str | None,
}
_KEY = Meta(description="The conversation; main unless it is given.")
_SECONDS = Meta(ge=0, le=WAIT_SECONDS_MAX, description="How long to wait for the answer.")


@operation(f"GET {SPACE}/agents", answer={"agents": list[AgentState]})
def _agents(request: AdmittedRequest, limit: Limit = LONG_PAGE) -> Json:
    """The agents of this space: their lives, queues and signals."""
    return {"agents": view(request.memory.store.agents.list(request.space.name, limit))}


@operation(f"POST {_MESSAGES}", answer=_OUTCOME, statuses=(200, 202), takes_append_key=True)
def _post_message(
    request: AdmittedRequest,
    agent: str,
    text: str,
    key: Annotated[str, _KEY] | None = None,
    wait_seconds: Annotated[int, _SECONDS] = 0,
) -> HttpAnswer:
    """Say something to an agent; its answer, if it comes while this waits."""
    message_id, outcome = request.post(
        agent,
        text,
        space=request.space.name,
        key=key or CONVERSATION,
        message_id=request.idempotency_key,
        seconds=wait_seconds,
    )
    status = 202 if outcome is None else 200
    return HttpAnswer(content=_outcome(message_id, outcome), status=status)


@operation(f"GET {_MESSAGES}/{{message}}", answer=_OUTCOME, problems=frozenset({410}))
def _message_outcome(
    request: AdmittedRequest, agent: str, message: str, key: str | None = None
) -> Json:
    """The outcome of a message that was sent to an agent."""
    store, message_id = request.memory.store, collection.check_id(message)
    agent_id = cache_key(read_descriptor(agent))
    conversation = collection.encode_key(key or CONVERSATION)
    ref = store.sessions.find_key(request.space.name, conversation, agent_id)
    item = None if ref is None else store.agents.item(ref, message_id)
    if ref is None or item is None:
        raise NotFound("no message with that id was posted to this agent, or it is too long ago")
    return _outcome(message_id, outcome_of(store, ref, item))


def _outcome(message_id: str, outcome: Outcome) -> Json:
    content: Json = {"id": message_id, "state": "pending", "reply": None, "error": None}
    match outcome:
        case None:
            pass
        case Gone():
            raise outcome
        case Reply():
            content |= {"state": "answered", "reply": view(outcome)}
        case _:  # its words may be a provider's
            content |= {"state": "failed", "error": type(outcome).__name__}
    return content


OPERATIONS: tuple[Operation, ...] = (
    _APPEND,
    _append_records,
    _records,
    *_SESSIONS,
    _agents,
    _post_message,
    _message_outcome,
    *_RECALL,
    *_TOLD,
    _cite,
    *_FACTS,
    *_DOCUMENTS,
    _spaces,
    _space,
    *_GENERATIONS,
    _status,
    _jobs,
    _events,
    _work,
    *_OPERATING,
)
