"""What the verdicts of a run come to: by file and arm, by category, and between arms.

Questions that cannot be answered are counted apart: there, not to know is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from recollect.benchmarks.answers import Judged, Ruling
from recollect.benchmarks.arms import Arm
from recollect.benchmarks.figures import Group, average, mcnemar
from recollect.benchmarks.plot import Panel
from recollect.models.tokens import estimate_tokens

ANSWERABLE, UNANSWERABLE = "answerable", "unanswerable"
STRICT, GENEROUS, NOTES = "strict", "generous", "notes tokens"

_COUNTS: Mapping[str, Callable[[Ruling], bool]] = {
    STRICT: lambda ruling: ruling is Ruling.RIGHT,
    GENEROUS: lambda ruling: ruling is not Ruling.WRONG,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPair:
    """Two arms on the answerable questions that both have a verdict on.

    `only_first` and `only_second` are how many just one of them got right, and `p` is how likely
    so uneven a split is by chance.
    """

    first: Arm
    second: Arm
    verdict: str  # strict or generous
    questions: int
    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersResult:
    """One file: for each arm its groups of questions, and the arms compared."""

    file: str
    arms: Mapping[Arm, Mapping[str, Group]]
    pairs: tuple[ArmPair, ...]


def results_of(judged: Sequence[Judged], arms: Sequence[Arm]) -> list[AnswersResult]:
    files = dict.fromkeys(each.trial.file for each in judged)
    return [
        _result(file, [each for each in judged if each.trial.file == file], arms)
        for file in sorted(files)
    ]


def _result(file: str, judged: Sequence[Judged], arms: Sequence[Arm]) -> AnswersResult:
    of_arm = {arm: [each for each in judged if each.trial.arm is arm] for arm in arms}
    return AnswersResult(
        file=file,
        arms={arm: dict(_groups(found)) for arm, found in of_arm.items() if found},
        pairs=tuple(
            _pair(verdict, (first, of_arm[first]), (second, of_arm[second]))
            for first, second in combinations(arms, 2)
            for verdict in _COUNTS
        ),
    )


def _groups(judged: Sequence[Judged]) -> Iterator[tuple[str, Group]]:
    """All that can be answered, all that cannot, and the categories of the first."""
    can, cannot = (
        [each for each in judged if each.trial.query.is_answerable is is_answerable]
        for is_answerable in (True, False)
    )
    categories = sorted({each.trial.query.category for each in can})
    named = {ANSWERABLE: can, UNANSWERABLE: cannot} | {
        category: [each for each in can if each.trial.query.category == category]
        for category in categories
    }
    for name, found in named.items():
        if found:
            yield name, Group(questions=len(found), mean=average(map(_figures, found)))


def _figures(judged: Judged) -> dict[str, float]:
    counted = {name: float(counts(judged.ruling)) for name, counts in _COUNTS.items()}
    return counted | {NOTES: float(estimate_tokens(judged.trial.notes))}


def _pair(
    verdict: str, first: tuple[Arm, Sequence[Judged]], second: tuple[Arm, Sequence[Judged]]
) -> ArmPair:
    is_right = [_right(judged, _COUNTS[verdict]) for _, judged in (first, second)]
    both = is_right[0].keys() & is_right[1].keys()
    split = [(is_right[0][each], is_right[1][each]) for each in both]
    only_first, only_second = split.count((True, False)), split.count((False, True))
    return ArmPair(
        first=first[0],
        second=second[0],
        verdict=verdict,
        questions=len(both),
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second),
    )


def _right(judged: Iterable[Judged], counts: Callable[[Ruling], bool]) -> dict[str, bool]:
    answerable = (each for each in judged if each.trial.query.is_answerable)
    return {each.trial.query.id: counts(each.ruling) for each in answerable}


def panels_of_answers(results: Sequence[AnswersResult]) -> Iterator[Panel]:
    """The share of right answers by group, once strictly and once generously."""
    for result in results:
        labels = dict.fromkeys(label for groups in result.arms.values() for label in groups)
        for verdict in _COUNTS:
            yield Panel(
                title=f"{result.file}: right answers, {verdict} verdict",
                groups={
                    label: {
                        str(arm): groups[label].mean[verdict]
                        for arm, groups in result.arms.items()
                        if label in groups
                    }
                    for label in labels
                },
                series=tuple(map(str, result.arms)),
                ours=frozenset({str(Arm.RECOLLECT)}),
            )
