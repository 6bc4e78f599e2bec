"""Takes a sentence apart that says several things, where one of them may be replaced without the
others: "I'm vegan and I live in Texas"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.rules.cues import Weighed
from recollect.extraction.rules.rulebook import Rule, Rulebook
from recollect.extraction.rules.wording import Found
from recollect.knowledge import FactTag

LASTING_CONFIDENCE_MIN = 0.8  # of a rule without a topic, for its clause to stand alone
_LASTING_TAGS = frozenset({FactTag.DETAIL.value, FactTag.RELATION.value, FactTag.PREFERENCE.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A rule that holds for a sentence, and where."""

    rule: Rule
    match: re.Match[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The words of a sentence that belong to one thing it says."""

    start: int
    stop: int
    own: Held | None  # the rule that says what that is


class Separator:
    """Knows where the sentences of one language can be taken apart."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book

    def is_many(self, found: Found) -> bool:
        """Whether a sentence may say several things: most do not."""
        if found.rule is None or found.match is None:
            return False
        if not self._is_lasting(Held(rule=found.rule, match=found.match)):
            return False
        phrases = self._book.phrase("next_clause"), self._book.phrase("knows")
        return any(phrase.search(found.weighed.text) for phrase in phrases)

    def apart(
        self, found: Found, held: Sequence[Held], weigh: Callable[[str], Weighed]
    ) -> list[Found]:
        """What a sentence says, thing by thing; the sentence itself if that is one thing."""
        text = found.weighed.text
        parts = self._parts(text, held)
        owned = [part.own for part in parts if part.own is not None]
        if len(owned) < 2 or not any(map(self._topic, owned)):
            return [found, *self._beside(found, held, weigh)]
        apart: list[Found] = []
        before = found.before
        for part, own in zip(parts, owned, strict=True):
            words = text[part.start : part.stop]
            match = own.rule.pattern.search(words)
            if match is None:
                return [found]
            each = replace(
                _found(Held(rule=own.rule, match=match), words, weigh), before=before, quote=words
            )
            inside = [one for one in held if part.start <= one.match.start() < part.stop]
            apart += [each, *self._beside(each, inside, weigh)]
            before = words
        return apart

    def _parts(self, text: str, held: Sequence[Held]) -> list[_Part]:
        """The clauses, each with those behind it that say nothing else by themselves."""
        parts: list[_Part] = []
        for start, stop in self._clauses(text):
            own = self._own(text, start, stop, held)
            last = parts[-1] if parts else None
            if last is None:
                parts.append(_Part(start=start, stop=stop, own=own))
            elif own is None or last.own is None or self._is_same(last.own, own):
                parts[-1] = _Part(start=last.start, stop=stop, own=last.own or own)
            else:
                parts.append(_Part(start=start, stop=stop, own=own))
        return parts

    def _clauses(self, text: str) -> Iterator[tuple[int, int]]:
        start = 0
        for joint in self._book.phrase("next_clause").finditer(text):
            yield start, joint.start()
            start = joint.end()
        yield start, len(text)

    def _own(self, text: str, start: int, stop: int, held: Sequence[Held]) -> Held | None:
        """The surest rule that holds in a clause, if what it says lasts and stands by itself."""
        inside = [each for each in held if start <= each.match.start() < stop]
        surest = max(inside, key=lambda each: each.rule.confidence, default=None)
        if surest is None or not self._is_lasting(surest):
            return None
        if self._book.phrase("depends").search(text, start, surest.match.start()):
            return None
        states = self._book.phrase("states").search(text, start, stop)
        acts = self._book.phrase("acts").match(text, surest.match.end(), stop)
        return surest if states or acts else None

    def _beside(
        self, found: Found, held: Sequence[Held], weigh: Callable[[str], Weighed]
    ) -> list[Found]:
        """Whoever is named in passing: "I live in Ghent with my husband Joost"."""
        rule, match = found.rule, found.match
        if rule is None or match is None or not self._topic(Held(rule=rule, match=match)):
            return []
        named: dict[str, Found] = {}
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

    def _is_lasting(self, held: Held) -> bool:
        """Whether it says what somebody is, has or likes, until that changes."""
        is_sure = self._topic(held) or held.rule.confidence >= LASTING_CONFIDENCE_MIN
        return bool(is_sure) and held.rule.tag in _LASTING_TAGS

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


def _found(held: Held, text: str, weigh: Callable[[str], Weighed]) -> Found:
    weighed = weigh(text)
    return Found(
        weighed=weighed,
        bits=weighed.bits,
        before="",
        confidence=held.rule.confidence,
        rule=held.rule,
        match=held.match,
    )
