"""Words that an answer uses instead of those it is asked with: "hiking" for "hobbies".

A closed table of everyday English: on each line words of questions, and words that say the same, or
name one of its kind, in somebody's own account. What is learned is indexed by the words that ask
for it as well (`recollect.topic_words`); this finds what was said and has not been learned from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from recollect.stems import stem

_ANSWERED = """
live living home address residence reside = moved live relocated home apartment house
work job employer profession occupation career = job hired employed work company office boss
work job employer profession occupation career = colleague promotion position fired quit interview
old age born birthday = turned birthday born age years
married spouse marriage wedding = wife husband married wedding engaged honeymoon fiance
partner relationship dating date = wife husband married engaged girlfriend boyfriend partner single
pet animal = dog cat puppy kitten pet hamster rabbit bird fish turtle parrot
child kid children = son daughter baby kid child toddler newborn
sibling = brother sister
parent = mother father mom dad
family relative = mother father mom dad son daughter brother sister wife husband kids cousin aunt
family relative = uncle grandma grandpa grandmother grandfather niece nephew
friend = friend buddy pal roommate neighbor
food meal dish cuisine diet eat = vegan vegetarian allergic eat cook dinner lunch breakfast recipe
food meal dish cuisine diet eat = soup salad pizza pasta chicken curry restaurant
snack dessert sweet = cake cookies chocolate candy pie chips
drink beverage = coffee tea beer wine soda juice water smoothie cocktail
study university college school degree education = graduated studied degree university college
study university college school degree education = class course exam student
hobby pastime leisure = hiking painting reading gardening cooking photography knitting gaming
hobby pastime leisure = dancing fishing running swimming camping drawing pottery
activity = hiking camping painting swimming running biking cycling dancing yoga kayaking skiing
activity = pottery museum reading cooking fishing
outdoor nature = hiking camping kayaking climbing biking trail park mountain lake beach forest
sport = basketball football soccer tennis baseball swimming running boxing surfing skiing
sport = volleyball golf hockey
martial = karate taekwondo judo kickboxing boxing aikido
exercise workout fitness = gym yoga running weights training cardio jogging swimming pilates
music musical musician band song = guitar piano violin drums concert band singing song album
instrument = guitar piano violin drums flute clarinet saxophone cello ukulele
art artwork artistic creative = painting drawing sculpture pottery sketch canvas gallery poetry
book novel author = book novel read series author story trilogy
read reading = book novel series finished
movie film show = movie film watched series documentary
game gaming = game play console tournament board chess
trip travel vacation holiday visit = trip vacation flew flight travel visited road hotel tour abroad
place location = city park beach mountain country town lake
country = abroad flight england france italy spain japan canada mexico germany ireland india china
country = brazil australia greece
state area region = coast california texas florida oregon washington
city = london paris tokyo seattle chicago boston berlin rome barcelona toronto
car vehicle = car truck drive engine motorcycle van
health medical illness sick condition disease = doctor hospital surgery diagnosed pain medication
health medical illness sick condition disease = sick checkup diabetes asthma allergy
injury injured hurt accident = hurt broke sprained twisted ankle knee accident surgery cast pain
stress relax destress unwind calm = yoga meditation walk calm relaxing bath therapeutic peaceful
fear afraid scared = scared afraid nervous worried terrified
challenge obstacle setback struggle problem difficulty = tough hard struggle failed lost difficult
challenge obstacle setback struggle problem difficulty = setback stuck
goal plan ambition aspiration dream = want hope plan dream working someday
achievement accomplishment award prize = won award promoted graduated finished medal trophy proud
volunteer charity charitable community = volunteer shelter charity donate fundraiser homeless
cause = charity fundraiser awareness campaign homeless veterans
buy purchase item = bought got ordered purchase
gift present = gift gave present
clothes clothing outfit wear = dress shoes jacket shirt boots sneakers hat
money finance financial pay income = salary loan budget saved cost rent debt raise
business company startup store = business store shop opened launch customers
religion religious faith spiritual church = church faith pray god mosque temple synagogue
political politics = election campaign vote mayor government policy council
identity gender = transgender woman man gay lesbian nonbinary
personality trait attribute describe = kind caring brave supportive passionate thoughtful helpful
weather season = rain snow sunny storm winter summer
event = attended party festival concert parade conference workshop meeting competition fair
meet = met introduced
class course workshop lesson = class course workshop signed lesson
technology device gadget = phone laptop computer app software tablet camera
photo picture photograph = photo picture pic camera
language = english spanish french german learn fluent
plant garden flower = garden flowers planted roses vegetables tomatoes
collect collection collectible = collection collect signed rare
"""


def related_stems(asked: str) -> tuple[str, ...]:
    """Stems that an answer may use instead of the stem that is asked for; none where none are."""
    return _related().get(asked, ())


@cache
def _related() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in _ANSWERED.strip().splitlines():
        asked, _, answered = line.partition(" = ")
        others = [stem(word) for word in answered.split()]
        for word in map(stem, asked.split()):
            found.setdefault(word, {}).update((other, None) for other in others if other != word)
    return {word: tuple(others) for word, others in found.items()}
