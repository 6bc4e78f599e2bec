"""One look at one call: who is told of what, in which order, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from recollect.observing.seam import End, Kind, StoreVerb, watched
from recollect.types.records import KeyRef

ADD = StoreVerb(name="facts.add", kind=Kind.WRITE, parameters=("space", "fact", "now"))


class Witness:
    """Writes down what it is told."""

    def __init__(self, name: str, told: list[str], *, refuses: bool = False) -> None:
        self.name = name
        self.told = told
        self.refuses = refuses

    def minds(self, verb: StoreVerb) -> bool:
        return verb.kind is Kind.WRITE

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        if self.refuses:
            raise PermissionError(self.name)
        self.told.append(f"{self.name} begins {verb.name} {verb.space(args, named)}")

        def end(error: BaseException | None, result: object) -> None:
            self.told.append(f"{self.name} ends {type(error).__name__} {result}")

        return end


def test_whoever_is_told_first_is_told_last() -> None:
    told: list[str] = []
    with watched([Witness("a", told), Witness("b", told)], ADD, ("alice", "x"), {}) as came:
        came(7)
    assert told == [
        "a begins facts.add alice",
        "b begins facts.add alice",
        "b ends NoneType 7",
        "a ends NoneType 7",
    ]


def test_an_error_is_told_and_passes() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt), watched([Witness("a", told)], ADD, (), {}):
        raise KeyboardInterrupt
    assert told == ["a begins facts.add None", "a ends KeyboardInterrupt None"]


def test_what_an_observer_refuses_is_not_begun_and_those_before_it_are_told() -> None:
    told: list[str] = []
    watching = [Witness("a", told), Witness("b", told, refuses=True), Witness("c", told)]
    with pytest.raises(PermissionError), watched(watching, ADD, ("alice",), {}):
        told.append("begun")
    assert told == ["a begins facts.add alice", "a ends PermissionError None"]


@pytest.mark.parametrize(
    ("parameters", "args", "named"),
    [
        (("space", "fact"), ("alice", "x"), {}),
        (("owner", "space"), ("me",), {"space": "alice"}),
        (("ref", "limit"), (KeyRef(space="alice", key="k", agent_id="a", key_id=1), 5), {}),
        (("key",), (KeyRef(space="alice", key="k", agent_id="a", key_id=1),), {}),
    ],
)
def test_the_space_of_a_call_is_found(
    parameters: tuple[str, ...], args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    verb = StoreVerb(name="x.y", kind=Kind.READ, parameters=parameters)
    assert verb.space(args, named) == "alice"


@pytest.mark.parametrize("args", [(), (None,), ("not a space",), (7,)])
def test_a_call_about_the_whole_store_has_no_space(args: Sequence[Any]) -> None:
    assert StoreVerb(name="x.y", kind=Kind.READ, parameters=("owner",)).space(args, {}) is None
