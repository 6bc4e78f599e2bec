"""What the server has done, as Prometheus reads it."""

from __future__ import annotations

import re

import recollect
from recollect.interfaces.http.metrics import BUCKETS, Metrics

LINE = re.compile(r'(# (HELP|TYPE) \w+ .+)|(\w+(\{(\w+="[^"\n]*",?)+\})? [0-9.e+-]+)')


def test_requests_and_their_times_are_counted_by_route() -> None:
    metrics = Metrics()
    metrics.count("GET", "/v1/spaces", 200, 0.002)
    metrics.count("GET", "/v1/spaces", 200, 0.3)
    metrics.count("GET", "/v1/spaces", 404, 100)
    with recollect.open(":memory:") as memory:
        lines = metrics.text(memory).splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    requests = 'recollect_http_requests_total{method="GET",route="/v1/spaces",status='
    assert f'{requests}"200"}} 2' in lines
    assert f'{requests}"404"}} 1' in lines
    bucket = 'recollect_http_request_seconds_bucket{route="/v1/spaces",le='
    counts = [int(line.split()[-1]) for line in lines if line.startswith(bucket)]
    assert counts == sorted(counts)
    assert len(counts) == len(BUCKETS) + 1
    assert f'{bucket}"0.0025"}} 1' in lines
    assert f'{bucket}"10.0"}} 2' in lines
    assert f'{bucket}"+Inf"}} 3' in lines
    assert 'recollect_http_request_seconds_count{route="/v1/spaces"} 3' in lines


def test_jobs_and_spending_are_told() -> None:
    with recollect.open(":memory:") as memory:
        session = memory.space("a").session("k")
        session.append("user", "hello")
        session.sleep()
        lines = Metrics().text(memory).splitlines()
    assert 'recollect_jobs{state="due"} 1' in lines
    assert "recollect_sessions_marked 1" in lines
    assert "recollect_spent_tokens_today 0" in lines
