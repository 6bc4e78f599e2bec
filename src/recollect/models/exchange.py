"""One HTTP exchange with a model's server: bounded in bytes, and it can be cut off from outside."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from recollect.errors import InvalidOutput, InvalidSetting, ModelUnavailable
from recollect.models.answers import Answer, Gathering
from recollect.models.faults import Fault, ProviderFault, fault_from_status, fault_within, shown
from recollect.models.sse import BodyReader

CONNECT_SECONDS = 10.0
FAULT_BYTES_MAX = 65_536  # of an error's body; its message is short

ReadContent = Callable[[Mapping[str, Any], Gathering], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What is sent, and the limits of what is taken back."""

    url: str
    host: str  # as errors name it
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    seconds: float
    answer_bytes_max: int  # of the answer's text
    wire_bytes_max: int  # of everything, with the frames around each token
    has_tools: bool = False  # that the answer may call


def open_client(url: str) -> httpx2.Client:
    """A client for one server.

    Every exchange has a connection of its own: it can be cut off at any time, and no call is lost
    to a connection that died unnoticed. What is on this machine is never asked for by a proxy.
    """
    try:
        target = httpx2.URL(url)
        is_local = _is_local(target.host)
        return httpx2.Client(
            verify=target.scheme == "https" or not is_local,  # to load certificates takes 0.1 s
            trust_env=not is_local,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        )
    except (httpx2.InvalidURL, ValueError, ImportError, OSError):
        # Not what was wrong with it: a proxy's address may hold a password.
        raise InvalidSetting(
            "the model's base URL, or the proxy or certificates the environment names, "
            "cannot be used"
        ) from None


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


class Exchange:
    """One question and its answer. `run` waits for it; `cut`, from any thread, ends the wait."""

    def __init__(self, client: httpx2.Client, post: Post, read: ReadContent) -> None:
        self._client = client
        self._post = post
        self._read_content = read
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False
        self.is_taken_on = False  # all of it was sent, and the server has not refused it

    def run(self) -> Answer:
        """The answer, or ProviderFault, or a ModelError."""
        try:
            with self._client.stream(
                "POST",
                self._post.url,
                content=self._post.body,
                headers=self._headers(),
                timeout=httpx2.Timeout(
                    self._post.seconds, connect=min(CONNECT_SECONDS, self._post.seconds)
                ),
                extensions={"trace": self._watch_connection},
            ) as response:
                if not response.is_success:
                    self.is_taken_on = False
                    raise ProviderFault(_fault(response))
                return self._read(response)
        except httpx2.RequestError as error:
            broken = f"{self._post.host} {_explained(error)}"
        raise ModelUnavailable(broken)  # without the client's error, which holds on to the key

    def cut(self) -> None:
        """End it now. Harmless when it has ended."""
        with self._lock:
            self._is_cut = True
            self._shut_down()

    def _headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",  # a compressed answer could outgrow every limit
            **self._post.headers,
        }

    def _watch_connection(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_body.complete"):
            self.is_taken_on = True
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        with self._lock:
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_cut:
                self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                # Not the method of a TLS socket, which pulls the reader's state from under it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _read(self, response: httpx2.Response) -> Answer:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelUnavailable("the server compressed its answer, which it was asked not to do")
        gathering = Gathering(self._post.answer_bytes_max, has_tools=self._post.has_tools)
        body = BodyReader()
        size = 0
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > self._post.wire_bytes_max:
                raise InvalidOutput(f"the answer is longer than {self._post.wire_bytes_max} bytes")
            for content in body.feed(chunk):
                self._take(content, gathering)
            if body.is_done or gathering.is_over:
                break
        else:
            for content in body.end():
                self._take(content, gathering)
        if body.is_done:
            gathering.end_stream()
        return gathering.finish()

    def _take(self, content: Mapping[str, Any], gathering: Gathering) -> None:
        if fault := fault_within(content):
            raise ProviderFault(fault)
        self._read_content(content, gathering)


def _fault(response: httpx2.Response) -> Fault:
    body = bytearray()
    with contextlib.suppress(httpx2.RequestError):  # the status is worth more than its text
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > FAULT_BYTES_MAX:
                break
    headers = {name.lower(): value for name, value in response.headers.items()}
    return fault_from_status(response.status_code, bytes(body[:FAULT_BYTES_MAX]), headers)


def _explained(error: httpx2.RequestError) -> str:
    match error:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            what = "cannot be reached"
        case httpx2.TimeoutException():
            what = "did not answer in time"
        case _:
            what = "broke the connection"
    return f"{what}: {shown(str(error)) or type(error).__name__}"
