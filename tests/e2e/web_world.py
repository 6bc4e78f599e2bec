"""A served memory with its pages, and people who visit them without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2

import recollect
from recollect.interfaces.http.app import ServerLimits
from recollect.interfaces.web.site import COOKIE, SAID, Site
from recollect.types.access import Scope
from tests.e2e.http_world import UNLIMITED, World

FORM = "application/x-www-form-urlencoded"


class PagedWorld(World):
    """The same, with the pages beside the API."""

    def __init__(self, memory: recollect.Memory, limits: ServerLimits = UNLIMITED) -> None:
        super().__init__(memory, limits)
        self.app = self.api.beside(Site(self.api, memory).routes())

    def visitor(self, space: str | None = None, scope: Scope = Scope.ADMIN) -> Visitor:
        return Visitor(self, self.key(space, scope))


class Visitor:
    """Somebody who has signed in, and goes where a browser would."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self.cookie = ""
        self.said = ""  # by the cookie that carries a message to the next page
        self.csrf = ""
        answer = self.ask("POST", "/ui/sign-in", {"key": secret})
        assert answer.status_code == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0].removeprefix(f"{COOKIE}=")
        self.csrf = token_in(self.get("/ui/s/nowhere-at-all").text)

    def ask(
        self, method: str, path: str, form: Mapping[str, str] | None = None, **headers: str
    ) -> httpx2.Response:
        """One request, as it is; nothing is added to the form and no redirect is followed."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            said = f"; {SAID}={self.said}" if self.said else ""
            sent.setdefault("cookie", f"{COOKIE}={self.cookie}{said}")
        if form is not None:
            sent.setdefault("content-type", FORM)
        body = None if form is None else urlencode(form).encode()
        answer = self._world.ask(method, path, headers=sent, content=body)
        set_cookie = answer.headers.get("set-cookie", "")
        if set_cookie.startswith(f"{SAID}="):
            self.said = set_cookie.partition(";")[0].removeprefix(f"{SAID}=")
        return answer

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """A page, wherever it is."""
        answer = self.ask("GET", path, None, **headers)
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer

    def send(
        self, path: str, /, form: Mapping[str, str] | None = None, **more: str
    ) -> httpx2.Response:
        """A form of a page, and the page it leads to."""
        answer = self.ask("POST", path, {**(form or {}), **more, "csrf": self.csrf})
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer


@dataclass(slots=True)
class Stream:
    """A page that is open and hears of changes; what it was told counts, not when."""

    world: World
    visitor: Visitor
    path: str
    status: int = 0
    events: int = 0

    def until_over(self, leave: Callable[[], Awaitable[object]] | None) -> Stream:
        """Listen until the server ends it, for which something is done after the first event.

        With nothing to be done, it is the listener who leaves.
        """

        async def listened() -> None:
            heard, gone = anyio.Event(), anyio.Event()
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._listen, heard, gone)
                    await heard.wait()
                    await leave() if leave else gone.set()

        anyio.run(listened)
        return self

    @staticmethod
    def all_at_once(streams: Sequence[Stream]) -> Sequence[Stream]:
        """Open one after the other; all stay until the last has been told something."""

        async def listened() -> None:
            gone = anyio.Event()
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    for each in streams:
                        heard = anyio.Event()
                        tasks.start_soon(each._listen, heard, gone)
                        await heard.wait()
                    gone.set()

        anyio.run(listened)
        return streams

    async def _listen(self, heard: anyio.Event, gone: anyio.Event) -> None:
        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif message.get("body", b"").startswith(b"event: status"):
                self.events += 1
            is_over = message["type"] == "http.response.body" and not message.get("more_body")
            if self.events or is_over:
                heard.set()

        cookie = f"{COOKIE}={self.visitor.cookie}".encode()
        scope = {
            "type": "http",
            "method": "GET",
            "path": self.path,
            "query_string": b"",
            "headers": [(b"host", b"memory"), (b"cookie", cookie)],
        }
        await self.world.app(scope, receive, send)


def token_in(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def words_of(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
