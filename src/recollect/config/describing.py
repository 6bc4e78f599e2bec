"""One setting as the reference shows it, and the check of a value against it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import InvalidSetting


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


def checked(setting: Described, given: Any) -> Any:
    """A value of the right type and within its bounds, or InvalidSetting."""
    value = given
    if setting.default is None and (value is None or value == ""):
        return None  # an empty variable is how a shell says that there is none
    if setting.type is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if isinstance(value, Path) and setting.type is str:
        value = str(value)
    is_right_type = type(value) is setting.type  # a bool is no int here
    if not is_right_type:
        raise InvalidSetting(f"{setting.name} is {setting.type.__name__}, not {value!r}")
    if setting.choices is not None and value not in setting.choices:
        raise InvalidSetting(f"{setting.name} is one of {', '.join(setting.choices)}: {value!r}")
    low, high = setting.minimum, setting.maximum
    if low is not None and high is not None and not low <= value <= high:  # NaN is outside too
        raise InvalidSetting(f"{setting.name} lies between {low:,} and {high:,}: {value!r}")
    return value
