"""What becomes of a text: placeholders, what stays around them, and which of two rules wins."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.errors import InvalidValue
from recollect.redaction import Finding, Redactor
from recollect.redaction.loading import bundled_rules
from tests.unit.redaction.conftest import SALT

GITHUB = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
OPENAI = "sk" + "-proj-" + "Zx81Qw7rTy" * 5
SHOWN = re.compile(r"\[redacted:([a-z0-9-]+):[0-9a-f]{8}\]")


def kinds(text: str) -> list[str]:
    return SHOWN.findall(text)


def bare(text: str) -> str:
    """A redacted text with the hashes taken out, to compare shapes."""
    return SHOWN.sub(r"<\1>", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('password = "hunter2x"', 'password = "<password>"'),
        ("export DB_PASSWORD=hunter2x\nPORT=1", "export DB_PASSWORD=<password>\nPORT=1"),
        ('{"password": "hunter2x", "port": 1}', '{"password": "<password>", "port": 1}'),
        ('"{\\"password\\":\\"hunter2x\\"}"', '"{\\"password\\":\\"<password>\\"}"'),
        ("postgres://app:hunter2x@db:5432/x", "postgres://app:<url-password>@db:5432/x"),
        ("Server=a;Password=hunter2x;Pooling=on", "Server=a;Password=<password>;Pooling=on"),
        ("mysql -u root -phunter2x shop", "mysql -u root -p<password> shop"),
        ("curl -u bob:hunter2x https://x", "curl -u bob:<password> https://x"),
        ("/v1?page=2&api_key=q7MTX6T5bC6O3hDpHJ&a=b", "/v1?page=2&api_key=<api-key>&a=b"),
        ("Cookie: a=b; sid=4k2j9x7q1m5n8p3r; c=d", "Cookie: a=b; sid=<cookie>; c=d"),
        ("db:5432:app:bob:hunter2x", "db:5432:app:bob:<password>"),
        ("tool --password hunter2x -v", "tool --password <password> -v"),
        ("<password>hunter2x</password>", "<password><password></password>"),
        ("my password is hunter2!", "my password is <password>"),
        ("the wifi password: Bl4uw4l9.", "the wifi password: <password>."),
        ("passphrase is correct horse battery staple", "passphrase is <passphrase>"),
        ("the PIN is 4821.", "the PIN is <pin>."),
        ("use Tr0ub4dor&3 as the password", "use <password> as the password"),
        ("the code to the front door is 4821", "the code to the front door is <pin>"),
        ("my password for Netflix: hunter2x", "my password for Netflix: <password>"),
        ("Passwort für den Laptop: sommerwind", "Passwort für den Laptop: <password>"),
        ("password for bob@x.example: hunter2x", "password for bob@x.example: <password>"),
        ("the password for the wifi:\n\nhunter2x", "the password for the wifi:\n\n<password>"),
        ("Note: PIN for my phone: 4821", "Note: PIN for my phone: <pin>"),
        ("code for the garage: 4821", "code for the garage: <pin>"),
        ("API key for the maps: q7MTX6T5bC6O3hDpHJ", "API key for the maps: <api-key>"),
    ],
)
def test_only_the_secret_goes_and_what_is_around_it_stays(
    redactor: Redactor, text: str, expected: str
) -> None:
    assert bare(redactor.redact(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the password field, a secret santa, token count: 4096",
        "password: str, token: Optional[str] = None",
        'api_key = os.environ["API_KEY"]',
        "API_KEY=${API_KEY} TOKEN=$TOKEN SECRET={{ secret }} PASSWORD=%PASSWORD%",
        "api_key=<your-key> token=your_token_here password=changeme password=********",
        "sk-... and sk-" + "x" * 32,
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        '"integrity": "sha512-' + "Ab3+" * 20 + '=="',
        "session 0ccf1a04-1b4c-43b6-8aa5-79e41db43a68 at 2026-03-01T10:00:00Z, version 1.22.3",
        "PASSWORD_FILE=/run/secrets/db token_file: ./conf/token.txt",
        "I forgot the passwords for three accounts: Netflix, Hulu and Gmail",
        "password managers of note: KeePass. Password rules for admins: minimum12 characters",
        "the password for this page: https://x.example/a8f7d9e2, pin this for later: 1200 words",
    ],
)
def test_what_only_looks_like_a_secret_stays(redactor: Redactor, text: str) -> None:
    assert redactor.redact(text) == text
    assert not redactor.find(text)


def test_the_same_secret_is_the_same_placeholder_and_another_is_not(redactor: Redactor) -> None:
    redacted = redactor.redact(f"{GITHUB} {GITHUB} {GITHUB[:-1]}9 TOKEN={GITHUB}")
    first, second, third, fourth = redacted.replace("TOKEN=", "").split()
    assert first == second == fourth != third


def test_another_salt_gives_another_placeholder() -> None:
    one, two = (Redactor(bundled_rules(), frozenset(), salt) for salt in (SALT, b"other"))
    assert one.redact(GITHUB) != two.redact(GITHUB)


def test_without_a_salt_there_is_no_redactor() -> None:
    with pytest.raises(InvalidValue, match="salt"):
        Redactor(bundled_rules(), frozenset(), b"")


def test_a_placeholder_is_left_alone_wherever_it_stands(redactor: Redactor) -> None:
    once = redactor.redact(f"password={GITHUB}, my password is hunter2x, Bearer {OPENAI}")
    assert len(kinds(once)) == 3
    assert redactor.redact(once) == once
    assert not redactor.find(once)


@pytest.mark.parametrize(
    "around",
    [
        *('password="{}"', "password: {}", "my password is '{}'", "https://u:{}@h/", "Bearer {}"),
        *("use {} as the password", '{{"token": "{}"}}', "Cookie: sessionid={}; a=b", "pw {}"),
    ],
)
def test_a_placeholder_is_no_secret_in_any_place_of_one(redactor: Redactor, around: str) -> None:
    text = around.format("[redacted:password:0123abcd]")
    assert redactor.redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "login bob password keycreds: bob:pass/u:p4ss@'pin",
        "passphrase--://hunter2xu:p4ss@passphrase@h",
        "passphrase is hunter2xlogin bob password passlogin bob password keysecret",
    ],
)
def test_what_one_replacement_uncovers_is_replaced_too(redactor: Redactor, text: str) -> None:
    once = redactor.redact(text)
    assert once != text
    assert redactor.redact(once) == once
    assert not redactor.find(once)


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_long_value_goes_to_its_end(redactor: Redactor, quote: str) -> None:
    value = "q7MTX6T5bC6O3hDp" * 1000
    redacted = redactor.redact(f"API_TOKEN={quote}{value}{quote}\nnext")
    assert bare(redacted) == f"API_TOKEN={quote}<token>{quote}\nnext"


def test_an_allowed_value_is_never_redacted() -> None:
    redactor = Redactor(bundled_rules(), frozenset({"hunter2x", GITHUB}), SALT)
    text = f"password=hunter2x {GITHUB}"
    assert redactor.redact(text) == text
    assert redactor.redact_json({"password": "hunter2x"}) == {"password": "hunter2x"}
    assert redactor.find("password=hunter3x")


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "password", "token", "x"])
def test_the_most_specific_rule_names_the_kind(redactor: Redactor, name: str) -> None:
    assert kinds(redactor.redact(f"{name}={OPENAI}")) == ["openai-key"]


def test_where_rules_overlap_all_of_their_text_goes(redactor: Redactor) -> None:
    redacted = redactor.redact(f'password="ab!{GITHUB}!cd"')
    assert bare(redacted) == 'password="<github-token>"'


@pytest.mark.parametrize("between", [",", " ", "\n", ";", "|", "", "\\n", "\x1b[0m\x1b[31m"])
def test_secrets_next_to_each_other_all_go(redactor: Redactor, between: str) -> None:
    redacted = redactor.redact(GITHUB + between + GITHUB)
    assert "a1B2c3D4e5" not in redacted
    assert kinds(redacted)


@pytest.mark.parametrize("before", ["", "\n", "\\n", "é", "=", "%3D", "\\u003d", "\x1b[32m", "→"])
@pytest.mark.parametrize("after", ["", ".", '"', "\\n", "é", "\x1b[0m", "\x00"])
def test_a_secret_is_found_at_any_edge(redactor: Redactor, before: str, after: str) -> None:
    redacted = redactor.redact(before + OPENAI + after)
    assert bare(redacted) == f"{before}<openai-key>{after}"


def test_findings_are_in_order_and_apart(redactor: Redactor) -> None:
    text = f"a password is hunter2x, then {GITHUB} and postgres://u:pw1234@h/d"
    found = redactor.find(text)
    assert [each.kind for each in found] == ["password", "github-token", "url-password"]
    assert [text[each.start : each.end] for each in found] == ["hunter2x", GITHUB, "pw1234"]
    assert isinstance(found[0], Finding)


BODY = ["Ab3d/" * 12 + "xyz+", "Qr5t+" * 12 + "uvw/", "Zz9y" * 5 + "=="]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n    ", "\n> ", "\n  12→"])
@pytest.mark.parametrize("kind", ["", "RSA ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_goes_whole_or_cut_off(redactor: Redactor, newline: str, kind: str) -> None:
    begin, end = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    whole = newline.join([begin, *BODY, end])
    for text in (f"cat k\n{whole}\n$ ls", f'{{"k": "{whole}"}}'):
        redacted = redactor.redact(text)
        assert not any(line in redacted for line in BODY)
        assert begin in redacted
        assert end in redacted
    if newline != "\n> " and "→" not in newline:
        cut = redactor.redact(newline.join([begin, *BODY[:2]]) + "\n$ ls\n")
        assert not any(line in cut for line in BODY)
        assert cut.endswith("\n$ ls\n")
        tail = redactor.redact("$ tail k\n" + newline.join([*BODY, end]))
        assert not any(line in tail for line in BODY)
        assert tail.startswith("$ tail k\n")


def test_zeros_in_a_private_key_do_not_make_it_an_example(redactor: Redactor) -> None:
    body = "b3BlbnNzaC1rZXktdjEA" + "A" * 30 + "BG5vbmUA"
    text = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"
    assert body not in redactor.redact(text)


def test_a_certificate_is_no_secret(redactor: Redactor) -> None:
    text = "-----BEGIN CERTIFICATE-----\n" + "\n".join(BODY) + "\n-----END CERTIFICATE-----"
    assert not redactor.find(text)


def test_a_letter_that_grows_in_lower_case_moves_nothing(redactor: Redactor) -> None:
    assert bare(redactor.redact(f"İİİ {GITHUB} İ")) == "İİİ <github-token> İ"


def test_threads_share_a_redactor() -> None:
    redactor = Redactor(bundled_rules(), frozenset(), SALT)
    texts = [f"password=hunter{n}x {GITHUB} my pin is {1000 + n}" for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(redactor.redact, texts)) == [redactor.redact(each) for each in texts]


ADVERSARIAL = ("a", " ", '"', "password=", "-----BEGIN", "eyJ", "://", "cookie: ", "Ab1+", "4")
PLACEHOLDERS = "[redacted:password:0123abcd]"


@pytest.mark.parametrize("unit", [*ADVERSARIAL, PLACEHOLDERS])
@pytest.mark.parametrize("size", [500_000, pytest.param(2_000_000, marks=pytest.mark.torture)])
def test_megabytes_of_anything_come_to_an_end(redactor: Redactor, unit: str, size: int) -> None:
    """Time is linear; a pattern that is not would take hours here."""
    text = unit * (size // len(unit))
    assert redactor.redact(text + f" {GITHUB}").endswith("]")
