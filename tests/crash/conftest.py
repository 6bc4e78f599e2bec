"""What the crash tests share: the warm processes that others are forked from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.worker_child import close_nurseries


@pytest.fixture(scope="session", autouse=True)
def nurseries_are_closed() -> Iterator[None]:
    yield
    close_nurseries()
