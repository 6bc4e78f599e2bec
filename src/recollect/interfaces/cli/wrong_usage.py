"""Wrong usage as programs read it: with --json one object on standard error, as for any failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from recollect.interfaces.cli.lazy import LazyGroup
from recollect.interfaces.cli.output import write_json

_IS_ASKED = f"{__name__}.is_asked"
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # in newer versions of click


class RootGroup(LazyGroup):
    """The group that all commands are in: whatever is wrong with a line of them comes by here."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        as_json = _asks_for_json(args)
        with _told(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_IS_ASKED] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        with _told(as_json=ctx.meta.get(_IS_ASKED, False)):
            return super().invoke(ctx)


class WrongUsageError(click.UsageError):
    """What click found to be wrong, in the shape of our errors."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - it is for standard error
        content = {"type": "UsageError", "message": self.message, "retry_helps": False}
        write_json({"error": {**content, "mended_by": "caller"}}, to_stderr=True)


@contextmanager
def _told(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if not as_json or isinstance(error, _HELP):
            raise
        raise WrongUsageError(error.format_message()) from error


def _asks_for_json(args: Sequence[str]) -> bool:
    """Before the line is read, which may be what goes wrong."""
    words = list(args)
    return "--json" in (words[: words.index("--")] if "--" in words else words)
