"""One tenant of a memory: its sessions, facts, documents, and what it recalls of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect import collection
from recollect.collection import StableKey
from recollect.descriptors import (
    Descriptor,
    UserAgent,
    cache_key,
    from_cache_key,
    read_descriptor,
)
from recollect.errors import AmbiguousKey
from recollect.pipeline import Pipeline
from recollect.runtime import Runtime
from recollect.session import Session, Sessions, open_session
from recollect.types.facts import Receipt, Remembered
from recollect.types.records import Record

if TYPE_CHECKING:
    from recollect.adapters.anthropic_memory import MemoryTool
    from recollect.consolidation.generations import Generations
    from recollect.documents.tree import Documents
    from recollect.recall.checking import CheckCase, Checked
    from recollect.recall.recaller import Recaller
    from recollect.recall.usage import Opened, Used
    from recollect.types.pages import Author
    from recollect.types.recall import About, Context, EntryKind, Filters, Hit, Replay

DEFAULT_AGENT = "assistant"


class Space:
    """One tenant: its sessions, its facts and its documents."""

    def __init__(
        self,
        runtime: Runtime,
        pipeline: Pipeline,
        recaller: Callable[[str], Recaller],
        name: str,
    ) -> None:
        self._runtime = runtime
        self._pipeline = pipeline
        self._recaller_of = recaller
        self.name = name
        self.sessions = Sessions(runtime, runtime.store, name)
        self.facts = pipeline.facts(name)

    def __repr__(self) -> str:
        return f"Space({self.name!r})"

    @cached_property
    def documents(self) -> Documents:
        return self._pipeline.documents(self.name)

    @cached_property
    def generations(self) -> Generations:
        return self._pipeline.generations(self.name)

    def session(
        self,
        key: StableKey,
        agent: str | Mapping[str, Any] | Descriptor | None = None,
        *,
        source: str = "api",
        project: str | None = None,
        ephemeral: bool = False,
        parent: str | None = None,
    ) -> Session:
        """The conversation behind a stable key, created if it is new.

        An agent that is not given is the one that uses the key already, else "assistant".
        """
        if agent is None:
            descriptor = self._agent_of(collection.encode_key(key))
        else:
            descriptor = read_descriptor(agent)
        return open_session(
            self._runtime,
            self.name,
            key,
            descriptor,
            source=collection.check_label(source, "a source") or "api",
            project=collection.check_label(project, "a project"),
            parent=collection.check_label(parent, "a parent session"),
            ephemeral=bool(ephemeral),
        )

    def find_session(
        self, key: StableKey, agent: str | Mapping[str, Any] | Descriptor | None = None
    ) -> Session | None:
        """The conversation behind a stable key, if there is one; nothing is created."""
        encoded = collection.encode_key(key)
        descriptor = self._agent_of(encoded) if agent is None else read_descriptor(agent)
        store, is_kept = self._runtime.store_of(descriptor)
        ref = store.sessions.find_key(self.name, encoded, cache_key(descriptor))
        return None if ref is None else Session(self._runtime, store, ref, is_kept=is_kept)

    def remember(self, text: str) -> Remembered:
        """Store what a person says on purpose: as what, whether it was known, what it replaced.

        Where the rules understand it, it gets its kind, its topic and its dates, and replaces what
        was known on that topic: "Ben moved to Faro in May" is about where Ben lives.
        """
        return self.facts._remember(text)

    @cached_property
    def _recaller(self) -> Recaller:
        return self._recaller_of(self.name)

    def recall(
        self,
        query: str,
        limit: int = 10,
        *,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        speaker: str | None = None,
    ) -> list[Hit]:
        """What this space remembers about any text, best first, with sources and reasons.

        `kinds` are some of fact, document, summary and record; `filters` narrow down by since,
        until, agent, project, session, tags, trust and metadata; `as_of` is another time than now.
        `speaker` is the name of who asks: "Where do I live?" is about them.
        """
        return self._recaller.recall(
            query, limit, kinds=kinds, filters=filters, as_of=as_of, speaker=speaker
        )

    def context(
        self,
        query: str,
        max_tokens: int | None = None,
        *,
        max_facts: int = 10,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        beside: str | None = None,
        speaker: str | None = None,
    ) -> Context:
        """What is recalled as a fenced block for a prompt, within a budget; false when empty.

        The budget is 2,000 tokens where none is given. An empty query is answered with a recap of
        the project among the filters, else of the person, within `recap_tokens`. `beside` is the
        id of the session that the prompt shows anyway: it is not repeated.
        `speaker` is the name of who asks; without it, who spoke last in that session. The block is
        kept by reference, with who was told: see `why` and `replay`.
        """
        asked: dict[str, Any] = {"max_tokens": max_tokens, "max_facts": max_facts, "kinds": kinds}
        asked |= {"filters": filters, "as_of": as_of, "beside": beside}
        if isinstance(query, str) and not query.strip():
            # Not by way of recall, which takes longer to load: an agent waits for it.
            from recollect.recall.recap import Recapper

            recapper = Recapper(runtime=self._runtime, store=self._runtime.store, space=self.name)
            block = recapper.context(**asked)
        else:
            asked["speaker"] = speaker
            block = self._recaller.context(query, **asked)
        return self._runtime.told.keep(self.name, block, query, asked)

    def why(self, about: str = "", *, block: str | None = None) -> Replay:
        """What lines of a block came from, and why they ranked there.

        `about` is a block's id, a mark of it, or a line of an answer; nothing means all that the
        latest block said. `block` is the id of another one. NotFound: no such block is kept.
        """
        from recollect.recall.replay import why

        self._runtime.told.flush()
        return why(self._runtime, self.name, about, block)

    def replay(self, block: str | None = None) -> Replay:
        """A block that was told, byte for byte; or what was erased, changed or corrected since.

        The latest one, where none is named. NotFound: no such block is kept.
        """
        from recollect.recall.replay import replay

        self._runtime.told.flush()
        return replay(self._runtime, self.name, block)

    def check(self, cases: str | Path | Iterable[CheckCase | Mapping[str, Any]]) -> list[Checked]:
        """Test whether blocks say what cases expect, and nothing that they forbid.

        `cases` are a file (YAML, TOML or JSON), or the cases themselves: `ask`, with texts to
        `expect` and to `forbid`, `max_tokens`, `speaker`. Cases of other spaces are passed over.
        """
        from recollect.recall.checking import check, read_cases

        return check(self._runtime, self.name, read_cases(cases))

    def about(
        self,
        name: str,
        limit: int = 50,
        before: str | None = None,
        *,
        project: str | None = None,
    ) -> About:
        """Everything known of a person, a project or a thing, by any of its names.

        What holds, by kind, what held before, a timeline, the pages about it and the sessions it
        came up in. `before` is the `next` of the page before: statements come so many at a time.
        `project` leaves out what belongs to another one.
        """
        from recollect.recall.about import Subject

        subject = Subject(
            runtime=self._runtime,
            space=self.name,
            documents=self.documents,
            recaller=self._recaller,
            project=collection.check_label(project, "a project"),
        )
        return subject.about(name, limit, before)

    def cite(
        self, block: Context, used: Used | Iterable[Used] = (), *, turn: str | None = None
    ) -> int:
        """Tell what became of a block: it was shown, and what a model used of it was cited.

        `used` are marks, hits, ids, or the text that the model wrote. Each counts once in a turn.
        Returns how many citations were new; what was only shown was not used.
        """
        return self._recaller.cite(block, used, turn=turn)

    def opened(self, shown: Opened | Iterable[Opened], *, turn: str | None = None) -> int:
        """Tell that somebody asked to read hits, or what stands behind citations.

        Counted apart from what was shown and cited, each once in a turn; how many were new.
        """
        return self._recaller.opened(shown, turn=turn)

    def memory_tool(
        self, author: Author | str = DEFAULT_AGENT, *, root: str = "~/memory"
    ) -> MemoryTool:
        """What answers a Claude model that uses Anthropic's memory tool: `tool(block.input)`.

        `author` is the agent's name, or who else writes; `root` is what it sees as `/memories`.
        """
        from recollect.adapters.anthropic_memory import MemoryTool
        from recollect.types.pages import Author, AuthorKind

        if isinstance(author, str):
            author = Author(kind=AuthorKind.AGENT, name=author)
        return MemoryTool(self.documents, author=author, root=root)

    def forget(
        self,
        *,
        session: str | Session | None = None,
        record: str | Record | None = None,
        fact: str | None = None,
        document: str | None = None,
        agent: str | Mapping[str, Any] | Descriptor | None = None,
        source: str | None = None,
        everything: bool = False,
        pages: str = "keep",
    ) -> Receipt:
        """Erase one of these for good, with all that rests on it alone; what runs on it is stopped.

        `record` is a record or `session_id:seq`; `document` a path, with what is below it; `agent`
        and `source` stand for all their sessions up to now; `everything` for all that is here.
        Facts that other sessions bear out as well keep those sources. Pages that a person or
        another agent wrote on it stay and are named in the receipt; `pages="erase"` takes them too.
        NotFound: nothing is there.
        """
        from recollect.forgetting import ForgetRequest, forget

        wanted = ForgetRequest(
            session=session,
            record=record,
            fact=fact,
            document=document,
            agent=agent,
            source=source,
            everything=everything,
        )
        return forget(self._runtime, self._pipeline, self.name, wanted, pages=pages)

    def _agent_of(self, key: str) -> Descriptor:
        agents = self._runtime.store.sessions.key_agents(self.name, key)
        if len(agents) > 1:
            raise AmbiguousKey(f"{key!r} is used by {', '.join(agents)}; say which agent is meant")
        return from_cache_key(agents[0]) if agents else UserAgent(DEFAULT_AGENT)
