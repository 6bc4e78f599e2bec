"""What the crash tests share: every store is one that nobody has opened before."""

from __future__ import annotations

import pytest


@pytest.fixture
def durable_store_url(new_store_url: str) -> str:
    return new_store_url
