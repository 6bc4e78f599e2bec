"""Tells text that wants to command a model from text that tells it something.

What tools and web pages put into a conversation and reads like a command is quarantined: it may be
recalled by whoever looks for it, and never walks into a prompt by itself, until a person vouches
for it. A false alarm costs one line of a block, so the patterns are wide; they read words without
case, accents and hidden characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.knowledge import Trust
from recollect.patterns import LazyPattern
from recollect.recall.quoting import harmless, quoted
from recollect.terms import words

TEXT_CHARS_MAX = 20_000  # more than a block ever shows of one thing

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
        r" (?:must|shall|should|ought to|need to|have to|has to|is to|will now)\b"
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
_OPENING = LazyPattern(
    r"(?:(?:please|important|attention|warning|note) )*+(?:always|never|do not|don t) \w"
)
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
    # A name may be the beginning of a command, or hide that the text begins with one.
    return commands(text) or (bool(speaker) and commands(f"{speaker}\n{text}"))


def commands(text: str) -> bool:
    """Whether a text reads as if it were addressed to a model and wanted something done."""
    text = text[:TEXT_CHARS_MAX]
    if harmless(text) != text or _TURN.search(text):
        return True  # a tag, a citation or a turn of its own: nobody writes that by accident
    said = words(quoted(text))
    spelt = _SPELT_OUT.sub(lambda letters: letters[0].replace(" ", ""), said)
    return _has_command(said) or (spelt != said and _has_command(spelt))


def _has_command(said: str) -> bool:
    if _OPENING.match(said) or (not said.isascii() and _ELSEWHERE.search(said)):
        return True
    found = set(said.split())
    return any(
        not command.leads.isdisjoint(found) and command.pattern.search(said)
        for command in _COMMANDS
    )
