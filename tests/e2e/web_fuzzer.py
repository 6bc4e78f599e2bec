"""Makes requests for pages up, mostly wrong, as no browser would send them, and says what came.

The same seed makes the same requests.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlencode

import anyio

from recollect.interfaces.web.site import COOKIE, VIEWS
from tests.e2e.http_fuzzer import NASTY
from tests.e2e.web_examples import EXAMPLES, PAYLOAD
from tests.e2e.web_world import FORM, PagedWorld, Visitor

SPACE = "alice"
WORSE = (
    *NASTY,
    *(PAYLOAD, "0" * 18 + "9" * 5000, "9" * 18, str(2**63), "١٢٣", "²", "1_000", "+1", " 1 "),
    *("WzEsIlx1ZDgwMCJd", "WzFlOTk5XQ", "W1tdXQ", "=" * 40, '{"a": "\\ud800"}', '{"a": NaN}'),
    *('{"a":' + "[" * 900 + "]" * 900 + "}", '{"a":' + "[" * 90_000, '{"\\u0000": 1}', "[[x|y]]"),
)
QUERIES = (
    *("q", "tag", "every", "as_of", "cursor", "after", "path", "before", "older", "newer", "from"),
    *("whole", "show", "limit", "tokens", "trust", "fact", "record", "to", "against", "next"),
)
# What no template of a path has in its places.
ODD_PATHS = (
    *("/ui//", "/ui/./keys", "/ui/../v1/spaces", "/ui/%2e%2e/keys", "/ui/s//facts", "/ui/s/%2f/"),
    *("/ui/s/%252e%252e/facts", "/ui/s/%00", "/ui/s/%ff/facts", "/ui/s/%ed%a0%80", "/%75i/keys"),
    *("/ui/static/../desk.py", "/ui/static/%2e%2e/desk.py", "/ui/static//", "/ui/s/a/facts/%0d%0a"),
    *("/ui;x", "/ui/s/a;b/facts", "/ui/sign-in/", "/ui/sign%2Din", "/ui/sign-out", "/UI", "//ui"),
)
ODD_HEADERS = (
    ("cookie", f'a={{"b": 1}}; {COOKIE}="x"; {COOKIE}'),
    ("origin", "http://[::1"),
    ("host", ""),
    ("hx-request", "true"),
    ("content-type", "text/plain"),
    ("x-csrf-token", "é"),
    ("x-http-method-override", "DELETE"),
    ("x-forwarded-proto", "\r\n"),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PROPFIND")


@dataclass(slots=True, kw_only=True)
class Found:
    """What came of the requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    views: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as its bytes are on the wire; nothing tidies it up."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


async def asked(app: Any, sent: Sent) -> tuple[int, bytes, Mapping[bytes, bytes]]:
    """Ask an application, and leave when it has answered or goes on for ever."""
    raw, _, query = sent.target.partition("?")
    headers = {"content-length": str(len(sent.body)), **sent.headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "http",
        "path": unquote(raw, errors="replace"),
        "raw_path": raw.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [(n.encode(), v.encode("latin-1")) for n, v in headers.items()],
    }
    given: list[Any] = [{"type": "http.request", "body": sent.body, "more_body": False}]
    told: list[Any] = []

    async def receive() -> Any:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    await app(scope, receive, send)
    body = b"".join(each.get("body", b"") for each in told[1:])
    return told[0]["status"], body, dict(told[0]["headers"])


class WebFuzzer:
    """Takes requests that would succeed, and spoils some of their parts."""

    def __init__(self, world: PagedWorld, visitor: Visitor, seed: int) -> None:
        self._world = world
        self._visitor = visitor
        self._random = random.Random(seed)

    def request(self, number: int) -> tuple[str, Sent]:
        chance = self._random
        headers = {"host": "memory", "cookie": f"{COOKIE}={self._visitor.cookie}"}
        if chance.random() < 0.1:
            headers |= [chance.choice(ODD_HEADERS)]
        if chance.random() < 0.1:
            odd = self._encoded({chance.choice(QUERIES): chance.choice(WORSE)})
            target = f"{chance.choice(ODD_PATHS)}?{odd}"
            return "", Sent(method=chance.choice(METHODS), target=target, headers=headers)
        # Each view once before chance decides, so that none is left out of a short run.
        view = VIEWS[number] if number < len(VIEWS) else chance.choice(VIEWS)
        example = EXAMPLES[view.name](self._world, SPACE)
        path = view.path
        for name, value in {"space": SPACE, **example.places}.items():
            text = value if chance.random() < 0.85 else chance.choice(WORSE)
            path = path.replace(f"{{{name}}}", quote(text.encode(errors="surrogatepass"), safe=""))
        query = {name: self._maybe(value) for name, value in example.query.items()}
        if chance.random() < 0.4:
            query[chance.choice(QUERIES)] = chance.choice(WORSE)
        method = view.method if chance.random() < 0.95 else chance.choice(METHODS)
        target = f"{path}?{self._encoded(query)}"
        if view.method != "POST":
            return view.name, Sent(method=method, target=target, headers=headers)
        form = {name: self._maybe(value) for name, value in example.form.items()}
        if chance.random() < 0.1 and form:
            form.pop(chance.choice(list(form)))
        form["csrf"] = self._visitor.csrf
        headers.setdefault("content-type", FORM)
        body = self._encoded(form).encode()
        return view.name, Sent(method=method, target=target, headers=headers, body=body)

    def _maybe(self, value: str) -> str:
        return value if self._random.random() < 0.7 else self._random.choice(WORSE)

    def _encoded(self, given: Mapping[str, str]) -> str:
        return urlencode(
            {name: each.encode(errors="surrogatepass") for name, each in given.items()}
        )


def fuzz_pages(world: PagedWorld, seed: int, requests: int) -> Found:
    """So many requests of somebody who may do everything."""
    found, fuzzer = Found(), WebFuzzer(world, world.visitor(), seed)

    async def talk() -> None:
        for number in range(requests):
            name, sent = fuzzer.request(number)
            said = f"seed {seed}, {number}: {sent.method} {sent.target[:300]} {sent.body[:600]!r}"
            status, body, headers = await asked(world.app, sent)
            found.statuses[status] += 1
            found.views.add(name)
            if status >= 500 or b"Traceback" in body:
                found.failures.append(f"{status} {said}")
            if b"<b-evil" in body or any(b"\n" in each for each in headers.values()):
                found.failures.append(f"markup or a header: {said}")
            if headers[b"content-type"].startswith(b"text/html"):
                body.decode()

    anyio.run(talk)
    return found
