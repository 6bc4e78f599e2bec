"""What would burst in memory is known before it is parsed; a long text is not."""

from __future__ import annotations

import io
import json

from recollect.importers.items import Odd, Trouble
from recollect.importers.streams import VALUES_MAX, elements, is_too_heavy, lines

BURSTING = b"[" + b"{}," * VALUES_MAX + b"0]"


def test_a_million_objects_in_few_bytes_are_too_many_and_a_million_commas_in_a_text_are_not() -> (
    None
):
    assert is_too_heavy(BURSTING)
    assert not is_too_heavy(json.dumps({"text": '{[,"\\' * VALUES_MAX}).encode())


def test_what_bursts_is_passed_over_and_what_follows_is_read() -> None:
    [first, second] = lines(io.BytesIO(b'{"a": ' + BURSTING + b'}\n{"b": 1}\n'))
    assert first.entry == Odd(trouble=Trouble.TOO_LARGE, detail="a line", line=1)
    assert second.entry == {"b": 1}
    found = list(elements(io.BytesIO(b"[" + BURSTING + b', {"b": 1}]'), names=()))
    assert found == [Odd(trouble=Trouble.TOO_LARGE, detail="an element"), {"b": 1}]
