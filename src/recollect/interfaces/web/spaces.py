"""Spaces and keys: what there is to go into, and who may."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.operations import Reach
from recollect.interfaces.http.problems import problem_of
from recollect.interfaces.web.view import HOME, Answer, Asked, Moved, Page, View, done, shown
from recollect.session import LIST_MAX
from recollect.store.key_protocol import ApiKey, Scope

KEYS = f"{HOME}/keys"
DAYS_MAX = 36_500


def home(asked: Asked) -> Answer:
    """Straight into the one space there is to see, or the list of them."""
    if asked.key.space is not None:
        return Moved(to=f"{HOME}/s/{quote(asked.key.space, safe='')}")
    return spaces(asked)


def spaces(asked: Asked) -> Page:
    after = asked.query.get("after", "")
    found = asked.memory.spaces(LIST_MAX, after)
    return Page(
        template="spaces.html",
        content={
            "spaces": found,
            "following": found[-1] if len(found) == LIST_MAX else None,
        },
    )


def keys(asked: Asked) -> Page:
    return _listed(asked)


def _listed(
    asked: Asked,
    *,
    secret: str | None = None,
    made: str | None = None,
    wrong: InvalidValue | None = None,
) -> Page:
    """The keys; with the secret of a new one, or what is wrong about it and all that was typed."""
    after = collection.check_id(asked.query.get("after", ""))
    found = asked.memory.store.api_keys.list(after, LIST_MAX)
    return Page(
        template="keys.html",
        status=200 if wrong is None else problem_of(wrong).status,
        content={
            "keys": sorted(found, key=lambda each: each.created_at, reverse=True),
            "scopes": [scope.value for scope in Scope],
            "following": found[-1].id if len(found) == LIST_MAX else None,
            "secret": secret,
            "made": made,
            "typed": asked.form,
            "wrong": wrong,
        },
    )


def create_key(asked: Asked) -> Page:
    try:
        made, secret = _made(asked)
    except InvalidValue as error:
        return _listed(asked, wrong=error)
    # Shown in the answer itself: a secret that is shown once is kept nowhere until a next page.
    return _listed(asked, secret=secret, made=made.name)


def _made(asked: Asked) -> tuple[ApiKey, str]:
    days = asked.field("days").strip()
    is_number = days.isascii() and days.isdigit() and len(days) <= len(str(DAYS_MAX))
    if days and not (is_number and 0 < int(days) <= DAYS_MAX):
        raise InvalidValue(f"a key lasts from 1 to {DAYS_MAX:,} days, or without an end")
    scope = asked.field("scope")
    if scope not in set(Scope):
        raise InvalidValue(f"a scope is one of {', '.join(Scope)}")
    return make_key(
        asked.memory,
        asked.field("name"),
        space=asked.field("space").strip() or None,
        scope=Scope(scope),
        expires_at=asked.now + timedelta(days=int(days)) if days else None,
    )


def revoke_key(asked: Asked) -> Moved:
    key_id = asked.path["key"]
    if not asked.memory.store.api_keys.revoke(key_id, asked.now):
        raise NotFound("there is no such key, or it was revoked before")
    return Moved(to=KEYS, said="The key is revoked. Whoever used it is out from now on.")


VIEWS: tuple[View, ...] = (
    shown(HOME, "home", home, reach=Reach.OWN),
    shown(f"{HOME}/spaces", "spaces", spaces, reach=Reach.STORE),
    shown(KEYS, "keys", keys, scope=Scope.ADMIN, reach=Reach.STORE),
    done(KEYS, "create_key", create_key, Scope.ADMIN, reach=Reach.STORE),
    done(f"{KEYS}/{{key}}/revoke", "revoke_key", revoke_key, Scope.ADMIN, reach=Reach.STORE),
)
