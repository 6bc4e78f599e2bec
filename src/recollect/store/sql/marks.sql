-- Marks and cursors: how far a session is to be processed, and how far it has been.

-- name: invalidate
-- Raises the mark, never lowers it; does nothing at or below the cursor (the mark lies above it),
-- for a session without records and for one that may not be remembered.
UPDATE sessions SET
    invalidated_at = :seq,
    marked_at = COALESCE(marked_at, :now),
    marked_by = COALESCE(marked_by, :cause)
WHERE space = :space AND id = :id AND remembered
    AND :seq > COALESCE(invalidated_at, processed_until, 0)
    AND EXISTS (SELECT 1 FROM session_history h WHERE h.space = :space AND h.session_id = :id)
RETURNING marked_at;

-- name: request_marked
-- Somebody asked for the mark that a session has: it waits for no pause of the conversation.
UPDATE sessions SET requested_until = {requested}
WHERE space = :space AND id = :id AND invalidated_at IS NOT NULL
    AND {requested} > COALESCE(requested_until, 0) AND {requested} > COALESCE(processed_until, 0)
RETURNING id;

-- fragment: requested
CASE WHEN :seq < last_seq THEN :seq ELSE last_seq END

-- name: spaces_marked
-- operator
SELECT DISTINCT space FROM sessions
WHERE invalidated_at IS NOT NULL AND (:any_space OR space = :space);

-- name: request_all_marked
UPDATE sessions SET requested_until = last_seq WHERE space = :space AND id IN (
    SELECT id FROM sessions WHERE space = :space AND invalidated_at IS NOT NULL
    ORDER BY id {to_change});

-- name: end_pauses
-- What waits for a pause of its conversation is due now: of one session, or of a space.
UPDATE jobs SET due_at = NULL WHERE space = :space AND id IN (
    SELECT id FROM jobs
    WHERE space = :space AND kind = 'extract' AND (:any_key OR key = :id)
        AND state = 'due' AND due_at IS NOT NULL AND failures = 0 AND pauses = 0
    ORDER BY key {to_change})
RETURNING state;

-- name: make_extract_due
-- Of a session whose mark was raised. New activity gives a parked job another chance.
INSERT INTO jobs (space, kind, key, state, first_due_at, in_order)
VALUES (:space, 'extract', :id, 'due', :marked_at, :in_order)
ON CONFLICT (space, kind, key) DO UPDATE SET
    state = 'due', first_due_at = excluded.first_due_at, in_order = excluded.in_order,
    due_at = NULL, failures = 0, takeovers = 0
WHERE jobs.state IN ('idle', 'parked')
RETURNING state;

-- name: rest_extract
-- Of a session that has no mark any more.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
WHERE space = :space AND kind = 'extract' AND key = :id AND state <> 'idle';

-- name: find_invalidated
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE s.space = :space AND s.invalidated_at IS NOT NULL
ORDER BY s.invalidated_at, s.marked_at, s.id LIMIT :limit;

-- name: mark_processed
-- The documents' compare-and-swap. The cursor never goes back and never past the last record, so
-- that nobody can declare processed what has not been said yet.
UPDATE sessions SET
    invalidated_at = NULL,
    marked_at = NULL,
    marked_by = NULL,
    processed_until = {new_cursor},
    unprocessed_turns = (
        SELECT count(*) FROM session_history h
        WHERE h.space = :space AND h.session_id = :id AND h.role = 'user'
            AND h.seq > COALESCE({new_cursor}, 0))
WHERE space = :space AND id = :id AND invalidated_at = :expected
RETURNING processed_until;

-- name: skip_to_end
-- Everything up to the last record counts as dealt with; nothing is left to mark.
UPDATE sessions SET
    processed_until = NULLIF(last_seq, 0),
    unprocessed_turns = 0,
    invalidated_at = NULL,
    marked_at = NULL,
    marked_by = NULL
WHERE space = :space AND id = :id;

-- name: pass_over
-- What is above the cursor and has its range, as nothing was to be learned from it, is dealt with as
-- soon as the cursor comes there.
UPDATE sessions SET
    processed_until = {next_end},
    unprocessed_turns = (
        SELECT count(*) FROM session_history h
        WHERE h.space = :space AND h.session_id = :id AND h.role = 'user' AND h.seq > {next_end}),
    invalidated_at = CASE WHEN invalidated_at > {next_end} THEN invalidated_at END,
    marked_at = CASE WHEN invalidated_at > {next_end} THEN marked_at END,
    marked_by = CASE WHEN invalidated_at > {next_end} THEN marked_by END
WHERE space = :space AND id = :id AND {next_end} > COALESCE(processed_until, 0)
RETURNING processed_until, invalidated_at;

-- fragment: next_end
-- The end of the last range that begins at the next record, or before.
(SELECT r.last_seq FROM session_ranges r
    WHERE r.space = :space AND r.session_id = :id AND r.pass = sessions.pass
        AND r.first_seq <= COALESCE(processed_until, 0) + 1
    ORDER BY r.first_seq DESC LIMIT 1)

-- name: ranges_ahead
-- What is above the cursor and is not to be learned from.
SELECT r.first_seq, r.last_seq FROM session_ranges r
WHERE r.space = :space AND r.session_id = :id AND r.first_seq > :cursor
    AND r.pass = (SELECT s.pass FROM sessions s WHERE s.space = :space AND s.id = :id)
ORDER BY r.first_seq;

-- name: insert_range
INSERT INTO session_ranges (
    space, session_id, pass, first_seq, last_seq, outcome, reason, extractor, attempt, input_tokens,
    output_tokens, cost_micros, facts_dropped, facts_mended, created_at
) SELECT
    s.space, s.id, s.pass, :first_seq, :last_seq, :outcome, :reason, :extractor,
    CAST(:attempt AS BIGINT), CAST(:input_tokens AS BIGINT), CAST(:output_tokens AS BIGINT),
    CAST(:cost_micros AS BIGINT), :facts_dropped, :facts_mended, :now
FROM sessions s WHERE s.space = :space AND s.id = :id;

-- name: list_ranges
-- Of the pass that counts, the newest.
SELECT r.session_id, r.first_seq, r.last_seq, r.outcome, r.reason, r.created_at, r.pass, r.extractor,
    r.attempt, r.input_tokens, r.output_tokens, r.cost_micros, r.facts_dropped, r.facts_mended
FROM session_ranges r
JOIN sessions s ON s.space = :space AND s.id = r.session_id AND s.pass = r.pass
WHERE r.space = :space AND r.session_id = :id ORDER BY r.first_seq;

-- name: lock_session (sqlite)
SELECT last_seq, processed_until, pass, remembered, forgotten_at IS NOT NULL FROM sessions
WHERE space = :space AND id = :id;

-- name: lock_session (postgres)
SELECT last_seq, processed_until, pass, remembered, forgotten_at IS NOT NULL FROM sessions
WHERE space = :space AND id = :id FOR UPDATE;

-- name: max_seq
-- The newest record of a session, none when it is empty.
SELECT max(seq) FROM session_history WHERE space = :space AND session_id = :id;

-- name: count_since
SELECT count(*) FROM session_history
WHERE space = :space AND session_id = :id AND seq > :seq;

-- fragment: unattended (sqlite)
-- Who is learned from without a mark: the one rule for the idle sweep and the start-up scan.
last_activity_at BETWEEN :oldest AND :newest
    AND (:any_source OR source IN (SELECT value FROM json_each(:sources)))

-- fragment: unattended (postgres)
last_activity_at BETWEEN :oldest AND :newest
    AND (:any_source OR source = ANY (
        ARRAY(SELECT jsonb_array_elements_text(CAST(:sources AS jsonb)))))

-- name: spaces_ahead
-- operator
SELECT DISTINCT space FROM sessions WHERE waiting AND last_activity_at > :now;

-- name: bound_activity
-- No session was active later than now, whatever the clock of the one who touched it said; rows
-- that an append holds right now are passed over.
UPDATE sessions SET last_activity_at = :now WHERE space = :space AND id IN (
    SELECT id FROM sessions
    WHERE space = :space AND waiting AND last_activity_at > :now {skip_locked});

-- name: mark_idle
-- Marks a session that nobody marked, if it is still one that is learned from unasked, or if all are.
-- One that an append holds right now is not idle and is passed over.
UPDATE sessions SET
    invalidated_at = last_seq, marked_at = :now, marked_by = 'idle', requested_until = last_seq
WHERE space = :space AND id IN (
    SELECT id FROM sessions
    WHERE space = :space AND id = :id AND waiting AND (:is_all OR ({unattended})) {skip_locked})
RETURNING id;

-- name: count_marked
-- operator
SELECT count(*) FROM sessions
WHERE invalidated_at IS NOT NULL AND (:any_space OR space = :space);

-- name: count_waiting
-- operator
SELECT count(*) FROM sessions WHERE waiting AND (:any_space OR space = :space);

-- name: list_marked
-- operator
-- In the order in which they were first marked.
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = s.space AND k.id = s.key_id
WHERE s.invalidated_at IS NOT NULL AND (:any_space OR s.space = :space)
ORDER BY s.marked_at, s.id LIMIT :limit;

-- name: list_waiting
-- operator
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = s.space AND k.id = s.key_id
WHERE s.waiting AND (:is_all OR ({unattended})) AND (:any_space OR s.space = :space)
ORDER BY s.last_activity_at, s.id LIMIT :limit;

-- name: waiting_newest
-- operator
SELECT {session} FROM (
    SELECT * FROM sessions WHERE waiting ORDER BY last_activity_at DESC, id LIMIT :rows) s
JOIN session_keys k ON k.space = s.space AND k.id = s.key_id
WHERE {unattended}
ORDER BY s.last_activity_at DESC, s.id LIMIT :limit;
