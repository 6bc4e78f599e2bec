"""Makers of invented credentials, by kind: the formats that providers give out."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

from tests.redaction_corpus.words import (
    ALNUM,
    BASE32,
    BASE58,
    BASE64,
    BASE64_URL,
    DIGITS,
    HEX,
    LOWER_ALNUM,
    UPPER_ALNUM,
    draw,
    uuid_like,
)

Maker = Callable[[random.Random], str]


def _token(prefix: str, alphabet: str, length: int, suffix: str = "") -> Maker:
    return lambda rng: prefix + draw(rng, alphabet, length) + suffix


def _any_of(*makers: Maker) -> Maker:
    return lambda rng: rng.choice(makers)(rng)


def _joined(*parts: str | tuple[str, int]) -> Maker:
    """Literal texts and (alphabet, length) runs, one after the other."""
    return lambda rng: "".join(
        part if isinstance(part, str) else draw(rng, part[0], part[1]) for part in parts
    )


def jwt(rng: random.Random) -> str:
    head = {"alg": rng.choice(("HS256", "RS256")), "typ": "JWT"}
    body = {"sub": draw(rng, DIGITS, 10), "name": draw(rng, ALNUM, 8), "iat": rng.randrange(2**31)}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (head, body)]
    return ".".join([*(part.decode().rstrip("=") for part in parts), draw(rng, BASE64_URL, 43)])


# Tokens that a reader recognises wherever they stand.
TOKENS: dict[str, Maker] = {
    "openai": _any_of(
        _joined("sk-", (ALNUM, 20), "T3Blbk" + "FJ", (ALNUM, 20)),
        _joined("sk-proj-", (BASE64_URL, 74), "T3Blbk" + "FJ", (BASE64_URL, 74)),
        _token("sk-svcacct-", BASE64_URL, 120),
        _token("sk-proj-", ALNUM, 48),
        _token("sk-admin-", BASE64_URL, 60),
    ),
    "anthropic": _any_of(
        _token("sk-ant-api03-", BASE64_URL, 93, "AA"), _token("sk-ant-admin01-", BASE64_URL, 93)
    ),
    "openrouter": _token("sk-or-v1-", HEX, 64),
    "google-api": _token("AI" + "za", ALNUM + "_-", 35),
    "google-oauth-secret": _token("GOCSPX-", ALNUM + "_-", 28),
    "google-oauth-token": _token("ya29.", ALNUM + "_-", 120),
    "aws-access-key-id": _any_of(_token("AK" + "IA", BASE32, 16), _token("AS" + "IA", BASE32, 16)),
    "github": _any_of(
        *(_token(prefix, ALNUM, 36) for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"))
    ),
    "github-fine-grained": _joined("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "recollect": _token("rck_", ALNUM + "_-", 43),
    "gitlab": _any_of(
        *(_token(prefix, ALNUM + "_-", 20) for prefix in ("glpat-", "gldt-", "glrt-", "glptt-"))
    ),
    "slack": _any_of(
        _joined("xoxb-", (DIGITS, 12), "-", (DIGITS, 13), "-", (ALNUM, 24)),
        _joined("xoxp-", (DIGITS, 12), "-", (DIGITS, 12), "-", (DIGITS, 13), "-", (HEX, 32)),
        _joined("xapp-1-A", (UPPER_ALNUM, 10), "-", (DIGITS, 13), "-", (HEX, 64)),
    ),
    "slack-webhook": _joined(
        *("https://hooks.slack.com/", "services/T", (UPPER_ALNUM, 10), "/B", (UPPER_ALNUM, 10)),
        *("/", (ALNUM, 24)),
    ),
    "discord-webhook": _joined(
        "https://discord.com/api/", "webhooks/", (DIGITS, 18), "/", (BASE64_URL, 68)
    ),
    "discord-bot": _joined(
        *("MT", (ALNUM, 22), ".", (BASE64_URL, 6), ".", (BASE64_URL, 38)),
    ),
    "telegram": _joined((DIGITS, 10), ":AA", (BASE64_URL, 33)),
    "stripe": _any_of(
        *(
            _token(f"{kind}_{mode}_", ALNUM, 24)
            for kind in ("sk", "rk")
            for mode in ("live", "test")
        ),
        _token("whsec_", ALNUM, 32),
        _token("sk_live_51", ALNUM, 97),
    ),
    "twilio": _token("SK", HEX, 32),
    "sendgrid": _joined("SG.", (BASE64_URL, 22), ".", (BASE64_URL, 43)),
    "mailgun": _token("key-", HEX, 32),
    "mailchimp": _token("", HEX, 32, "-us14"),
    "npm": _token("npm_", ALNUM, 36),
    "pypi": _token("pypi-AgEIcHlwaS5vcmc", BASE64_URL, 150),
    "rubygems": _token("rubygems_", HEX, 48),
    "huggingface": _token("hf_", ALNUM, 34),
    "replicate": _token("r8_", ALNUM, 37),
    "groq": _token("gsk_", ALNUM, 52),
    "xai": _token("xai-", ALNUM, 80),
    "perplexity": _token("pplx-", ALNUM, 48),
    "notion": _any_of(_token("ntn_", ALNUM, 46), _token("secret_", ALNUM, 43)),
    "linear": _token("lin_api_", ALNUM, 40),
    "figma": _token("figd_", BASE64_URL, 40),
    "shopify": _any_of(*(_token(p, HEX, 32) for p in ("shpat_", "shpss_", "shpca_", "shppa_"))),
    "digitalocean": _any_of(*(_token(p, HEX, 64) for p in ("dop_v1_", "doo_v1_", "dor_v1_"))),
    "heroku": _token("HRKU-AA", BASE64_URL, 58),
    "databricks": _token("dapi", HEX, 32),
    "newrelic": _token("NRAK-", UPPER_ALNUM, 27),
    "sentry": _any_of(_token("sntryu_", HEX, 64), _token("sntrys_eyJ", ALNUM, 120)),
    "grafana": _any_of(_joined("glsa_", (ALNUM, 32), "_", (HEX, 8)), _token("glc_eyJ", ALNUM, 90)),
    "vault": _any_of(_token("hvs.", BASE64_URL, 95), _token("hvb.", BASE64_URL, 140)),
    "doppler": _any_of(_token("dp.pt.", ALNUM, 43), _token("dp.st.prd.", ALNUM, 43)),
    "supabase": _any_of(_token("sbp_", HEX, 40), _token("sb_secret_", BASE64_URL, 31)),
    "vercel": _token("vcp_", ALNUM, 56),
    "netlify": _token("nfp_", ALNUM, 36),
    "fly": _any_of(_token("fo1_", BASE64_URL, 43), _token("FlyV1 fm2_", BASE64, 200)),
    "terraform": _joined((ALNUM, 14), ".atlasv1.", (BASE64_URL, 64)),
    "docker": _token("dckr_pat_", BASE64_URL, 27),
    "atlassian": _token("ATATT3xFfGF0", BASE64_URL + "=", 172, "=A1B2C3D4"),
    "square": _any_of(_token("sq0csp-", BASE64_URL, 43), _token("EAAA", BASE64_URL, 60)),
    "paypal-braintree": _joined("access_token$production$", (LOWER_ALNUM, 16), "$", (HEX, 32)),
    "airtable": _joined("pat", (ALNUM, 14), ".", (HEX, 64)),
    "postman": _joined("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "planetscale": _token("pscale_tkn_", BASE64_URL, 43),
    "pulumi": _token("pul-", HEX, 40),
    "tailscale": _joined("tskey-auth-", (ALNUM, 12), "-", (ALNUM, 32)),
    "onepassword": _token("ops_eyJ", ALNUM, 250),
    "dropbox": _token("sl.", BASE64_URL, 135),
    "facebook": _token("EAACEdEose0cBA", ALNUM, 100),
    "age": _token("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": jwt,
    "nvidia": _token("nvapi-", BASE64_URL, 64),
    "elevenlabs": _token("sk_", HEX, 48),
    "azure-devops": _joined((ALNUM, 76), "AZDO", (ALNUM, 4)),
    "gitlab-runner": _token("GR1348941", BASE64_URL, 20),
    "slack-cookie": _joined("xoxd-", (ALNUM, 24), "%2B", (ALNUM, 40), "%2F", (ALNUM, 30), "%3D"),
    "mailgun-new": _joined((HEX, 32), "-", (HEX, 8), "-", (HEX, 8)),
    "bitcoin-extended": _token("xprv9s21ZrQH143K", BASE58, 95),
    "bitcoin-wif": _any_of(*(_token(p, BASE58, 51) for p in "KL"), _token("5K", BASE58, 49)),
    "bitbucket": _token("ATBB", ALNUM, 32),
    "plaid": lambda rng: "access-" + "production-" + uuid_like(rng),
    "azure-storage": _joined(
        "DefaultEndpointsProtocol=https;AccountName=shop;Account" + "Key=", (BASE64, 86), "=="
    ),
    "azure-sas": _joined(
        "https://shop.blob.core.windows.net/c?sv=2024-11-04&sp=r&sig=", (ALNUM, 43), "%3D"
    ),
}

# Values that say nothing by themselves, with the names they are kept under.
NAMED: dict[str, tuple[tuple[str, ...], Maker]] = {
    "aws-secret": (("aws_secret_access_key", "aws_secret_key"), _token("", BASE64, 40)),
    "aws-session": (("aws_session_token",), _token("IQoJb3JpZ2luX2Vj", BASE64, 300)),
    "azure": (
        ("azure_client_secret", "azure_openai_api_key", "azure_storage_account_key"),
        _any_of(_joined((ALNUM, 3), "8Q~", (ALNUM + "_-.~", 34)), _token("", HEX, 32)),
    ),
    "cloudflare": (("cloudflare_api_token", "cf_api_key"), _token("", ALNUM + "_-", 40)),
    "cohere": (("cohere_api_key", "co_api_key"), _token("", ALNUM, 40)),
    "datadog": (
        ("dd_api_key", "datadog_app_key"),
        _any_of(_token("", HEX, 32), _token("", HEX, 40)),
    ),
    "heroku-uuid": (("heroku_api_key",), uuid_like),
    "mistral": (("mistral_api_key",), _token("", ALNUM, 32)),
    "okta": (("okta_api_token", "okta_token"), _token("00", ALNUM + "_-", 40)),
    "twilio-auth": (("twilio_auth_token",), _token("", HEX, 32)),
    "paypal": (("paypal_client_secret", "paypal_secret"), _token("E", BASE64_URL, 79)),
    "netlify-old": (("netlify_auth_token",), _token("", BASE64_URL, 43)),
    "sentry-old": (("sentry_auth_token",), _token("", HEX, 64)),
    "wireguard": (("wg_private_key", "preshared_key"), _token("", BASE64, 43, "=")),
    "django": (("secret_key", "django_secret_key"), _token("", LOWER_ALNUM + "!@%^*-_=+", 50)),
    "signing": (("jwt_signing_key", "encryption_key", "session_secret"), _token("", HEX, 64)),
    "oauth": (("client_secret", "refresh_token", "access_token"), _token("", BASE64_URL, 48)),
    "own": (("api_key", "internal_api_token", "service_token"), _token("", ALNUM, 28)),
}

PASSWORD_NAMES = (
    *("password", "db_password", "postgres_password", "smtp_pass", "redis_password", "passwd"),
    *("admin_pwd", "keystore_passphrase", "root_password", "mysql_root_password", "user_pass"),
    *("ldap_bind_password", "sudo_password", "wifi_password", "ftp_passwd"),
)

PEM_KINDS = ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED ", "DSA ")


def pem(rng: random.Random, *, newline: str = "\n", is_cut: bool = False) -> tuple[str, list[str]]:
    """A private key block and the lines of it that must not be seen."""
    kind = rng.choice(PEM_KINDS)
    lines = [draw(rng, BASE64, 64) for _ in range(rng.randrange(3, 26))]
    if not is_cut:
        lines.append(draw(rng, BASE64, 38) + "==")
    marker = f"{kind}PRIVATE KEY-----"
    whole = ["-----BEGIN " + marker, *lines] + ([] if is_cut else ["-----END " + marker])
    return newline.join(whole), lines


def iban(rng: random.Random) -> str:
    """An account number with its check digits, in one of the usual spellings."""
    country, length = rng.choice((("DE", 18), ("NL", 0), ("FR", 23), ("ES", 20), ("GB", 0)))
    bank = {"NL": "ABNA", "GB": "NWBK"}.get(country, "")
    account = bank + draw(rng, DIGITS, length or {"NL": 10, "GB": 14}[country])
    value = int("".join(str(int(each, 36)) for each in f"{account}{country}00"))
    whole = f"{country}{98 - value % 97:02}{account}"
    if rng.random() < 0.4:
        return whole
    return " ".join(whole[i : i + 4] for i in range(0, len(whole), 4))


CARDS = (("4", 16), ("51", 16), ("55", 16), ("37", 15), ("6011", 16), ("2221", 16), ("3530", 16))
OTHER_CARDS = (("4", 13), ("36", 14), ("62", 17), ("6304", 18), ("62", 19), ("4", 19))


def card(rng: random.Random) -> str:
    """A number that a card could have, in one of the usual spellings; some of two digits only."""
    prefix, length = rng.choice(CARDS)
    digits = _with_check_digit(rng, prefix, length, rng.choice((DIGITS, DIGITS, "14")))
    if length == 15:
        return rng.choice((digits, f"{digits[:4]} {digits[4:10]} {digits[10:]}"))
    return _spelt(rng, digits)


def other_card(rng: random.Random) -> str:
    """A number of a length that few cards have: only what is said about it gives it away."""
    prefix, length = rng.choice(OTHER_CARDS)
    digits = _with_check_digit(rng, prefix, length, DIGITS)
    return _spelt(rng, digits) if length > 16 else digits


def _spelt(rng: random.Random, digits: str) -> str:
    if rng.random() < 0.3:
        return digits
    parts = [digits[i : i + 4] for i in range(0, len(digits), 4)]
    return rng.choice((" ", "-", "\u00a0")).join(parts)


def _with_check_digit(rng: random.Random, prefix: str, length: int, drawn: str) -> str:
    digits = prefix + "".join(rng.choices(drawn, k=length - len(prefix) - 1))
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)
