"""A worker's figures over HTTP (N9)."""

from __future__ import annotations

import socket

import httpx2
import pytest

import recollect
from recollect.errors import InvalidValue
from recollect.interfaces.cli.work import metrics_served


def test_the_figures_of_a_worker_are_one_page() -> None:
    with recollect.open(":memory:", settings={"metrics": True}) as memory:
        memory.space("zanzibar").session("k").append("user", "hello")
        with metrics_served(memory, "127.0.0.1", 0) as url:
            answer = httpx2.get(url)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert 'recollect_verb_seconds_count{verb="records.append"}' in answer.text
            assert 'recollect_jobs{state="due"} 0' in answer.text
            assert "zanzibar" not in answer.text
            assert httpx2.get(url.removesuffix("metrics")).status_code == 404
            with (
                pytest.raises(InvalidValue, match="cannot listen"),
                metrics_served(memory, "127.0.0.1", httpx2.URL(url).port or 0),
            ):
                pass
            memory.close()
            assert httpx2.get(url).text == "StoreClosed\n"
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_may_be_of_the_newer_kind() -> None:
    with recollect.open(":memory:") as memory, metrics_served(memory, "::1", 0) as url:
        assert url.startswith("http://[::1]:")
        assert httpx2.get(url).status_code == 200
