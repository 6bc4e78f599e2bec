"""The weights of recall, all of them, each with its reason. Tuned on the development files only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each reason adds to a score in which 1 is about: it has every word of the question."""

    # A word said twice is not worth two: the smaller, the sooner it stops to count.
    saturation: float = 0.9
    # How much an entry pays for being longer than `length_plain` words, where words come by chance.
    length_share: float = 0.4
    length_plain: float = 40.0
    # "Volunteer" and "voluntary" begin alike: worth a part of the word itself.
    kin: float = 0.3
    # What an answer uses instead of a word of the question: a part of the word itself, too.
    related: float = 0.5
    # Two words that stand together in the question and in an entry are worth a little more. What
    # stands in quotation marks was meant word for word (by judgement: few questions of the files
    # have any).
    phrase: float = 0.1
    quoted: float = 0.5
    # Cosine above what unrelated texts have, for each spread of the question's candidates.
    similarity: float = 0.1
    # An answer often stands beside the turn that has the question's words, or one further.
    beside: float = 0.4
    near: float = 0.15
    # What somebody said is the best source on that person.
    speaker: float = 0.5
    # What others say of themselves is no answer to who asks about their own: "Where do I live?"
    other: float = 0.6
    # "My name" is asked for: not the name of "my husband".
    owned: float = 0.5
    # What took the place of something, where that is what is asked for.
    change: float = 0.5
    # Said in the time that the question names, the more the fewer were.
    time: float = 0.7
    # A session about the matter: the question's words that its entries have together.
    session: float = 0.35
    # People tell; what an agent or a tool says mostly restates and advises. What the agent said
    # counts in full where a question asks for it.
    agent: float = 0.6
    tool: float = 0.7
    # What was replaced or has ended stands below what holds, unless the past is asked for.
    outdated: float = 0.5
    # Between equals the newer and the more often used goes first; never more than that.
    recency: float = 0.02
    usage: float = 0.02
    # What says the same as a better hit of the same speaker loses so much of its score in a list.
    # More would be better for readers; the development files hold some sessions twice, of which one
    # counts as evidence, and punish it.
    repeated: float = 0.1


WEIGHTS = Weights()
