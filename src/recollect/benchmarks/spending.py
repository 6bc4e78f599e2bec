"""What a run of questions may cost: every call is reserved against the caps before it is made."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from recollect.config import Settings
from recollect.errors import InvalidOutput, ModelError, SpendCapReached
from recollect.models.protocol import Completion, Model, Request, Usage, cost_micros
from recollect.models.served import open_model
from recollect.models.tokens import estimate_request
from recollect.types.facts import NOTHING_SPENT, Spent

MICROS = 1_000_000


@dataclass(slots=True, kw_only=True)
class Respondent:
    """A model that is asked, by the name and the prices of its settings; opened on first use."""

    settings: Settings
    _model: Model | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.settings.model or ""

    @property
    def has_price(self) -> bool:
        return bool(self.settings.model_input_price or self.settings.model_output_price)

    def spent(self, usage: Usage) -> Spent:
        return Spent(
            calls=1,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=cost_micros(usage, self.settings),
        )

    def most(self, request: Request) -> Spent:
        """What a call may take at most."""
        return self.spent(
            Usage(input_tokens=estimate_request(request), output_tokens=request.output_tokens_max)
        )

    def complete(self, request: Request) -> Completion:
        with self._lock:
            if self._model is None:
                self._model = open_model(self.settings)
            model = self._model
        assert model is not None, "a name was given"
        return model.complete(request)

    def close(self) -> None:
        with self._lock:
            if self._model is not None:
                self._model.close()


class CallBudget:
    """Pays for calls out of what a run may take. Safe to share between threads."""

    def __init__(self, tokens_max: int | None = None, cost_max: float | None = None) -> None:
        self._tokens_max = tokens_max
        self._cost_max_micros = None if cost_max is None else round(cost_max * MICROS)
        self._changed = threading.Condition()
        self._under_way: list[Spent] = []
        self.spent = NOTHING_SPENT

    def ask(self, whom: Respondent, request: Request) -> tuple[Completion, Spent]:
        """The answer, and what it took. What a call may take at most has to fit before it."""
        most = whom.most(request)
        self._reserve(most)
        took = NOTHING_SPENT
        try:
            completion = whom.complete(request)
            took = whom.spent(completion.usage)
        except ModelError as error:
            if isinstance(error, InvalidOutput) or error.tries_begun:
                took = most  # it may be billed, and nobody says how much
            raise
        finally:
            with self._changed:
                self._under_way.remove(most)
                self.spent = self.spent.plus(took)
                self._changed.notify_all()
        return completion, took

    def _reserve(self, most: Spent) -> None:
        """Wait while it would fit if what is under way took less than it may."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way or self._over(most) is None)
            cap = self._over(most)
            if cap is not None:
                raise SpendCapReached(
                    f"this run may use {cap}, and the next call may go beyond; raise it and run"
                    " again: what has been answered is kept",
                    delay_seconds=0,
                )
            self._under_way.append(most)

    def _over(self, most: Spent) -> str | None:
        """The cap that would be exceeded."""
        total = self.spent.plus(most)
        for each in self._under_way:
            total = total.plus(each)
        if self._tokens_max is not None and total.tokens > self._tokens_max:
            return f"{self._tokens_max:,} tokens"
        if self._cost_max_micros is not None and (total.cost_micros or 0) > self._cost_max_micros:
            return f"{self._cost_max_micros / MICROS:g} in money"
        return None
