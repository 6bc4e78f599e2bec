"""N18: several `recollect serve` on one store, behind a balancer that sends anybody anywhere."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import apsw
import httpx2
import psycopg
import pytest

import recollect
from recollect.interfaces.http.bearer import make_key
from recollect.store.postgres import split_options
from recollect.types.access import Scope
from tests.e2e.command_line import started
from tests.e2e.web_world import token_in

WAIT_SECONDS = 60.0
METRIC = r"^{} ([0-9.e+-]+)$"


@contextmanager
def serving(url: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx2.Client]]:
    with started("serve", "--no-work", "--port", "0", "--json", "--store", url, *arguments) as each:
        assert each.stdout is not None
        said = b""
        while not said.rstrip().endswith(b"}"):
            said += each.stdout.readline()
        with httpx2.Client(base_url=json.loads(said)["url"], timeout=WAIT_SECONDS) as client:
            yield each, client


@pytest.fixture
def secret(durable_store_url: str) -> str:
    with recollect.open(durable_store_url) as memory:
        return make_key(memory, "test", space=None, scope=Scope.ADMIN)[1]


def stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=WAIT_SECONDS) == 0


def test_a_visit_and_a_retry_hold_in_every_process_and_after_a_restart(
    durable_store_url: str, secret: str
) -> None:
    with ExitStack() as stack:
        first, one = stack.enter_context(serving(durable_store_url))
        _, other = stack.enter_context(serving(durable_store_url))
        visit = one.post("/ui/sign-in", data={"key": secret}).headers["set-cookie"].partition(";")
        cookie = {"cookie": visit[0]}
        page = other.get("/ui/s/default/sessions", headers=cookie)
        assert page.status_code == 200
        form = {"csrf": token_in(page.text)}
        bearer = {"authorization": f"Bearer {secret}", "idempotency-key": "m-1"}
        fact, facts = {"content": "Herons eat fish."}, "/v1/spaces/default/facts"
        made = one.post(facts, json=fact, headers=bearer)
        assert made.status_code == 201
        again = other.post(facts, json=fact, headers=bearer)
        assert (again.status_code, again.json()["id"]) == (201, made.json()["id"])
        assert other.post(facts, json={"content": "No."}, headers=bearer).status_code == 422
        stop(first)
        _, anew = stack.enter_context(serving(durable_store_url))
        assert anew.get("/ui/s/default/sessions", headers=cookie).status_code == 200
        with recollect.open(durable_store_url) as memory:
            assert [each.content for each in memory.space("default").facts.list()] == [
                "Herons eat fish."
            ]
            memory.space("default").forget(fact=made.json()["id"])
        assert anew.post(facts, json=fact, headers=bearer).status_code == 410
        assert anew.post("/ui/sign-out", data=form, headers=cookie).status_code == 303
        for each in (other, anew):
            left = each.get("/ui/s/default/sessions", headers=cookie)
            assert (left.status_code, left.headers["location"][:11]) == (303, "/ui/sign-in")


def test_a_server_that_is_to_stop_is_alive_but_not_ready_and_ends_its_streams(
    durable_store_url: str, secret: str
) -> None:
    bearer = {"authorization": f"Bearer {secret}"}
    with serving(durable_store_url, "--drain", "600") as (server, http):
        assert http.get("/readyz").json() == {"status": "ready"}
        with http.stream("GET", "/v1/spaces/default/events", headers=bearer) as events:
            lines = events.iter_lines()
            assert next(lines) == "event: status"
            server.send_signal(signal.SIGTERM)
            assert not [line for line in lines if line.startswith("event")], "it ended"
        refused = http.get("/readyz")
        assert (refused.status_code, refused.json()) == (503, {"status": "stopping"})
        assert refused.headers["connection"] == "close"
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.get("/v1/spaces", headers=bearer).status_code == 200
        assert http.get("/v1/spaces/default/events", headers=bearer).status_code == 503
        stop(server)  # told twice, it does not wait


def migrated_by_another(url: str) -> None:
    newer = "INSERT INTO schema_version VALUES (999, 'later', 0)"
    if url.startswith("sqlite"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as file:
            file.execute(newer)
        return
    conninfo, schema, _ = split_options(url, "public")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(newer.replace("INTO ", f"INTO {schema}.").encode())


def test_a_server_whose_store_was_migrated_by_another_is_not_ready(new_store_url: str) -> None:
    with serving(new_store_url) as (_, http):
        assert http.get("/readyz").status_code == 200
        migrated_by_another(new_store_url)
        refused = http.get("/readyz")
        assert (refused.status_code, "migrated" in refused.json()["status"]) == (503, True)
        assert http.get("/healthz").status_code == 200


def test_what_is_due_is_told_by_any_of_them(durable_store_url: str, secret: str) -> None:
    with recollect.open(durable_store_url) as memory:
        session = memory.space("a").session("k")
        session.append("user", "hello")
        session.sleep()
    with serving(durable_store_url) as (_, http):
        told = http.get("/metrics", headers={"authorization": f"Bearer {secret}"}).text
    due, age, claims = (
        float(re.findall(METRIC.format(name), told, re.MULTILINE)[0])
        for name in (
            "recollect_jobs_due",
            "recollect_oldest_due_seconds",
            "recollect_claims_total",
        )
    )
    assert due == 1
    assert 0 < age < 3600
    assert claims == 0
