"""Stores that keep keys wrongly, to show that the suite has teeth."""

from __future__ import annotations

import builtins
from dataclasses import replace
from datetime import datetime

from recollect.store.relational.access import ApiKeys
from recollect.types.access import ApiKey


class LenientKeys(ApiKeys):
    """Takes a digest in other letters for the same."""

    def find(self, digest: str) -> ApiKey | None:
        return super().find(digest.lower().strip())


class OpenKeys(ApiKeys):
    """Forgets to which space a key belongs."""

    def find(self, digest: str) -> ApiKey | None:
        found = super().find(digest)
        return None if found is None else replace(found, space=None)


class TidyKeys(ApiKeys):
    """Lists only what is valid."""

    def list(self, after: str, limit: int) -> builtins.list[ApiKey]:
        return [key for key in super().list(after, limit) if key.revoked_at is None]


class GladKeys(ApiKeys):
    """Says that it revoked what there is not."""

    def revoke(self, key_id: str, now: datetime) -> bool:
        super().revoke(key_id, now)
        return True


BROKEN_KEYS: dict[str, tuple[type[ApiKeys], str]] = {
    "takes a like digest for the same": (LenientKeys, "only_the_very_digest_finds_a_key"),
    "forgets the space of a key": (OpenKeys, "a_key_is_found_by_its_digest"),
    "lists only valid keys": (TidyKeys, "keys_are_listed_by_page"),
    "says it revoked what there is not": (GladKeys, "a_key_is_revoked_once"),
}

MUTED_KEYS: dict[str, str] = {
    "add_api_key": "a_key_is_found_by_its_digest",
    "revoke_api_key": "a_key_is_revoked_once",
    "use_api_key": "the_last_use_of_a_key_is_noted",
    "begin_serving_state": "a_state_is_begun_once",
    "put_serving_state": "a_state_is_put_and_counted",
    "drop_serving_state": "a_state_is_begun_once",
    "prune_serving_states": "nobody_crowds_out_another",
}
