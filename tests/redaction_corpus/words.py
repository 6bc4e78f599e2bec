"""Vocabulary and alphabets that the corpus is made from."""

from __future__ import annotations

import random
import string

LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
DIGITS = string.digits
ALNUM = string.ascii_letters + DIGITS
LOWER_ALNUM = LOWER + DIGITS
UPPER_ALNUM = UPPER + DIGITS
HEX = "0123456789abcdef"
BASE32 = UPPER + "234567"
BASE64 = ALNUM + "+/"
BASE64_URL = ALNUM + "-_"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

NOUNS = (
    "orchid",
    "maple",
    "harbor",
    "lantern",
    "copper",
    "velvet",
    "thunder",
    "meadow",
    "falcon",
    "pebble",
    "saffron",
    "glacier",
    "marble",
    "cricket",
    "walnut",
    "comet",
    "ginger",
    "puzzle",
    "banjo",
    "tundra",
    "pepper",
    "willow",
    "rocket",
    "cobalt",
    "otter",
    "summer",
    "dragon",
    "monkey",
    "coffee",
    "winter",
    "tiger",
    "sunset",
    "bamboo",
    "pirate",
    "wizard",
)
SERVICES = (
    "github",
    "netflix",
    "the-vpn",
    "staging",
    "grafana",
    "jira",
    "the-router",
    "the-nas",
    "spotify",
    "dropbox",
    "the-wiki",
    "postgres",
    "jenkins",
    "the-printer",
    "my-mail",
    "hetzner",
    "the-bank",
    "outlook",
)
HOSTS = ("db.internal", "10.0.4.17", "localhost", "cache-2.example.org", "mq.prod.example.net")
USERS = ("admin", "deploy", "root", "maria", "app_user", "svc-billing", "postgres", "jonas")


def draw(rng: random.Random, alphabet: str, length: int) -> str:
    """Random characters, with a digit and a letter whenever the alphabet has both."""
    while True:
        text = "".join(rng.choices(alphabet, k=length))
        wants_both = length >= 8 and any(c.isdigit() for c in alphabet)
        if not wants_both or (
            any(c.isdigit() for c in text)
            and any(c.isalpha() for c in text) == _has_letter(alphabet)
        ):
            return text


def _has_letter(alphabet: str) -> bool:
    return any(c.isalpha() for c in alphabet)


def uuid_like(rng: random.Random) -> str:
    return "-".join(draw(rng, HEX, length) for length in (8, 4, 4, 4, 12))


def password(rng: random.Random) -> str:
    """What people choose, from sloppy to generated; no quotes, no spaces, not all letters."""
    noun, other = rng.choice(NOUNS), rng.choice(NOUNS)
    match rng.randrange(7):
        case 0:
            return f"{noun}{rng.randrange(1, 9999)}"
        case 1:
            return f"{noun.capitalize()}{other.capitalize()}{rng.randrange(10, 99)}!"
        case 2:
            return f"{noun.capitalize()}{rng.choice('@!*%^')}{rng.randrange(1000, 9999)}"
        case 3:
            return draw(rng, ALNUM, rng.randrange(8, 24))
        case 4:
            return draw(rng, ALNUM + "!@%^*_+.-?", rng.randrange(12, 28)).strip(".-?!") + "7x"
        case 5:
            return f"{noun}-{other}-{rng.choice(NOUNS)}-{rng.randrange(10, 99)}"
        case _:
            return noun.replace("o", "0").replace("e", "3").capitalize() + str(rng.randrange(10))


def plain_password(rng: random.Random) -> str:
    """Letters only: the hardest kind to tell from a word."""
    first, second = rng.sample(NOUNS, 2)
    return rng.choice((first + second, first.capitalize() + second.capitalize()))
