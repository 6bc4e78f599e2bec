"""The same tools over streamable HTTP: one path for each space, and who may come in.

A client without the token, where there is one, learns nothing but that. A page in a browser gets no
further than the Host and Origin checks. No request leaves a state behind.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import uvicorn
from anyio import to_thread
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from recollect.errors import InvalidValue
from recollect.interfaces.http.listening import (
    CONNECTIONS_MAX,
    GRACE_SECONDS,
    KEEP_ALIVE_SECONDS,
    listening,
    shown_address,
    stopped_once,
)
from recollect.interfaces.http.protocol import HEAD_BYTES_MAX, protocol
from recollect.interfaces.mcp.keeping import Keeper, Terms
from recollect.interfaces.mcp.server import MemoryServer

PATH = "/mcp"
THREADS = 8
# Hosts and origins are checked at the door, as a whole: the library compares how they begin.
UNCHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_of_this_machine(origin: str) -> bool:
    """Whether an origin, as a browser names it, can only be on this machine."""
    try:
        parts = urlsplit(origin)
        is_whole = parts.port != 0 and origin.partition("://")[2] == parts.netloc
    except ValueError:
        return False
    is_host = "@" not in parts.netloc and is_loopback(parts.hostname or "")
    return parts.scheme == "http" and is_whole and is_host


def path_of(space: str) -> str:
    """Where a space besides the server's own is found."""
    return f"/spaces/{space}{PATH}"


def servers_for(keeper: Keeper, own: Terms, others: Mapping[str, Terms]) -> dict[str, MemoryServer]:
    """A server for each space, by path; what is not among them does not exist."""
    servers = {PATH: MemoryServer(keeper, own)}
    return servers | {path_of(name): MemoryServer(keeper, terms) for name, terms in others.items()}


def build_app(
    servers: Mapping[str, MemoryServer], *, token: str | None, host: str = "127.0.0.1"
) -> Starlette:
    """The servers as one web application."""
    for path, server in servers.items():
        server.streamable_http_app(
            streamable_http_path=path,
            json_response=True,
            stateless_http=True,
            transport_security=UNCHECKED,
        )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        async with AsyncExitStack() as running:
            for server in servers.values():
                await running.enter_async_context(server.session_manager.run())
            yield

    return Starlette(
        routes=[Mount("/", app=_Door(servers, token, is_loopback(host)))], lifespan=lifespan
    )


class _Door:
    """Lets those in who have the token, and shows them the way.

    Beyond this machine the names it is called by are unknown, and the token is what counts.
    """

    def __init__(
        self, servers: Mapping[str, MemoryServer], token: str | None, is_local: bool
    ) -> None:
        self._servers = servers
        self._token = token
        self._is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if not self._is_let_in(headers):
            challenge = {"WWW-Authenticate": "Bearer"}
            denied = PlainTextResponse("a token is needed", 401, headers=challenge)
            await denied(scope, receive, send)
            return
        if self._is_local and not is_of_this_machine(f"http://{headers.get('host', '')}"):
            await PlainTextResponse("this host is not served here", 421)(scope, receive, send)
            return
        if self._is_local and not is_of_this_machine(headers.get("origin") or "http://localhost"):
            await PlainTextResponse("this origin is refused", 403)(scope, receive, send)
            return
        server = self._servers.get(scope["path"])
        if server is None:
            await PlainTextResponse("there is nothing here", 404)(scope, receive, send)
            return
        await server.session_manager.handle_request(scope, receive, send)

    def _is_let_in(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        # A header comes as Latin-1, whatever it was written in.
        is_same = hmac.compare_digest(given.strip().encode("latin-1"), self._token.encode())
        return is_same and kind.casefold() == "bearer"


def serve_http(
    servers: Mapping[str, MemoryServer],
    *,
    address: tuple[str, int],
    token: str | None,
    say_ready: Callable[[str], None],
) -> None:
    """Serve until a signal says to stop. InvalidValue: it cannot listen there."""
    host, port = address
    if token is None and not is_loopback(host):
        raise InvalidValue(
            f"{host} can be reached from elsewhere: give a token (--token, RECOLLECT_MCP_TOKEN), or"
            " listen on 127.0.0.1"
        )
    with listening(host, port) as listener:
        say_ready(shown_address(host, listener))
        with stopped_once():
            server(build_app(servers, token=token, host=host)).run(sockets=[listener])


def server(app: Starlette) -> uvicorn.Server:
    """One that leaves whoever keeps it waiting: nobody needs a token to connect."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=protocol(),
            ws="none",  # nothing here speaks it
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
    )
