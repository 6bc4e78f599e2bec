-- Keys of those who come in over HTTP. A key is found by the digest of its secret, in all spaces.

-- name: add_api_key
INSERT INTO api_keys (
    id, name, digest, space, scope, created_at, expires_at, revoked_at, last_used_at)
VALUES (:id, :name, :digest, :space, :scope, :created_at, :expires_at, NULL, NULL);

-- name: find_api_key
SELECT id, name, digest, space, scope, created_at, expires_at, revoked_at, last_used_at
FROM api_keys WHERE digest = :digest;

-- name: list_api_keys
SELECT id, name, digest, space, scope, created_at, expires_at, revoked_at, last_used_at
FROM api_keys WHERE id > :after ORDER BY id LIMIT :limit;

-- name: revoke_api_key
UPDATE api_keys SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING id;

-- name: use_api_key
-- A clock that was set back does not take back what is known.
UPDATE api_keys SET last_used_at = :now
WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now);

-- What the processes that serve a store have in common.

-- name: begin_serving_state
-- Only where there is none, or one that is over.
INSERT INTO serving_states (kind, id, owner, value, changed_at, expires_at)
VALUES (:kind, :id, :owner, :value, :changed_at, :expires_at)
ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner, value = excluded.value,
    changed_at = excluded.changed_at, expires_at = excluded.expires_at
WHERE serving_states.expires_at <= excluded.changed_at
RETURNING id;

-- name: put_serving_state
INSERT INTO serving_states (kind, id, owner, value, changed_at, expires_at)
VALUES (:kind, :id, :owner, :value, :changed_at, :expires_at)
ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner, value = excluded.value,
    changed_at = excluded.changed_at, expires_at = excluded.expires_at;

-- name: get_serving_state
SELECT kind, id, owner, value, changed_at, expires_at FROM serving_states
WHERE kind = :kind AND id = :id AND expires_at > :now;

-- name: drop_serving_state
DELETE FROM serving_states WHERE kind = :kind AND id = :id;

-- name: count_serving_states
SELECT count(*) FROM serving_states WHERE kind = :kind AND expires_at > :now;

-- name: prune_serving_states
-- What is over, and of everyone's the oldest above so many.
DELETE FROM serving_states WHERE kind = :kind AND (expires_at <= :now OR id IN (
    SELECT ranked.id FROM (
        SELECT s.id, row_number() OVER (
            PARTITION BY s.owner ORDER BY s.changed_at DESC, s.id DESC) AS place
        FROM serving_states s WHERE s.kind = :kind
    ) ranked
    WHERE ranked.place > :most));

-- name: applied_schema
SELECT max(version) FROM schema_version;
