"""Answers measured: one model answers from notes alone, another judges, and all of it is kept.

Answers and verdicts are kept under what was asked of whom, word for word: a second run asks only
what has not been answered, and two arms that say the same are judged once. A judge sees a question,
its reference and an answer without marks, never the notes or the arm they came from.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from recollect.benchmarks.answer_file import AnswerFile
from recollect.benchmarks.arms import Arm, Trial
from recollect.benchmarks.ingest import Progress
from recollect.benchmarks.spending import CallBudget, Respondent
from recollect.config import Settings
from recollect.errors import InvalidOutput, ModelError, Postponed
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Request
from recollect.models.tokens import estimate_tokens
from recollect.recall.usage import without_citations
from recollect.types.facts import Spent

PROMPTS = Path(__file__).parent / "prompts"
NOTHING = "(nothing)"
CANNOT_BE_ANSWERED = "(The question cannot be answered from what was said.)"
ASSUMED_ANSWER = "x" * 240  # how long an answer is taken to be before there is one
VERDICT_TRIES = 2  # of a judge whose verdict cannot be read

_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


class Ruling(StrEnum):
    """What a judge says of an answer; strictly only what is right counts."""

    RIGHT = "right"
    NEARLY = "nearly"
    WRONG = "wrong"


RULING_SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": [each.value for each in Ruling]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPrompts:
    """The texts that the two models are given."""

    answer: Prompt
    answer_request: Prompt
    judge: Prompt
    judge_request: Prompt

    @classmethod
    def load(cls, settings: Settings) -> AnswerPrompts:
        prompt = partial(load_prompt, PROMPTS, override_dir=settings.prompts_dir)
        return cls(
            answer=prompt("answer"),
            answer_request=prompt("answer-request"),
            judge=prompt("judge"),
            judge_request=prompt("judge-request"),
        )

    @property
    def version(self) -> str:
        prompts = (self.answer, self.answer_request, self.judge, self.judge_request)
        return "-".join(dict.fromkeys(prompt.version for prompt in prompts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A trial, its answer, and what the judge said of it."""

    trial: Trial
    answer: str
    ruling: Ruling


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A trial that has no verdict, and why; the next run tries it again."""

    trial: Trial
    reason: str


@dataclass(slots=True, kw_only=True)
class AnswersOutcome:
    """What a run came to. `stopped_by` is what kept it from going on, if anything did."""

    judged: list[Judged] = field(default_factory=list)
    failed: list[FailedTrial] = field(default_factory=list)
    stopped_by: Postponed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersPlan:
    """What a run would take: what is kept already, what would be sent, and at most answered."""

    answers: int
    answers_kept: int
    verdicts_kept: int
    answerer_at_most: Spent
    judge_at_most: Spent


class AnswerBenchmark:
    """Puts trials to an answerer and a judge. What both make goes into one file."""

    def __init__(
        self,
        answerer: Respondent,
        judge: Respondent,
        prompts: AnswerPrompts,
        file: AnswerFile,
    ) -> None:
        self._answerer = answerer
        self._judge = judge
        self._prompts = prompts
        self._file = file
        self._ending = threading.Event()  # nothing more is begun
        self._given_up = threading.Event()  # nor waited for

    def plan(self, trials: Sequence[Sequence[Trial]]) -> AnswersPlan:
        """Reckon without asking. An answer that is not there yet is taken to be a short one."""
        asked: dict[str, tuple[Respondent, Request]] = {}
        kept = [0, 0]
        for trial in (each for group in trials for each in group):
            request = self._question(trial)
            key = _key(self._answerer, request)
            answer = self._file.answers.get(key)
            if answer is None:
                asked[key] = self._answerer, request
                # Which verdicts will be shared is not known yet.
                asked[f"{key} judged"] = self._judge, self._to_judge(trial, ASSUMED_ANSWER)
                continue
            kept[0] += 1
            judging = self._to_judge(trial, answer)
            if _key(self._judge, judging) in self._file.verdicts:
                kept[1] += 1
            else:
                asked[_key(self._judge, judging)] = self._judge, judging
        return AnswersPlan(
            answers=sum(map(len, trials)),
            answers_kept=kept[0],
            verdicts_kept=kept[1],
            answerer_at_most=_total(asked.values(), self._answerer),
            judge_at_most=_total(asked.values(), self._judge),
        )

    def run(
        self,
        trials: Sequence[Sequence[Trial]],
        budget: CallBudget,
        *,
        concurrency: int,
        progress: Progress,
    ) -> AnswersOutcome:
        """Ask what is missing, several questions at once; the arms of one come one by one."""
        outcome = AnswersOutcome()
        threads = ThreadPoolExecutor(concurrency, thread_name_prefix="recollect-bench")
        try:
            futures = [threads.submit(self._tried, group, budget) for group in trials]
            for done, future in enumerate(as_completed(futures), 1):
                found = future.result()
                outcome.judged += found.judged
                outcome.failed += found.failed
                outcome.stopped_by = outcome.stopped_by or found.stopped_by
                progress("questions answered and judged", done, len(futures))
        finally:
            self._ending.set()
            self._given_up.set()
            threads.shutdown(cancel_futures=True)
        return outcome

    def _tried(self, group: Sequence[Trial], budget: CallBudget) -> AnswersOutcome:
        outcome = AnswersOutcome()
        for trial in group:
            if self._ending.is_set():
                break
            try:
                outcome.judged.append(self._judged(trial, budget))
            except Postponed as error:  # a cap, or a key that is refused: nobody else gets further
                self._ending.set()
                outcome.stopped_by = error
            except ModelError as error:
                outcome.failed.append(FailedTrial(trial=trial, reason=str(error)))
        return outcome

    def _judged(self, trial: Trial, budget: CallBudget) -> Judged:
        answer = self._answered(trial, budget)
        request = self._to_judge(trial, answer)
        key = _key(self._judge, request)
        ruling = self._file.verdicts.get(key)
        if ruling is None:
            ruling = self._ruled(request, key, budget)
        return Judged(trial=trial, answer=answer, ruling=Ruling(ruling))

    def _answered(self, trial: Trial, budget: CallBudget) -> str:
        request = self._question(trial)
        key = _key(self._answerer, request)
        known = self._file.answers.get(key)
        if known is not None:
            return known
        completion, spent = budget.ask(self._answerer, request)
        query = trial.query
        self._file.add_answer(
            key,
            completion.text.strip(),
            {
                "file": trial.file,
                "question_id": query.id,
                "category": query.category,
                "question": query.text,
                "reference": query.answer or CANNOT_BE_ANSWERED,
                "arm": str(trial.arm),
                "notes": trial.notes if trial.arm is not Arm.WHOLE else "(all that was said)",
                "notes_tokens": estimate_tokens(trial.notes),
                "model": self._answerer.name,
                "prompts": self._prompts.version,
                **_took(spent),
            },
        )
        return completion.text.strip()

    def _ruled(self, request: Request, key: str, budget: CallBudget) -> str:
        failure: InvalidOutput | None = None
        for _ in range(VERDICT_TRIES):
            completion, spent = budget.ask(self._judge, request)
            try:
                ruling, reason = read_ruling(completion.text)
            except InvalidOutput as error:
                failure = error
                continue
            about = {"model": self._judge.name, "prompts": self._prompts.version, **_took(spent)}
            self._file.add_verdict(key, ruling, {"reason": reason, **about})
            return ruling
        assert failure is not None
        raise failure

    def _question(self, trial: Trial) -> Request:
        query = trial.query
        return self._request(
            self._answerer,
            self._prompts.answer,
            self._prompts.answer_request.fill(
                notes=trial.notes or NOTHING,
                today=f"{query.asked_at:%A, %Y-%m-%d}",
                question=query.text,
            ),
        )

    def _to_judge(self, trial: Trial, answer: str) -> Request:
        """An answer without what would tell which arm it came from."""
        query = trial.query
        return self._request(
            self._judge,
            self._prompts.judge,
            self._prompts.judge_request.fill(
                question=query.text,
                reference=query.answer if query.is_answerable else CANNOT_BE_ANSWERED,
                answer=without_citations(answer).text.strip(),
            ),
            schema=RULING_SCHEMA,
        )

    def _request(
        self, whom: Respondent, system: Prompt, prompt: str, schema: dict[str, Any] | None = None
    ) -> Request:
        return Request(
            system=system.fill(),
            prompt=prompt,
            schema=schema,
            schema_name="verdict",
            output_tokens_max=whom.settings.model_output_tokens_max,
            is_cancelled=self._given_up.is_set,
        )


def read_ruling(text: str) -> tuple[str, str]:
    """The verdict of a judge and its reason, or InvalidOutput."""
    stripped = text.strip()
    fenced = _FENCED.search(stripped)
    try:
        found = json.loads(fenced[1] if fenced else stripped)
        return Ruling(found["verdict"]).value, str(found.get("reason", ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidOutput(
            f"the judge's answer is not a verdict: {stripped[:200]!r} ({type(error).__name__})"
        ) from error


def _key(whom: Respondent, request: Request) -> str:
    """What was asked of whom, as a name for what it came to."""
    asked = json.dumps([whom.name, request.system, request.prompt, request.schema])
    return sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _total(asked: Iterable[tuple[Respondent, Request]], whom: Respondent) -> Spent:
    total = Spent()
    for respondent, request in asked:
        if respondent is whom:
            total = total.plus(respondent.most(request))
    return total


def _took(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_micros": spent.cost_micros,
    }
