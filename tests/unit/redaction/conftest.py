"""A redactor with the rules that come with Recollect, as every test here needs one."""

from __future__ import annotations

import pytest

from recollect.redaction import Redactor
from recollect.redaction.loading import bundled_rules

SALT = b"a salt of the tests, 32 bytes ok"


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    return Redactor(bundled_rules(), frozenset(), SALT)
