"""G11: what may be said is all that the selected memories say, and what their pages are called."""

from __future__ import annotations

import recollect
from recollect.consolidation.stage import Inputs


def test_what_a_kept_page_is_called_may_be_said() -> None:
    """Else a page could not name what is kept where something with such a name was removed."""
    with recollect.open(":memory:") as memory:
        session = memory.space("a").session("chat", project="home")
        session.append("user", "I prefer rye bread.")
        session.sleep()
        memory.work(all=True)
        inputs = Inputs.read(memory.store.generations, "a", memory.settings, memory.clock.now())
        said = "\n".join(inputs.texts())
        [page] = memory.space("a").documents.tree("~/memory/rollout_summaries", depth=1)[1:]
        assert page.title in said
        assert page.description in said
        assert " in home" in page.description
