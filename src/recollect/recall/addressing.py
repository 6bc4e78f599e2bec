"""What a question says to whoever is asked, rather than about the matter. Only English is known.

"I was going through our last chat and was wondering if you could remind me which hostel you
recommended" asks for a hostel: the rest stands in any question, and finds whatever asks alike. It
tells a few things though: that it was the agent who said it, that it is about the one who asks, or
about what held before.
"""

from __future__ import annotations

import re

ADDRESSED_CHARS_MAX = 2000  # a longer text is no question

_YOU = r"(?:can|could|would|will|do|did)\s+you(?:\s+(?:please|kindly|also|maybe|perhaps|still))?"
_YOU_COULD = r"(?:if|whether)\s+you\s+(?:can|could|would|might)"
_I_AM = (
    r"(?:I(?:\s+am|\s+was|\s+have\s+been|\s*['’]m|\s*['’]ve\s+been)|and\s+(?:am|was))"
    r"(?:\s+(?:also|just|now))?"
)
_ADVICE = r"(?:good\s+)?(?:advice|ideas?|recommendations?|suggestions?|thoughts?|tips?)"
_SAID = r"(?:discussed|mentioned|said|talked\s+about|told\s+(?:me|you))"
_SAY = r"(?:discuss|mention|say|talk\s+about|tell\s+(?:me|you))"
_TALK = r"(?:chats?|conversations?|discussions?|sessions?|talks?)"

_ADDRESSING = re.compile(
    rf"""\b(?:
        (?:please\s+)?(?:{_YOU}|{_YOU_COULD})\s+(?:
            (?:give|help|remind|show|tell)\s+me(?:\s+(?:about|of|with))?
            | (?:advise|explain|know|recall|recommend|remember|suggest|think)(?:\s+me)?
            | have\s+(?:any|some)\s+{_ADVICE}
        )
        | please\s+(?:help|remind|tell)\s+me(?:\s+(?:about|of|with))?
        | any\s+{_ADVICE}(?:\s+(?:about|for|on))?
        | {_I_AM}\s+(?:
            checking | wondering | feeling(?:\s+like)?
            | going\s+(?:back\s+to|through) | looking\s+back\s+(?:at|on|to)
            | thinking(?:\s+(?:about|back\s+to|of))? | trying\s+to\s+(?:recall|remember)
        )
        | I\s*(?:want(?:ed)?|would\s+like|['’]d\s+like)\s+to\s+
            (?:ask|check|clarify|confirm|follow\s+up|know)(?:\s+(?:about|on|something))?
        | (?:from\s+|in\s+)?our\s+(?:earlier|last|past|previous)\s+{_TALK}(?:\s+(?:about|on))?
        | (?:I|we|you)(?:\s+had|\s+have|['’]d|['’]ve)?\s+(?:remember(?:ed)?|{_SAID})(?:\s+that)?
        | did\s+(?:I|we|you)\s+{_SAY}
        | would\s+be\s+a\s+good\s+idea(?:\s+to)?
        | used?\s+to | (?:right\s+)?now | currently | nowadays | these\s+days
        | at\s+(?:the\s+moment|present)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SAID_BY_ASKER = re.compile(rf"\b(?:I\s+{_SAID}|did\s+I\s+{_SAY})\b", re.IGNORECASE)
_SAID_BY_AGENT = re.compile(
    rf"""\b(?:
        (?:you|the\s+(?:agent|assistant))(?:\s+had|\s+have|\s+has|['’]d|['’]ve)?(?:\s+\w+ly)?\s+
            (?:advised|came\s+up|created|described|explained|gave|listed|made|mentioned|proposed
            |provided|recommended|said|suggested|told|wrote)
        | did\s+(?:you|the\s+(?:agent|assistant))\s+
            (?:advise|come\s+up|create|describe|explain|give|list|make|mention|propose|provide
            |recommend|say|suggest|tell|write)
        | our\s+(?:earlier|last|past|previous)\s+{_TALK}
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


_PAST = re.compile(
    r"\b(?:before|changed?|earlier|ever|former(?:ly)?|historical(?:ly)?|history|in\s+the\s+past|no\s+longer"
    r"|old(?:er)?|original(?:ly)?|past|previous(?:ly)?|prior|since\s+when|so\s+far|used?\s+to|until|was|were)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:what|how|anything|something)\b[^.?!\n]{0,40}\bchanged?\b"
    r"|\bwhat(?:['’]s|\s+is|\s+was)\s+(?:different|new)\b",
    re.IGNORECASE,
)
_ASKER = re.compile(r"\b(?:I|me|my|myself)\b", re.IGNORECASE)


def matter(question: str) -> str:
    """`question` without what is only said to whoever is asked."""
    if len(question) > ADDRESSED_CHARS_MAX:
        return question
    return _ADDRESSING.sub(" ", question)


def asks_agent(question: str) -> bool:
    """Whether it is about what the agent said, whose word counts for less elsewhere."""
    if len(question) > ADDRESSED_CHARS_MAX or _SAID_BY_ASKER.search(question):
        return False
    return _SAID_BY_AGENT.search(question) is not None


def asks_past(question: str) -> bool:
    """Whether it is about what held before, and not only about what holds."""
    return len(question) <= ADDRESSED_CHARS_MAX and _PAST.search(question) is not None


def asks_change(question: str) -> bool:
    """Whether it asks what has taken the place of what."""
    return len(question) <= ADDRESSED_CHARS_MAX and _CHANGE.search(question) is not None


def is_personal(question: str) -> bool:
    """Whether it is about the one who asks, or what they said."""
    if len(question) > ADDRESSED_CHARS_MAX:
        return False
    return bool(_SAID_BY_ASKER.search(question) or _ASKER.search(matter(question)))
