"""What coding agents tell their hooks, read as events, and the answer in the form each agent reads.

Pure: a payload is never believed, only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a hook that only hands on needs neither
    from recollect.session import Session
    from recollect.space import Space

PAYLOAD_BYTES_MAX = 10_000_000


class Agent(StrEnum):
    """The agents whose hooks are understood."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI_CLI = "gemini-cli"
    GENERIC = "generic"


class Moment(StrEnum):
    """When an agent calls."""

    START = "start"  # a conversation begins, or has lost what it was told
    RESUME = "resume"  # one goes on that still has what it was told
    PROMPT = "prompt"
    STOP = "stop"  # an answer is complete
    COMPACT = "compact"  # what was said is about to be summarised
    END = "end"


ASKING = frozenset({Moment.START, Moment.PROMPT})  # something may be told
MARKING = frozenset({Moment.COMPACT, Moment.END})  # what was said so far is due to be learned


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadMessage:
    """One message that stands in the payload itself. `key` is the same if it is sent again."""

    message: Mapping[str, Any]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of an agent. `name` is what the agent calls the moment."""

    agent: Agent
    moment: Moment
    name: str
    session: str
    directory: str | None = None
    prompt: str = ""
    transcript: str | None = None  # the file that the agent keeps
    said: tuple[PayloadMessage, ...] = ()

    @property
    def leaves_something(self) -> bool:
        """Whether there may be something to keep, or to mark."""
        if self.moment in (Moment.START, Moment.RESUME):
            return False
        return self.transcript is not None or bool(self.said) or self.moment in MARKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A call that nothing can be done about, and why: never a text of the payload."""

    reason: str


ID_CHARS_MAX = 500
PATH_CHARS_MAX = 4096
MESSAGES_MAX = 1000
TURN_COMPLETE = "agent-turn-complete"
USER, ASSISTANT = "user", "assistant"  # the roles of messages

_CLAUDE_CODE = {
    "SessionStart": Moment.START,
    "UserPromptSubmit": Moment.PROMPT,
    "Stop": Moment.STOP,
    "PreCompact": Moment.COMPACT,
    "SessionEnd": Moment.END,
}
_GEMINI_CLI = {
    "SessionStart": Moment.START,
    "BeforeAgent": Moment.PROMPT,
    "AfterAgent": Moment.STOP,
    "PreCompress": Moment.COMPACT,
    "SessionEnd": Moment.END,
}


def read_event(agent: Agent, payload: bytes) -> Event | Unusable:
    """The event that a payload tells of."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        return Unusable(reason=f"the payload is over {PAYLOAD_BYTES_MAX:,} bytes")
    if not payload.strip():
        return Unusable(reason="the payload is empty")
    try:
        told = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return Unusable(reason=f"the payload is not JSON: {type(error).__name__}")
    if not isinstance(told, dict):
        return Unusable(reason="the payload is no JSON object")
    if agent is Agent.CODEX and "type" in told:
        return _notified(told)
    return _called(agent, told)


def _called(agent: Agent, told: Mapping[str, Any]) -> Event | Unusable:
    form = _FORMS[agent]
    name = _text(told.get(form.event), ID_CHARS_MAX)
    moment = form.moments.get(name)
    if moment is None:
        return _UNKNOWN
    session = _text(told.get(form.session), ID_CHARS_MAX)
    if not session:
        return Unusable(reason="the payload names no session")
    if moment is Moment.START and told.get("source") == "resume":
        moment = Moment.RESUME
    prompt = told.get("prompt")
    # An agent without transcripts that are read keeps one all the same: it is its own affair.
    path = told.get("transcript_path") if form.source else None
    return Event(
        agent=agent,
        moment=moment,
        name=name,
        session=session,
        directory=_text(told.get("cwd"), PATH_CHARS_MAX) or None,
        prompt=prompt if isinstance(prompt, str) else "",
        transcript=_text(path, PATH_CHARS_MAX) or None,
        said=form.said(told),
    )


def _notified(told: Mapping[str, Any]) -> Event | Unusable:
    """Codex' notification that a turn is complete; it has dashes where the hooks have none."""
    session = _text(told.get("thread-id"), ID_CHARS_MAX)
    if told.get("type") != TURN_COMPLETE or not session:
        return _UNKNOWN
    asked = told.get("input-messages")
    texts = [(USER, text) for text in (asked if isinstance(asked, list) else ())]
    texts.append((ASSISTANT, told.get("last-assistant-message")))
    turn = _text(told.get("turn-id"), ID_CHARS_MAX)
    return Event(
        agent=Agent.CODEX,
        moment=Moment.STOP,
        name=TURN_COMPLETE,
        session=session,
        directory=_text(told.get("cwd"), PATH_CHARS_MAX) or None,
        said=_in_turn(turn, [_plain(role, text) for role, text in texts[:MESSAGES_MAX]]),
    )


def _gemini_said(told: Mapping[str, Any]) -> tuple[PayloadMessage, ...]:
    """A turn's question and answer: what Gemini CLI keeps of it is its own affair."""
    if told.get("hook_event_name") != "AfterAgent":
        return ()
    turn = _text(told.get("timestamp"), ID_CHARS_MAX)
    asked, answered = told.get("prompt"), told.get("prompt_response")
    return _in_turn(turn, [_plain(USER, asked), _plain(ASSISTANT, answered)])


def _generic_said(told: Mapping[str, Any]) -> tuple[PayloadMessage, ...]:
    messages = told.get("messages")
    if not isinstance(messages, list):
        return ()
    return _in_turn(_text(told.get("turn"), ID_CHARS_MAX), messages[:MESSAGES_MAX])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What the payloads of an agent look like; `source`: by what name transcripts are imported."""

    moments: Mapping[str, Moment]
    event: str = "hook_event_name"
    session: str = "session_id"
    source: str | None = None
    said: Callable[[Mapping[str, Any]], tuple[PayloadMessage, ...]] = lambda _told: ()


_FORMS: Mapping[Agent, _Form] = {
    Agent.CLAUDE_CODE: _Form(moments=_CLAUDE_CODE, source="claude-code"),
    Agent.CODEX: _Form(moments=_CLAUDE_CODE, source="codex"),
    Agent.GEMINI_CLI: _Form(moments=_GEMINI_CLI, said=_gemini_said),
    Agent.GENERIC: _Form(
        moments={str(moment): moment for moment in Moment},
        event="event",
        session="session",
        source="jsonl",
        said=_generic_said,
    ),
}
_UNKNOWN = Unusable(reason="the payload tells of no event that is known")


def _plain(role: str, text: object) -> object:
    is_said = isinstance(text, str) and text.strip()
    return {"role": role, "content": text} if is_said else None


def _in_turn(turn: str, messages: Sequence[object]) -> tuple[PayloadMessage, ...]:
    """Each with a key of its own: its id, else its place, its words and the turn it is of."""
    said = []
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        named = _text(message.get("id"), ID_CHARS_MAX)
        content = {name: value for name, value in message.items() if name != "id"}
        whole = json.dumps([turn, position, content], sort_keys=True, default=str)
        digest = blake2b(whole.encode(errors="surrogatepass"), digest_size=16).hexdigest()
        said.append(PayloadMessage(message=content, key=named or f"{turn}:{digest}"))
    return tuple(said)


def _text(value: object, chars_max: int) -> str:
    """A short text without anything in it that no name or path has; else none."""
    if not isinstance(value, str) or len(value) > chars_max or "\0" in value:
        return ""
    return value if value.isprintable() else ""


def conversation(space: Space, event: Event) -> Session | None:
    """The session of a conversation, if there is one: from its transcript, or from its payloads."""
    source = _FORMS[event.agent].source
    keys = [own_key(event)] if source is None else [(source, event.session), own_key(event)]
    found = (space.find_session(key) for key in keys)
    return next((session for session in found if session is not None), None)


def own_key(event: Event) -> tuple[str, str]:
    """Where messages of payloads go: what comes from a transcript later is not mixed with them."""
    return (f"{event.agent}-hook", event.session)


def answer(event: Event, block: str) -> str:
    """One line of JSON that gives the agent a block to read."""
    if event.agent is Agent.GENERIC:
        return json.dumps({"context": block})
    told = {"hookEventName": event.name, "additionalContext": block}
    return json.dumps({"hookSpecificOutput": told})
