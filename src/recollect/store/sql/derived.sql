-- What sessions came to, where it says what a fact said that was corrected, deleted or forgotten.

-- name: quotes_of_fact
-- The sessions that a fact was learned from, in the order of their ids, and the words.
SELECT DISTINCT o.session_id, o.quote FROM fact_sources o
WHERE o.space = :space AND o.fact_key = :fact_key ORDER BY o.session_id, o.quote;

-- name: session_statements
-- What else holds of all that was learned from a session.
SELECT DISTINCT f.content FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND {is_live} AND f.key <> :key ORDER BY f.content;

-- name: session_disputes
-- The facts of a session that somebody has changed or deleted: what each says now and has said, and
-- the words that it was learned from.
SELECT f.id, f.content, f.deleted_at IS NULL, o.quote, h.content
FROM fact_sources o CROSS JOIN facts f
JOIN fact_history h ON h.space = :space AND h.fact_id = f.id
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND EXISTS (
    SELECT 1 FROM fact_history d
    WHERE d.space = :space AND d.fact_id = f.id AND d.content_key IS NOT NULL)
ORDER BY f.id, h.id;

-- name: buried_statements
-- What a session must not bring back, of which no word is kept.
SELECT DISTINCT h.content_key FROM fact_history h
WHERE h.space = :space AND h.fact_id = '' AND h.other_id = :session_id;

-- name: said_anew
-- What was taken back in a session and said there again since.
SELECT DISTINCT f.key, o.seq, o.seq_to, f.content, o.quote
FROM fact_history h CROSS JOIN facts f CROSS JOIN fact_sources o
WHERE h.space = :space AND h.fact_id = '' AND h.other_id = :session_id
    AND f.space = :space AND f.content_key = h.content_key AND f.deleted_at IS NULL
    AND o.space = :space AND o.fact_key = f.key AND o.session_id = :session_id AND o.seq_to > h.upto
ORDER BY f.key, o.seq, o.seq_to;

-- name: extraction_texts
SELECT e.raw_memory, e.rollout_summary, e.rollout_slug FROM extractions e
WHERE e.space = :space AND e.session_id = :session_id;

-- name: reword_extraction
-- News for the next generation, as where a session is gone through again.
UPDATE extractions SET
    raw_memory = :raw_memory,
    rollout_summary = :rollout_summary,
    rollout_slug = :rollout_slug,
    words = :words,
    reworded_at = :now,
    revision = (SELECT c.changed + 1 FROM consolidations c WHERE c.space = :space)
WHERE space = :space AND session_id = :session_id
RETURNING key;
