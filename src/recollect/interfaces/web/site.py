"""The web pages as an application beside the API: sign-in, access checks, and the pages.

Everything is below /ui. Without a visit every request leads to the sign-in; with one, what its key
does not open does not exist. A form is accepted only from a page of the same visit and the same
site. One thread does all of it, from the cookie to the bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from recollect.errors import InvalidValue
from recollect.interfaces.http.app import (
    Api,
    HttpExchange,
    allowed,
    media_type_of,
    picture,
    read_pairs,
    router,
)
from recollect.interfaces.http.problems import (
    EVENT_STREAM,
    NOTHING_HERE,
    TITLES,
    HttpAnswer,
    HttpProblem,
    Refusal,
    problem_of,
    refusal,
)
from recollect.interfaces.web import documents, facts, operating, sessions
from recollect.interfaces.web.rendering import STATIC, Renderer, files
from recollect.interfaces.web.view import HOME, Asked, Live, Moved, PageView, WebPage
from recollect.interfaces.web.visits import VISIT_LASTS, Visit, Visits
from recollect.memory import DEFAULT_SPACE, Memory
from recollect.observing.actors import acting
from recollect.types.access import ApiKey, Scope

COOKIE, SAID = "recollect_visit", "recollect_said"
FRONT_DOOR = "/"
VISIT_SECONDS, SAID_LASTS = int(VISIT_LASTS.total_seconds()), 60
SIGN_IN, SIGN_OUT = f"{HOME}/sign-in", f"{HOME}/sign-out"
FORM_TYPE = "application/x-www-form-urlencoded"
PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
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


class Site:
    """Answers everything below /ui."""

    headers: Mapping[str, str] = {**HEADERS, "Cache-Control": "no-store"}

    def __init__(self, api: Api, memory: Memory) -> None:
        self._api = api
        self._memory = memory
        self._visits = Visits(memory)
        self._renderer = Renderer(BY_NAME)
        self._router = router(api, self, VIEWS, FRONT_DOOR, SIGN_IN, SIGN_OUT)

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
        else:
            await self._router({**scope, "raw_path": path or b"/"}, receive, send)

    def known(self, exchange: HttpExchange) -> tuple[Visit, ApiKey] | None:
        """Return the visit and its key, if any; without one, a large body is not read."""
        return self._visits.of(exchange.request.cookies.get(COOKIE, ""))

    def answer(self, exchange: HttpExchange, body: bytes) -> Response:
        """Return a page or a redirect."""
        request, path = exchange.request, exchange.path
        known = None if path == SIGN_IN else self.known(exchange)
        if known is None and path in (SIGN_IN, FRONT_DOOR):
            return self._sign_in(exchange, body)
        if known is None:
            return _to_sign_in(exchange)
        exchange.visit, exchange.key = known
        if path == SIGN_OUT:
            if request.method != "POST":
                raise Refusal(NOTHING_HERE)
            _check_is_ours(request, exchange.visit, _form(request, body))
            self._visits.end(request.cookies[COOKIE])
            return _moved(SIGN_IN, {"Set-Cookie": _set_cookie(COOKIE, "", 0, request)})
        with acting(f"key:{exchange.key.id}"):
            return self._page_for(exchange, exchange.visit, exchange.key, body)

    def failed(self, exchange: HttpExchange, problem: HttpProblem) -> Response:
        """The answer when something goes wrong: a page that says so."""
        title = _TITLES.get(problem.kind, TITLES[problem.status])
        content = {"problem": problem, "title": title, "request_id": exchange.id}
        template = "_problem.html" if _is_fragment(exchange.request) else "problem.html"
        return self._page(exchange, template, content, problem.status, problem.headers)

    def _page_for(self, exchange: HttpExchange, visit: Visit, key: ApiKey, body: bytes) -> Response:
        request = exchange.request
        self._api.rate.check(key.id)
        places = request.path_params
        methods: Mapping[str, PageView] = exchange.methods
        if exchange.path == FRONT_DOOR:
            methods = {"GET": BY_NAME["home"]}
        method = "GET" if request.method == "HEAD" else request.method
        view = allowed(exchange, methods, method, key)
        form = _form(request, body)
        if view.method == "POST":
            _check_is_ours(request, visit, form)
        asked = Asked(
            memory=self._memory,
            space=self._api.space(places.get("space", DEFAULT_SPACE)),
            key=key,
            path=places,
            query=dict(read_pairs(exchange.query)),
            form=form,
        )
        match self._made(view, asked):
            case Live() as live:
                changes = self._changes(exchange, live)
                return HttpAnswer(content=changes, media_type=EVENT_STREAM).response()
            case Moved(to=to, said=said):
                header = _set_cookie(SAID, visit.signed(said), SAID_LASTS, request)
                return _moved(to, {"Set-Cookie": header} if said else None)
            case WebPage() as page:
                part = f"_{page.template}"
                is_part = _is_fragment(request) and part in self._renderer.templates
                around = {"here": page.template.removesuffix(".html"), "typed": form}
                content = {**around, "wrong": None, **page.content}
                return self._page(
                    exchange, part if is_part else page.template, content, page.status
                )

    def _made(self, view: PageView, asked: Asked) -> WebPage | Moved | Live:
        """What a view answers, with what its row says of it."""
        try:
            made = view.handler(asked)
        except InvalidValue as error:
            if not view.back:
                raise
            content = {**BY_NAME[view.back].handler(asked), "wrong": error}
            status = problem_of(error).status
            return WebPage(template=f"{view.back}.html", status=status, content=content)
        if isinstance(made, WebPage | Moved | Live):
            return made
        if view.method == "GET":
            return WebPage(template=f"{view.name}.html", content=made)
        said = view.said if isinstance(view.said, str) else view.said(made)
        return Moved(to=self._renderer.path(view.to, None, **asked.path), said=said)

    def _changes(self, exchange: HttpExchange, live: Live) -> AsyncIterator[str]:
        """What a page that is open renews itself for: more than jobs, also what was learned."""

        def look() -> dict[str, Any]:
            known = self.known(exchange)
            if known is None or not known[1].opens(live.space):
                raise Refusal(NOTHING_HERE)  # who looks has signed out since, or their key is over
            revision = self._memory.store.extractions.revision(live.space)
            return {**picture(self._memory, live.space), "revision": revision.changed}

        return self._api.changes(live.key_id, look)

    def _page(
        self,
        exchange: HttpExchange,
        template: str,
        content: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        visit, key, request = exchange.visit, exchange.key, exchange.request
        signed = request.cookies.get(SAID, "") if visit and template[0] != "_" else ""
        if signed:  # it is said once
            headers = {**(headers or {}), "Set-Cookie": _set_cookie(SAID, "", 0, request)}
        space = request.path_params.get("space")
        around = {
            "here": None,
            "space_name": space if key is not None and space and key.opens(space) else None,
            "key": key,
            "csrf": visit.csrf if visit else "",
            "said": visit.told(signed) if signed else "",
            "may_write": key is not None and key.scope.includes(Scope.WRITE),
            "may_admin": key is not None and key.scope.includes(Scope.ADMIN),
            "now": self._memory.clock.now(),
        }
        made = self._renderer.render(template, {**around, **content})
        return Response(made.encode(errors="replace"), status, headers, HTML)

    def _sign_in(self, exchange: HttpExchange, body: bytes) -> Response:
        request = exchange.request
        following = _local(dict(read_pairs(exchange.query)).get("next", ""))
        content = {"following": following, "is_wrong": False}
        if request.method in ("GET", "HEAD"):
            return self._page(exchange, "sign_in.html", content)
        if request.method != "POST":
            words = "this path allows GET, POST"
            raise refusal(405, "method-not-allowed", words, Allow="GET, POST")
        _check_same_site(request)
        token = self._visits.begin(_form(request, body).get("key", ""))
        if token is None:
            return self._page(exchange, "sign_in.html", {**content, "is_wrong": True}, 401)
        # Signing in again ends the visit before.
        self._visits.end(request.cookies.get(COOKIE, ""))
        return _moved(following, {"Set-Cookie": _set_cookie(COOKIE, token, VISIT_SECONDS, request)})


def _is_fragment(request: Request) -> bool:
    """Only a part of the page is to be renewed; who goes back in a browser gets all of it."""
    is_whole = "hx-boosted" in request.headers or "hx-history-restore-request" in request.headers
    return request.headers.get("hx-request") == "true" and not is_whole


def _check_is_ours(request: Request, visit: Visit, form: Mapping[str, str]) -> None:
    """Refusal: the form was not sent from a page of this visit."""
    _check_same_site(request)
    if not visit.sent(request.headers.get("x-csrf-token") or form.get("csrf", "")):
        raise refusal(403, "form", "this form is not from here or too old: load the page again")


def _check_same_site(request: Request) -> None:
    """Browsers say where a request comes from; what comes from elsewhere is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_here = origin is None or origin.partition("://")[2] == request.headers.get("host")
    # What the browser itself says goes before a comparison that a proxy's own Host would spoil.
    if not (site in ("same-origin", "none") if site else is_here):
        raise refusal(403, "elsewhere", "this form was sent from another site")


def _form(request: Request, body: bytes) -> dict[str, str]:
    if body and media_type_of(request) != FORM_TYPE:
        raise refusal(415, "not-a-form", f"send the form as {FORM_TYPE}")
    return dict(read_pairs(body))


def _set_cookie(name: str, value: str, lasts: int, request: Request) -> str:
    # The header is trusted: a client that forges it restricts only its own cookie.
    is_secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    secure = "; Secure" if is_secure else ""
    return f"{name}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}"


def _local(path: str) -> str:
    """Return the path if it is one of these pages, else the home page: no redirect elsewhere."""
    is_ours = path == HOME or path.startswith((f"{HOME}/", f"{HOME}?"))
    return path if is_ours and path.isascii() and path.isprintable() else HOME


def _moved(to: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(b"", 303, {"Location": to, **(headers or {})}, HTML)


def _file(path: str, method: str) -> Response:
    found = files().get(path.removeprefix(f"{STATIC}/"))
    if found is None or method not in ("GET", "HEAD"):
        return Response(b"", 404, {**HEADERS, "Cache-Control": "no-store"}, PLAIN)
    body, media_type = found
    return Response(body, 200, {**HEADERS, "Cache-Control": FOREVER, "Content-Type": media_type})


def _to_sign_in(exchange: HttpExchange) -> Response:
    if _is_fragment(exchange.request):  # a part cannot hold the sign-in: the page goes there
        return Response(b"", 401, {"HX-Redirect": SIGN_IN}, HTML)
    query = exchange.query.decode("latin-1")
    back = f"{exchange.path}?{query}" if query else exchange.path
    is_look = exchange.request.method in ("GET", "HEAD") and _local(back) == back != HOME
    return _moved(f"{SIGN_IN}?next={quote(back, safe='')}" if is_look else SIGN_IN)
