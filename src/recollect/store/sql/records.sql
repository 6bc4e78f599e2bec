-- The history of a session: one row per record.

-- name: sequence_records
-- Takes the next `count` numbers of the key's current session and marks it if the policy says so,
-- in one statement whose cost does not depend on the session's length.
-- No row comes back when that session has ended or was rotated meanwhile; since when it is marked,
-- if its mark was raised.
UPDATE sessions SET
    last_seq = last_seq + :count,
    unprocessed_turns = unprocessed_turns + :turns,
    last_activity_at = CASE WHEN last_activity_at > :now THEN last_activity_at ELSE :now END,
    invalidated_at = CASE
        WHEN {over_threshold} AND last_seq + :count > COALESCE(invalidated_at, 0)
        THEN last_seq + :count ELSE invalidated_at END,
    marked_at = CASE WHEN marked_at IS NULL AND {over_threshold} THEN :now ELSE marked_at END,
    marked_by = CASE WHEN marked_at IS NULL AND {over_threshold} THEN 'threshold' ELSE marked_by END
WHERE space = :space
    AND id = (SELECT session_id FROM session_keys WHERE space = :space AND id = :key_id)
    AND ended_at IS NULL
RETURNING id, last_seq, CASE WHEN invalidated_at = last_seq THEN marked_at END;

-- fragment: new_record
INSERT INTO session_history (
    space, session_id, seq, key_id, role, name, content, body, append_key,
    said_at, created_at, metadata, words
) VALUES (
    :space, :session_id, :seq, :key_id, :role, :name, :content, :body, :append_key,
    :said_at, :now, :metadata, :words
)

-- name: insert_record (sqlite)
{new_record};

-- name: insert_record (postgres)
-- With its postings: no other entry is stored as often, and nobody asks for its number.
WITH made AS ({new_record} RETURNING space, id, words)
INSERT INTO postings (space, kind, word, key)
SELECT DISTINCT m.space, CAST('r' AS "char"), left(w, 128), m.id
FROM made m CROSS JOIN LATERAL unnest(string_to_array(m.words, ' ')) w WHERE w <> ''
ON CONFLICT (space, kind, word, key) DO NOTHING;

-- name: find_append_key
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.key_id = :key_id AND h.append_key = :append_key;

-- name: append_keys
-- What records were appended under, by names, and whether an agent is at home behind their key.
SELECT k.agent_id, k.key, h.append_key, EXISTS (
    SELECT 1 FROM agent_lives l WHERE l.space = :space AND l.key_id = h.key_id)
FROM session_history h JOIN session_keys k ON k.id = h.key_id
WHERE h.space = :space AND k.space = :space AND h.session_id = :id
    AND h.seq BETWEEN :first AND :last AND h.append_key IS NOT NULL;

-- name: recent_records
-- The newest first; the caller turns them round.
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.session_id = :id
ORDER BY h.seq DESC LIMIT :limit;

-- name: current_records
-- The newest of a key's current session.
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.session_id = {current}
ORDER BY h.seq DESC LIMIT :limit;

-- name: current_retained
SELECT {record} FROM retained_records r
JOIN session_history h ON h.session_id = r.source_session_id AND h.seq = r.source_seq
WHERE r.space = :space AND h.space = :space AND r.session_id = {current}
ORDER BY r.position DESC LIMIT :limit;

-- name: current_summary
SELECT content FROM summaries WHERE space = :space AND session_id = {current};

-- name: records_after
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.session_id = :id AND h.seq > :after
ORDER BY h.seq LIMIT :limit;

-- name: records_before
-- The newest up to a seq, newest first; what was passed over stays passed over.
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.session_id = :id AND h.seq <= :before AND NOT EXISTS (
    SELECT 1 FROM session_ranges r
    WHERE r.space = :space AND r.session_id = :id AND r.outcome = 'skipped'
        AND h.seq BETWEEN r.first_seq AND r.last_seq)
ORDER BY h.seq DESC LIMIT :limit;

-- name: learnable_after
-- Those that were passed over because nothing might be learned from them stay passed over.
SELECT {record} FROM session_history h
WHERE h.space = :space AND h.session_id = :id AND h.seq > :after AND NOT EXISTS (
    SELECT 1 FROM session_ranges r
    WHERE r.space = :space AND r.session_id = :id AND r.outcome = 'skipped'
        AND h.seq BETWEEN r.first_seq AND r.last_seq)
ORDER BY h.seq LIMIT :limit;

-- name: recent_retained
SELECT {record} FROM retained_records r
JOIN session_history h ON h.session_id = r.source_session_id AND h.seq = r.source_seq
WHERE r.space = :space AND h.space = :space AND r.session_id = :id
ORDER BY r.position DESC LIMIT :limit;

-- name: key_records
-- Everything said under a key, across its rotations.
SELECT {record} FROM session_history h JOIN sessions s ON s.id = h.session_id
WHERE h.space = :space AND s.space = :space AND s.key_id = :key_id
ORDER BY s.rotation, h.seq;

-- name: count_records
SELECT
    (SELECT count(*) FROM session_history WHERE space = :space AND session_id = :id)
    + (SELECT count(*) FROM retained_records r
       JOIN session_history h ON h.session_id = r.source_session_id AND h.seq = r.source_seq
       WHERE r.space = :space AND h.space = :space AND r.session_id = :id);

-- name: insert_retained
INSERT INTO retained_records (space, session_id, position, source_session_id, source_seq)
VALUES (:space, :session_id, :position, :source_session_id, :source_seq);

-- name: delete_records
DELETE FROM session_history WHERE space = :space AND session_id = :id AND seq <= :upto
RETURNING id, {words_gone};

-- name: delete_retained
DELETE FROM retained_records WHERE space = :space AND session_id = :id;

-- name: get_summary
SELECT content FROM summaries WHERE space = :space AND session_id = :id;

-- name: set_summary
INSERT INTO summaries (session_id, space, content, created_at)
VALUES (:id, :space, :content, :now)
ON CONFLICT (space, session_id) DO UPDATE SET
    content = excluded.content, created_at = excluded.created_at;

-- name: delete_summary
DELETE FROM summaries WHERE space = :space AND session_id = :id;
