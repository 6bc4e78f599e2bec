"""What the store says has become of something that was posted to an agent, by any process."""

from __future__ import annotations

from recollect.agency import Item, ItemKind, ItemState
from recollect.agents.reply import Reply, stored_reply
from recollect.agents.runner import ANSWER_KEY
from recollect.domain import KeyRef
from recollect.errors import Gone, RecollectError, TurnFailed
from recollect.store.protocol import Store


def outcome_of(store: Store, ref: KeyRef, item: Item | None) -> Reply | RecollectError | None:
    """The answer, or why there will be none; none: nothing yet."""
    if item is None:
        return TurnFailed("the agent was ended, or its answer is too long ago")
    match item.state:
        case ItemState.QUEUED | ItemState.TAKEN:
            return None
        case ItemState.PARKED:
            return TurnFailed(item.last_error or "parked")
        case ItemState.DONE:
            turn_id = item.turn_id or item.id
            answer = store.agents.find_record(ref, ANSWER_KEY + turn_id)
            if answer is None and item.kind is ItemKind.USER_MESSAGE:  # which is always answered
                return Gone("the message was answered, and the answer was deleted or forgotten")
            return stored_reply(answer, turn_id)
