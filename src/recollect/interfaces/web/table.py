"""Every page there is, by path and by name."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.interfaces.web import (
    documents,
    facts,
    generations,
    jobs,
    overview,
    quarantine,
    recalling,
    sessions,
    spaces,
)
from recollect.interfaces.web.view import View

VIEWS: tuple[View, ...] = (
    *spaces.VIEWS,
    *overview.VIEWS,
    *sessions.VIEWS,
    *facts.VIEWS,
    *quarantine.VIEWS,
    *documents.VIEWS,
    *generations.VIEWS,
    *recalling.VIEWS,
    *jobs.VIEWS,
)
BY_NAME: Mapping[str, View] = {view.name: view for view in VIEWS}
