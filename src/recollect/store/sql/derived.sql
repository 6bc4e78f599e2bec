-- What sessions came to, where somebody took back something that was learned from them.

-- name: sources_of_fact
-- The records that a fact was learned from, by session, and their words.
SELECT o.session_id, o.seq, o.seq_to, o.quote FROM fact_sources o
WHERE o.space = :space AND o.fact_key = :fact_key ORDER BY o.session_id, o.seq, o.seq_to;

-- name: session_statements
-- What holds of all that was learned from a session. The sources are looked up again by their whole
-- key: SQLite would go through all of the space rather than read them by their session.
SELECT f.key, f.content, q.seq, q.seq_to, q.trust, q.quote
FROM fact_sources o CROSS JOIN facts f CROSS JOIN fact_sources q
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND {is_live}
    AND q.space = :space AND q.fact_key = o.fact_key AND q.session_id = :session_id
    AND q.seq = o.seq AND q.seq_to = o.seq_to;

-- name: taken_back
-- Statements that a session must not bring back by what it had said up to some record.
SELECT DISTINCT h.content_key, h.upto FROM fact_history h
WHERE h.space = :space AND h.fact_id = '' AND h.other_id = :session_id;

-- name: said_anew
-- Where what was taken back in a session was said there again since.
SELECT DISTINCT f.content_key, f.key, o.seq, o.seq_to
FROM fact_history h CROSS JOIN facts f CROSS JOIN fact_sources o
WHERE h.space = :space AND h.fact_id = '' AND h.other_id = :session_id
    AND f.space = :space AND f.content_key = h.content_key AND f.deleted_at IS NULL
    AND o.space = :space AND o.fact_key = f.key AND o.session_id = :session_id AND o.seq_to > h.upto
ORDER BY f.key, o.seq, o.seq_to;

-- name: reword_extraction
-- News for the next generation, as where a session is gone through again.
UPDATE extractions SET
    raw_memory = :text,
    rollout_summary = :text,
    rollout_slug = NULL,
    words = :words,
    reworded_at = :now,
    revision = (SELECT c.changed + 1 FROM consolidations c WHERE c.space = :space)
WHERE space = :space AND session_id = :session_id AND (raw_memory <> :text OR rollout_summary <> :text)
RETURNING key;
