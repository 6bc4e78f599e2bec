"""Names of secrets and names that only sound like it."""

from __future__ import annotations

import pytest

from recollect.redaction.checks import NameKind, name_around, name_kind, words_of
from recollect.redaction.loading import bundled_rules
from tests.tables import every_row

WORDS = bundled_rules().words


@every_row(
    ("name", "kind"),
    [
        ("password", NameKind.PASSWORD),
        ("MYSQL_ROOT_PASSWORD", NameKind.PASSWORD),
        ("smtpPass", NameKind.PASSWORD),
        ("PGPASSWORD", NameKind.PASSWORD),
        ("password2", NameKind.PASSWORD),
        ("apiKey", NameKind.KEY),
        ("x-api-key", NameKind.KEY),
        ("SECRET_KEY_BASE", NameKind.KEY),
        ("client_secret", NameKind.SECRET),
        ("refreshToken", NameKind.TOKEN),
        ("authtoken", NameKind.TOKEN),
        ("pin", NameKind.PIN),
        ("acme_key", NameKind.SOME_KEY),
    ],
)
def test_a_telling_name_tells_its_kind(name: str, kind: NameKind) -> None:
    assert name_kind(name, WORDS) is kind


@every_row(
    "name",
    [
        "password_hash",
        "PASSWORD_FILE",
        "tokenCount",
        "max_tokens",
        "next_page_token",
        "public_key",
        "primary_key",
        "key",
        "keyboard",
        "bypass_cache",
        "hasPassword",
        "secretName",
        "author",
        "",
    ],
)
def test_other_names_tell_nothing(name: str) -> None:
    assert name_kind(name, WORDS) is None


def test_names_are_read_in_every_spelling() -> None:
    assert words_of("DB_PASSWORD") == words_of("dbPassword") == words_of("db-password")


@pytest.mark.parametrize(
    ("text", "keyword", "name"),
    [
        ("export DB_PASSWORD=x", "PASSWORD", "DB_PASSWORD"),
        ("the api key: x", "key", "api key"),
        ("use token: x", "token", "token"),
        ("fencing token: x", "token", "fencing token"),
        ("arn:x:1:secret:y", "secret", ""),
    ],
)
def test_a_name_is_found_around_its_keyword(text: str, keyword: str, name: str) -> None:
    assert name_around(text, text.index(keyword), WORDS) == name
