"""The English words that tell the subject of a claim. Only data."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.types.facts import FactTag

# Who people are to each other. Animals are told apart by nobody who has one.
KIN = """
    mom mum mother dad father husband wife spouse partner boyfriend girlfriend fiance fiancé fiancée
    boss manager landlord landlady roommate flatmate mentor therapist doctor dentist teacher tutor
    coach trainer lawyer brother sister sibling son daughter child kid baby stepson stepdaughter
    stepbrother stepsister stepmother stepfather mother-in-law father-in-law brother-in-law
    sister-in-law friend cousin uncle aunt niece nephew grandma grandmother grandpa grandfather
    grandson granddaughter godmother godfather colleague coworker co-worker teammate classmate
    assistant client customer supervisor neighbor neighbour ex-wife ex-husband
    dog cat puppy kitten horse pony parrot rabbit hamster pet bird tortoise turtle
"""

# Written with a capital, and nobody's name.
NOT_NAMES = """
    i the a an this that these those he she it we they you my our your his her their its and but or
    so if when while since because as at in on by for from with to of not no yes remember note
    please always never user users agreed asked today tomorrow yesterday
    monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december english german french spanish portuguese italian
    chinese japanese korean russian polish dutch american british european indian
"""

# Names that are also words: alone they mean a person only where a statement says so.
ALSO_WORDS = "will may mark bill rose art grace hope joy faith dawn summer sunny frank rich june"

# Before or behind `project`, and no name of one.
NOT_PROJECTS = """
    the a an this that my our your their his her its any each every new old next last other another
    same whole entire big small side pet main first second current open-source school work home
    group team research class science art a-new long-term short-term is was has and or for of in
    manager management plan plans planning lead leads team files file folder directory root
"""

# Where a claim is at home by its tag: what of it is anybody's, wherever it was said.
OPEN_TAGS = frozenset({FactTag.COMMITMENT, FactTag.GOAL})
RULE_TAGS = frozenset({FactTag.INSTRUCTION, FactTag.CORRECTION})
# What belongs to the project it was said in, and to nobody where there is none.
WORK_TAGS = frozenset({FactTag.PROCEDURE, FactTag.LESSON, FactTag.OBSERVATION})
LIFE_TAGS = frozenset({FactTag.DETAIL, FactTag.RELATION, FactTag.EVENT})

# What a statement without a tag of ours is told by, the first that fits.
WITHOUT_TAG: Mapping[FactTag, str] = {
    FactTag.DECISION: (
        r"\b(?:decided|decision|agreed (?:on|to|that)|settled on|have chosen|going with)\b"
    ),
    FactTag.COMMITMENT: (
        r"\b(?:todo|to-do|need(?:s|ed)? to|plans? to|planning to|intends? to|wants? to|deadline"
        r"|is due|are due|due (?:on|by)|appointment|reminder|remind|promised|scheduled|follow up"
        r"|goal|aims? to|hopes? to)\b"
    ),
    FactTag.INSTRUCTION: r"\b(?:always|never|must not|from now on|by default)\b",
    FactTag.PREFERENCE: (
        r"\b(?:prefers?|preferred|likes?|loves?|enjoys?|hates?|dislikes?|favou?rites?)\b"
    ),
}
THE_USER = r"^(?:(?:the|this) )?user(?:['’]s)?\b|^(?:i|i'm|i've|my)\b"
