"""Times as people write them on the command line."""

from __future__ import annotations

import re
from datetime import datetime

import click

from recollect import collection
from recollect.errors import InvalidValue

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_given_time(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> datetime | None:
    """A time with its zone; a day alone is its beginning in UTC."""
    if text is not None and _DAY.fullmatch(text):
        text = f"{text}T00:00:00+00:00"
    try:
        return collection.read_time(text)
    except InvalidValue as error:
        raise click.BadParameter(str(error), context, parameter) from error
