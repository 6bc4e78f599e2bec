"""Lets the assertions of the shipped cases explain themselves when they fail under pytest."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("recollect.store.conformance")
