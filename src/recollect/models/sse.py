"""Reads the body of an answer piece by piece: server-sent events, or one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recollect.errors import ModelUnavailable

DONE = b"[DONE]"


class BodyReader:
    """Turns chunks of bytes into JSON objects.

    What a body is shows in its first character rather than in its content type, which servers and
    the gateways before them get wrong.
    """

    def __init__(self) -> None:
        self.is_document = False
        self.is_done = False  # the stream said that it ends here
        self._is_known = False
        self._pending: list[bytes] = []  # of a line, or of the document
        self._data: list[bytes] = []  # of an event

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The objects that this chunk completes."""
        if not self._is_known:
            chunk = b"".join([*self._pending, chunk]).lstrip(b"\xef\xbb\xbf \t\r\n")
            self._pending.clear()
            if not chunk:
                return
            self._recognise(chunk)
        if self.is_document or b"\n" not in chunk:
            self._pending.append(chunk)
            return
        *lines, rest = b"".join([*self._pending, chunk]).split(b"\n")
        self._pending = [rest]
        for line in lines:
            yield from self._line(line.rstrip(b"\r"))

    def end(self) -> Iterator[dict[str, Any]]:
        """The objects that the end of the body completes."""
        rest = b"".join(self._pending)
        if not self._is_known:
            raise ModelUnavailable("the server answered with nothing")
        if self.is_document:
            yield _object(rest)
            return
        yield from self._line(rest.rstrip(b"\r"))
        yield from self._line(b"")

    def _recognise(self, start: bytes) -> None:
        self._is_known = True
        if start.startswith(b"<"):
            raise ModelUnavailable("the server answered with an HTML page instead of JSON")
        self.is_document = start.startswith((b"{", b"[", b'"'))
        if not self.is_document and start[:1] not in b":deir":  # a comment, data, event, id, retry
            raise ModelUnavailable("the server answered with something that is not JSON")

    def _line(self, line: bytes) -> Iterator[dict[str, Any]]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            return
        if line or not self._data:
            return  # names of events, ids and comments: the data says it all again
        data = b"\n".join(self._data)
        self._data.clear()
        if data.strip() == DONE:
            self.is_done = True
        elif not self.is_done:
            yield _object(data)


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable("the server answered with broken JSON") from error
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0]  # some gateways wrap an error so
    if not isinstance(content, dict):
        raise ModelUnavailable("the server answered with JSON that is no answer")
    return content
