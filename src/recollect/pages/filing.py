"""Has a store render facts to pages: those on none, or those of a stretch of records."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from recollect.documents.paths import DEPTH_MAX
from recollect.pages.render import render
from recollect.runtime import Runtime
from recollect.store.protocol import Store
from recollect.types.pages import Filing, TreeLimits


def filing(documents_max: int, now: datetime) -> Filing:
    """How facts are rendered at a time."""
    limits = TreeLimits(documents_max=documents_max, depth_max=DEPTH_MAX)
    return Filing(render=partial(render, now=now), limits=limits)


def render_pages(
    runtime: Runtime, store: Store, space: str | None, limit: int = 1, *, ended: bool = False
) -> None:
    """Render the facts that are to come on a page, in a space or in so many of all.

    With `ended`, pages on which something has ended as well.
    """
    now = runtime.now()
    for each in store.documents.unrendered(space, now if ended else None, limit):
        which = filing(runtime.settings.documents_max, now)
        store.documents.render(each, which, now, runtime.ids.new)
