"""What mem0's callers hand over: a configuration, messages, metadata, other arguments; checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect import memory as core
from recollect.clock import Clock
from recollect.compat.mem0_scopes import ACTOR, EXPIRES, IDENTITY, read_expiration
from recollect.errors import InvalidValue
from recollect.messages import as_plain_json, read

_SETTINGS = ("store", "settings", "model", "embedder")


def open_memory(config: Mapping[str, Any], clock: Clock | None) -> core.Memory:
    if not isinstance(config, Mapping):
        raise InvalidValue(f"a configuration is a mapping, not {type(config).__name__}")
    unknown = sorted(str(name) for name in config if name not in _SETTINGS)
    if unknown:
        raise InvalidValue(
            f"a configuration has some of {', '.join(_SETTINGS)}; {', '.join(unknown)} say nothing "
            "here: models and embedders are settings of Recollect"
        )
    given = dict(config)
    for name in ("store", "model", "embedder"):
        if isinstance(given.get(name), Mapping):
            raise InvalidValue(f"{name} is an address or a name here, not a mapping as in mem0")
    return core.open(given.pop("store", None), clock=clock, **given)


def own_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a caller may say about a memory: not whose it is."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidValue(f"metadata is a mapping, not {type(metadata).__name__}")
    own = {name: each for name, each in metadata.items() if name not in (*IDENTITY, ACTOR)}
    day = read_expiration(own.pop(EXPIRES, None))
    return own if day is None else own | {EXPIRES: day}


def read_messages(messages: object) -> Sequence[Mapping[str, Any]]:
    """What was said, as messages; none of them is taken if one cannot be read."""
    match messages:
        case str():
            return [{"role": "user", "content": messages}]
        case Mapping():
            messages = [messages]
        case list():
            pass
        case _:
            raise InvalidValue(
                f"messages are a text, a message or a list of them, not {type(messages).__name__}"
            )
    plain = [as_plain_json(message)[0] for message in messages]
    for message in plain:
        read(message)
    return plain


def known_arguments(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = sorted(set(kwargs) - {*IDENTITY, "limit"})
    if unknown:
        raise InvalidValue(f"nobody knows here what {', '.join(unknown)} would mean")
    return kwargs
