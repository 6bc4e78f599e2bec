"""Tells which memories belong to a project, for an agent that is shown the memory of one.

A fact belongs to the project that it names. One that names none is about people, and holds
everywhere. The extraction of a session belongs to the session's project.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.space import Space
from recollect.types.facts import Fact


@dataclass(slots=True)
class Homes:
    """The memories that an agent in a project may see: those of the project, or of none."""

    space: Space
    project: str | None
    _projects: dict[str, str | None] = field(default_factory=dict)

    def has(self, fact: Fact) -> bool:
        return fact.metadata.get("project") in (self.project, self.place, None)

    def has_session(self, session_id: str) -> bool:
        return self._of(session_id) in (self.project, None)

    @property
    def place(self) -> str | None:
        """The project as extraction writes it into facts: with single blanks."""
        return None if self.project is None else " ".join(self.project.split())

    def _of(self, session_id: str) -> str | None:
        if session_id not in self._projects:
            state = self.space.sessions.get(session_id)
            # The project of a session that is gone is not known any more.
            self._projects[session_id] = "" if state is None else state.project
        return self._projects[session_id]
