"""Who may use a server over HTTP: whoever has its token, or one of an OAuth authorization server.

As an OAuth 2.1 resource server it says where tokens come from (RFC 9728) and accepts those that are
signed by a key of that server, for the very address that is asked, and not expired. It issues none.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import jwt
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response

from recollect.errors import InvalidValue
from recollect.observing.log_text import loggable

_log = logging.getLogger(__name__)

METADATA = "/.well-known/oauth-protected-resource"
FETCH_SECONDS = 5
METADATA_BYTES_MAX = 1_000_000
TOKEN_CHARS_MAX = 16_384
# With a key that is public: one that the server shares could be used by whoever checks it.
SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
_HOST = re.compile(r"[\w.-]+(?::\d+)?|\[[\da-fA-F:.]+\](?::\d+)?", re.ASCII)


class IssuedTokens:
    """The tokens of an authorization server, checked with the keys that it publishes."""

    def __init__(self, issuer: str) -> None:
        """InvalidValue: it has no metadata, or those of another. It is asked once, and for keys."""
        self.issuer, keys = _issuer_and_keys(issuer)
        self._keys = jwt.PyJWKClient(keys, timeout=FETCH_SECONDS)

    def accepts(self, token: str, resource: str) -> bool:
        """Whether it issued a token for a resource. PyJWKClientConnectionError: who knows."""
        try:
            jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token),
                algorithms=SIGNATURES,
                audience=resource,
                issuer=self.issuer,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWKClientConnectionError:
            raise
        except jwt.PyJWTError as error:
            _log.info("a token is refused: %s", loggable(error))
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAccess:
    """What lets a client in. `public_url` is how it is reached from outside, without a path."""

    token: str | None = None
    public_url: str | None = None
    issued: IssuedTokens | None = None

    @property
    def is_open(self) -> bool:
        return self.token is None and self.issued is None

    async def refusal(self, headers: Headers, path: str, scheme: str) -> Response | None:
        """The answer to a client that may not come in."""
        if self.is_open:
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip() if kind.casefold() == "bearer" else ""
        # A header comes as Latin-1, whatever it was written in.
        sent = given.encode("latin-1")
        if self.token is not None and hmac.compare_digest(sent, self.token.encode()):
            return None
        origin = self._origin(headers, scheme)
        if self.issued is not None and given and len(given) <= TOKEN_CHARS_MAX:
            try:
                resource = f"{origin}{quote(path)}"
                if await to_thread.run_sync(self.issued.accepts, given, resource):
                    return None
            except (jwt.PyJWKClientConnectionError, ValueError) as error:
                _log.warning("no keys of %s: %s", self.issued.issuer, loggable(error))
                return PlainTextResponse("the authorization server is out of reach", 503)
        failed = 'error="invalid_token", ' if given else ""
        challenge = f'Bearer {failed}resource_metadata="{origin}{METADATA}{quote(path)}"'
        return PlainTextResponse("a token is needed", 401, headers={"WWW-Authenticate": challenge})

    def metadata(self, headers: Headers, path: str, scheme: str) -> Response | None:
        """The metadata of a resource, if a path asks for some; where nothing is protected, none."""
        rest = path.removeprefix(METADATA)
        if self.is_open or rest == path or not (rest == "" or rest.startswith("/")):
            return None
        resource = f"{self._origin(headers, scheme)}{quote(rest)}"
        issuers = {} if self.issued is None else {"authorization_servers": [self.issued.issuer]}
        told = {
            "resource": resource,
            "resource_name": "Recollect",
            "bearer_methods_supported": ["header"],
            **issuers,
        }
        # Any page may read what anybody may know.
        return JSONResponse(told, headers={"Access-Control-Allow-Origin": "*"})

    def _origin(self, headers: Headers, scheme: str) -> str:
        if self.public_url is not None:
            return self.public_url
        host = headers.get("host", "")
        return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}"


def access_of(
    token: str | None, public_url: str | None, authorization_server: str | None
) -> ClientAccess:
    """Who is let in, as the command line says. InvalidValue: not so."""
    if public_url is not None and token is None and authorization_server is None:
        raise InvalidValue(
            "--public-url is for a server that others reach: give a token (--token,"
            " RECOLLECT_MCP_TOKEN) or an --authorization-server as well"
        )
    origin = None if public_url is None else _read_url(public_url)
    if origin is not None and urlsplit(origin).path:
        raise InvalidValue(
            "--public-url is without a path, as in https://memory.example.com: the paths of the"
            f" spaces follow it (got {public_url!r})"
        )
    issuer = None if authorization_server is None else _read_url(authorization_server)
    issued = None if issuer is None else IssuedTokens(issuer)
    return ClientAccess(token=token, public_url=origin, issued=issued)


def _read_url(text: str) -> str:
    """A URL without a slash at its end; without TLS only on this machine."""
    parts = urlsplit(text)
    is_bare = not (parts.query or parts.fragment or "@" in parts.netloc)
    is_here = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not (parts.hostname and is_bare and (parts.scheme == "https" or is_here)):
        raise InvalidValue(f"an https:// URL is needed, as in https://example.com (got {text!r})")
    return text.rstrip("/")


def _issuer_and_keys(issuer: str) -> tuple[str, str]:
    """What a server calls itself, and where its keys are, as its metadata say (RFC 8414)."""
    failure: Exception | None = None
    for address in _metadata_addresses(issuer):
        try:
            with urllib.request.urlopen(address, timeout=FETCH_SECONDS) as answer:
                found = json.loads(answer.read(METADATA_BYTES_MAX))
            if found["issuer"].rstrip("/") == issuer:
                return found["issuer"], _read_url(found["jwks_uri"])
            failure = InvalidValue(f"it says that it is {found['issuer']!r}")
        except urllib.error.HTTPError as error:
            error.close()
            failure = error
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            failure = error
    raise InvalidValue(
        f"{issuer} has no metadata of an authorization server that name its keys:"
        f" {type(failure).__name__}: {failure}"
    )


def _metadata_addresses(issuer: str) -> Iterator[str]:
    parts = urlsplit(issuer)
    origin = f"{parts.scheme}://{parts.netloc}"
    yield f"{origin}/.well-known/oauth-authorization-server{parts.path}"
    yield f"{issuer}/.well-known/openid-configuration"
