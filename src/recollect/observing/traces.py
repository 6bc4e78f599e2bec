"""Spans for verbs, model calls and jobs, through the OpenTelemetry API where it is installed.

A span names the verb, job or model, its duration and the class of an error. It contains nothing
that was said, no error message, no id and no space, whose name may be a person's. The process that
sets up OpenTelemetry decides where spans go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.errors import MissingExtra
from recollect.observing.actors import acting
from recollect.observing.seam import End, StoreVerb

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

SCOPE = "recollect"
VERB, JOB, ERROR = "recollect.verb", "recollect.job", "error.type"
MODEL, PURPOSE = "gen_ai.request.model", "recollect.purpose"
INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"

Attributes = Mapping[str, str | int]
Note = Callable[[Attributes], None]


@cache
def open_tracer() -> Tracer:
    """Return the tracer that makes spans. MissingExtra: OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace  # an extra, loaded when it is asked for
    except ImportError as error:
        raise MissingExtra(
            f"traces need an extra: pip install 'recollect[otel]' ({error})"
        ) from error
    return trace.get_tracer(SCOPE)


class VerbSpans:
    """Implements `Observer` by a span around every verb."""

    def __init__(self) -> None:
        open_tracer()  # what is missing is said at once

    def minds(self, verb: StoreVerb) -> bool:
        del verb
        return True

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        del args, named
        span = spanned(verb.name, {VERB: verb.name}, traced=True)
        span.__enter__()

        def end(error: BaseException | None, result: object) -> None:
            del result
            if error is None:
                span.__exit__(None, None, None)
            else:
                span.__exit__(type(error), error, error.__traceback__)

        return end


@contextmanager
def spanned(name: str, attributes: Attributes, *, traced: bool) -> Iterator[Note]:
    """A span around something that is not a verb, if spans are wanted, with its outcome."""
    if not traced:
        yield lambda _attributes: None
        return
    tracer = open_tracer()
    from opentelemetry import trace  # there is a tracer, so there is the extra

    with tracer.start_as_current_span(
        f"{SCOPE}.{name}",
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span.set_attributes
        except BaseException as error:
            # By its class alone: a message may quote what somebody said.
            span.set_attribute(ERROR, type(error).__name__)
            span.set_status(trace.StatusCode.ERROR)
            raise


@contextmanager
def at_work(owner: str, job: str, *, traced: bool) -> Iterator[None]:
    """What a worker does for a job: in its own name, and as one span."""
    with acting(f"worker:{owner}"), spanned(f"job.{job}", {JOB: job}, traced=traced):
        yield
