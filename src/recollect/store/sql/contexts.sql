-- What was told, by reference: blocks come, are looked up, and lose what is erased.

-- fragment: context
t.space, t.id, t.created_at, t.reader, t.session_id, t.query, t.refs, t.told

-- name: insert_context
INSERT INTO contexts (space, id, reader, session_id, query, refs, told, created_at)
VALUES (:space, :id, :reader, :session_id, :query, :refs, :told, :now)
ON CONFLICT (space, id) DO NOTHING;

-- name: get_context
SELECT {context} FROM contexts t WHERE t.space = :space AND t.id = :id;

-- name: list_contexts
SELECT {context} FROM contexts t WHERE t.space = :space ORDER BY t.id DESC LIMIT :limit;

-- name: all_refs
SELECT t.id, t.refs, t.reader, t.session_id, t.created_at, t.query FROM contexts t WHERE t.space = :space;

-- name: contexts_telling (sqlite)
SELECT t.id, t.refs, t.reader, t.session_id, t.created_at, t.query FROM contexts t
WHERE t.space = :space AND instr(t.refs, :ref) > 0;

-- name: contexts_telling (postgres)
SELECT t.id, t.refs, t.reader, t.session_id, t.created_at, t.query FROM contexts t
WHERE t.space = :space AND strpos(t.refs, :ref) > 0;

-- name: reduce_context
UPDATE contexts SET query = :query, refs = :refs, told = :told WHERE space = :space AND id = :id;

-- name: forget_questions
-- Of a session: they are what was said there.
UPDATE contexts SET query = '' WHERE space = :space AND session_id = :id;

-- name: drop_contexts
DELETE FROM contexts WHERE space = :space;

-- name: spaces_told
-- operator
SELECT DISTINCT t.space FROM contexts t;

-- name: prune_contexts
DELETE FROM contexts WHERE space = :space AND (created_at < :before OR id <= (
    SELECT t.id FROM contexts t WHERE t.space = :space ORDER BY t.id DESC LIMIT 1 OFFSET :keep))
RETURNING 1;

-- name: sessions_gone
SELECT s.id FROM sessions s WHERE s.space = :space AND s.forgotten_at IS NOT NULL
    AND s.id IN (SELECT w.id FROM {ids} w);

-- name: refs_there
SELECT 'R', h.id FROM session_history h
WHERE h.space = :space AND h.id IN (SELECT w.key FROM {keys} w)
UNION ALL SELECT 'F', f.key FROM facts f
WHERE f.space = :space AND f.key IN (SELECT w.key FROM {keys} w)
UNION ALL SELECT 'D', d.key FROM documents d
WHERE d.space = :space AND d.key IN (SELECT w.key FROM {keys} w)
UNION ALL SELECT 'S', e.key FROM extractions e
WHERE e.space = :space AND e.key IN (SELECT w.key FROM {keys} w);

-- name: records_told
SELECT h.id, h.session_id, h.seq, h.content, COALESCE(h.name, ''), h.role
FROM session_history h WHERE h.space = :space AND h.id IN (SELECT w.key FROM {keys} w);

-- name: facts_told
SELECT f.key, f.id, f.content, f.deleted_at, f.superseded_by, {successor}, f.updated_at
FROM facts f WHERE f.space = :space AND f.key IN (SELECT w.key FROM {keys} w);

-- name: earlier_facts
SELECT f.key, h.content FROM facts f
JOIN fact_history h ON h.space = :space AND h.fact_id = f.id
WHERE f.space = :space AND f.key IN (SELECT w.key FROM {keys} w) AND h.content <> ''
ORDER BY f.key, h.id DESC;

-- name: sources_told
SELECT o.fact_key, o.session_id, o.seq, o.seq_to, o.quote FROM fact_sources o
WHERE o.space = :space AND o.fact_key IN (SELECT w.key FROM {keys} w)
ORDER BY o.fact_key, o.session_id, o.seq;

-- name: documents_told
SELECT d.key, d.path, CASE WHEN d.body <> '' THEN d.body WHEN d.description <> '' THEN d.description
    ELSE d.title END, d.deleted_at
FROM documents d WHERE d.space = :space AND d.key IN (SELECT w.key FROM {keys} w);

-- name: earlier_documents
SELECT v.document_key, CASE WHEN v.body <> '' THEN v.body WHEN v.description <> ''
    THEN v.description ELSE v.title END
FROM document_versions v
WHERE v.space = :space AND v.document_key IN (SELECT w.key FROM {keys} w)
ORDER BY v.document_key, v.version DESC;

-- name: summaries_told
SELECT e.key, e.session_id, e.rollout_summary, e.raw_memory
FROM extractions e WHERE e.space = :space AND e.key IN (SELECT w.key FROM {keys} w);

-- name: statement_told
-- Whatever says it, by the beginning of its key: what holds, and what was changed since.
SELECT f.content FROM facts f
WHERE f.space = :space AND f.content_key >= :first AND f.content_key < :last
UNION SELECT o.content FROM fact_history h
JOIN fact_history o ON o.space = :space AND o.fact_id = h.fact_id
WHERE h.space = :space AND h.content_key >= :first AND h.content_key < :last AND o.content <> '';
