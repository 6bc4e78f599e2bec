-- Vectors: what has none yet, what was made, and what changed since somebody looked.

-- name: embedded_upto
SELECT COALESCE(max(m.upto), 0) FROM embedded_records m WHERE m.model = :model;

-- name: lock_embedded
-- Nobody else says how far a model has come until the end of the transaction.
INSERT INTO embedded_records (model, upto) VALUES (:model, 0)
ON CONFLICT (model) DO UPDATE SET upto = embedded_records.upto RETURNING upto;

-- name: set_embedded_upto
UPDATE embedded_records SET upto = :upto WHERE model = :model;

-- name: newest_record (sqlite)
-- operator
-- Its number, and between which transactions some may still be open: here none is.
SELECT COALESCE(max(h.id), 0), 0, 0 FROM session_history h;

-- name: newest_record (postgres)
-- operator
SELECT COALESCE(max(h.id), 0),
    CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT),
    CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
FROM session_history h;

-- name: first_unembedded
-- operator
SELECT h.id FROM session_history h WHERE h.id > :after AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = h.space AND v.kind = 'record' AND v.entry_key = h.id AND v.model = :model)
ORDER BY h.id LIMIT 1;

-- name: unembedded_records
-- operator
-- In their order, from the first that may have none on.
SELECT h.space, h.id, CASE WHEN s.remembered THEN substr(h.content, 1, :chars_max) ELSE '' END
FROM session_history h JOIN sessions s ON s.space = h.space AND s.id = h.session_id
WHERE h.id > :after AND (:any_space OR h.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = h.space AND v.kind = 'record' AND v.entry_key = h.id AND v.model = :model)
ORDER BY h.id LIMIT :limit;

-- name: unembedded_facts
-- operator
SELECT f.space, f.key, f.content FROM facts f
WHERE f.deleted_at IS NULL AND (:any_space OR f.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = f.space AND v.kind = 'fact' AND v.entry_key = f.key AND v.model = :model)
ORDER BY f.key LIMIT :limit;

-- name: unembedded_summaries
-- operator
SELECT e.space, e.key, substr(e.rollout_summary, 1, :chars_max) FROM extractions e
WHERE e.rollout_summary <> '' AND (:any_space OR e.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = e.space AND v.kind = 'summary' AND v.entry_key = e.key AND v.model = :model)
ORDER BY e.key LIMIT :limit;

-- name: unembedded_documents
-- operator
SELECT d.space, d.key, {embedded_page} FROM documents d
WHERE d.deleted_at IS NULL AND (d.body <> '' OR d.description <> '') AND NOT {says_again}
    AND (:any_space OR d.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = d.space AND v.kind = 'document' AND v.entry_key = d.key AND v.model = :model)
ORDER BY d.key LIMIT :limit;

-- name: lock_vectors
INSERT INTO vector_spaces (space, additions) VALUES (:space, 1)
ON CONFLICT (space) DO UPDATE SET additions = vector_spaces.additions + 1;

-- fragment: unless_it_changes (sqlite)

-- fragment: unless_it_changes (postgres)
-- Changing the entry waits for this transaction and finds the vector; an entry that is being changed
-- gets none.
FOR SHARE SKIP LOCKED

-- name: hold_record
-- What a vector is of, as it is said now.
SELECT CASE WHEN (
    SELECT s.remembered FROM sessions s WHERE s.space = :space AND s.id = h.session_id)
    THEN substr(h.content, 1, :chars_max) ELSE '' END
FROM session_history h WHERE h.space = :space AND h.id = :entry_key {unless_it_changes};

-- name: hold_fact
SELECT f.content FROM facts f WHERE f.space = :space AND f.key = :entry_key {unless_it_changes};

-- name: hold_summary
SELECT substr(e.rollout_summary, 1, :chars_max) FROM extractions e
WHERE e.space = :space AND e.key = :entry_key {unless_it_changes};

-- name: hold_document
SELECT {embedded_page} FROM documents d
WHERE d.space = :space AND d.key = :entry_key AND d.deleted_at IS NULL {unless_it_changes};

-- fragment: embedded_page
d.title || '. ' || d.description || ' ' || substr(d.body, 1, :chars_max)

-- name: put_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
VALUES (:space, :kind, :entry_key, :model, :vector)
ON CONFLICT (space, model, kind, entry_key) DO NOTHING;

-- fragment: is_one_of_these (sqlite)
IN (SELECT value FROM json_each(:keys))

-- fragment: is_one_of_these (postgres)
= ANY (ARRAY(SELECT CAST(v AS BIGINT) FROM json_array_elements_text(CAST(:keys AS json)) v))

-- name: tell_dropped
-- A vector that goes because its model is not used any more is nobody's: only what its entry did is
-- told.
INSERT INTO dropped_vectors (space, kind, entry_key)
SELECT DISTINCT v.space, v.kind, v.entry_key FROM vectors v
WHERE v.space = :space AND v.kind = :kind AND v.entry_key {is_one_of_these};

-- name: drop_vectors
DELETE FROM vectors WHERE space = :space AND kind = :kind AND entry_key {is_one_of_these};

-- name: reopen_vectors
-- A session may be remembered again: what was passed over in it has no vector, as any other.
DELETE FROM vectors WHERE space = :space AND kind = 'record' AND length(vector) = 0
    AND entry_key IN (
        SELECT h.id FROM session_history h WHERE h.space = :space AND h.session_id = :id);

-- name: embed_again
UPDATE embedded_records SET upto = (
    SELECT min(h.id) - 1 FROM session_history h WHERE h.space = :space AND h.session_id = :id)
WHERE upto >= (
    SELECT min(h.id) FROM session_history h WHERE h.space = :space AND h.session_id = :id);

-- name: vectors_after
SELECT v.key, v.kind, v.entry_key, v.vector FROM vectors v
WHERE v.space = :space AND v.model = :model AND v.key > :after ORDER BY v.key LIMIT :limit;

-- name: newest_dropped
SELECT COALESCE(max(d.key), 0) FROM dropped_vectors d WHERE d.space = :space;

-- name: dropped_after
-- Whether it has a vector by now; first, and of no kind, up to where it is not told any more.
SELECT s.pruned_upto, '', 0, FALSE FROM vector_spaces s
WHERE s.space = :space AND s.pruned_upto > :after
UNION ALL
SELECT d.key, d.kind, d.entry_key, EXISTS (
    SELECT 1 FROM vectors v
    WHERE v.space = :space AND v.model = :model AND v.kind = d.kind AND v.entry_key = d.entry_key)
FROM dropped_vectors d WHERE d.space = :space AND d.key > :after ORDER BY 1 LIMIT :limit;

-- name: old_dropped
-- The newest of those that are more than are kept.
SELECT d.key FROM dropped_vectors d WHERE d.space = :space ORDER BY d.key DESC LIMIT 1 OFFSET :kept;

-- name: prune_dropped
DELETE FROM dropped_vectors WHERE space = :space AND key <= :upto;

-- name: set_pruned
UPDATE vector_spaces SET pruned_upto = :upto WHERE space = :space;

-- name: models
SELECT m.model, m.used_at FROM embedded_records m ORDER BY m.model;

-- name: use_model
UPDATE embedded_records SET used_at = :now WHERE model = :model AND used_at < :now;

-- name: space_of_vectors
-- operator
SELECT v.space FROM vectors v WHERE v.model = :model LIMIT 1;

-- name: delete_vectors_of
-- So many at a time.
DELETE FROM vectors WHERE space = :space AND key IN (
    SELECT o.key FROM vectors o WHERE o.space = :space AND o.model = :model LIMIT :limit);

-- name: forget_model
DELETE FROM embedded_records WHERE model = :model;
