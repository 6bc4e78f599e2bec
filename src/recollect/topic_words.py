"""The words people ask with, for each topic of a person's life: a fact is indexed by them too.

"I moved to Lisbon" shares no word with "where does she live?". What a fact is about is known where
it has a topic (`user:home`) or a rule found it (`pet`); here are the words that ask for that.
"""

from __future__ import annotations

from collections.abc import Iterator

_NAME = "name"
# Each line: the names of a topic, whoever extracted the fact, and the words that ask for it. What
# would ask for things that differ is left out: "living" is the home, and the job.
_ASKED = """
home residence address lives city = live home house address residence city town based
origin birthplace hometown = origin hometown born grow raised country
name = name called
called nickname = name called nickname
age = age old born
birthday birthdate = birthday born birth age old
employer company workplace = work job employer company employed office
job profession occupation career role = work job profession occupation career employed
education degree school university studies = study school university college degree education
marital relationship = married single partner spouse husband wife relationship
wife husband spouse partner boyfriend girlfriend = partner spouse married family
fiance fiancé fiancée = partner engaged family
mom mum mother dad father = parent family
boss manager = boss manager work
landlord = landlord rent
child children kid kids son daughter = child kid family parent
sibling siblings brother sister = sibling brother sister family
pet pets dog cat = pet animal
relative relatives family = family relative
friend friends = friend
diet eats = diet eat food meal vegetarian vegan
allergy allergies intolerance = allergy allergic food eat health
health condition medication = health ill condition doctor
abstains = diet drink eat smoke
likes like dislikes prefers preference into = preference taste interest enjoy
favourite favorite = favourite favorite preference taste
hobby hobbies interests = hobby interest enjoy
language languages = language speak
timezone = timezone time
email = email mail contact
phone = phone number contact
goal goals = goal plan want
"""


def asking_words(topic: str | None, rule: object = None) -> tuple[str, ...]:
    """What a fact of this topic is asked for by, each word once; nothing where neither is known.

    A topic is `whose:what` or `whose:what:more`; `rule` is the name of the one that found it.
    """
    found = (word for name in _names(topic, rule) for word in _WORDS.get(name, ()))
    return tuple(dict.fromkeys(found))


def _names(topic: str | None, rule: object) -> Iterator[str]:
    if topic is not None:
        whose, *what = topic.split(":")
        parts = (what[0] if what else whose).split("-")
        # The first says most: a favourite city is a favourite, a home city is a home.
        yield from [part for part in parts if part in _WORDS][:1]
        # More may be anything that somebody likes, except where somebody is named.
        yield from (more for more in what[1:] if more == _NAME)
    if isinstance(rule, str):
        yield rule


def _read(table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in table.strip().splitlines():
        names, _, asked = line.partition(" = ")
        yield from ((name, tuple(asked.split())) for name in names.split())


_WORDS = dict(_read(_ASKED))
