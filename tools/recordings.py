"""Recorded answers: keeps what a model was asked, and answers it again by its prompt.

    python tools/recordings.py                  replays; says which recordings are stale or missing
    python tools/recordings.py --pending DIR    also writes each request that has no answer there

The product makes its requests itself, over HTTP, of sessions in files: every space of its own, each
batch of its sessions said and then worked off. A request is known by a hash of all of it, without
ids. Whoever records answers `<space>.<name>.request.md` from what stands there and from nothing
else, into `<space>.<name>.answer` beside it: a text, or a list of [tool, arguments]. The next
run takes it over and goes on until it meets what was not asked before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import recollect
from recollect.clock import ManualClock
from recollect.models.tokens import estimate_tokens
from recollect.space import Space
from recollect_conformance.scripted import Scripted, ScriptedServer, answer, calls, status
from recollect_conformance.scripted_frames import Received

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "recordings"
JOBS = {
    "You turn new records": "extraction",
    "You keep the memory documents": "memory-agent",
    "You keep the memory of an agent": "consolidation",
}
AGAIN = "record it again with `python tools/recordings.py --pending DIR`"
MODEL = {"model": "openai:scripted", "worker_batch": 1, "model_retries": 0, "backoff_seconds": 60}
_KNOWN = re.compile(r"^\| (f\d+) (?:\([^\n]*?\))?: (.*)$", re.MULTILINE)
_FOUND = re.compile(r"(?<=\n)# (?:Known facts|Pages that may)[^\n]*\n.*?(?=\n# )", re.DOTALL)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One answer: the request's name, the hash of what was asked, and the known facts it names."""

    name: str
    prompt: str
    answer: Any
    known: Mapping[str, str] = field(default_factory=dict)

    def said_to(self, text: str) -> Any:
        """The answer with the names that the facts it replaces have in a request."""
        if not self.known:
            return self.answer
        shown = {content: name for name, content in known_in(text).items()}
        answer = json.loads(json.dumps(self.answer))
        for fact in answer["facts"]:
            names = [shown.get(self.known[name]) for name in fact.get("supersedes", ())]
            if "supersedes" in fact:
                fact["supersedes"] = [name for name in names if name is not None]
        return answer


@dataclass(slots=True, kw_only=True)
class RecordedModel:
    """What a server answers for one space. `stale` and `missing` are names of requests.

    A stale recording is played all the same where `is_lenient`, so that all of them are found.
    """

    space: str
    recordings: dict[str, Recording]
    pending: Path | None = None
    is_lenient: bool = False
    stale: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    tokens: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, space: str, answers: Path, **options: Any) -> RecordedModel:
        path = answers / f"{space}.json"
        stored = json.loads(path.read_text()) if path.exists() else []
        recordings = {each["prompt"]: Recording(**each) for each in stored}
        return cls(space=space, recordings=recordings, **options)

    def __call__(self, received: Received) -> Scripted:
        text, job = said_in(received), job_of(received)
        self.asked[job] += 1
        name, prompt = f"{job}-{self.asked[job]}", digest(text)
        found = self.recordings.get(prompt) or self._taken(name, prompt, text)
        if found is None:
            same = [each for each in self.recordings.values() if each.name == name]
            (self.stale if same else self.missing).append(name)
            if not (same and self.is_lenient):
                return status(401, f"no recording of {self.space} {name}")
            found = same[0]
        self.tokens[f"{job} sent"] += estimate_tokens(text)
        given = found.said_to(text)
        told = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        self.tokens[f"{job} answered"] += estimate_tokens(told)
        if isinstance(given, list):
            return calls(*((tool, arguments) for tool, arguments in given))
        return answer(given)

    def _taken(self, name: str, prompt: str, text: str) -> Recording | None:
        """The answer that somebody has put beside a request, if it is to this one."""
        if self.pending is None:
            return None
        request = self.pending / f"{self.space}.{name}.request.md"
        given = request.with_name(f"{self.space}.{name}.answer")
        is_asked = request.exists() and digest(request.read_text()) == prompt
        if not (is_asked and given.exists()):
            self.pending.mkdir(parents=True, exist_ok=True)
            request.write_text(text)
            given.unlink(missing_ok=True)
            return None
        said = given.read_text().strip()
        told = json.loads(said) if said.startswith(("[[", "{")) else said
        facts = told["facts"] if isinstance(told, dict) else ()
        named = {old for fact in facts for old in fact.get("supersedes", ())}
        known = {old: text for old, text in known_in(text).items() if old in named}
        recorded = Recording(name=name, prompt=prompt, answer=told, known=known)
        self.recordings = {p: r for p, r in self.recordings.items() if r.name != name}
        self.recordings[prompt] = recorded
        return recorded

    def complaint(self) -> str:
        """What is wrong with the recordings, and what to do; empty: nothing."""
        told = [("were made for another prompt", self.stale), ("are missing", self.missing)]
        return "; ".join(
            f"recordings of {self.space} {what}: {', '.join(names)}; {AGAIN}"
            for what, names in told
            if names
        )

    def store(self, answers: Path) -> None:
        listed = sorted(self.recordings.values(), key=lambda each: each.name)
        lines = (json.dumps(asdict(r), ensure_ascii=False) for r in listed)
        answers.mkdir(parents=True, exist_ok=True)
        (answers / f"{self.space}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def said_in(received: Received) -> str:
    """All that a model is sent, as one text; ids differ from run to run."""
    texts = [received.system]
    for each in received.messages:
        texts += [f"{call.name} {json.dumps(call.arguments)}" for call in each.tool_calls]
        texts.append(each.text)
    schema = (
        [received.schema]
        if received.schema
        else [{tool.name: [tool.description, tool.parameters]} for tool in received.tools]
    )
    texts.append(json.dumps(schema, ensure_ascii=False))
    return _ID.sub("<id>", "\n\n".join(texts))


def job_of(received: Received) -> str:
    return next(job for start, job in JOBS.items() if received.system.startswith(start))


def digest(text: str) -> str:
    """What a request asks: not which known facts and pages a store finds to be nearest to it."""
    return hashlib.sha256(_FOUND.sub("", text).encode()).hexdigest()[:16]


def known_in(text: str) -> dict[str, str]:
    return dict(_KNOWN.findall(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A space after all its sessions were said and worked off."""

    memory: recollect.Memory
    space: Space
    clock: ManualClock
    model: RecordedModel
    transcript_tokens: int
    sessions: int
    is_last: bool


def play(file: Path, url: str, model: RecordedModel, **settings: Any) -> Iterator[Played]:
    """Say the sessions of a file batch by batch, and yield what is there after each."""
    told = json.loads(file.read_text())
    clock, said, sessions = ManualClock(), 0, 0
    with ScriptedServer(model) as server:
        given = {**MODEL, "model_base_url": server.url, **told.get("settings", {}), **settings}
        with recollect.open(url, settings=given, clock=clock) as memory:
            space = memory.space(file.stem)
            for number, batch in enumerate(told["batches"], start=1):
                for session in batch:
                    said += _say(space, clock, told.get("seats", {}), session)
                    sessions += 1
                memory.work(space=space.name)
                yield Played(
                    memory=memory,
                    space=space,
                    clock=clock,
                    model=model,
                    transcript_tokens=said,
                    sessions=sessions,
                    is_last=number == len(told["batches"]),
                )
                if model.missing or (model.stale and not model.is_lenient):
                    return


def _say(space: Space, clock: ManualClock, seats: Mapping[str, str], told: Any) -> int:
    """Append a session's records a minute apart, and leave it; the tokens of its words."""
    start = datetime.fromisoformat(f"{told['at']}:00+00:00")
    session = space.session(told["key"], "assistant", project=told.get("project"))
    seats, tokens = {**seats, **told.get("seats", {})}, 0
    for number, (kind, *rest) in enumerate(told["said"]):
        moment = start + timedelta(minutes=number)
        clock.advance(max(0.0, (moment - clock.now()).total_seconds()))
        tokens += estimate_tokens(" ".join(map(str, rest)))
        if kind == "call":
            call: dict[str, Any] = {"id": f"c{number}", "type": "function"}
            call["function"] = {"name": rest[0], "arguments": json.dumps({"command": rest[1]})}
            session.append("assistant", tool_calls=[call], at=moment)
        elif kind in ("result", "failed"):
            back = {"tool_call_id": f"c{number - 1}", "is_error": kind == "failed"}
            session.append("tool", rest[0], at=moment, **back)
        else:
            session.append(kind, rest[0], name=seats.get(kind), at=moment)
    clock.advance(60)
    session.sleep()
    return tokens


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixtures", type=Path, default=FIXTURES, help="sessions/ and answers/")
    parser.add_argument("--pending", type=Path, help="where requests wait for answers")
    parser.add_argument(
        "--stale", action="store_true", help="find all that is stale, not the first"
    )
    parser.add_argument("--only", default="*", help="the spaces to play, as a pattern")
    given = parser.parse_args()
    complaints = []
    for file in sorted((given.fixtures / "sessions").glob(f"{given.only}.json")):
        answers = given.fixtures / "answers"
        model = RecordedModel.of(file.stem, answers, pending=given.pending, is_lenient=given.stale)
        played = list(play(file, ":memory:", model))[-1]
        if given.pending is not None:
            model.store(answers)
        sums = ", ".join(f"{name} {count:,}" for name, count in sorted(model.tokens.items()))
        print(f"{file.stem}: {played.sessions} sessions, {played.transcript_tokens:,}; {sums}")
        complaints += [model.complaint()] if model.complaint() else []
    print(*complaints, sep="\n", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
