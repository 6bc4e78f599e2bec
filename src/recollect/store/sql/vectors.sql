-- Vectors: what has none yet, what was made, and what changed since somebody looked.

-- name: embedded_upto
SELECT COALESCE(max(m.upto), 0) FROM embedded_records m WHERE m.model = :model;

-- name: set_embedded_upto
INSERT INTO embedded_records (model, upto) VALUES (:model, :upto)
ON CONFLICT (model) DO UPDATE SET upto = excluded.upto WHERE embedded_records.upto < excluded.upto;

-- name: unembedded_records
-- In their order; from a little before the newest on, because on PostgreSQL one may come late.
SELECT h.space, h.id, substr(h.content, 1, :chars_max), 0, s.remembered
FROM session_history h JOIN sessions s ON s.id = h.session_id
WHERE h.id > :after AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'record' AND v.entry_key = h.id AND v.model = :model)
ORDER BY h.id LIMIT :limit;

-- name: unembedded_facts
SELECT f.space, f.key, f.content, 0 FROM facts f
WHERE f.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'fact' AND v.entry_key = f.key AND v.model = :model)
ORDER BY f.key LIMIT :limit;

-- name: unembedded_summaries
SELECT e.space, e.key, substr(e.rollout_summary, 1, :chars_max), 0 FROM extractions e
WHERE e.rollout_summary <> '' AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'summary' AND v.entry_key = e.key AND v.model = :model)
ORDER BY e.key LIMIT :limit;

-- name: unembedded_documents
SELECT d.space, d.key, d.title || '. ' || d.description || ' ' || substr(d.body, 1, :chars_max),
    d.version
FROM documents d
WHERE d.deleted_at IS NULL AND (d.body <> '' OR d.description <> '') AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.kind = 'document' AND v.entry_key = d.key AND v.model = :model)
ORDER BY d.key LIMIT :limit;

-- name: lock_vectors
INSERT INTO vector_spaces (space, additions) VALUES (:space, 1)
ON CONFLICT (space) DO UPDATE SET additions = vector_spaces.additions + 1;

-- name: put_record_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT h.space, 'record', h.id, :model, :vector FROM session_history h
WHERE h.space = :space AND h.id = :entry_key
ON CONFLICT (model, kind, entry_key) DO NOTHING;

-- name: put_fact_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT f.space, 'fact', f.key, :model, :vector FROM facts f
WHERE f.space = :space AND f.key = :entry_key AND f.content = :text
ON CONFLICT (model, kind, entry_key) DO NOTHING;

-- name: put_summary_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT e.space, 'summary', e.key, :model, :vector FROM extractions e
WHERE e.space = :space AND e.key = :entry_key 
    AND substr(e.rollout_summary, 1, :chars_max) = :text
ON CONFLICT (model, kind, entry_key) DO NOTHING;

-- name: put_document_vector
INSERT INTO vectors (space, kind, entry_key, model, vector)
SELECT d.space, 'document', d.key, :model, :vector FROM documents d
WHERE d.space = :space AND d.key = :entry_key AND d.version = :mark
ON CONFLICT (model, kind, entry_key) DO NOTHING;

-- name: vectors_after
SELECT v.key, v.kind, v.entry_key, v.vector FROM vectors v
WHERE v.space = :space AND v.model = :model AND v.key > :after ORDER BY v.key LIMIT :limit;

-- name: dropped_after
SELECT d.key, d.kind, d.entry_key FROM dropped_vectors d
WHERE d.space = :space AND d.key > :after ORDER BY d.key LIMIT :limit;

-- name: other_models
SELECT m.model FROM embedded_records m WHERE m.model <> :model ORDER BY m.model;

-- name: delete_vectors_of
-- So many at a time.
DELETE FROM vectors WHERE key IN (SELECT o.key FROM vectors o WHERE o.model = :model LIMIT :limit)
RETURNING key;

-- name: forget_model
DELETE FROM embedded_records WHERE model = :model;
