"""The pages as a web application beside the API: who asks, whether they may, and the page.

Everything below /ui. In one thread from the cookie to the bytes: without a visit everything leads
to the sign-in; with one, what the key does not open is not there. A form counts only if it comes
from a page of the same visit and from the same site.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from recollect.clock import ticks
from recollect.errors import InvalidValue
from recollect.ids import Ids
from recollect.interfaces.http.app import (
    UNMATCHED,
    Api,
    AsgiApp,
    Head,
    allowed,
    by_path,
    is_much,
    picture,
    router,
)
from recollect.interfaces.http.limits import Rate
from recollect.interfaces.http.problems import (
    EVENT_STREAM,
    NOTHING_HERE,
    TITLES,
    HttpAnswer,
    HttpProblem,
    Refusal,
    problem_for,
    refusal,
)
from recollect.interfaces.web import documents, facts, operating, sessions
from recollect.interfaces.web.rendering import STATIC, Renderer, files
from recollect.interfaces.web.view import HOME, Answer, Asked, Live, Moved, PageView, WebPage
from recollect.interfaces.web.visits import VISIT_LASTS, Visit, Visits
from recollect.memory import DEFAULT_SPACE, Memory
from recollect.observing.actors import acting
from recollect.types.access import ApiKey, Scope

COOKIE = "recollect_visit"
FRONT_DOOR = "/"
SIGN_IN, SIGN_OUT = f"{HOME}/sign-in", f"{HOME}/sign-out"
FIELDS_MAX = 100
FORM_TYPE = "application/x-www-form-urlencoded"
PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
SPACES_HELD = 256
FOREVER = "private, max-age=31536000, immutable"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Content-Type-Options": "nosniff",
}

_TITLES = {  # where the API's own words would be wrong on a page
    "not-a-form": "Only forms are understood",
    "form": "The form was not taken",
    "elsewhere": "The form was not taken",
}


VIEWS: tuple[PageView, ...] = (
    *sessions.VIEWS,
    *facts.VIEWS,
    *documents.VIEWS,
    *operating.VIEWS,
)
BY_NAME: Mapping[str, PageView] = {view.name: view for view in VIEWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(Head):
    """A request for a page."""

    is_secure: bool
    body: bytes = b""

    @property
    def is_fragment(self) -> bool:
        """Only a part of the page is to be renewed; who goes back in a browser gets all of it."""
        is_whole = "hx-boosted" in self.headers or "hx-history-restore-request" in self.headers
        return self.headers.get("hx-request") == "true" and not is_whole


class Site:
    """Answers everything below /ui."""

    def __init__(self, api: Api, memory: Memory) -> None:
        self._api = api
        self._memory = memory
        self._ids = Ids(memory.clock)
        self._rate = Rate(memory.clock, api.limits.rate_per_second, api.limits.burst)
        self._visits = Visits(memory)
        self._renderer = Renderer(BY_NAME)
        self._space = lru_cache(SPACES_HELD)(memory.space)
        paths = {path: self._at(path, views) for path, views in by_path(VIEWS).items()}
        self._router = router(paths, self._at(UNMATCHED, {}))

    def routes(self) -> list[BaseRoute]:
        """Where the pages are in an application; the front door leads to them."""
        return [
            Route(FRONT_DOOR, self),
            Route("/favicon.ico", lambda _: RedirectResponse(f"{STATIC}/icon.svg", 303)),
            Route(HOME, self),  # a mount begins only after its slash
            Mount(HOME, app=self),
        ]

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].rstrip(b"/")
        if path.startswith(f"{STATIC}/".encode()):
            await _file(path.decode("latin-1"), scope["method"])(scope, receive, send)
            return
        sent = {**scope, "raw_path": path or HOME.encode(), "is_front_door": not path}
        await self._router(sent, receive, send)

    def _at(self, template: str, views: Mapping[str, PageView]) -> AsgiApp:
        return AsgiApp(partial(self._serve, template, views))

    async def _serve(
        self,
        template: str,
        views: Mapping[str, PageView],
        scope: Connection,
        receive: Receive,
        send: Send,
    ) -> None:
        began, headers = ticks(), Headers(scope=scope)
        request = PageRequest(
            method=scope["method"],
            path=FRONT_DOOR if scope["is_front_door"] else scope["path"],
            template=template,
            methods=views,
            places=scope.get("path_params", {}),
            query=scope["query_string"],
            headers=headers,
            # A proxy's word is enough: whoever makes it up binds nobody but themselves.
            is_secure="https" in (scope.get("scheme"), headers.get("x-forwarded-proto")),
            request_id=self._ids.new(),
        )
        response = await self._answered(request, receive)
        self._api.note(request, response.status_code, began)
        response.headers["cache-control"] = "no-store"
        await response(scope, receive, send)

    async def _answered(self, request: PageRequest, receive: Receive) -> Response:
        try:
            asked = request  # a stranger's large body is not read: it leads to the sign-in
            if not is_much(request.headers) or await self._api.run(
                partial(self._is_known, request)
            ):
                asked = replace(request, body=await self._api.received(request.headers, receive))
            return await self._api.run(partial(self._answer, asked))
        except Exception as error:  # a body that never came, or nobody free to answer
            return self._failed(problem_for(error, request.request_id), request, None)

    def _is_known(self, request: PageRequest) -> bool:
        """Whether somebody who has signed in asks."""
        return self._visits.of(_cookie(request)) is not None

    def _changes(self, request: PageRequest, live: Live) -> AsyncIterator[str]:
        """What a page that is open renews itself for: more than jobs, also what was learned."""

        def look() -> dict[str, Any]:
            known = self._visits.of(_cookie(request))
            if known is None or not known[1].opens(live.space):
                raise Refusal(NOTHING_HERE)  # who looks has signed out since, or their key is over
            revision = self._memory.store.extractions.revision(live.space)
            return {**picture(self._memory, live.space), "revision": revision.changed}

        return self._api.changes(live.key_id, look)

    def _answer(self, request: PageRequest) -> Response:
        """The answer; whatever goes wrong becomes a page that says so."""
        known = None
        try:
            if request.path == SIGN_IN:
                return self._sign_in(request)
            token = _cookie(request)
            known = self._visits.of(token)
            if known is None and request.path == FRONT_DOOR:
                return self._sign_in(request)
            if known is None:
                return _to_sign_in(request)
            if request.path == SIGN_OUT:
                return self._sign_out(request, known[0], token)
            with acting(f"key:{known[1].id}"):
                return self._page_for(request, *known)
        except Exception as error:  # the one place that nothing passes
            return self._failed(problem_for(error, request.request_id), request, known)

    def _page_for(self, request: PageRequest, visit: Visit, key: ApiKey) -> Response:
        self._rate.check(key.id)
        view = allowed(request.methods, request.places, _looked(request.method), key)
        form = _form(request)
        if view.method == "POST":
            _check_is_ours(request, visit, form)
        name = request.places.get("space")
        asked = Asked(
            memory=self._memory,
            space=self._space(name or DEFAULT_SPACE),
            key=key,
            path=request.places,
            query=_pairs(request.query),
            form=form,
            is_fragment=request.is_fragment,
        )
        made: Answer = view.handler(asked)
        match made:
            case Live() as live:
                changes = self._changes(request, live)
                answer = HttpAnswer(content=changes, media_type=EVENT_STREAM, headers=HEADERS)
                return answer.response()
            case Moved(to=to, said=said):
                visit.said = said
                return _moved(to)
            case WebPage() as page:
                is_part = page.fragment is not None and request.is_fragment
                return self._page(
                    page.fragment if is_part and page.fragment else page.template,
                    {**page.content, "here": view.name, "space_name": name},
                    status=page.status,
                    known=(visit, key),
                    is_part=is_part,
                )

    def _page(
        self,
        template: str,
        content: Mapping[str, Any],
        *,
        status: int = 200,
        known: tuple[Visit, ApiKey] | None = None,
        is_part: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        visit, key = known or (None, None)
        around = {
            "here": None,
            "space_name": None,
            "key": key,
            "csrf": visit.csrf if visit else "",
            "said": self._visits.told(visit) if visit and not is_part else "",
            "may_write": key is not None and key.scope.includes(Scope.WRITE),
            "may_admin": key is not None and key.scope.includes(Scope.ADMIN),
            "now": self._memory.clock.now(),
        }
        made = self._renderer.render(template, {**around, **content})
        return _html(made.encode(errors="replace"), status, headers)

    def _failed(
        self, problem: HttpProblem, request: PageRequest, known: tuple[Visit, ApiKey] | None
    ) -> Response:
        content = {"problem": problem, "title": _TITLES.get(problem.kind, TITLES[problem.status])}
        template = "_problem.html" if request.is_fragment else "problem.html"
        places = request.places
        name = places.get("space")
        if name is not None and known is not None and known[1].opens(name):
            content["space_name"] = name
        return self._page(
            template,
            {**content, "request_id": request.request_id},
            status=problem.status,
            known=known,
            is_part=request.is_fragment,
            headers=problem.headers,
        )

    def _sign_in(self, request: PageRequest) -> Response:
        following = _local(_pairs(request.query).get("next", ""))
        if request.method in ("GET", "HEAD"):
            return self._page("sign_in.html", {"following": following, "is_wrong": False})
        if request.method != "POST":
            raise refusal(
                405, "method-not-allowed", "this path allows GET, POST", Allow="GET, POST"
            )
        _check_same_site(request)
        form = _form(request)
        token = self._visits.begin(form.get("key", ""))
        if token is None:
            return self._page(
                "sign_in.html", {"following": following, "is_wrong": True}, status=401
            )
        self._visits.end(_cookie(request))  # whoever comes in anew has left the visit before
        return _moved(following, {"Set-Cookie": _set_cookie(token, request)})

    def _sign_out(self, request: PageRequest, visit: Visit, token: str) -> Response:
        if request.method != "POST":
            raise Refusal(NOTHING_HERE)
        _check_is_ours(request, visit, _form(request))
        self._visits.end(token)
        return _moved(SIGN_IN, {"Set-Cookie": _set_cookie("", request)})


def _looked(method: str) -> str:
    return "GET" if method == "HEAD" else method


def _check_is_ours(request: PageRequest, visit: Visit, form: Mapping[str, str]) -> None:
    """Refusal: the form was not sent from a page of this visit."""
    _check_same_site(request)
    if not visit.sent(request.headers.get("x-csrf-token") or form.get("csrf", "")):
        raise refusal(403, "form", "this form is not from here or too old: load the page again")


def _check_same_site(request: PageRequest) -> None:
    """Browsers say where a request comes from; what comes from elsewhere is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_here = origin is None or origin.partition("://")[2] == request.headers.get("host")
    # What the browser itself says goes before a comparison that a proxy's own Host would spoil.
    if not (site in ("same-origin", "none") if site else is_here):
        raise refusal(403, "elsewhere", "this form was sent from another site")


def _pairs(encoded: bytes) -> dict[str, str]:
    """What was given under each name, once. InvalidValue: it cannot be read."""
    try:
        given = parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=FIELDS_MAX,
            errors="strict",
        )
    except ValueError as error:
        raise InvalidValue("the parameters cannot be read") from error
    return dict(given)


def _form(request: PageRequest) -> dict[str, str]:
    if not request.body:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type != FORM_TYPE:
        raise refusal(415, "not-a-form", f"send the form as {FORM_TYPE}")
    return _pairs(request.body)


def _cookie(request: PageRequest) -> str:
    """Read by hand: an odd cookie of another program on this host is not to hide ours."""
    for each in request.headers.get("cookie", "").split(";"):
        name, _, value = each.partition("=")
        if name.strip() == COOKIE:
            return value.strip()
    return ""


def _set_cookie(token: str, request: PageRequest) -> str:
    lasts = int(VISIT_LASTS.total_seconds()) if token else 0
    secure = "; Secure" if request.is_secure else ""
    return f"{COOKIE}={token}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}"


def _local(path: str) -> str:
    """Only ever a page of ours: whoever signs in is sent nowhere else."""
    is_ours = path == HOME or path.startswith((f"{HOME}/", f"{HOME}?"))
    return path if is_ours and path.isascii() and path.isprintable() else HOME


def _html(body: bytes, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, {**HEADERS, **(headers or {})}, HTML)


def _moved(to: str, headers: Mapping[str, str] | None = None) -> Response:
    return _html(b"", 303, {"Location": to, **(headers or {})})


def _file(path: str, method: str) -> Response:
    found = files().get(path.removeprefix(f"{STATIC}/"))
    if found is None or method not in ("GET", "HEAD"):
        return Response(b"", 404, {**HEADERS, "Cache-Control": "no-store"}, PLAIN)
    body, media_type = found
    return Response(body, 200, {**HEADERS, "Cache-Control": FOREVER, "Content-Type": media_type})


def _to_sign_in(request: PageRequest) -> Response:
    if request.is_fragment:  # a part of a page cannot hold the sign-in: the whole page goes there
        return _html(b"", 401, {"HX-Redirect": SIGN_IN})
    back = request.path + (f"?{request.query.decode('latin-1')}" if request.query else "")
    is_look = request.method in ("GET", "HEAD") and _local(back) == back and back != HOME
    return _moved(f"{SIGN_IN}?next={quote(back, safe='')}" if is_look else SIGN_IN)
