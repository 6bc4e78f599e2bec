"""One setting as the reference shows it, and the check of a value against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.errors import InvalidSetting


def setting(
    default: Any,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A field of the settings, with what the reference tells of it."""
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "choices": choices}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One setting as the reference shows it."""

    name: str
    type: type
    default: Any
    doc: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...] | None

    @property
    def environment_name(self) -> str:
        return f"RECOLLECT_{self.name.upper()}"


def checked(described: Described, given: Any) -> Any:
    """A value of the right type and within its bounds, or InvalidSetting."""
    value = given
    if described.default is None and (value is None or value == ""):
        return None  # an empty variable is how a shell says that there is none
    if described.type is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if isinstance(value, Path) and described.type is str:
        value = str(value)
    is_right_type = type(value) is described.type  # a bool is no int here
    if not is_right_type:
        raise InvalidSetting(f"{described.name} is {described.type.__name__}, not {value!r}")
    if described.choices is not None and value not in described.choices:
        raise InvalidSetting(
            f"{described.name} is one of {', '.join(described.choices)}: {value!r}"
        )
    low, high = described.minimum, described.maximum
    if low is not None and high is not None and not low <= value <= high:  # NaN is outside too
        raise InvalidSetting(f"{described.name} lies between {low:,} and {high:,}: {value!r}")
    return value
