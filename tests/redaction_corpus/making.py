"""Makes the corpus from a seed: positives with the secret they hold, and benign texts."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_letters
from typing import Protocol

from tests.redaction_corpus import benign, contexts, prose
from tests.redaction_corpus.formats import (
    NAMED,
    PASSWORD_NAMES,
    TOKENS,
    card,
    iban,
    other_card,
    pem,
)
from tests.redaction_corpus.words import (
    ALNUM,
    BASE64,
    DIGITS,
    HEX,
    HOSTS,
    LOWER_ALNUM,
    NOUNS,
    SERVICES,
    UPPER_ALNUM,
    USERS,
    draw,
    password,
    plain_password,
    uuid_like,
)

SEED = 20_260_401  # the rules were made with this one
CHECK_SEED = 71_104_260  # for checking only: what it makes was only counted


class Half(StrEnum):
    """TUNING: the rules were made to fit it. HELD_OUT: written before, for measuring."""

    TUNING = "tuning"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Positive:
    """A text and the secret in it; none of `hidden` may be left after redaction."""

    kind: str
    text: str
    hidden: tuple[str, ...]


class Maker(Protocol):
    """Makes the positives of one half from a seed."""

    def __call__(self, half: Half, *, seed: int) -> Iterator[Positive]: ...


def structured(half: Half, *, seed: int = SEED, each: int = 3) -> Iterator[Positive]:
    """Every format in every context of the half."""
    rng = _rng(half, "structured", seed)
    yield from _tokens_and_named(rng, half)
    is_tuning = half is Half.TUNING
    for context in contexts.PASSWORDS_TUNING if is_tuning else contexts.PASSWORDS_HELD_OUT:
        for _ in range(5 * each):
            yield _filled(rng, "password", context, _for_url(password(rng)))
    for context in contexts.HEADERS_TUNING if is_tuning else contexts.HEADERS_HELD_OUT:
        for _ in range(3 * each):
            yield _header(rng, context)
    for context in contexts.CARDS_TUNING if is_tuning else contexts.CARDS_HELD_OUT:
        for _ in range(3 * each):
            yield _filled(rng, "card", context, card(rng))
    for context in contexts.OTHER_CARDS_TUNING if is_tuning else contexts.OTHER_CARDS_HELD_OUT:
        for _ in range(3 * each):
            yield _filled(rng, "other-card", context, other_card(rng))
    for number in range(8 * each):
        yield _pem(rng, number)
    yield from _whole(rng, half, each)


def _whole(rng: random.Random, half: Half, each: int) -> Iterator[Positive]:
    """Values that the line around them gives away."""
    makers: dict[str, Callable[[random.Random], str]] = {
        "IBANS": iban,
        "KEYS": lambda rng: draw(rng, BASE64, 40),
        "SIDS": lambda rng: draw(rng, HEX, 32),
        "WIFI": password,
        "LETTERS": lambda rng: draw(rng, ascii_letters, rng.randrange(12, 25)),
    }
    for name, make in makers.items():
        for context in getattr(contexts, f"{name}_{half.name}"):
            for _ in range(3 * each):
                yield _filled(rng, name.lower(), context, make(rng))


def _tokens_and_named(rng: random.Random, half: Half) -> Iterator[Positive]:
    is_tuning = half is Half.TUNING
    for context in contexts.TOKENS_TUNING if is_tuning else contexts.TOKENS_HELD_OUT:
        for kind, make in TOKENS.items():
            yield _filled(rng, kind, context, make(rng))
    for context in contexts.NAMED_TUNING if is_tuning else contexts.NAMED_HELD_OUT:
        for kind, (names, make) in NAMED.items():
            yield _filled(rng, kind, context, make(rng), name=rng.choice(names))
        for name in rng.sample(PASSWORD_NAMES, k=5):
            yield _filled(rng, "password", context, password(rng), name=name)


def in_prose(half: Half, *, seed: int = SEED, each: int = 20) -> Iterator[Positive]:
    """Secrets told in words; one password in eight has letters only."""
    rng = _rng(half, "prose", seed)
    for template in prose.PROSE_TUNING if half is Half.TUNING else prose.PROSE_HELD_OUT:
        for _ in range(each):
            secret = _told(rng, template)
            named = rng.choice(SERVICES).replace("-", " ")
            text = template.format(s=secret, p=secret, k=secret, m=secret, w=named)
            yield Positive(kind="prose", text=text, hidden=(secret,))


def benign_texts(half: Half, *, seed: int = SEED, each: int = 10) -> Iterator[str]:
    """Texts in which nothing is secret."""
    rng = _rng(half, "benign", seed)
    for template in benign.BENIGN_TUNING if half is Half.TUNING else benign.BENIGN_HELD_OUT:
        for _ in range(each):
            yield template.format(
                sha=draw(rng, HEX, rng.choice((7, 40))),
                uuid=uuid_like(rng),
                b64=draw(rng, BASE64, 86),
                hex=draw(rng, HEX, 64),
                n=rng.randrange(10, 9999),
                digits="".join(filter(str.isdigit, card(rng))),  # as a card has them, by chance
                number=_failing(card(rng)),
                ms=rng.randrange(1_600_000_000_000, 1_900_000_000_000),
                ver=".".join(str(rng.randrange(30)) for _ in range(3)),
                path="/".join(rng.choices(NOUNS, k=3)) + rng.choice((".py", ".ts", ".md", "")),
            )


def _rng(half: Half, part: str, seed: int) -> random.Random:
    return random.Random(f"{seed}/{half}/{part}")


def _failing(number: str) -> str:
    """A number with another check digit."""
    return number[:-1] + str((int(number[-1]) + 1) % 10)


def _filled(
    rng: random.Random, kind: str, context: str, secret: str, *, name: str = "value"
) -> Positive:
    words = name.split("_")
    text = context.format(
        s=secret,
        k=name,
        K=name.upper(),
        c=words[0] + "".join(word.capitalize() for word in words[1:]),
        d="-".join(words),
        u=rng.choice(USERS),
        h=rng.choice(HOSTS),
        a="AKIA" + draw(rng, UPPER_ALNUM, 16),
        x=draw(rng, HEX, 32),
    )
    return Positive(kind=kind, text=text, hidden=(secret,))


def _header(rng: random.Random, context: str) -> Positive:
    basic = base64.b64encode(f"{rng.choice(USERS)}:{password(rng)}".encode()).decode()
    token, session = draw(rng, ALNUM + "-_.", 36).strip("-_.") + "k9", draw(rng, LOWER_ALNUM, 28)
    text = context.format(s=token, b=basic, j=session)
    secret = basic if "{b}" in context else session if "{j}" in context else token
    return Positive(kind="header", text=text, hidden=(secret,))


def _pem(rng: random.Random, number: int) -> Positive:
    newline = ("\n", "\n", "\\n", "\r\n", "\n    ")[number % 5]
    block, lines = pem(rng, newline=newline, is_cut=number % 4 == 3)
    text = (f"key: |\n    {block}\nport: 1\n", f'{{"key": "{block}"}}', f"cat id\n{block}\n$ ls\n")
    return Positive(kind="pem", text=text[number % 3], hidden=tuple(lines))


def _for_url(secret: str) -> str:
    """Passwords in addresses are written without the characters that divide addresses."""
    return secret.replace("@", "%40").replace("?", "%3F")


def _told(rng: random.Random, template: str) -> str:
    if "{p}" in template:
        return draw(rng, DIGITS, rng.choice((4, 4, 4, 5, 6)))
    if "{k}" in template:
        return rng.choice((draw(rng, HEX, 32), draw(rng, ALNUM, rng.randrange(20, 40))))
    if "{m}" in template:
        return " ".join(rng.sample(NOUNS, k=rng.randrange(4, 7)))
    return plain_password(rng) if rng.randrange(8) == 0 else password(rng)
