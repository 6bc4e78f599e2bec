"""Takes a sentence apart that says several things, so that each is a fact of its own and may be
replaced without the others: "I'm vegan and I live in Texas"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from recollect.extraction.rules.rulebook import Rule, Rulebook
from recollect.extraction.rules.weighing import Weighed
from recollect.extraction.rules.wording import FoundSentence

APART_CONFIDENCE_MIN = 0.58  # of a rule, for its clause to stand alone
CLAUSES_MAX = 40  # of a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A rule that holds for a sentence, and where."""

    rule: Rule
    match: re.Match[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """The words of a sentence that belong to one thing it says."""

    start: int
    stop: int
    own: Held | None  # the rule that says what that is


@dataclass(frozen=True, slots=True)
class Clause:
    """Where a clause stands: its words, and from where on it says something."""

    start: int
    stop: int
    at: int


class Separator:
    """Knows where the sentences of one language can be taken apart."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self.clauses = lru_cache(maxsize=256)(self._clauses)  # every rule asks for them

    def _clauses(self, text: str) -> tuple[Clause, ...]:
        """Where clauses begin and end, in order; the first begins with the text."""
        joints = list(islice(self._book.phrase("clause_start").finditer(text), CLAUSES_MAX))
        stops = [*(joint.start() for joint in joints[1:]), len(text)]
        found = (
            Clause(joint.start("lead"), stop, joint.end())
            for joint, stop in zip(joints, stops, strict=False)
        )
        return tuple(found) or (Clause(0, len(text), 0),)

    def clause_at(self, text: str, at: int) -> str:
        """The clause that a place is in."""
        clauses = self.clauses(text)
        return next((text[c.start : c.stop] for c in reversed(clauses) if c.start <= at), text)

    def apart(
        self,
        found: FoundSentence,
        clauses: Sequence[Clause],
        held: Sequence[Held],
        weigh: Callable[[str], Weighed],
    ) -> list[FoundSentence]:
        """What a sentence says, thing by thing; the sentence itself if that is one thing."""
        text = found.weighed.text
        parts = self._parts(text, clauses, held)
        owned = [part.own for part in parts if part.own is not None]
        if len(owned) < 2:
            return [found, *self._beside(found, held, weigh)]
        apart: list[FoundSentence] = []
        before = found.before
        for part, own in zip(parts, owned, strict=True):
            words = text[part.start : part.stop]
            match = own.rule.pattern.match(words, own.match.start() - part.start)
            if match is None:
                return [found]
            told = _found(Held(rule=own.rule, match=match), words, weigh)
            each = replace(told, before=before, quote=words)
            inside = [one for one in held if part.start <= one.match.start() < part.stop]
            apart += [each, *self._beside(each, inside, weigh)]
            before = words
        return apart

    def _parts(self, text: str, clauses: Sequence[Clause], held: Sequence[Held]) -> list[_Clause]:
        """The clauses, each with those behind it that say nothing else by themselves."""
        parts: list[_Clause] = []
        for clause in clauses:
            own = self._own(text, clause, held)
            last = parts[-1] if parts else None
            if last is None:
                parts.append(_Clause(start=clause.start, stop=clause.stop, own=own))
            elif own is None or last.own is None or self._is_same(last.own, own):
                parts[-1] = _Clause(start=last.start, stop=clause.stop, own=last.own or own)
            else:
                parts.append(_Clause(start=clause.start, stop=clause.stop, own=own))
        return parts

    def _own(self, text: str, clause: Clause, held: Sequence[Held]) -> Held | None:
        """The surest rule that holds in a clause, if what it says stands by itself."""
        inside = [each for each in held if clause.start <= each.match.start() < clause.stop]
        surest = max(inside, key=lambda each: each.rule.confidence, default=None)
        if surest is None or not self._is_apart(surest):
            return None
        at = surest.match.start()
        if self._book.phrase("depends").search(text, clause.start, at):
            return None
        if self._book.phrase("depends").search(text, 0, clause.start):
            return None
        if surest.rule.clause or self._book.phrase("states").search(
            text, clause.start, clause.stop
        ):
            return surest
        acts = self._book.phrase("acts").match(text, surest.match.end(), clause.stop)
        return surest if acts else None

    def _beside(
        self, found: FoundSentence, held: Sequence[Held], weigh: Callable[[str], Weighed]
    ) -> list[FoundSentence]:
        """The people who are named in passing: "I live in Ghent with my husband Joost"."""
        rule, match = found.rule, found.match
        if rule is None or match is None or not self._topic(Held(rule=rule, match=match)):
            return []
        named: dict[str, FoundSentence] = {}
        for each in held:
            groups = each.match.groupdict()
            is_own = self._book.phrase("knows").match(each.match[0]) is not None
            if each.rule is rule or not is_own or not groups.get("kin"):
                continue
            text = self._book.templates["named"].format_map(groups)
            if (match := each.rule.pattern.search(text)) is not None:
                told = _found(Held(rule=each.rule, match=match), text, weigh)
                named[text] = replace(told, quote=each.match[0])
        return list(named.values())

    def _is_apart(self, held: Held) -> bool:
        """Whether what a rule finds may be told without the rest of its sentence."""
        is_sure = held.rule.clause or held.rule.confidence >= APART_CONFIDENCE_MIN
        return is_sure or bool(self._topic(held))

    def _is_same(self, one: Held, other: Held) -> bool:
        """Whether both are about the same, so that one would replace the other."""
        return (self._topic(one) or one.rule.name) == (self._topic(other) or other.rule.name)

    def _topic(self, held: Held) -> str:
        """What it is about, if something newer may replace it; near enough to tell two apart."""
        match = held.match
        groups = {name: value.lower() for name, value in match.groupdict().items() if value}
        if "thing" in groups and not self._book.phrase("closed").search(
            match.string[match.end() :]
        ):
            return ""
        try:
            return (held.rule.topic or "").format_map(groups)
        except KeyError:  # the other branch of the pattern
            return ""


def _found(held: Held, text: str, weigh: Callable[[str], Weighed]) -> FoundSentence:
    weighed = weigh(text)
    return FoundSentence(
        weighed=weighed,
        bits=weighed.bits,
        before="",
        confidence=held.rule.confidence,
        rule=held.rule,
        match=held.match,
    )
