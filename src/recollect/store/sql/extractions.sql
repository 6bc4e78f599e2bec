-- What sessions came to, how much of it consolidation has seen, and what it all cost.

-- fragment: extraction
e.session_id, e.space, e.rollout_slug, e.rollout_summary, e.raw_memory, e.extractor, e.pass, e.upto,
e.source_updated_at, e.generated_at, e.usage_count, e.last_usage, e.selected_for_phase2,
e.selected_for_phase2_source_updated_at

-- name: get_extraction
SELECT {extraction} FROM extractions e WHERE e.space = :space AND e.session_id = :id;

-- name: list_extractions
-- The most recently made first, a page at a time.
SELECT {extraction} FROM extractions e
WHERE e.space = :space AND (e.generated_at, e.session_id) < (:before, :before_id)
ORDER BY e.generated_at DESC, e.session_id DESC LIMIT :limit;

-- name: put_extraction
-- One row for a session: its use and what phase 2 has seen of it survive. None comes back if it
-- says the same already.
INSERT INTO extractions (
    space, session_id, raw_memory, rollout_summary, rollout_slug, extractor, pass, upto,
    source_updated_at, generated_at, words, revision
) SELECT
    c.space, :session_id, :raw_memory, :rollout_summary, CAST(:rollout_slug AS TEXT), :extractor,
    :pass, :upto, COALESCE({said_at}, :now), :now, :words, c.changed + 1
FROM consolidations c WHERE c.space = :space
ON CONFLICT (space, session_id) DO UPDATE SET
    raw_memory = excluded.raw_memory,
    rollout_summary = excluded.rollout_summary,
    rollout_slug = excluded.rollout_slug,
    extractor = excluded.extractor,
    pass = excluded.pass,
    upto = excluded.upto,
    source_updated_at = excluded.source_updated_at,
    generated_at = excluded.generated_at,
    words = excluded.words,
    reworded_at = NULL,
    revision = excluded.revision
WHERE extractions.raw_memory <> excluded.raw_memory
    OR extractions.rollout_summary <> excluded.rollout_summary
    OR extractions.rollout_slug IS DISTINCT FROM excluded.rollout_slug
RETURNING key;

-- name: extend_extraction
-- More was read and it says the same: what phase 2 has seen of it is still what there is.
UPDATE extractions SET upto = :upto, pass = :pass, extractor = :extractor
WHERE space = :space AND session_id = :session_id;

-- name: words_of_extraction
SELECT e.key, e.words FROM extractions e WHERE e.space = :space AND e.session_id = :session_id;

-- name: delete_extraction
DELETE FROM extractions WHERE space = :space AND session_id = :session_id RETURNING key, {words_gone};

-- name: has_lost_records
-- Records that something may have been learned from are gone; what goes, goes from the first on.
SELECT 1 FROM session_ranges r
WHERE r.space = :space AND r.session_id = :id AND r.outcome <> 'skipped' AND r.first_seq < COALESCE(
    (SELECT min(h.seq) FROM session_history h WHERE h.space = :space AND h.session_id = :id),
    4611686018427387904)
LIMIT 1;

-- fragment: said_at
-- When a record was said; of the newest there is up to it, should it be gone.
(SELECT h.said_at FROM session_history h
    WHERE h.space = :space AND h.session_id = :session_id AND h.seq <= :upto
    ORDER BY h.seq DESC LIMIT 1)

-- name: lock_memory
-- The lock of a space's memory: its changes are made one at a time.
INSERT INTO consolidations (space) VALUES (:space)
ON CONFLICT (space) DO UPDATE SET changed = consolidations.changed;

-- name: hold_memory (sqlite)
-- The same lock for a call that only counts: a space without memory has no row.
SELECT 1 FROM consolidations WHERE space = :space;

-- name: hold_memory (postgres)
-- The same lock for a call that only counts: a space without memory has no row.
SELECT 1 FROM consolidations WHERE space = :space FOR NO KEY UPDATE;

-- name: note_change
UPDATE consolidations SET changed = changed + 1, changed_at = :now WHERE space = :space;

-- name: make_consolidation_due
-- Of a space in which something changed. A run that failed keeps its time, whatever else changes.
INSERT INTO jobs (space, kind, key, state, first_due_at, due_at)
SELECT c.space, 'consolidate', c.space, 'due', c.changed_at,
    CASE WHEN c.urgent > c.consolidated THEN NULL ELSE c.not_before END
FROM consolidations c WHERE c.space = :space AND c.paused_at IS NULL
ON CONFLICT (space, kind, key) DO UPDATE SET
    state = 'due',
    first_due_at = CASE WHEN jobs.state = 'due' THEN jobs.first_due_at
        ELSE excluded.first_due_at END,
    due_at = excluded.due_at,
    failures = CASE WHEN jobs.state = 'parked' THEN 0 ELSE jobs.failures END,
    takeovers = CASE WHEN jobs.state = 'parked' THEN 0 ELSE jobs.takeovers END
WHERE jobs.state IN ('idle', 'parked')
    OR (jobs.state = 'due' AND jobs.failures = 0 AND jobs.pauses = 0 AND excluded.due_at IS NULL)
RETURNING state;

-- name: get_revision
SELECT changed, consolidated, changed_at FROM consolidations WHERE space = :space;

-- name: count_consolidations_due
-- operator
SELECT count(*) FROM consolidations
WHERE changed > consolidated AND (:any_space OR space = :space);

-- name: next_pass
UPDATE sessions SET pass = :pass WHERE space = :space AND id = :id;

-- fragment: may_be_passed
(s.remembered AND s.forgotten_at IS NULL AND s.processed_until IS NOT NULL AND EXISTS (
    SELECT 1 FROM session_history h WHERE h.space = :space AND h.session_id = s.id))

-- name: hold_passable
-- A call that forgets one of them came before this, or finds the job that it gets.
SELECT s.id FROM sessions s
WHERE s.space = :space AND (:any_key OR s.id = :key) AND {may_be_passed} ORDER BY s.id {to_stay};

-- name: request_passes
-- A job for every session that has been processed, may be remembered and has anything left. In the
-- order of their ids, so that two who ask at once do not wait for each other.
INSERT INTO jobs (space, kind, key, state, first_due_at)
SELECT s.space, 'extract-again', s.id, 'due', :now FROM sessions s
WHERE s.space = :space AND (:any_key OR s.id = :key) AND {may_be_passed} ORDER BY s.id
ON CONFLICT (space, kind, key) DO UPDATE SET
    state = 'due', due_at = NULL, failures = 0, takeovers = 0, pauses = 0,
    first_due_at = excluded.first_due_at
WHERE jobs.state IN ('idle', 'parked')
RETURNING state;

-- name: finish_pass
-- Done: nothing to do until somebody asks for another pass.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL,
    failures = 0, takeovers = 0, pauses = 0, last_error = NULL, last_error_at = NULL,
    finished_at = :now
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING id;

-- name: reserve_spending
-- What a call may take at most, if it fits; none comes back if it does not.
INSERT INTO spending (space, day, calls, input_tokens, output_tokens)
SELECT :space, :day, 1, :input_tokens, :output_tokens
WHERE 1 <= :calls_max AND CAST(:input_tokens AS BIGINT) + :output_tokens <= :tokens_max
ON CONFLICT (space, day) DO UPDATE SET
    calls = spending.calls + 1,
    input_tokens = spending.input_tokens + excluded.input_tokens,
    output_tokens = spending.output_tokens + excluded.output_tokens
WHERE spending.calls + 1 <= :calls_max
    AND spending.input_tokens + spending.output_tokens + excluded.input_tokens
        + excluded.output_tokens <= :tokens_max
RETURNING calls;

-- name: add_spending
UPDATE spending SET
    calls = calls + :calls,
    input_tokens = input_tokens + :input_tokens,
    output_tokens = output_tokens + :output_tokens,
    cost_micros = CASE WHEN CAST(:cost_micros AS BIGINT) IS NULL THEN cost_micros
        ELSE COALESCE(cost_micros, 0) + :cost_micros END
WHERE space = :space AND day = :day;

-- name: insert_call
INSERT INTO ledger (
    space, session_id, purpose, model, attempt, day, input_tokens, output_tokens, outcome, created_at
) VALUES (
    :space, :session_id, :purpose, :model, :attempt, :day, :input_tokens, :output_tokens, 'reserved',
    :now
) RETURNING id;

-- name: settle_call
-- Settled once: what was estimated is replaced by what it took.
UPDATE ledger SET
    input_tokens = :input_tokens, output_tokens = :output_tokens, cost_micros = :cost_micros,
    outcome = :outcome
WHERE space = :space AND id = :id AND outcome = 'reserved'
RETURNING day;

-- name: reserved_call
SELECT input_tokens, output_tokens FROM ledger
WHERE space = :space AND id = :id AND outcome = 'reserved';

-- name: list_calls
SELECT l.id, l.space, l.session_id, l.purpose, l.model, l.attempt, l.input_tokens, l.output_tokens,
    l.cost_micros, l.outcome, l.created_at
FROM ledger l
WHERE l.space = :space AND l.id < :before AND (:any_session OR l.session_id = :session_id)
ORDER BY l.id DESC LIMIT :limit;

-- name: spent_on_day
-- operator
SELECT COALESCE(sum(calls), 0), COALESCE(sum(input_tokens), 0), COALESCE(sum(output_tokens), 0),
    sum(cost_micros)
FROM spending WHERE day = :day AND (:any_space OR space = :space);

-- name: spent_by_purpose
-- operator
-- A call that failed before it began took nothing, and is none.
SELECT purpose,
    COALESCE(sum(CASE WHEN day = :day THEN made END), 0),
    COALESCE(sum(CASE WHEN day = :day THEN input_tokens END), 0),
    COALESCE(sum(CASE WHEN day = :day THEN output_tokens END), 0),
    sum(CASE WHEN day = :day THEN cost_micros END),
    sum(made), sum(input_tokens), sum(output_tokens), sum(cost_micros)
FROM (
    SELECT purpose, day, input_tokens, output_tokens, cost_micros,
        CASE WHEN outcome = 'failed' AND input_tokens + output_tokens = 0 THEN 0 ELSE 1 END AS made
    FROM ledger WHERE (:any_space OR space = :space)
) l
GROUP BY purpose ORDER BY purpose;

-- name: spent_daily
-- operator
SELECT day, sum(calls), sum(input_tokens), sum(output_tokens), sum(cost_micros)
FROM spending WHERE day BETWEEN :first AND :last AND (:any_space OR space = :space)
GROUP BY day ORDER BY day;

-- fragment: progress
-- How a session's last run ended, and what all of them took.
s.id, s.space, k.key, s.last_activity_at, s.last_seq, s.processed_until, s.mode,
    (SELECT r.outcome FROM session_ranges r
     WHERE r.space = s.space AND r.session_id = s.id ORDER BY r.pass DESC, r.first_seq DESC LIMIT 1),
    (SELECT r.attempt FROM session_ranges r
     WHERE r.space = s.space AND r.session_id = s.id ORDER BY r.pass DESC, r.first_seq DESC LIMIT 1),
    (SELECT r.created_at FROM session_ranges r
     WHERE r.space = s.space AND r.session_id = s.id ORDER BY r.pass DESC, r.first_seq DESC LIMIT 1),
    (SELECT count(*) FROM ledger l WHERE l.space = s.space AND l.session_id = s.id),
    (SELECT COALESCE(sum(l.input_tokens), 0) FROM ledger l
     WHERE l.space = s.space AND l.session_id = s.id),
    (SELECT COALESCE(sum(l.output_tokens), 0) FROM ledger l
     WHERE l.space = s.space AND l.session_id = s.id),
    (SELECT sum(l.cost_micros) FROM ledger l WHERE l.space = s.space AND l.session_id = s.id),
    (SELECT e.extractor FROM extractions e WHERE e.space = s.space AND e.session_id = s.id),
    (SELECT count(DISTINCT o.fact_key)
     FROM fact_sources o CROSS JOIN facts f
     WHERE f.space = s.space AND f.key = o.fact_key AND o.space = s.space AND o.session_id = s.id AND f.deleted_at IS NULL),
    j.state, j.due_at, j.failures, j.takeovers, j.last_error, j.pauses, s.remembered,
    (SELECT count(*) FROM inbox i
     WHERE i.space = s.space AND i.about_session = s.id AND i.state <> 'done'),
    s.forgotten_at,
    (SELECT COALESCE(sum(r.facts_dropped), 0) FROM session_ranges r
     WHERE r.space = s.space AND r.session_id = s.id AND r.pass = s.pass),
    (SELECT COALESCE(sum(r.facts_mended), 0) FROM session_ranges r
     WHERE r.space = s.space AND r.session_id = s.id AND r.pass = s.pass)

-- fragment: progress_joins
JOIN session_keys k ON k.space = s.space AND k.id = s.key_id
LEFT JOIN jobs j ON j.space = s.space AND j.kind = 'extract' AND j.key = s.id

-- name: space_progress
-- operator
-- The sessions first, so that nothing is looked up for those that are not asked for.
SELECT {progress} FROM (
    SELECT * FROM sessions WHERE space = :space
    ORDER BY created_at DESC, id DESC LIMIT :limit) s {progress_joins}
ORDER BY s.created_at DESC, s.id DESC;

-- name: store_progress
-- operator
-- Over all spaces: ids are in the order of time.
SELECT {progress} FROM (SELECT * FROM sessions ORDER BY id DESC LIMIT :limit) s {progress_joins}
ORDER BY s.id DESC;

-- name: put_property
INSERT INTO properties (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: get_property
SELECT value FROM properties WHERE name = :name;

-- name: key_of_session
SELECT key_id FROM sessions WHERE space = :space AND id = :id;

-- name: close_forgotten
-- Over, and all of it dealt with. Nobody's words stay: neither why it had ended, nor a directory.
UPDATE sessions SET
    ended_by = CASE WHEN ended_at IS NULL THEN :cause ELSE ended_by END,
    ended_reason = :reason,
    project = NULL,
    ended_at = COALESCE(ended_at, :now),
    processed_until = NULLIF(last_seq, 0),
    unprocessed_turns = 0,
    invalidated_at = NULL,
    marked_at = NULL,
    marked_by = NULL
WHERE space = :space AND id = :id;

-- name: count_session
SELECT
    (SELECT count(*) FROM session_history WHERE space = :space AND session_id = :id),
    (SELECT count(*) FROM fact_sources WHERE space = :space AND session_id = :id);

-- name: forget_summaries
-- The session's own, and those of the sessions that compactions carried its words into.
DELETE FROM summaries WHERE space = :space AND session_id IN (
    WITH RECURSIVE heirs (id, key_id, rotation, ended_by) AS (
        SELECT s.id, s.key_id, s.rotation, s.ended_by FROM sessions s
        WHERE s.space = :space AND s.id = :id
        UNION ALL
        SELECT s.id, s.key_id, s.rotation, s.ended_by FROM heirs h
        JOIN sessions s ON s.space = :space AND s.key_id = h.key_id AND s.rotation = h.rotation + 1
        WHERE s.space = :space AND h.ended_by = 'compaction')
    SELECT heirs.id FROM heirs)
RETURNING session_id;

-- name: delete_retained_from
DELETE FROM retained_records WHERE space = :space AND source_session_id = :id;

-- name: forget_calls
-- What was spent stays in the books; which session it was for does not.
UPDATE ledger SET session_id = NULL WHERE space = :space AND session_id = :id;

-- name: lock_runs
-- In one order, for there are two.
SELECT 1 FROM jobs
WHERE space = :space AND key = :id AND kind IN ('extract', 'extract-again') ORDER BY kind {to_change};

-- name: forget_job
-- Whatever runs on the session is void.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL,
    last_error = NULL, last_error_at = NULL
WHERE space = :space AND key = :id AND kind IN ('extract', 'extract-again');

-- name: void_pass
-- Nothing may be learned from the session any more: a new pass over it is stale.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
WHERE space = :space AND key = :id AND kind = 'extract-again';

-- name: stage_draft
INSERT INTO staged_drafts (
    space, session_id, pass, upto, extractor, draft, calls, input_tokens, output_tokens, cost_micros
) VALUES (
    :space, :id, :pass, :upto, :extractor, :draft, :calls, :input_tokens, :output_tokens, :cost_micros
)
ON CONFLICT (space, session_id) DO UPDATE SET
    pass = excluded.pass, upto = excluded.upto, extractor = excluded.extractor,
    draft = excluded.draft, calls = excluded.calls, input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens, cost_micros = excluded.cost_micros;

-- name: get_staged
SELECT g.pass, g.upto, g.extractor, g.draft, g.calls, g.input_tokens, g.output_tokens, g.cost_micros
FROM staged_drafts g WHERE g.space = :space AND g.session_id = :id;

-- name: drop_staged
DELETE FROM staged_drafts WHERE space = :space AND session_id = :id;
