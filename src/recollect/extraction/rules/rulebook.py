"""Reads a rule file once and keeps it ready: the vocabulary, the patterns, the weights."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.extraction.rules.weighing import Cues
from recollect.languages import ENGLISH

CONFIDENCE = 0.75  # of a rule that says nothing else
_NEVER = "(?!)"
_OF_TOOLS = ("looks", "failed", "exited", "error_line")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A pattern that says what kind of statement a sentence is. Compiled when first tried."""

    name: str
    source: str
    needs: frozenset[str]
    tag: str
    confidence: float
    topic: str | None = None
    project_topic: str | None = None  # where it holds in a project only
    setting: str | None = None  # the occasion on which alone it is tried
    ends: bool = False  # says what no longer holds
    unless: tuple[str, ...] = ()  # the phrases that keep it from holding
    clause: bool = False  # tried where a clause begins, not anywhere
    loose: bool = False  # says that something changed: kept only if it is known what

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE)

    def matches(self, text: str, starts: Sequence[int]) -> Iterator[re.Match[str]]:
        """Where it holds; `starts` are where clauses begin."""
        if not self.clause:
            return self.pattern.finditer(text)
        found = (self.pattern.match(text, start) for start in starts)
        return (match for match in found if match is not None)


class Rulebook:
    """What is known of one language. Nothing in it changes after it was read."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.language: str = data["language"]
        self.cues = Cues(data["cues"], data["weights"])
        self.verbs = {name: frozenset(words.split()) for name, words in data["verbs"].items()}
        self.person: Mapping[str, str] = data["person"]
        tools: Mapping[str, Any] = data["tools"]
        self.shell_tools, self.edit_tools = (
            frozenset(tools[name].split()) for name in ("shell", "edit")
        )
        self.command_kinds: tuple[str, ...] = tuple(tools["commands"])
        same = {name: frozenset(words.split()) for name, words in data.get("same", {}).items()}
        self.plain_words = same.pop("plain", frozenset[str]())  # tell no two statements apart
        self.same = {word: name for name, words in same.items() for word in words}
        self.values = frozenset(data.get("values", "").split())  # beside numbers
        self.stop_words = frozenset(data["slug"]["stop_words"].split())
        self.templates: Mapping[str, str] = data["templates"]
        self._hints = {name: tuple(words.split()) for name, words in data["hints"].items()}
        self._words: Mapping[str, str] = data["words"]
        self._phrases = {
            name: _PLACEHOLDER.sub(self._alternatives, phrase)
            for name, phrase in data["phrases"].items()
        }
        commands = {f"command_{kind}": source for kind, source in tools["commands"].items()}
        self._phrases |= {name: tools[name] for name in _OF_TOOLS} | commands
        self._compiled: dict[str, re.Pattern[str]] = {}  # when first looked for
        self.rules = tuple(self._rule(rule) for rule in data["rules"])
        self._always = {place for place, rule in enumerate(self.rules) if not rule.needs}
        self._rules_of: dict[str, tuple[int, ...]] = {}
        for place, rule in enumerate(self.rules):
            for word in rule.needs:
                self._rules_of[word] = (*self._rules_of.get(word, ()), place)

    def _rule(self, rule: Mapping[str, Any]) -> Rule:
        return Rule(
            name=rule["name"],
            source=_PLACEHOLDER.sub(self._alternatives, rule["pattern"]),
            needs=frozenset(rule.get("needs", "").split()),
            tag=rule["tag"],
            confidence=rule.get("confidence", CONFIDENCE),
            topic=rule.get("topic"),
            project_topic=rule.get("project_topic"),
            setting=rule.get("setting"),
            ends=rule.get("ends", False),
            unless=tuple(rule.get("unless", "").split()),
            clause=rule.get("clause", False),
            loose=rule.get("loose", False),
        )

    def _alternatives(self, found: re.Match[str]) -> str:
        listed = self._words[found[1]]
        if listed.startswith("("):
            return _PLACEHOLDER.sub(self._alternatives, listed)
        return f"(?:{'|'.join(re.escape(word.replace('_', ' ')) for word in listed.split())})"

    def candidates(self, words: tuple[str, ...]) -> list[Rule]:
        """The rules that a sentence of these words may match, in the order of the file.

        A word also stands for itself with two more letters: "wife" for "wife's".
        """
        known = self._rules_of
        places = {place for word in words for place in known.get(word) or known.get(word[:-2], ())}
        return [self.rules[place] for place in sorted(places | self._always)]

    def hints(self, name: str, text: str) -> bool:
        """Whether a text may hold a phrase of a kind: cheaper than to look for it."""
        lower = text.lower()
        return any(word in lower for word in self._hints.get(name, ()))

    def phrase(self, name: str) -> re.Pattern[str]:
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = re.compile(self._phrases.get(name, _NEVER))
        return found

    @cached_property
    def opener(self) -> re.Pattern[str]:
        return re.compile(self.person.get("opener", _NEVER), re.IGNORECASE)


@functools.lru_cache(maxsize=16)
def load(language: str = ENGLISH) -> Rulebook:
    """The rules of a language, read on first use.

    What another language does not say is nobody's: it has no weights and no third person,
    so that its statements are kept in their own words. The texts around them are English.
    """
    data = _read(language)
    if language == ENGLISH:
        return Rulebook(data)
    english = _read(ENGLISH)
    settled = {
        "cues": dict.fromkeys(english["cues"], ""),
        "weights": {setting: {"bias": -99.0} for setting in english["weights"]},
        "verbs": dict.fromkeys(english["verbs"], ""),
        "person": {
            "first": "",
            "unsafe": "",
            "after_would": "",
            "third": english["person"]["third"],
        },
        "hints": {},
        "words": {},
    }
    kept = {name: english[name] for name in ("tools", "slug", "templates")}
    return Rulebook({**settled, **kept, **data})


def _read(name: str) -> Mapping[str, Any]:
    import tomllib  # only where rules are used: it would cost every start

    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
