"""The parts of a score, in words for people."""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "words": "has the words of the query, the rare ones above all",
    "phrase": "has them next to each other, as the query does",
    "similarity": "means something like it",
    "neighbours": "what was said just before or after it fits too",
    "speaker": "the query names who said it",
    "asker": "is about who asks, or their own word",
    "change": "was replaced, or took the place of something",
    "time": "was said in a time that the query names, or soon after",
    "alone": "says by itself what a turn says with those around it",
    "session": "what belongs together with it is about this",
    "recency": "is recent",
    "usage": "was of use before",
    "source": "says what a record says that fits better",
    "replaces": "comes before what it replaced",
    "outdated": "does not hold any more",
    "asks": "only asks something, and tells nothing",
    "repeated": "says the same as one further up",
}
