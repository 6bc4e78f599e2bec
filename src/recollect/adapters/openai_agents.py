"""A session of the OpenAI Agents SDK (`agents.memory.Session`) on a conversation of a space.

Items come back as they went in, and what was said becomes memory in the background. History is only
ever added to: an item that is popped stays in it, with a note after it that it was taken back, and
nothing that was not learned from it yet will be; clearing begins a new, empty conversation under
the same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agents.memory.session_settings import (
    SessionSettings,
    coerce_session_settings,
    resolve_session_limit,
)

from recollect.clock import SystemClock
from recollect.collection import NAME_CHARS_MAX, Message, encode_key, storable
from recollect.errors import AppendKeyReused, InvalidMessage, InvalidValue
from recollect.ids import Ids
from recollect.messages import Role, as_plain_json, read
from recollect.session import Session
from recollect.types.records import Record

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

T = TypeVar("T")

SOURCE = "openai-agents"
CLEARED = "cleared"
_IS_ITEM = "openai_agents_item"  # metadata of a record that carries an item no reader knows
_POPPED = "openai_agents_popped"  # metadata of a note: which record was taken back
_SPARE = 8  # records that are read beyond those asked for, as some may be no items


class Conversing(Protocol):
    """What is needed of a `recollect.Space`."""

    def session(self, key: str, agent: Any = ..., *, source: str = ...) -> Session: ...


class RecollectSession:
    """`await Runner.run(agent, "…", session=RecollectSession(space, "user-42"))`.

    `space` is a space, or a memory for its default one, synchronous or not. `session_id` is the
    stable key of the conversation: `space.session(session_id)` is the same one.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        space: Any,  # or a memory, of `recollect` or of `recollect.aio`: layers above this one
        session_id: str,
        *,
        agent: str | Mapping[str, Any] | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = encode_key(session_id)
        self.session_settings = (
            SessionSettings()
            if session_settings is None
            else coerce_session_settings(session_settings)
        )
        inside = getattr(space, "sync", space)
        self._space: Conversing = inside.space() if hasattr(inside, "space") else inside
        self._agent = agent
        self._opened: Session | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest items, oldest first; without a limit those of the settings, or all."""
        wanted = resolve_session_limit(limit, self.session_settings)
        if wanted is not None and type(wanted) is not int:
            raise InvalidValue(f"a limit is a whole number, not {wanted!r}")
        found = await asyncio.to_thread(self._newest, wanted)
        return [_item(record) for record in found]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all of them or none; they are stored when this returns."""
        messages = [_message(item) for item in items]
        if messages:
            await _seen_through(lambda: self._session().append_many(messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back; none: there is none."""
        popped = await _seen_through(self._pop)
        return None if popped is None else _item(popped)

    async def clear_session(self) -> None:
        """Begin an empty conversation under the same key; the old one is kept as history."""
        await _seen_through(self._clear)

    def _session(self) -> Session:
        if self._opened is None:
            self._opened = self._space.session(self.session_id, self._agent, source=SOURCE)
        return self._opened

    def _newest(self, wanted: int | None) -> list[Record]:
        """The newest records that are items and were not taken back, all for none."""
        if wanted is None or wanted < 0:
            return _standing(self._session().all())
        window = wanted + _SPARE
        while wanted:
            read_so_far = self._session().recent(window)
            standing = _standing(read_so_far)
            if len(standing) >= wanted or len(read_so_far) < window:
                return standing[-wanted:]
            window *= 2
        return []

    def _pop(self) -> Record | None:
        while newest := self._newest(1):
            [record] = newest
            try:
                self._take_back(record)
            except AppendKeyReused:  # somebody else was faster: the next one is the newest now
                continue
            return record
        return None

    def _take_back(self, record: Record) -> None:
        """Say so after it. Of all who do, one is the first, and the others are told."""
        name = _name(record)
        session = self._session()
        # What is replaced by nothing is not learned from.
        replaced = {"rewrites": record.seq} if session.id == record.session_id else {}
        by = Ids(SystemClock()).new()
        session.append(
            Role.NOTE, "", key=f"pop:{name}", metadata={_POPPED: name, "by": by, **replaced}
        )

    def _clear(self) -> None:
        session = self._session()
        if session.count():
            session.reset(CLEARED)


def _standing(records: Sequence[Record]) -> list[Record]:
    """The items among records: no notes, and nothing that a note after it takes back."""
    popped = {record.metadata[_POPPED] for record in records if _POPPED in record.metadata}
    found = [
        record for record in records if record.role is not Role.NOTE or _IS_ITEM in record.metadata
    ]
    return [record for record in found if _name(record) not in popped] if popped else found


def _name(record: Record) -> str:
    return f"{record.session_id}:{record.seq}"


def _message(item: object) -> Message:
    """An item as a message; one that is no message of anybody's is carried inside a note."""
    given = item if isinstance(item, Mapping) else as_plain_json(item)[0]
    if _is_message(given):
        return Message(message=given)
    part = {"type": _IS_ITEM, "item": given}
    return Message(message={"role": Role.NOTE, "content": [part]}, metadata={_IS_ITEM: True})


def _is_message(given: Mapping[str, Any]) -> bool:
    """Whether a record can be made of it, and is then not taken for a note of somebody else's."""
    try:
        reading = read(given)
    except InvalidMessage:
        return False
    name = reading.name or ""
    return reading.role is not Role.NOTE and name == storable(name[:NAME_CHARS_MAX])


def _item(record: Record) -> TResponseInputItem:
    message = record.message
    return message["content"][0]["item"] if _IS_ITEM in record.metadata else message  # type: ignore[return-value]


async def _seen_through(change: Callable[[], T]) -> T:
    """Make a change in a thread; who is cancelled meanwhile still waits until it is made."""
    task = asyncio.ensure_future(asyncio.to_thread(change))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        task.exception()  # seen, so that nobody warns that it was not
        raise cancelled
    return task.result()
