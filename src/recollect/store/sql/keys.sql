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
