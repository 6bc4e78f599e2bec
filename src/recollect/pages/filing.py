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


def render_unfiled(runtime: Runtime, store: Store, space: str) -> None:
    """Render the facts of a space that are to come on a page, if there are any."""
    if store.documents.unrendered(space, None, 1):
        now = runtime.now()
        which = filing(runtime.settings.documents_max, now)
        store.documents.render(space, which, now, runtime.ids.new)


def render_all(runtime: Runtime, store: Store, space: str | None, limit: int) -> None:
    """The same in a space or in all, so many of them, and of pages on which something has ended."""
    now = runtime.now()
    which = filing(runtime.settings.documents_max, now)
    for each in store.documents.unrendered(space, now, limit):
        store.documents.render(each, which, now, runtime.ids.new)
