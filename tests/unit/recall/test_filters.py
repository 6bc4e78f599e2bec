"""What a caller writes becomes filters, or a typed error that says what is wrong."""

from __future__ import annotations

import pytest

from recollect.errors import InvalidValue
from recollect.recall.filters import read_filters
from recollect.types.recall import Filters


def test_a_project_may_be_asked_for_with_what_belongs_to_none() -> None:
    alone = read_filters({"project": "/src/shop"})
    assert (alone.project, alone.or_no_project) == ("/src/shop", False)
    for given in (["/src/shop", None], (None, "/src/shop")):
        both = read_filters({"project": given})
        assert (both.project, both.or_no_project) == ("/src/shop", True)
    assert read_filters({"project": ["/src/shop"]}) == alone
    assert read_filters({"project": None}) == read_filters({})
    assert read_filters({"project": [None]}) == Filters(or_no_project=True)


@pytest.mark.parametrize("given", [[], ["a", "b"], [1, None], 7, {"a": 1}])
def test_projects_that_cannot_be_meant_are_refused(given: object) -> None:
    with pytest.raises(InvalidValue, match="project"):
        read_filters({"project": given})


def test_filters_have_so_many_values_wherever_they_stand() -> None:
    read_filters({"colour": {"in": list(range(900))}})
    for given in (
        {"colour": {"in": list(range(1001))}},
        {"OR": [{"colour": number} for number in range(501)]},
        {"tags": [str(number) for number in range(1001)]},
    ):
        with pytest.raises(InvalidValue, match="at most 1,000 values"):
            read_filters(given)
