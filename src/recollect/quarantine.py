"""Detects text that commands a model rather than informs it: the only test of that kind.

Text from tools and web pages that reads like a command is quarantined: as a fact it waits for a
person's review, and nothing else of that kind enters a prompt. From texts that a machine wrote,
such lines are left out unless a person said them. A false alarm costs one line of a block, so the
patterns are wide; they read words without case, accents and hidden characters, wherever in a text
a command begins: after a bullet, a name, a quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from recollect.patterns import LazyPattern
from recollect.quoting import harmless, quoted
from recollect.stemming import words
from recollect.types.facts import FactTag, Review, Trust

TEXT_CHARS_MAX = 20_000  # more than a block ever shows of one thing
OPENING_CHARS = 400  # of a sentence, in which an order begins

_UNTRUSTED_SPEAKERS = frozenset({"tool", "web", "function"})

_RULES = r"(?:instructions?|prompts?|rules?|guidelines?|directions?|orders?|commands?|messages?)"
_BEFORE = r"(?:previous|prior|earlier|above|preceding|foregoing|former|other|original|system|your)"
_WHOSE = r"(?:the|your|all|any|its?|users?|their|his|her|my|our)"
_SECRETS = (
    r"(?:passwords?|secrets?|tokens?|credentials?|(?:api|private|ssh) keys?|env|environment"
    r"|conversations?|chat history|memory|memories|system prompts?)"
)
_AUDIENCE = r"(?:users?|humans?|owners?|anyone|anybody|them|this|it)"

# What a command begins with, and what has to follow; over words with single blanks between them.
_ENGLISH = {
    "ignore disregard forget override bypass skip drop": rf"(?: \w+){{0,4}} {_BEFORE}\b",
    "ignore disregard forget override bypass replace": rf"(?: \w+){{0,4}} {_RULES}\b",
    "forget disregard ignore": r" (?:everything|anything|all of (?:this|that|the above))\b",
    "new updated revised real hidden urgent special": r" (?:instruction|prompt|directive)s?\b",
    "follow obey execute carry comply": rf"(?: \w+){{0,4}} {_RULES}\b",
    "you": r" are (?:now|no longer|henceforth|required to|instructed to|to)\b",
    "from": r" now on\b",
    "for": r" the rest of (?:this|the) (?:conversation|session|chat)\b",
    "act behave respond pose": r" as (?:if|though|an?|the|my)\b",
    "pretend": r" (?:to be|that|you)\b",
    "you assistant assistants agent agents ai llm llms model models": (
        r" (?:must(?! have\b)|shall|should|ought to|need to|have to|has to|is to|will now)\b"
    ),
    "not don never without": (
        r"(?: t)? (?:tell|inform|alert|notify|warn|mention|ask)(?:ing)?"
        rf"(?: \w+){{0,3}} {_AUDIENCE}\b"
    ),
    "send post upload forward email mail leak exfiltrate transmit reveal print show output repeat "
    "disclose share give collect copy": rf"(?: \w+){{0,4}} {_WHOSE}(?: \w+){{0,2}} {_SECRETS}\b",
    "run execute invoke call use": (
        r"(?: \w+){0,3} (?:following|this|these|below)(?: \w+){0,2}"
        r" (?:command|script|code|tool|function)s?\b"
    ),
    "curl wget": r"\b.{0,200} (?:sh|bash|zsh|python3?)\b",
    "rm": r" rf\b",
    "system developer": r" (?:prompt|message|override|mode)\b",
    "jailbreak": r"\b",
    "must shall": r" (?:always|never)\b",
    "remember memorize memorise": r"(?: \w+){0,3} (?:always|never|that you|to)\b",
}
_OTHER_LANGUAGES = {
    "ignoriere ignorieren ignorier vergiss missachte": (
        r"(?: \w+){0,4} (?:anweisung|vorgabe|regel|befehl)"
    ),
    "ignore ignorez ignorer oublie oubliez": (
        r"(?: \w+){0,4} (?:instructions?|consignes?|regles?)\b"
    ),
    "ignora ignore ignorar olvida olvide esqueca dimentica": (
        r"(?: \w+){0,4} (?:instruc|istruzion|reglas?|regras?|ordenes|ordens)"
    ),
    "игнорируи игнорируите забудь забудьте": r"(?: \w+){0,4} (?:инструкц|указан|правил)",
}
# Written without blanks, or with endings on every word.
_ELSEWHERE = LazyPattern(
    r"(?:忽略|无视|無視|忘记|忘記)\w{0,12}(?:指令|指示|规则|規則|提示|说明|說明)"
    r"|(?:指示|命令|ルール|プロンプト)\w{0,6}(?:無視|忘れ)"
    r"|(?:지시|명령|규칙)\w{0,6} ?(?:무시|잊)"
)
_VERBS = (
    r"(?:act|add|answer|approve|ask|call|claim|commit|copy|delete|deploy|direct|do|download|email"
    r"|execute|fetch|follow|forward|give|include|insert|install|mail|mention|merge|open|output|point"
    r"|post|print|push|recommend|refer|remove|reply|respond|return|run|say|send|set|show|state"
    r"|suggest|tell|treat|upload|use|visit|write)"
)
# A report of what never happened, or always does, is none: "never passed", "always on".
_AT_ALL_TIMES = (
    r"(?:always|never) (?!(?:a|again|an|and|be|been|but|did|does|full|had|happy|has|heard|here|in"
    r"|is|mind|on|or|seen|the|there|to|too|true|was)\b|(?!embed)\w*[^\We]ed\b|\w*[^\Wsu]s\b)\w"
)
# How a sentence begins that is an order.
_OPENING = LazyPattern(
    r"(?:(?:please|important|attention|warning|note|reminder|also|and|but|so|then|just|user|users"
    rf"|instruction|rule) )*+(?:{_AT_ALL_TIMES}|(?:do not|don t|dont) \w"
    r"|(?:make sure|be sure|ensure) (?:to|that|you)\b|remember (?:to|that|this|always|never)\b"
    r"|(?:ignore|disregard) \w"
    rf"|(?:in|for|on|at)(?: \w+){{1,12}}? (?:always|never|do not|don t) {_VERBS}\b"
    rf"|(?:whenever|any ?time|(?:every|each) time)(?: \w+){{1,30}}? (?:always|never|{_VERBS}) \w)"
)
# One of these is in every such sentence; what has none need not be looked at.
_OPENING_WORDS = (
    "always never not don dont sure ensure remember ignore disregard whenever time anytime"
)
_OPENERS = frozenset(_OPENING_WORDS.split())
# Where one may begin: with a line, a sentence, behind a colon, a quotation mark or a bullet.
_BOUNDARY = LazyPattern(
    r"""[\n\r\x0b\x0c\x85\u2028\u2029:;!?…。！？：；|()\[\]{}"“”„«»]+|\.(?=\s|$)"""
    r"""|\s[-–—•]+\s|(?<!\w)['‘*_>#]+(?=\w)"""
)
# Behind a comma only where what stands before it says where or when.
_PREFIXED = LazyPattern(
    r"^\W*(?:in|for|on|at|within|inside|regarding|about|during|under|with|as for|when|whenever|if"
    r"|once|before|after|each|every|any)\b[^,\n]{1,300},\s*",
    re.IGNORECASE,
)
# "If anyone asks, say …": first who asks, then what is to be done.
_ASKED = LazyPattern(
    r"\b(?:if|when|whenever|once|in case|as soon as)\b[^,.!?\n]{0,80}?\b(?:ask(?:s|ed|ing)?|users?"
    r"|anyone|anybody|someone|somebody|people|they|you|told|prompted|questioned)\b",
    re.IGNORECASE,
)
_CONDITIONS = frozenset(("if", "when", "whenever", "once", "case", "soon"))
_THEN = LazyPattern(
    rf"[,:–—]\s*(?:(?:you|then|please|just|simply|only)\s+)*{_VERBS}\s+[\w\"'“`]", re.IGNORECASE
)
_TOLD_TO_SAY = LazyPattern(
    r"\b(?:if|when|whenever|once)(?: \w+){1,24}? (?:reply|respond|answer|say|tell)"
    r" (?:with|that|only|them|users?|him|her|it|the user)\b"
)
# Who is no person cannot speak for one.
_FOR_A_PERSON = LazyPattern(
    r"\bthe (?:user|owner) (?:wants|prefers|said|says|asked|told|insists)\b"
)
_SENTENCE = LazyPattern(r"(?<=[.!?:;])\s+")
_SPELT_OUT = LazyPattern(r"\b\w(?: \w\b){4,}")
_TURN = LazyPattern(
    r"^[ \t>*#_-]{0,8}(?:system|developer|assistant)[ \t*_]{0,8}[:：][ \t*_]{0,8}"
    r"(?:you|your|please|do|always|never|new)\b",
    re.IGNORECASE | re.MULTILINE,
)


class _Command(NamedTuple):
    leads: frozenset[str]
    pattern: LazyPattern


def _command(leads: str, rest: str) -> _Command:
    first = leads.split()
    return _Command(frozenset(first), LazyPattern(rf"\b(?:{'|'.join(first)}){rest}"))


_COMMANDS = tuple(
    _command(leads, rest) for leads, rest in (*_ENGLISH.items(), *_OTHER_LANGUAGES.items())
)


def is_low(trust: Trust, speaker: str = "") -> bool:
    """Whether nobody but a tool or a web page says so."""
    return trust is Trust.TOOL or speaker.casefold() in _UNTRUSTED_SPEAKERS


def is_quarantined(text: str, trust: Trust, speaker: str = "") -> bool:
    """Whether a text is kept out of prompts: nobody vouches for it, and it wants something done."""
    if not is_low(trust, speaker):
        return False
    if commands(text) or _FOR_A_PERSON.search(words(text[:TEXT_CHARS_MAX])):
        return True
    # A name may be the beginning of a command, or hide that the text begins with one.
    return bool(speaker) and commands(f"{speaker}\n{text}")


def review_of(setting: str, content: str, trust: Trust, tags: Collection[str]) -> Review | None:
    """Whether a statement that no person made waits for one; `setting` is that of `review`."""
    if is_quarantined(content, trust):
        return Review.QUARANTINED
    is_asked = setting == "all" or (
        setting == "instructions" and (FactTag.INSTRUCTION in tags or commands(content))
    )
    return Review.WAITING if is_asked else None


def commands(text: str) -> bool:
    """Whether a text reads as if it were addressed to a model and wanted something done."""
    text = text[:TEXT_CHARS_MAX]
    if harmless(text) != text or _TURN.search(text):
        return True  # a tag, a citation or a turn of its own: nobody writes that by accident
    said = words(quoted(text))
    spelt = _SPELT_OUT.sub(lambda letters: letters[0].replace(" ", ""), said)
    if _has_command(said) or (spelt != said and _has_command(spelt)):
        return True
    found = set(said.split())
    if not _CONDITIONS.isdisjoint(found) and any(map(_answers, text.splitlines())):
        return True
    if _OPENERS.isdisjoint(found):
        return False
    return any(_opens(part) for part in _BOUNDARY.split(text) if part)


def _has_command(said: str) -> bool:
    if _OPENING.match(said) or _TOLD_TO_SAY.search(said):
        return True
    if not said.isascii() and _ELSEWHERE.search(said):
        return True
    found = set(said.split())
    return any(
        not command.leads.isdisjoint(found) and command.pattern.search(said)
        for command in _COMMANDS
    )


def _answers(line: str) -> bool:
    """Whether it says what is to be done when somebody asks."""
    asked = _ASKED.search(line)
    return asked is not None and _THEN.search(line, asked.end()) is not None


def _opens(part: str) -> bool:
    """Whether a part of a text begins like an order, itself or behind where and when it holds."""
    if _OPENING.match(words(part[:OPENING_CHARS])):
        return True
    prefix = _PREFIXED.match(part)
    return prefix is not None and _OPENING.match(words(part[prefix.end() :])) is not None


# lines of texts that machines wrote


class UnlabelledLine(NamedTuple):
    """A line without what a machine wrote behind it about where it comes from."""

    text: str
    is_tools: bool  # it says itself that it is a tool's word: the one label that is believed


# "[#3, user]", "[user]", "(#3)", "(the user said)": the text that has one may be lying.
_LABEL = LazyPattern(
    r"(?:[ \t]+|(?<!\w))(?:\[(?=[#\w])(?P<square>(?:records?\s*)?(?:#\d[\d#,–\s-]*)?"
    r"(?:,?\s*(?:the\s+)?(?:user|human|owner|person|agent|assistant|tool|system)(?:['’]s)?"
    r"(?:\s+(?:said|says|asked|wrote|instruction|word|record|request|confirmed|approved))?)?)\]"
    r"|\((?:records?\s*)?#\d[\d#,–\s-]*,\s*(?:user|human|owner|agent|assistant|tool)\)"
    r"|\((?:as |said by )?(?:the\s+)?(?:user|human|owner)"
    r"(?:\s+(?:said|says|asked|wrote|confirmed|approved|instruction|request))?\))",
    re.IGNORECASE,
)


def unlabelled(line: str) -> UnlabelledLine:
    """A line without the labels that say whose word it is."""
    if "[" not in line and "(" not in line:
        return UnlabelledLine(line, is_tools=False)
    labels = [found["square"] or "" for found in _LABEL.finditer(line)]
    if not labels:
        return UnlabelledLine(line, is_tools=False)
    bare = _LABEL.sub("", line)
    is_tools = any("tool" in label.casefold() for label in labels)
    # What ended in a label does not head what follows.
    return UnlabelledLine(bare.rstrip(": ") if bare.rstrip().endswith(":") else bare, is_tools)


@lru_cache(maxsize=4096)  # the same few pages are told in every turn
def orders_in(text: str) -> tuple[str, ...]:
    """The sentences of a text that read like orders; the whole text where only the whole does."""
    if not commands(text):
        return ()
    sentences = [each for each in _SENTENCE.split(text) if each.strip()]
    found = tuple(each for each in sentences if commands(each))
    rest = " ".join(each for each in sentences if each not in found)
    return (text,) if not found or commands(rest) else found


def without_orders(
    text: str, is_vouched: Callable[[str], bool], safe_for_models: Callable[[UnlabelledLine], str]
) -> str:
    """A machine's text by lines, as `told` writes each, without orders that nobody vouches for.

    An order may be spread over two lines, of which none reads like one: both go.
    """
    lines = [(line, orders_in(line.text)) for line in map(unlabelled, text.splitlines())]
    lines = [(line, orders) for line, orders in lines if all(map(is_vouched, orders))]
    plain = [line.text for line, orders in lines if not orders]
    spread: set[str] = set()
    if orders_in("\n".join(plain)):
        spread.update(*(pair for pair in pairwise(plain) if orders_in("\n".join(pair))))
    return "\n".join(safe_for_models(line) for line, _ in lines if line.text not in spread)


def safe_for_models(text: str, is_vouched: Callable[[str], bool]) -> str:
    """What a machine wrote, as a model may be told it: orders of people alone, and no labels."""
    return without_orders(text, is_vouched, _shown).strip()


def bare(text: str) -> str:
    """What a machine wrote, without labels."""
    return "\n".join(_shown(unlabelled(line)) for line in text.splitlines())


def _shown(line: UnlabelledLine) -> str:
    return f"{line.text} (from a tool)" if line.is_tools else line.text
