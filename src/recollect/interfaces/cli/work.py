"""`recollect work` and `recollect worker`: process marked sessions, once or continuously."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from socketserver import TCPServer
from typing import TYPE_CHECKING, Annotated, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import click

import recollect
from recollect.descriptors import agent_label
from recollect.errors import InvalidValue, RecollectError, StoreError
from recollect.ids import Ids
from recollect.interfaces.cli.commands import Opt, Output, Target, command
from recollect.interfaces.cli.output import (
    cards,
    counted,
    harmless,
    indented,
    json_line,
    note,
    one_line,
    progress_line,
    spent_in_words,
)
from recollect.interfaces.cli.parameters import KeyOrId, Number, find_session
from recollect.interfaces.cli.running import logged, stop_signals, terminated_like_interrupted
from recollect.interfaces.http.metrics import store_lines
from recollect.interfaces.views import view
from recollect.memory import Memory
from recollect.observing.exposition import TEXT_TYPE
from recollect.observing.metrics import VERBS
from recollect.session import LIST_MAX
from recollect.types.records import JobKind
from recollect.worker import WorkReport

if TYPE_CHECKING:  # what `work --help` need not load
    from recollect.extraction.plan import PlannedSession, WorkPlan


@command(makes_store=True)
def work(
    at: Target,
    *,
    everything: bool = False,
    again: bool = False,
    session: KeyOrId | None = None,
    dry_run: bool = False,
    show_prompts: bool = False,
) -> Output:
    """Process what is due now, then stop: for a schedule, or where no worker runs.

    It continues until nothing is due: sessions, then the memory of every space in which something
    changed, without a cooldown. What backs off after a failure, is parked, paused or being
    processed elsewhere is left alone; recollect status shows which and why. It works for all spaces
    of the store or, with --space, for one, beside any number of workers. The exit code is 1 if a
    session, or a consolidation, failed.

    Without a model everything is done by rules, offline. With one (the setting model) it distils
    sessions, files pages and writes the handbook, each of which costs money; extractor,
    memory_agent_model and consolidation_model, set to rules, switch each off.

    Options:
      everything, --all: First mark every session that has unprocessed records.
      again: Process everything once more, and replace what was learned from it.
      session: With --again: only this session.
      dry_run: Only show what would be read and sent, and what it may cost.
      show_prompts: With --dry-run: the first prompt of each.

    Examples:
      recollect work --all
      recollect work --again --session telegram:42:main
      recollect work --dry-run --again --show-prompts
    """
    if session is not None and not again:
        raise click.UsageError("--session goes with --again.")
    if show_prompts and not dry_run:
        raise click.UsageError("--show-prompts goes with --dry-run.")
    with logged(logging.WARNING, as_json=at.as_json), terminated_like_interrupted():
        memory, space = at.memory, at.scope if session is None else at.space.name
        session_id = None if session is None else find_session(at.space, session).id
        if dry_run:
            plan = memory.plan(space, all=everything, again=again)
            if session_id is not None:
                of_it = tuple(each for each in plan.sessions if each.session.id == session_id)
                plan = dataclasses.replace(plan, sessions=of_it, is_cut=plan.is_cut and not of_it)
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
    grown = {each[0] for each, count in after.items() if count > before.get(each, 0)}
    young = (memory.space(name).facts.list(LIST_MAX, every=True) for name in grown)
    new = sum(fact.id > first_id and bool(fact.extractor) for page in young for fact in page)
    left = memory.status(space, limit=0).marked_count
    if report.postponed:
        notes.append(
            "What is postponed has not failed: it waits for what is said above or, where its "
            "session is going on, for a pause (recollect work --all does not)."
        )
    if left:
        does = "is" if left == 1 else "are"
        notes.append(f"{counted(left, 'session')} {does} still marked; why: recollect status")
    elif report.failed or report.postponed:
        notes.append("What failed or waits, and why: recollect status")
    value = view(report) | {"new_facts": new, "still_marked": left}
    words = _report_in_words(report, new)
    return Output(value, words, notes, exit_code=1 if report.failed else 0)


def _facts_of_sessions(memory: Memory, space: str | None) -> dict[tuple[str, str], int]:
    """How many facts rest on each session, by its space and id, of those that began last."""
    progress = memory.store.extractions.progress(space, LIST_MAX)
    return {(each.space, each.session_id): each.facts for each in progress}


def _sessions_to_go(memory: Memory, space: str | None) -> str | None:
    try:
        jobs = memory.store.leases.jobs(space, LIST_MAX)
        passes = sum(job.kind is JobKind.EXTRACT_AGAIN for job in jobs)
        left = memory.store.marks.counts(space)[0] + passes
    except StoreError:
        return None  # the worker meets the same error and reports it
    return f"{counted(left, 'session')} to go …"


def _report_in_words(report: WorkReport, facts: int) -> str:
    least = "at least " if report.processed >= LIST_MAX else ""  # only so many were looked at
    words = (
        f"Processed {counted(report.processed, 'session')}, {counted(report.records, 'record')}:"
    )
    words += f" {least}{counted(facts, 'new fact')}; {report.failed:,} failed"
    others = {
        "postponed": report.postponed,
        "went to another worker": report.stale,
        "given back": report.released,
    }
    words += "".join(f"; {count:,} {what}" for what, count in others.items() if count)
    if report.generations:
        words += f"; {counted(report.generations, 'new generation')} of memory"
    return f"{words}."


# A plan: what would be read and sent, and what it may cost at most


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
    def name(each: PlannedSession) -> str:
        session = each.session
        return f"{session.id}  {one_line(session.key)} (space {one_line(session.space)})"

    def sent(each: PlannedSession) -> str:
        most = f"; at most {spent_in_words(each.spent)}" if each.spent.calls else ""
        prompt = f"\n{indented(harmless(each.prompt))}" if with_prompts and each.prompt else ""
        return f"records {each.first}–{each.upto}{most}{prompt}"

    yield f"{click.style('Extractor', bold=True)}  {one_line(plan.extractor)}"
    yield from cards(plan.sessions, name, sent, indent="  ")
    if plan.is_cut:
        yield f"  … and more than these {counted(len(plan.sessions), 'session')}"
    yield from plan_totals(plan, settings)


def plan_totals(plan: WorkPlan, settings: recollect.Settings) -> Iterator[str]:
    """All of it in one line, what it leaves out, and how to know what it costs."""
    read = f"Would read {counted(len(plan.sessions), 'session')}, {counted(plan.records, 'record')}"
    if plan.spent.calls:
        yield f"{read}, and take at most {spent_in_words(plan.spent)}."
    else:
        rest = " for extraction" if plan.not_included else ""
        yield f"{read}. Nothing would be sent to a model{rest}."
    if plan.not_included:
        jobs = " and ".join(f"the {job} ({by})" for job, by in plan.not_included.items())
        yield f"Not included: {one_line(jobs)}. Their cost depends on what they find."
    if plan.spent.calls and plan.spent.cost_micros is None:
        yield "To see the cost, set model_input_price and model_output_price (per million tokens)."
    if plan.spent.calls or plan.not_included:
        calls = counted(settings.spend_calls_per_day, "call")
        tokens = counted(settings.spend_tokens_per_day, "token")
        yield f"A space may use {calls} and {tokens} a day (spend_*_per_day)."


# A worker in the foreground


@command(makes_store=True)
def worker(
    at: Target,
    *,
    concurrency: Number | None = None,
    name: str | None = None,
    metrics_port: Annotated[int | None, Opt(metavar="N", at_least=0, at_most=65_535)] = None,
    metrics_host: str = "127.0.0.1",
    verbose: bool = False,
    quiet: bool = False,
) -> Output:
    """Process sessions as they are marked, until stopped.

    Any number of workers, on any number of machines, may share a store: each session is processed
    by one at a time, and if that one dies another takes over when its lease has expired.

    SIGTERM and Ctrl-C stop it: it claims nothing more, lets running sessions finish, and after
    worker_grace_seconds gives back those that have not. A second signal ends it at once. It logs a
    line for each session on standard error; with --json an object. It works for all spaces,
    whatever --space says.

    Options:
      concurrency: Sessions processed at the same time. Default: the setting worker_concurrency.
      name OWNER: What status calls this worker. Default: host, process and a random part.
      metrics_port: Serve /metrics for Prometheus on this port; 0: any that is free. Default: not
        at all.
      metrics_host NAME: Where --metrics-port listens.
      verbose: Also log what is read, not only the results.
      quiet: Log only what goes wrong.

    Examples:
      recollect worker --store postgresql://localhost/memory --concurrency 16 --name worker-1
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
        while (received := wait(None)) is None:
            pass
        if not at.as_json:
            grace = settings.worker_grace_seconds
            note(f"Stopping ({received.name}), within {grace:g} s; once more ends it at once.")
        running.stop()
    return Output({"owner": running.owner, "stopped_by": received.name}, (), "Stopped.")


METRICS_PATH = "/metrics"
READ_SECONDS = 10


class _MetricsServer(WSGIServer):
    """Answers scrapes one after the other, without looking up host names."""

    def server_bind(self) -> None:
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _MetricsRequest(WSGIRequestHandler):
    """A request, of which no line is logged, and which may not dawdle."""

    timeout = READ_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its own name
        """Nothing: a line for every scrape says nothing."""


@contextmanager
def metrics_served(memory: Memory, host: str, port: int) -> Iterator[str]:
    """Serve the metrics of this process until the end of the context; where, as a URL.

    InvalidValue: it cannot listen there.
    """

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        status, text = "404 Not Found", f"try {METRICS_PATH}\n"
        if environ["PATH_INFO"] == METRICS_PATH:
            try:
                status, text = "200 OK", "\n".join([*VERBS.lines(), *store_lines(memory), ""])
            except RecollectError as error:  # the scraper sees that the store is unavailable
                status, text = "503 Service Unavailable", f"{type(error).__name__}\n"
        start(status, [("Content-Type", TEXT_TYPE)])
        return [text.encode()]

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = type("MetricsServer", (_MetricsServer,), {"address_family": family})
    try:
        server = kind((host, port), _MetricsRequest)
    except (OSError, OverflowError) as error:
        raise InvalidValue(f"cannot listen on {host}:{port}: {error}") from error
    server.set_app(answer)
    thread = threading.Thread(target=server.serve_forever, name="recollect-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}{METRICS_PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
