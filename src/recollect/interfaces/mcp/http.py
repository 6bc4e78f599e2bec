"""The same server over streamable HTTP: one path for each space, behind a token.

Where a token is needed, a client without one learns only that, and where to get one (RFC 9728): in
the metadata of a protected resource, which are a function of its path, so that they do not tell
which spaces there are. A page in a browser is stopped by the checks of Host and Origin. The server
keeps no state between requests.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from anyio import to_thread
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.errors import InvalidValue
from recollect.interfaces.http.server import Server
from recollect.interfaces.mcp.access import ClientAccess
from recollect.interfaces.mcp.server import MemoryOnDemand, MemoryServer
from recollect.interfaces.mcp.tools import Terms

PATH = "/mcp"
THREADS = 8
# Hosts and origins are checked before the SDK, as a whole: it compares how they begin.
UNCHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def servers_for(
    memory: MemoryOnDemand, own: Terms, others: Mapping[str, Terms]
) -> dict[str, MemoryServer]:
    """A server for each space, by path; no other path exists."""
    by_path = {f"/spaces/{name}{PATH}": terms for name, terms in others.items()}
    return {path: MemoryServer(memory, terms) for path, terms in {PATH: own, **by_path}.items()}


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


def build_app(
    servers: Mapping[str, MemoryServer], access: ClientAccess, host: str = "127.0.0.1"
) -> Starlette:
    """The servers as one web application."""
    managers = {
        path: StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, security_settings=UNCHECKED
        )
        for path, server in servers.items()
    }

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield

    apps = {path: manager.asgi_app for path, manager in managers.items()}
    return Starlette(routes=[Mount("/", app=_guarded(apps, access, host))], lifespan=lifespan)


def _guarded(apps: Mapping[str, ASGIApp], access: ClientAccess, host: str) -> ASGIApp:
    """The applications behind the token and, on this machine alone, the checks of names.

    Beyond this machine the names it is called by are unknown, and the token is what counts.
    """
    is_local = is_loopback(host) and access.public_url is None

    def misnamed(headers: Headers) -> Response | None:
        if is_local and not is_of_this_machine(f"http://{headers.get('host', '')}"):
            return PlainTextResponse("this host is not served here", 421)
        if is_local and not is_of_this_machine(headers.get("origin") or "http://localhost"):
            return PlainTextResponse("this origin is refused", 403)
        return None

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers, about = Headers(scope=scope), (scope["path"], scope["scheme"])
        app: ASGIApp | None = access.metadata(headers, *about)
        if app is None:
            app = await access.refusal(headers, *about) or misnamed(headers)
        missing = PlainTextResponse("there is nothing here", 404)
        await (app or apps.get(scope["path"], missing))(scope, receive, send)

    return guarded


def serve_http(
    servers: Mapping[str, MemoryServer],
    *,
    address: tuple[str, int],
    access: ClientAccess,
    say_ready: Callable[[str], None],
) -> None:
    """Serve until a signal says to stop. InvalidValue: it cannot listen there."""
    host, _ = address
    if access.is_open and not is_loopback(host):
        raise InvalidValue(
            f"{host} can be reached from elsewhere: give a token (--token, RECOLLECT_MCP_TOKEN) or"
            " an --authorization-server, or listen on 127.0.0.1"
        )
    Server(build_app(servers, access, host)).serve_at(address, say_ready)
