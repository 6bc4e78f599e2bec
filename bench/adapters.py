"""What the adapters add to the call of the library that each makes, in the same run (CPU)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from bench.measure import Action, take_turns
from bench.report import Line
from bench.settings import Run
from bench.stores import SPACE, open_memory, sqlite_address
from bench.texts import make_texts
from recollect.adapters.langgraph_store import ItemPage, RecollectStore, encode, tags_of
from recollect.adapters.openai_agents import RecollectSession
from recollect.compat.mem0 import Memory
from recollect.space import Space
from recollect.types.facts import Fact

ITEMS, QUICK_ITEMS = 1000, 100
CALLS, REPETITIONS, QUICK_REPETITIONS = 10, 15, 3
NAMESPACE = ("users", "will")
SHARE_MAX = 3.0  # times what the library itself takes
QUESTION = "the garden of the train"

Pair = tuple[Action, Action]  # through the adapter, and what it calls itself


def measure_adapters(run: Run) -> Iterator[Line]:
    """Each verb of an adapter beside the one verb of the library that does the work."""
    texts = make_texts(run.scaled(ITEMS, QUICK_ITEMS))
    for name, pairs in (
        ("LangGraph store", _langgraph),
        ("OpenAI Agents session", _openai_agents),
        ("mem0 client", _mem0),
    ):
        with ExitStack() as stack:
            path = run.directory / f"adapter-{name.split()[0].lower()}.db"
            memory = stack.enter_context(open_memory(sqlite_address(path, synchronous="off")))
            space = memory.space(SPACE)
            measured = pairs(stack, space, Memory(memory), texts)
            yield from _lines(run, name, len(texts), measured)


def _lines(run: Run, name: str, items: int, pairs: Mapping[str, Pair]) -> Iterator[Line]:
    repetitions = run.scaled(REPETITIONS, QUICK_REPETITIONS)
    for verb, (adapted, bare) in pairs.items():
        taken = take_turns(
            {"adapter": adapted, "library": bare}, repetitions=repetitions, calls=CALLS
        )
        yield Line(
            group=f"the {name} over the library, {items:,} items, SQLite (CPU)",
            name=verb,
            unit="µs",
            measured=taken["adapter"].cpu_us,
            limit=taken["library"].cpu_us,
            target=SHARE_MAX,
        )


def _langgraph(_: ExitStack, space: Space, __: Memory, texts: list[str]) -> Mapping[str, Pair]:
    store, documents = RecollectStore(space), space.documents
    for number, text in enumerate(texts):
        store.put(NAMESPACE, f"item {number}", {"text": text, "number": number})
    path = next(node.path for node in documents.tree("~/langgraph") if node.depth == 3)
    numbers = itertools.count()

    def write() -> None:
        number = next(numbers)
        page = ItemPage(
            namespace=NAMESPACE, key=f"b {number}", value={"text": texts[0], "n": number}
        )
        documents.write(f"~/bare/{number}", encode(page), tags=tags_of(NAMESPACE))

    def put() -> None:
        number = next(numbers)
        store.put(NAMESPACE, f"a {number}", {"text": texts[0], "n": number})

    return {
        "put, over documents.write": (put, write),
        "get, over documents.find": (
            lambda: store.get(NAMESPACE, "item 7"),
            lambda: documents.find(path),
        ),
        "search with a question, over recall": (
            lambda: store.search(NAMESPACE, query=QUESTION),
            lambda: space.recall(QUESTION, 50, kinds=["document"]),
        ),
        "search of the newest ten, over documents.tree": (
            lambda: store.search(NAMESPACE),
            lambda: documents.tree("~/langgraph"),
        ),
    }


def _openai_agents(
    stack: ExitStack, space: Space, _: Memory, texts: list[str]
) -> Mapping[str, Pair]:
    adapted, bare = RecollectSession(space, "adapted"), space.session("bare")
    runner = stack.enter_context(asyncio.Runner())
    for session in (space.session("adapted"), bare):
        session.append_many([{"role": "user", "content": text} for text in texts])
    turn = [
        {"role": "user", "content": texts[0]},
        {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": texts[1]},
        {"role": "assistant", "content": texts[2]},
    ]
    return {
        "add_items of a turn, over append_many": (
            lambda: runner.run(adapted.add_items(turn)),  # type: ignore[arg-type]
            lambda: bare.append_many(turn),
        ),
        "get_items of the newest 50, over recent": (
            lambda: runner.run(adapted.get_items(50)),
            lambda: bare.recent(50),
        ),
    }


def _mem0(_: ExitStack, space: Space, client: Memory, texts: list[str]) -> Mapping[str, Pair]:
    facts = space.facts
    for number, text in enumerate(texts):
        client.add(text, user_id=SPACE, infer=False, metadata={"number": number})
    known = client.get_all(user_id=SPACE)["results"][0]
    fact_id = known["id"].rpartition("@")[0]
    numbers = itertools.count()
    filters = {"user_id": SPACE}

    def add() -> None:
        fact = Fact(texts[0], id=f"bare {next(numbers)}", metadata={"number": 1, **filters})
        facts.add(fact)

    return {
        "add without inference, over facts.add": (
            lambda: client.add(texts[0], user_id=SPACE, infer=False, metadata={"number": 1}),
            add,
        ),
        "get, over facts.get": (lambda: client.get(known["id"]), lambda: facts.get(fact_id)),
        "search, over recall": (
            lambda: client.search(QUESTION, filters=filters),
            lambda: space.recall(QUESTION, 80, kinds=["fact"]),
        ),
        "get_all of the newest 20, over facts.list": (
            lambda: client.get_all(filters=filters),
            lambda: facts.list(20),
        ),
    }
