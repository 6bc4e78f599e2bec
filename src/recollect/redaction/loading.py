"""Loads a user's rules, and bounds the time of their patterns: repetitions end and do not nest.

A pattern is read as far as that needs: escapes, classes, groups, repetitions. What is left is
bounded by REPEAT_MAX for each character of the text and each repetition.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.patterns import LazyPattern
from recollect.redaction.checks import ALWAYS, FORMAT, At, RuleSet, SecretRule
from recollect.redaction.redactor import Redactor

REPEAT_MAX = 512  # where a repetition without an end ends
EXPLICIT_MAX = 4096  # the most that a pattern may ask for itself

_PIECE = LazyPattern(
    r"""(?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<open>\((?:\?(?:P<\w+>|P=\w+(?=\))|[=!>]|<[=!]|[aiLmsux-]*:|[aiLmsux-]+(?=\))|\#[^)]*))?)
    | (?P<close>\))
    | (?P<repeat>(?:[*+]|\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})(?P<manner>[+?]?))
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def bounded(source: str) -> str:
    """The same pattern, its open repetitions ending after REPEAT_MAX times."""

    def written(piece: re.Match[str]) -> str:
        times = _times(piece)
        if times is None:
            return piece[0]
        least, most = times
        end = max(least, REPEAT_MAX) if most is None else most
        return f"{{{least},{end}}}{piece['manner']}"

    return _PIECE.sub(written, source)


def why_dangerous(source: str) -> str | None:
    """Why matching could take time that grows with a power of the text, or None."""
    varies_inside = [False]
    closed = False  # whether the group that just ended can match in several ways
    for piece in _PIECE.finditer(source):
        least, most = _times(piece) or (1, 1)
        if most is not None and most > EXPLICIT_MAX:
            return f"repeats something more than {EXPLICIT_MAX:,} times"
        if most != least:
            if closed:
                return "repeats a group that repeats something or has alternatives"
            varies_inside[-1] = True
        elif piece[0] in ("|", "?"):
            varies_inside[-1] = True
        elif piece["open"] is not None:
            varies_inside.append(False)
        elif piece["close"] is not None and len(varies_inside) > 1:
            closed = varies_inside.pop()
            varies_inside[-1] = varies_inside[-1] or closed
            continue
        if piece[0].startswith("(?P=") or re.match(r"\\[1-9]", piece[0]):
            return "refers back to a group"
        closed = False
    return None


def _times(piece: re.Match[str]) -> tuple[int, int | None] | None:
    """How often at least and at most something comes; at most none: without an end."""
    text = piece["repeat"]
    if text is None or text[:2] == "{}":  # the latter are two braces
        return None
    if text[0] != "{":
        return int(text[0] == "+"), None
    least, most = int(piece["low"] or 0), int(piece["high"]) if piece["high"] else None
    return least, most if piece["comma"] else least


BUNDLED = Path(__file__).with_name("rules.toml")
FILE_BYTES_MAX = 262_144
RULES_MAX = 200
PATTERN_CHARS_MAX = 1000
KEYWORDS_MAX = 100
_MACRO = LazyPattern(r"\{([a-z]+)\}")
_KIND = LazyPattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "kind": (str,),
    "pattern": (str,),
    "keywords": (list,),
    "group": (int, str),
    "entropy": (int, float),
    "min_length": (int,),
    "allow": (list,),
}


def load_redactor(settings: Settings, salt: bytes) -> Redactor:
    """The redactor that the settings ask for; the salt is the store's."""
    rules = bundled_rules()
    if settings.redaction_rules is not None:
        own = read_rules(Path(settings.redaction_rules).expanduser())
        rules = replace(
            rules, rules=own + rules.rules
        )  # where both match, the user's name the kind
    allow = frozenset(each.strip() for each in settings.redaction_allow.split(",") if each.strip())
    return Redactor(rules, allow, salt)


@cache
def bundled_rules() -> RuleSet:
    """The rules of `rules.toml`, read once per process."""
    content = tomllib.loads(BUNDLED.read_text(encoding="utf-8"))
    macros: dict[str, str] = {}
    for name, source in content["macros"].items():
        macros[name] = _expanded(source, macros)
    return RuleSet(
        rules=tuple(_bundled_rule(each, macros) for each in content["rules"]),
        words={name: frozenset(words.split()) for name, words in content["words"].items()},
    )


def _expanded(source: str, macros: Mapping[str, str]) -> str:
    return _MACRO.sub(lambda match: macros[match[1]], source)


def _bundled_rule(rule: Mapping[str, Any], macros: Mapping[str, str]) -> SecretRule:
    within = rule.get("within")
    return SecretRule(
        kind=rule["kind"],
        source=_expanded(rule["pattern"], macros),
        keywords=tuple(rule.get("keywords", ())),
        at=At(rule.get("at", At.KEYWORD)),
        before=rule.get("before", 0),
        after=rule.get("after", 200),
        within_source=None if within is None else _expanded(within, macros),
        group=rule.get("group"),
        check=rule.get("check", FORMAT),
        entropy=rule.get("entropy", 0.0),
    )


def read_rules(file: Path) -> tuple[SecretRule, ...]:
    """A user's rules; InvalidSetting names the file, the rule and the reason."""
    content = _content(file)
    if unknown := sorted(set(content) - {"rules"}):
        raise InvalidSetting(f"{file}: there is no {unknown[0]!r}; rules are [[rules]] tables")
    given = content.get("rules", [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise InvalidSetting(f"{file}: rules are [[rules]] tables")
    if len(given) > RULES_MAX:
        raise InvalidSetting(f"{file} has {len(given)} rules; at most {RULES_MAX} are read")
    rules = []
    for number, each in enumerate(given, start=1):
        reason = _why_wrong(each)
        if reason is not None:
            raise InvalidSetting(f"{file}: rule {number} ({each.get('kind', 'no kind')}): {reason}")
        rules.append(_user_rule(each))
    return tuple(rules)


def _content(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise InvalidSetting(f"{file} is larger than {FILE_BYTES_MAX:,} bytes")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"cannot read {file}: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSetting(f"{file} is not TOML: {error}") from error


def _why_wrong(rule: Mapping[str, Any]) -> str | None:
    """What is wrong with a user's rule, or None."""
    for name, value in rule.items():
        types = _TYPES.get(name)
        if types is None:
            return f"there is no {name!r}; a rule has {', '.join(_TYPES)}"
        if not isinstance(value, types) or isinstance(value, bool):
            return f"{name} is {' or '.join(each.__name__ for each in types)}, not {value!r}"
    if not _KIND.fullmatch(rule.get("kind", "")):
        return "kind is needed: lower-case words joined by dashes"
    if len(rule["kind"]) > 64:
        return "kind has more than 64 characters"
    if "pattern" not in rule:
        return "pattern is needed"
    return next(_complaints(rule), None)


def _complaints(rule: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with what a rule says, if each part of it is of its type."""
    for name in ("keywords", "allow"):
        listed = rule.get(name, [])
        if len(listed) > KEYWORDS_MAX:
            yield f"{name} has more than {KEYWORDS_MAX} entries"
        if not all(isinstance(each, str) and each for each in listed):
            yield f"{name} is a list of texts that are not empty"
    if rule.get("min_length", 1) < 1 or not 0 <= rule.get("entropy", 0.0) <= 8:
        yield "min_length is at least 1, entropy between 0 and 8"
    sources = [("pattern", rule["pattern"]), *(("allow", each) for each in rule.get("allow", []))]
    yield from (why for name, each in sources if (why := _why_wrong_pattern(each, name)))
    group, compiled = rule.get("group", 0), re.compile(rule["pattern"], re.ASCII)
    if group not in range(compiled.groups + 1) and group not in compiled.groupindex:
        yield f"pattern has no group {group!r}"


def _why_wrong_pattern(source: str, name: str) -> str | None:
    if len(source) > PATTERN_CHARS_MAX:
        return f"{name} has more than {PATTERN_CHARS_MAX} characters"
    try:
        compiled = re.compile(source, re.ASCII)
        re.compile(bounded(source), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{name} is no regular expression: {error}"
    if compiled.match("") is not None and name == "pattern":
        return "pattern matches the empty text"
    danger = why_dangerous(source)
    return None if danger is None else f"{name} {danger}"


def _user_rule(rule: Mapping[str, Any]) -> SecretRule:
    return SecretRule(
        kind=rule["kind"],
        source=bounded(rule["pattern"]),
        keywords=tuple(each.lower() for each in rule.get("keywords", [])),
        group=rule.get("group"),
        check=ALWAYS,
        entropy=float(rule.get("entropy", 0.0)),
        min_length=rule.get("min_length", 1),
        allow=tuple(bounded(each) for each in rule.get("allow", [])),
    )
