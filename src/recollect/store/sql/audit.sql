-- Who did what. An entry is written before what it tells of is done, and its outcome afterwards.

-- fragment: audit_page
at >= :since AND (at, id) < (:until, :until_id)
    AND (:any_actor OR actor = :actor) AND (:any_verb OR verb = :verb)
ORDER BY at DESC, id DESC LIMIT :limit

-- name: begin_audit
INSERT INTO audit (id, space, at, actor, verb, targets, outcome)
VALUES (:id, :space, :at, :actor, :verb, :targets, NULL);

-- name: end_audit
UPDATE audit SET targets = :targets, outcome = :outcome
WHERE space = :space AND id = :id;

-- name: list_audit
SELECT id, NULLIF(space, ''), at, actor, verb, targets, outcome FROM audit
WHERE space = :space AND {audit_page};

-- name: list_whole_audit
-- operator
-- Of all spaces, and of the store itself.
SELECT id, NULLIF(space, ''), at, actor, verb, targets, outcome FROM audit
WHERE {audit_page};

-- name: old_audit
-- operator
SELECT a.space, a.id FROM audit a WHERE a.at < :before ORDER BY a.at, a.id LIMIT :limit;

-- name: prune_audit
DELETE FROM audit WHERE space = :space AND id = :id;

-- name: drop_audit
-- Of a space that is forgotten it is kept that it was.
DELETE FROM audit WHERE space = :space AND verb <> :kept;
