"""`recollect work` and `recollect worker`: marked sessions are processed, now or as they come."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Annotated, Any

import click

import recollect
from recollect.descriptors import agent_label
from recollect.errors import InvalidValue, RecollectError, StoreError
from recollect.ids import Ids
from recollect.interfaces.cli.commands import Opt, Output, Target, command
from recollect.interfaces.cli.groups import known_keys
from recollect.interfaces.cli.output import (
    counted,
    harmless,
    indented,
    json_line,
    note,
    one_line,
    progress_line,
    spent_in_words,
)
from recollect.interfaces.cli.parameters import find_session
from recollect.interfaces.cli.running import (
    logged,
    stop_signals,
    terminated_like_interrupted,
    wait_for_stop,
)
from recollect.interfaces.http.metrics import store_lines
from recollect.interfaces.views import view
from recollect.memory import Memory
from recollect.observing.exposition import TEXT_TYPE
from recollect.observing.metrics import VERBS
from recollect.session import LIST_MAX
from recollect.types.facts import Fact
from recollect.types.records import JobKind
from recollect.worker import WorkReport

if TYPE_CHECKING:  # what `work --help` need not load
    from recollect.extraction.plan import WorkPlan

Place = tuple[str, str]  # a space, and a session in it


@command(makes_store=True)
def work(
    at: Target,
    *,
    everything: Annotated[
        bool, Opt("First mark every session that has unprocessed records.", name="--all")
    ] = False,
    again: Annotated[
        bool, Opt("Process everything once more, and replace what was learned from it.")
    ] = False,
    session: Annotated[
        str | None,
        Opt("With --again: only this session.", "KEY-OR-ID", complete=known_keys),
    ] = None,
    dry_run: Annotated[
        bool, Opt("Only show what would be read and sent, and what it may cost.")
    ] = False,
    show_prompts: Annotated[bool, Opt("With --dry-run: the first prompt of each.")] = False,
) -> Output:
    """Process what is due now, then stop: for a schedule, or where no worker runs.

    First it looks for what became due unnoticed, as a worker does now and then: idle sessions
    (idle_sweep_seconds), memories that expired, files that people edited. It continues until
    nothing is due: sessions, then the memory of every space in which something changed, without a
    cooldown (see recollect consolidate). What backs off after a failure, is parked, paused or being
    processed elsewhere is left alone; recollect status shows which and why. It works for all spaces
    of the store or, with --space, for that one alone, beside any number of workers. The exit code
    is 1 if a session, or a consolidation, failed.

    Without a model everything is done by rules, offline. With one (the setting model) it distils
    sessions, files pages and writes the handbook, each of which costs money; extractor,
    memory_agent_model and consolidation_model, set to rules, switch each off. After setting a
    model, --again processes everything once more, or with --session that session. --dry-run sends
    nothing and changes nothing; what it cannot estimate it names.

    Examples:
      recollect work
      recollect work --all --json
      recollect work --space alice
      recollect work --dry-run --again --show-prompts
      recollect work --again --session telegram:42:main
    """
    if session is not None and not again:
        raise click.UsageError("--session goes with --again.")
    if show_prompts and not dry_run:
        raise click.UsageError("--show-prompts goes with --dry-run.")
    with logged(logging.WARNING, as_json=at.as_json), terminated_like_interrupted():
        memory, space = at.memory, at.scope if session is None else at.space.name
        session_id = None if session is None else find_session(at.space, session).id
        if dry_run:
            plan = _planned(memory.plan(space, all=everything, again=again), session_id)
            lines = _plan_lines(plan, memory.settings, with_prompts=show_prompts)
            return Output(plan_view(plan, with_prompts=show_prompts), lines)
        if again and not memory.request_again(space, session_id) and session is not None:
            note("There is nothing to go through again: it was not processed, or it is due.")
        return _worked(at, everything=everything)


def _worked(at: Target, *, everything: bool) -> Output:
    memory, space, notes = at.memory, at.scope, list[str]()
    before, first_id = _facts_of_sessions(memory, space), Ids(memory.clock).new()
    with progress_line(lambda: _sessions_to_go(memory, space), as_json=at.as_json):
        report = memory.work(all=everything, space=space)
    after = _facts_of_sessions(memory, space)
    grown = {each for each, count in after.items() if count > before.get(each, 0)}
    facts = _count_new(memory, grown, first_id)
    left = memory.status(space, limit=0).marked_count
    if report.postponed:
        notes.append("What is postponed has not failed: it waits for what is said above.")
    if left:
        does = "is" if left == 1 else "are"
        notes.append(f"{counted(left, 'session')} {does} still marked; why: recollect status")
    elif report.failed or report.postponed:
        notes.append("What failed or waits, and why: recollect status")
    return Output(
        view(report) | {"new_facts": facts, "still_marked": left},
        _report_in_words(report, facts),
        notes,
        exit_code=1 if report.failed else 0,
    )


def _facts_of_sessions(memory: Memory, space: str | None) -> dict[Place, int]:
    """How many facts rest on each session, of those that began last."""
    progress = memory.store.extractions.progress(space, LIST_MAX)
    return {(each.space, each.session_id): each.facts for each in progress}


def _count_new(memory: Memory, grown: AbstractSet[Place], first_id: str) -> int:
    """The facts that sessions brought from an id on: one that several say is one."""
    new: set[str] = set()
    for space in {space for space, _ in grown}:
        facts, page = memory.space(space).facts, list[Fact]()
        while page := facts.list(LIST_MAX, page[-1] if page else None, every=True):
            young = [fact for fact in page if fact.id > first_id]
            if not young:
                break
            new |= {
                fact.id
                for fact in young
                if any((space, source.session_id) in grown for source in fact.sources)
            }
    return len(new)


def _sessions_to_go(memory: Memory, space: str | None) -> str | None:
    try:
        jobs = memory.store.leases.jobs(space, LIST_MAX)
        passes = sum(job.kind is JobKind.EXTRACT_AGAIN for job in jobs)
        left = memory.store.marks.counts(space)[0] + passes
    except StoreError:
        return None  # whoever works meets it too, and says so
    return f"{counted(left, 'session')} to go …"


def _report_in_words(report: WorkReport, facts: int) -> str:
    least = "at least " if report.processed >= LIST_MAX else ""  # only so many were looked at
    records = counted(report.records, "record")
    words = f"Processed {counted(report.processed, 'session')}, {records}:"
    words += f" {least}{counted(facts, 'new fact')}; {report.failed:,} failed"
    more = {
        "postponed": report.postponed,
        "went to another worker": report.stale,
        "given back": report.released,
    }
    words += "".join(f"; {count:,} {what}" for what, count in more.items() if count)
    if report.generations:
        words += f"; {counted(report.generations, 'new generation')} of memory"
    return f"{words}."


# A plan: what would be read and sent, and what it may cost at most

NO_PRICES = "To see the cost, set model_input_price and model_output_price (per million tokens)."


def _planned(plan: WorkPlan, session_id: str | None) -> WorkPlan:
    if session_id is None:
        return plan
    of_it = tuple(each for each in plan.sessions if each.session.id == session_id)
    return dataclasses.replace(plan, sessions=of_it, is_cut=plan.is_cut and not of_it)


def plan_view(plan: WorkPlan, *, with_prompts: bool) -> dict[str, Any]:
    sessions = [
        {
            "session_id": each.session.id,
            "space": each.session.space,
            "key": each.session.key,
            "agent": agent_label(each.session.agent_id),
            "first_seq": each.first,
            "last_seq": each.upto,
            "records": each.records,
            "at_most": each.spent,
        }
        | ({"prompt": each.prompt} if with_prompts else {})
        for each in plan.sessions
    ]
    return {
        "dry_run": True,
        "extractor": plan.extractor,
        "records": plan.records,
        "at_most": plan.spent,
        "not_included": dict(plan.not_included),
        "is_cut": plan.is_cut,
        "sessions": sessions,
    }


def _plan_lines(
    plan: WorkPlan, settings: recollect.Settings, *, with_prompts: bool
) -> Iterator[str]:
    yield f"{click.style('Extractor', bold=True)}  {one_line(plan.extractor)}"
    for each in plan.sessions:
        session = each.session
        yield f"  {session.id}  {one_line(session.key)} (space {one_line(session.space)})"
        sent = f"; at most {spent_in_words(each.spent)}" if each.spent.calls else ""
        yield f"    records {each.first}–{each.upto}{sent}"
        if with_prompts and each.prompt is not None:
            yield indented(harmless(each.prompt))
    if plan.is_cut:
        yield f"  … and more than these {counted(len(plan.sessions), 'session')}"
    yield from plan_totals(plan, settings)


def plan_totals(plan: WorkPlan, settings: recollect.Settings) -> Iterator[str]:
    """All of it in one line, what it leaves out, and how to know what it costs."""
    read = f"{counted(len(plan.sessions), 'session')}, {counted(plan.records, 'record')}"
    if not plan.spent.calls and not plan.not_included:
        yield f"Would read {read}. Nothing would be sent to a model."
        return
    if plan.spent.calls:
        yield f"Would read {read}, and take at most {spent_in_words(plan.spent)}."
    else:
        yield f"Would read {read}. Nothing would be sent to a model for extraction."
    if plan.not_included:
        jobs = " and ".join(f"the {job} ({by})" for job, by in plan.not_included.items())
        yield f"Not included: {one_line(jobs)}. Their cost depends on what they find."
    if plan.spent.calls and plan.spent.cost_micros is None:
        yield NO_PRICES
    calls = counted(settings.spend_calls_per_day, "call")
    tokens = counted(settings.spend_tokens_per_day, "token")
    yield f"A space may use {calls} and {tokens} a day (spend_*_per_day)."


# A worker in the foreground


@command(makes_store=True)
def worker(
    at: Target,
    *,
    concurrency: Annotated[
        int | None,
        Opt(
            "Sessions processed at the same time. Default: the setting worker_concurrency.",
            "N",
            at_least=1,
        ),
    ] = None,
    name: Annotated[
        str | None,
        Opt("What status calls this worker. Default: host, process and a random part.", "OWNER"),
    ] = None,
    metrics_port: Annotated[
        int | None,
        Opt(
            "Serve /metrics for Prometheus on this port; 0: any that is free. Default: not at all.",
            "N",
            at_least=0,
            at_most=65_535,
        ),
    ] = None,
    metrics_host: Annotated[str, Opt("Where --metrics-port listens.", "NAME")] = "127.0.0.1",
    verbose: Annotated[bool, Opt("Also log what is read, not only the results.")] = False,
    quiet: Annotated[bool, Opt("Log only what goes wrong.")] = False,
) -> Output:
    """Process sessions as they are marked, until stopped.

    Any number of workers, on any number of machines, may share a store: each session is processed
    by one at a time, and if that one dies another takes over when its lease has expired. A worker
    also runs the idle sweep, and looks for overlooked sessions when it starts.

    SIGTERM and Ctrl-C stop it: it claims nothing more, lets running sessions finish, and after
    worker_grace_seconds gives back those that have not. A second signal ends it at once; others
    then wait for its leases to expire. It logs a line for each session on standard error; with
    --json each is an object. It works for all spaces, whatever --space says.

    Examples:
      recollect worker
      recollect worker --store postgresql://localhost/memory --concurrency 16 --name worker-1
      RECOLLECT_LEASE_SECONDS=300 recollect worker --quiet
      recollect worker --metrics-port 9464
    """
    at.ignores_space("a worker works for all of them; recollect work takes one")
    if verbose and quiet:
        raise click.UsageError("Give --verbose or --quiet, not both.")
    if name is not None and not name.strip():
        raise click.UsageError("--name is empty.")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    metrics = None if metrics_port is None else True
    with (
        logged(level, as_json=at.as_json),
        at.open(worker_concurrency=concurrency, metrics=metrics) as memory,
        nullcontext()
        if metrics_port is None
        else metrics_served(memory, metrics_host, metrics_port) as figures,
        stop_signals() as wait,
    ):
        running = memory.worker(owner=name)
        running.start()
        settings, store = memory.settings, memory.store.describe()
        ready = {
            "owner": running.owner,
            "store": {"kind": store.kind, "location": store.location},
            "concurrency": settings.worker_concurrency,
            "tick_seconds": settings.worker_tick_seconds,
            "lease_seconds": running.lease_seconds,
        }
        words = (
            f"Worker {one_line(running.owner)} is ready: {store.kind}, {one_line(store.location)};"
            f" {counted(settings.worker_concurrency, 'session')} at a time, checks every"
            f" {settings.worker_tick_seconds:g} s, lease {running.lease_seconds:g} s."
        )
        note(json_line({"ready": ready}) if at.as_json else words)
        if figures is not None:
            note(json_line({"metrics": figures}) if at.as_json else f"Metrics: {figures}")
        received = wait_for_stop(wait)
        if not at.as_json:
            grace = settings.worker_grace_seconds
            note(f"Stopping ({received.name}), within {grace:g} s; once more ends it at once.")
        running.stop()
    return Output({"owner": running.owner, "stopped_by": received.name}, (), "Stopped.")


METRICS_PATH = "/metrics"
READ_SECONDS = 10


@contextmanager
def metrics_served(memory: Memory, host: str, port: int) -> Iterator[str]:
    """Serve the metrics of this process until the end of the context; where, as a URL.

    InvalidValue: it cannot listen there.
    """

    def text() -> str:
        return "\n".join([*VERBS.lines(), *store_lines(memory)]) + "\n"

    handler = type("Handler", (_MetricsHandler,), {"text": staticmethod(text)})
    kind = _ServerOverIPv6 if ":" in host else ThreadingHTTPServer
    try:
        server = kind((host, port), handler)
    except (OSError, OverflowError) as error:
        raise InvalidValue(f"cannot listen on {host}:{port}: {error}") from error
    thread = threading.Thread(target=server.serve_forever, name="recollect-metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}{METRICS_PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _ServerOverIPv6(ThreadingHTTPServer):
    """For an address like ::1."""

    address_family = socket.AF_INET6


class _MetricsHandler(BaseHTTPRequestHandler):
    """Answers requests for the metrics."""

    text: Callable[[], str]
    timeout = READ_SECONDS

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != METRICS_PATH:
            return self._answer(HTTPStatus.NOT_FOUND, f"try {METRICS_PATH}\n")
        try:
            text = self.text()
        except RecollectError as error:  # whoever scrapes sees that the store is away
            return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{type(error).__name__}\n")
        return self._answer(HTTPStatus.OK, text)

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", TEXT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its own name
        """Nothing: a line for every scrape says nothing."""
