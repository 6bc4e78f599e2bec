"""Recollect under the verbs of other memory libraries, for people who come from there.

`recollect.compat.mem0` asks for no import of its own, and costs nothing until it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.compat import mem0 as mem0
else:

    def __getattr__(name: str) -> object:
        if name != "mem0":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), "mem0"})
