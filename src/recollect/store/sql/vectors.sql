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
-- Its number, and between which transactions some may still be open: here none is.
SELECT COALESCE(max(h.id), 0), 0, 0 FROM session_history h;

-- name: newest_record (postgres)
SELECT COALESCE(max(h.id), 0),
    CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT),
    CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
FROM session_history h;

-- name: first_unembedded
SELECT h.id FROM session_history h WHERE h.id > :after AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'record' AND v.entry_key = h.id AND v.model = :model)
ORDER BY h.id LIMIT 1;

-- name: unembedded_records
-- In their order, from the first that may have none on.
SELECT h.space, h.id, substr(h.content, 1, :chars_max), 0, s.remembered
FROM session_history h JOIN sessions s ON s.id = h.session_id
WHERE h.id > :after AND (:any_space OR h.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'record' AND v.entry_key = h.id AND v.model = :model)
ORDER BY h.id LIMIT :limit;

-- name: unembedded_facts
SELECT f.space, f.key, f.content, 0 FROM facts f
WHERE f.deleted_at IS NULL AND (:any_space OR f.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'fact' AND v.entry_key = f.key AND v.model = :model)
ORDER BY f.key LIMIT :limit;

-- name: unembedded_summaries
SELECT e.space, e.key, substr(e.rollout_summary, 1, :chars_max), 0 FROM extractions e
WHERE e.rollout_summary <> '' AND (:any_space OR e.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'summary' AND v.entry_key = e.key AND v.model = :model)
ORDER BY e.key LIMIT :limit;

-- name: unembedded_documents
SELECT d.space, d.key, d.title || '. ' || d.description || ' ' || substr(d.body, 1, :chars_max),
    d.version
FROM documents d
WHERE d.deleted_at IS NULL AND (d.body <> '' OR d.description <> '') AND NOT {says_again}
    AND (:any_space OR d.space = :space) AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'document' AND v.entry_key = d.key AND v.model = :model)
ORDER BY d.key LIMIT :limit;

-- name: lock_vectors
INSERT INTO vector_spaces (space, additions) VALUES (:space, 1)
ON CONFLICT (space) DO UPDATE SET additions = vector_spaces.additions + 1;

-- name: put_record_vector
-- Only of what it says: the number of a record that is gone may be another's by now.
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT h.space, 'record', h.id, :model, :vector FROM session_history h
WHERE h.space = :space AND h.id = :entry_key AND :text
    = CASE WHEN (SELECT s.remembered FROM sessions s WHERE s.id = h.session_id)
        THEN substr(h.content, 1, :chars_max) ELSE '' END
{unless_it_goes} ON CONFLICT (space, model, kind, entry_key) DO NOTHING;

-- fragment: unless_it_goes (sqlite)

-- fragment: unless_it_goes (postgres)
-- Whoever erases what it is of waits for us, and finds it; what is being erased gets none.
FOR KEY SHARE SKIP LOCKED

-- name: put_fact_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT f.space, 'fact', f.key, :model, :vector FROM facts f
WHERE f.space = :space AND f.key = :entry_key AND f.content = :text
{unless_it_goes} ON CONFLICT (space, model, kind, entry_key) DO NOTHING;

-- name: put_summary_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT e.space, 'summary', e.key, :model, :vector FROM extractions e
WHERE e.space = :space AND e.key = :entry_key
    AND substr(e.rollout_summary, 1, :chars_max) = :text
{unless_it_goes} ON CONFLICT (space, model, kind, entry_key) DO NOTHING;

-- name: put_document_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT d.space, 'document', d.key, :model, :vector FROM documents d
WHERE d.space = :space AND d.key = :entry_key AND d.version = :mark
{unless_it_goes} ON CONFLICT (space, model, kind, entry_key) DO NOTHING;

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
    WHERE v.model = :model AND v.kind = d.kind AND v.entry_key = d.entry_key)
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

-- name: delete_vectors_of
-- So many at a time.
DELETE FROM vectors WHERE key IN (SELECT o.key FROM vectors o WHERE o.model = :model LIMIT :limit)
RETURNING key;

-- name: forget_model
DELETE FROM embedded_records WHERE model = :model;
