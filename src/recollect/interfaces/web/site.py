"""The pages as a web application beside the API: reads requests, hands each to a thread."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import anyio
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from recollect.ids import Ids
from recollect.interfaces.http.app import METHODS, UNMATCHED, Api, is_much, path_segments
from recollect.interfaces.http.events import Streams, picture
from recollect.interfaces.http.limits import Rate
from recollect.interfaces.http.messages import Response
from recollect.interfaces.http.table import Table
from recollect.interfaces.web.dispatch import HEADERS, PageDispatcher, PageRequest
from recollect.interfaces.web.rendering import STATIC, files
from recollect.interfaces.web.table import VIEWS
from recollect.interfaces.web.view import HOME, Live
from recollect.memory import Memory

PLAIN = "text/plain; charset=utf-8"
EVENTS = "text/event-stream; charset=utf-8"
FOREVER = "private, max-age=31536000, immutable"

_log = logging.getLogger(__name__)


class Site:
    """Answers everything below /ui."""

    def __init__(self, api: Api, memory: Memory) -> None:
        self._api = api
        self._memory = memory
        self._dispatcher = PageDispatcher(
            memory, Rate(memory.clock, api.limits.rate_per_second, api.limits.burst)
        )
        self._table = Table(VIEWS)
        self._ids = Ids(memory.clock)
        self._streams = Streams(api.run, api.is_stopping, api.limits.poll_seconds)

    def routes(self) -> list[BaseRoute]:
        """Where the pages are in an application; the front door leads to them."""
        return [
            Route("/", self),
            Route("/favicon.ico", lambda _: RedirectResponse(f"{STATIC}/icon.svg", 303)),
            Route(HOME, self),  # a mount begins only after its slash
            Mount(HOME, app=self),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = self._memory.clock.now()
        request = self._request(scope)
        if request.path.startswith(f"{STATIC}/"):
            await self._send(_file(request), request, send)
            return
        outcome = await self._answered(request, receive)
        status = outcome.status if isinstance(outcome, Response) else 200
        seconds = (self._memory.clock.now() - began).total_seconds()
        template = request.match.template if request.match else UNMATCHED
        method = request.method if request.method in METHODS else "OTHER"
        self._api.metrics.count(method, template, status, seconds)
        _log.info(
            "%s %s %d %.1f ms request=%s",
            method,
            template,
            status,
            seconds * 1000,
            request.request_id,
        )
        if isinstance(outcome, Live):
            await self._watch(outcome, request, receive, send)
        else:
            await self._send(outcome, request, send)

    def _request(self, scope: Scope, body: bytes = b"") -> PageRequest:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        raw = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        path = raw.decode("latin-1")
        return PageRequest(
            method=scope["method"],
            path=path.rstrip("/") or "/",
            match=self._table.match(path_segments(path.rstrip("/") or HOME)),
            query=scope["query_string"],
            headers=headers,
            # A proxy's word is enough: whoever makes it up binds nobody but themselves.
            is_secure="https" in (scope.get("scheme"), headers.get("x-forwarded-proto")),
            request_id=self._ids.new(),
            body=body,
        )

    async def _answered(self, request: PageRequest, receive: Receive) -> Response | Live:
        try:
            asked = request  # a stranger's large body is not read: it leads to the sign-in
            if not is_much(request.headers) or await self._api.run(
                partial(self._dispatcher.is_known, request)
            ):
                asked = request.with_body(await self._api.received(request.headers, receive))
            answered: Response | Live = await self._api.run(partial(self._dispatcher.answer, asked))
        except Exception as error:  # a body that never came, or nobody free to answer
            return self._dispatcher.failed(error, request)
        if not isinstance(answered, Live):
            return answered
        if request.method == "HEAD":
            return Response(status=200, media_type=EVENTS, headers=HEADERS, body=b"")
        if self._streams.is_full(answered.key_id):
            return Response(status=503, media_type=PLAIN, headers=HEADERS, body=b"")
        return answered

    async def _watch(self, live: Live, request: PageRequest, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", EVENTS.encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        look = partial(self._seen, request, live.space)
        await self._streams.serve(live.key_id, look, receive, send)

    def _seen(self, request: PageRequest, space: str) -> dict[str, Any]:
        """What a page that is open renews itself for: more than jobs, also what was learned.

        Refusal: whoever looks has signed out since, or their key is over. They see nothing more.
        """
        self._dispatcher.check_opens(request, space)
        revision = self._memory.store.extractions.revision(space)
        return {**picture(self._memory, space), "revision": revision.changed}

    async def _send(self, answer: Response, request: PageRequest, send: Send) -> None:
        headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            *((name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers),
        ]
        if not any(name == b"cache-control" for name, _ in headers):
            headers.append((b"cache-control", b"no-store"))
        with anyio.move_on_after(self._api.limits.send_seconds):  # who does not read is left
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            body = b"" if request.method == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body, "more_body": False})


def _file(request: PageRequest) -> Response:
    found = files().get(request.path.removeprefix(f"{STATIC}/"))
    if found is None or request.method not in ("GET", "HEAD"):
        return Response(status=404, media_type=PLAIN, headers=HEADERS, body=b"")
    body, media_type = found
    headers = (*HEADERS, ("Cache-Control", FOREVER))
    return Response(status=200, media_type=media_type, headers=headers, body=body)
