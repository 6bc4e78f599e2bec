-- Jobs: due work, claimed under a lease with a fencing token.
-- What looks over all spaces takes no locks; what changes a job does so in its space, at a moment that
-- is given. {now} is the database's clock, unless a clock was handed in.

-- fragment: in_lane
-- What any worker can run, what one agent's host can, or what all of them can; and only of one space,
-- where somebody works for that one alone.
CASE WHEN :any_lane THEN lane <> '' ELSE lane = :lane END AND (:any_space OR space = :only_space)

-- fragment: is_in_order
-- What came in by an import is learned from in the order of time, one session of a space after the
-- other. One that failed or waits is not running, and holds up nobody.
(NOT in_order OR NOT :in_order OR NOT EXISTS (
    SELECT 1 FROM jobs r WHERE r.space = jobs.space AND {is_ahead}))

-- fragment: is_in_order_here
(NOT in_order OR NOT :in_order OR NOT EXISTS (
    SELECT 1 FROM jobs r WHERE r.space = :space AND {is_ahead}))

-- fragment: is_ahead
r.in_order AND r.state = 'claimed' AND r.lease_expires_at > {now}

-- fragment: has_its_turn
-- A space is consolidated when nothing of it is left to distil or to file, by those who can; one in
-- which there always is, after some time all the same.
(kind <> 'consolidate' OR (:consolidates AND (first_due_at <= {now} - :patience_micros
    OR NOT EXISTS (SELECT 1 FROM jobs p WHERE p.space = jobs.space AND {is_left}))))

-- fragment: has_its_turn_here
-- The same in the space that is named.
(kind <> 'consolidate' OR (:consolidates AND (first_due_at <= {now} - :patience_micros
    OR NOT EXISTS (SELECT 1 FROM jobs p WHERE p.space = :space AND {is_left}))))

-- fragment: is_left
p.state IN ('due', 'claimed') AND p.kind IN ('extract', 'extract-again', 'memory-agent')
    AND (p.state = 'claimed' OR p.due_at IS NULL OR p.due_at <= {now})

-- fragment: is_over
-- A lease that ends later than any can was given before a clock was set back.
(lease_expires_at <= {now} OR lease_expires_at > {now} + 3600000000)

-- fragment: was_over
-- The same at a moment that is given.
(lease_expires_at <= :now OR lease_expires_at > :now + 3600000000)

-- fragment: is_time
-- Of the store's own work also what was last done at a time that is still to come: so was its clock.
(due_at IS NULL OR due_at <= {now}
    OR (space = '' AND (finished_at > {now} OR last_error_at > {now})))

-- fragment: was_time
(due_at IS NULL OR due_at <= :now
    OR (space = '' AND (finished_at > :now OR last_error_at > :now)))

-- fragment: is_claimable
state = 'due' AND {is_time} AND {in_lane} AND {has_its_turn} AND {is_in_order}

-- name: clock
SELECT {now};

-- name: count_running
-- operator
-- What time it is, and how many jobs are being worked on.
SELECT {now}, count(*) FROM jobs WHERE state = 'claimed' AND NOT {is_over};

-- name: expired_claims
-- operator
-- Leases that ran out; those of jobs whose owners keep dying also where this worker cannot run them.
SELECT space, id, takeovers FROM jobs
WHERE state = 'claimed' AND {is_over} AND ((
    {in_lane} AND (:consolidates OR kind <> 'consolidate'))
    OR (takeovers >= :takeovers_max AND space <> ''))
ORDER BY lease_expires_at, id LIMIT :limit;

-- name: spaces_with_due
-- operator
-- The next spaces in which any job can be claimed, by their names.
WITH RECURSIVE spaces_with_work (space, number) AS (
    SELECT (
        SELECT space FROM jobs WHERE space >= CAST(:since AS TEXT) AND {is_claimable}
        ORDER BY space LIMIT 1), 1
    UNION ALL
    SELECT (
        SELECT space FROM jobs WHERE space > w.space AND {is_claimable} ORDER BY space LIMIT 1),
        w.number + 1
    FROM spaces_with_work w WHERE w.space IS NOT NULL AND w.number < :limit)
SELECT w.space FROM spaces_with_work w WHERE w.space IS NOT NULL ORDER BY w.space;

-- name: space_of_first_due
-- operator
-- The same without turns: where what has been due longest in all spaces together is.
SELECT space FROM jobs WHERE {is_claimable} ORDER BY first_due_at, id LIMIT :limit;

-- fragment: skip_locked (sqlite)

-- fragment: skip_locked (postgres)
FOR UPDATE SKIP LOCKED

-- name: hold_first_due
-- The first due job of a space that no other worker is taking at this moment, without waiting.
SELECT id, kind, key FROM jobs
WHERE space = :space AND state = 'due' AND {is_time} AND {in_lane} AND {has_its_turn_here}
    AND {is_in_order_here}
ORDER BY first_due_at, id LIMIT 1 {skip_locked};

-- name: hold_expired
SELECT id, kind, key FROM jobs WHERE space = :space AND id = :id AND state = 'claimed' {skip_locked};

-- name: lock_claims_of_space (sqlite)
SELECT 1 FROM spaces WHERE space = :space;

-- name: lock_claims_of_space (postgres)
-- Claims in a space are made one at a time, so that the cap on its jobs is exact.
SELECT 1 FROM spaces WHERE space = :space FOR NO KEY UPDATE;

-- name: count_running_in_space
SELECT count(*) FROM jobs WHERE space = :space AND state = 'claimed' AND NOT {was_over};

-- fragment: claimed
state = 'claimed', owner = :owner, token = token + 1, lease_expires_at = :now + :lease_micros,
    due_at = NULL

-- fragment: claim
id, kind, space, key, token, failures + takeovers + 1, lease_expires_at, pauses

-- name: claim_job
-- Only if it can still be claimed: somebody may have been quicker.
UPDATE jobs SET
    takeovers = takeovers + CASE WHEN state = 'claimed' THEN 1 ELSE 0 END,
    {claimed}
WHERE space = :space AND id = :id AND {in_lane} AND (:consolidates OR kind <> 'consolidate')
    AND ((state = 'due' AND {was_time})
        OR (state = 'claimed' AND {was_over} AND (takeovers < :takeovers_max OR space = '')))
RETURNING {claim};

-- name: claim_consolidation
UPDATE jobs SET {claimed}
WHERE space = :space AND kind = 'consolidate' AND key = :space
    AND (state <> 'claimed' OR {was_over}
        OR (:takes_over AND owner NOT LIKE :spared))
RETURNING {claim};

-- name: park_exhausted
-- A job whose owners keep dying is not given to the next one for ever. The work of the store itself
-- (its space is empty) is never parked: who would mark what was left behind, if the sweep were?
UPDATE jobs SET
    state = 'parked', token = token + 1, owner = NULL, lease_expires_at = NULL,
    last_error = :error, last_error_at = :now
WHERE space = :space AND id = :id AND state = 'claimed' AND {was_over}
    AND takeovers >= :takeovers_max AND space <> '';

-- name: reach_of_claim
-- How far a claim reads, and the mark it was made for.
SELECT
    CASE WHEN CAST(:kind AS TEXT) = 'extract' THEN COALESCE({learnable_end}, s.last_seq)
        ELSE s.processed_until END,
    CASE WHEN CAST(:kind AS TEXT) <> 'extract' THEN NULL
        WHEN s.invalidated_at > {learnable_end} THEN {learnable_end}
        ELSE s.invalidated_at END
FROM sessions s WHERE s.space = :space AND s.id = :key
    AND CAST(:kind AS TEXT) IN ('extract', 'extract-again')
UNION ALL
SELECT c.changed, NULL FROM consolidations c
WHERE c.space = :space AND CAST(:kind AS TEXT) = 'consolidate';

-- fragment: learnable_end
-- The last record before the next that nothing is to be learned from, if there are any such yet.
(SELECT min(r.first_seq) - 1 FROM session_ranges r
    WHERE r.space = :space AND r.session_id = s.id AND r.pass = s.pass
        AND r.first_seq > COALESCE(s.processed_until, 0))

-- name: next_due
-- operator
-- How long until the soonest backoff or lease runs out; none: nothing waits. What is due and was not
-- found is held for a moment by an append to its session, which tells nobody when it lets go.
SELECT min(moment) - {now} FROM (
    SELECT min(COALESCE(due_at, {now})) AS moment FROM jobs
    WHERE state = 'due' AND {in_lane} AND {has_its_turn} AND {is_in_order}
    UNION ALL
    SELECT min(lease_expires_at) FROM jobs WHERE state = 'claimed' AND {in_lane}
        AND (:consolidates OR kind <> 'consolidate')) AS moments;

-- name: renew_claim
UPDATE jobs SET lease_expires_at = :now + :lease_micros
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING lease_expires_at;

-- name: lock_claim (sqlite)
-- A claim is on the session it names, not on any other.
SELECT 1 FROM jobs
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed' AND key = :key;

-- name: lock_claim (postgres)
-- A claim is on the session it names, not on any other.
SELECT 1 FROM jobs
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed' AND key = :key FOR UPDATE;

-- name: advance_cursor
-- Moves the cursor to what was read. The last piece of a claim also clears the mark, if it is the
-- one that was claimed or lies not beyond what was read: clearing it makes the job idle. A piece
-- that passes the mark raises it to the end of the claim, for the mark lies above the cursor.
UPDATE sessions SET
    processed_until = :upto,
    unprocessed_turns = (
        SELECT count(*) FROM session_history h
        WHERE h.space = :space AND h.session_id = :session_id AND h.role = 'user' AND h.seq > :upto),
    invalidated_at = CASE
        WHEN {is_covered} THEN NULL
        WHEN invalidated_at <= :upto THEN :read_upto
        ELSE invalidated_at END,
    marked_at = CASE WHEN {is_covered} THEN NULL ELSE marked_at END,
    marked_by = CASE WHEN {is_covered} THEN NULL ELSE marked_by END
WHERE space = :space AND id = :session_id
RETURNING invalidated_at;

-- name: note_progress
-- Something was recorded: what failed before no longer counts. With the last piece it is finished.
UPDATE jobs SET
    failures = 0, takeovers = 0, pauses = 0, last_error = NULL, last_error_at = NULL,
    finished_at = CASE WHEN :is_last THEN :now ELSE finished_at END
WHERE space = :space AND id = :id;

-- name: pause_ends
-- When a session that is going on is to be learned from, if nobody asked for it: once it pauses.
SELECT CASE WHEN last_activity_at < :now THEN last_activity_at ELSE :now END + :pause_micros
FROM sessions
WHERE space = :space AND id = :id AND ended_at IS NULL
    AND COALESCE(requested_until, 0) <= COALESCE(processed_until, 0)
    AND last_seq - COALESCE(processed_until, 0) < :records
    AND last_activity_at > :now - :pause_micros;

-- name: give_back
-- The job is due again; the holder's claim is stale from now on.
UPDATE jobs SET
    state = 'due', token = token + 1, owner = NULL, lease_expires_at = NULL,
    due_at = :due_at, first_due_at = COALESCE(:first_due_at, first_due_at)
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING state;

-- name: defer_claim
-- Nothing is wrong with the job: it waits, and nothing is counted against it.
UPDATE jobs SET
    state = 'due', token = token + 1, owner = NULL, lease_expires_at = NULL,
    pauses = pauses + 1, last_error = :error, last_error_at = :now, due_at = :now + :delay_micros
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING state, due_at;

-- name: fail_claim
UPDATE jobs SET
    state = CASE
        WHEN space <> '' AND (:is_final OR failures + 1 >= :failures_max) THEN 'parked'
        ELSE 'due' END,
    token = token + 1, owner = NULL, lease_expires_at = NULL,
    failures = failures + 1, last_error = :error, last_error_at = :now,
    due_at = :now + :delay_micros
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING state, due_at;

-- name: finish_recurring
-- A job of the store itself that comes round again.
UPDATE jobs SET
    state = 'due', token = token + 1, owner = NULL, lease_expires_at = NULL,
    failures = 0, takeovers = 0, pauses = 0, last_error = NULL, last_error_at = NULL,
    finished_at = :now, due_at = :now + :delay_micros, first_due_at = :now + :delay_micros
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed'
RETURNING state;

-- name: ensure_recurring
INSERT INTO jobs (space, kind, key, state, first_due_at)
VALUES (:space, :kind, :key, 'due', :now)
ON CONFLICT (space, kind, key) DO NOTHING RETURNING state;

-- name: make_due
-- Due at once, unless it is being worked on.
UPDATE jobs SET state = 'due', due_at = NULL WHERE space = :space AND kind = :kind AND key = :key
    AND (state = 'idle' OR (state = 'due' AND due_at IS NOT NULL))
RETURNING state;

-- fragment: is_stuck
(state = 'parked' OR (state = 'due' AND due_at IS NOT NULL AND pauses > 0 AND space <> ''))

-- name: lock_stuck
-- Jobs that are parked or paused, and those of agents that could not do something; in the order in
-- which those who forget come to them.
SELECT id FROM jobs
WHERE space = :space AND (:any_key OR key = :key) AND (
    {is_stuck} OR (kind IN ('agent', 'memory-agent') AND key IN (
        SELECT CAST(i.key_id AS TEXT) FROM inbox i
        WHERE i.space = :space AND i.state = 'parked')))
ORDER BY
    CASE kind WHEN 'agent' THEN 1 WHEN 'memory-agent' THEN 3 WHEN 'consolidate' THEN 4 ELSE 2 END,
    key, kind {to_change};

-- name: revive_jobs
-- They get another chance: one, or those of a space.
UPDATE jobs SET state = 'due', due_at = NULL, failures = 0, takeovers = 0, pauses = 0
WHERE space = :space AND state <> 'idle' AND {is_stuck} AND (:any_key OR key = :key)
RETURNING state, id;

-- name: list_jobs
-- operator
-- What is not idle, in the order in which it became due.
SELECT {job} FROM jobs j
WHERE j.state <> 'idle' AND (:any_space OR j.space = :space)
ORDER BY j.first_due_at, j.id LIMIT :limit;

-- name: get_job
-- operator
SELECT {job} FROM jobs j WHERE j.kind = :kind AND j.key = :key
    AND (:any_space OR j.space = :space);

-- name: count_due
-- operator
-- How many could be claimed by now, and for how long the first of them has been due.
SELECT count(*), COALESCE(max({now} - COALESCE(due_at, first_due_at)), 0) FROM jobs
WHERE state = 'due' AND {is_time};

-- name: count_jobs
-- operator
SELECT state, count(*) FROM jobs
WHERE state <> 'idle' AND (:any_space OR space = :space) GROUP BY state;
