"""The options that every command takes, as a decorator; until all are made of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from recollect.interfaces.cli import groups
from recollect.interfaces.cli.groups import TARGET_NAMES as TARGET_NAMES
from recollect.interfaces.cli.groups import known_keys as known_keys
from recollect.interfaces.cli.groups import known_paths as known_paths

F = TypeVar("F", bound=Callable[..., object])


def target_options(function: F) -> F:
    own: Any = function
    own.__click_params__ = [
        *getattr(own, "__click_params__", []),
        *reversed(groups.target_options()),
    ]
    return function
