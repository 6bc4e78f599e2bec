-- Agents at work: their lives, inboxes and signals. Changing a life locks its row; looking whether an
-- inbox is empty locks the agent's job.

-- fragment: item
i.item_id, i.kind, i.text, i.origin, i.about_session, i.about_first, i.about_last, i.state,
i.turn_id, i.attempts, i.last_error, i.created_at

-- name: wake_agent
-- Alive, whatever it was; one that was dead is made anew.
INSERT INTO agent_lives (space, key_id, job, life, since, incarnation)
VALUES (:space, :key_id, :job, 'active', :now, 1)
ON CONFLICT (space, key_id) DO UPDATE SET
    life = 'active',
    since = CASE WHEN agent_lives.life = 'active' THEN agent_lives.since ELSE excluded.since END,
    incarnation = agent_lives.incarnation
        + CASE WHEN agent_lives.life = 'dead' THEN 1 ELSE 0 END;

-- name: lock_life (sqlite)
SELECT life, job FROM agent_lives WHERE space = :space AND key_id = :key_id;

-- name: lock_life (postgres)
SELECT life, job FROM agent_lives WHERE space = :space AND key_id = :key_id FOR UPDATE;

-- name: set_life
UPDATE agent_lives SET life = :life, since = :now WHERE space = :space AND key_id = :key_id;

-- name: insert_item
-- No row comes back for an item that is known already.
INSERT INTO inbox (
    space, key_id, item_id, kind, text, origin, about_session, about_first, about_last, state,
    created_at
) VALUES (
    :space, :key_id, :item_id, :kind, :text, :origin, :about_session, :about_first, :about_last,
    'queued', :now
) ON CONFLICT (space, key_id, item_id) DO NOTHING RETURNING id;

-- name: make_agent_due
-- What is due and backs off is tried at once where a person waits: those that somebody hosts.
INSERT INTO jobs (space, kind, key, lane, state, first_due_at)
VALUES (:space, :job, :job_key, :lane, 'due', :now)
ON CONFLICT (space, kind, key) DO UPDATE SET
    state = 'due', first_due_at = excluded.first_due_at, due_at = NULL, failures = 0, takeovers = 0
WHERE jobs.state IN ('idle', 'parked') OR (jobs.state = 'due' AND jobs.lane <> '')
RETURNING state;

-- name: waiting_items
-- What a turn was made of that did not come to its end, then what comes next.
SELECT {item} FROM inbox i
WHERE i.space = :space AND i.key_id = :key_id AND i.state IN ('taken', 'queued')
ORDER BY CASE i.state WHEN 'taken' THEN 0 ELSE 1 END, i.id LIMIT :limit;

-- name: take_item
UPDATE inbox SET state = 'taken', turn_id = :turn_id
WHERE space = :space AND key_id = :key_id AND item_id = :item_id;

-- name: has_items
SELECT 1 FROM inbox WHERE space = :space AND key_id = :key_id AND state IN ('taken', 'queued')
LIMIT 1;

-- name: lock_turn (sqlite)
-- The items an agent works on. Forgetting their subject waits for this, or came before it.
SELECT {item} FROM inbox i
WHERE i.space = :space AND i.key_id = :key_id AND i.state = 'taken' ORDER BY i.id;

-- name: lock_turn (postgres)
-- The items an agent works on. Forgetting their subject waits for this, or came before it.
SELECT {item} FROM inbox i
WHERE i.space = :space AND i.key_id = :key_id AND i.state = 'taken' ORDER BY i.id FOR UPDATE;

-- name: get_item
SELECT {item} FROM inbox i
WHERE i.space = :space AND i.key_id = :key_id AND i.item_id = :item_id;

-- name: finish_items
UPDATE inbox SET state = 'done', text = '', done_at = :now, last_error = NULL
WHERE space = :space AND key_id = :key_id AND turn_id = :turn_id AND state = 'taken';

-- name: drop_items
DELETE FROM inbox WHERE space = :space AND key_id = :key_id AND state <> 'done';

-- name: void_agent_job
-- A run at work on it is stale from now on.
UPDATE jobs SET state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
WHERE kind IN ('agent', 'memory-agent') AND key = :job_key AND space = :space;

-- name: drop_done_items
DELETE FROM inbox
WHERE space = :space AND key_id = :key_id AND state = 'done' AND done_at < :before;

-- name: fail_items
-- One that failed too often, or for good, makes room for the next.
UPDATE inbox SET
    attempts = attempts + 1,
    last_error = :error,
    turn_id = CASE WHEN :is_apart THEN NULL ELSE turn_id END,
    state = CASE
        WHEN :is_apart THEN 'queued'
        WHEN :is_final OR attempts + 1 >= :failures_max THEN 'parked'
        ELSE state END
WHERE space = :space AND key_id = :key_id AND turn_id = :turn_id AND state = 'taken'
RETURNING state;

-- name: revive_items
UPDATE inbox SET state = 'queued', attempts = 0, turn_id = NULL
WHERE space = :space AND state = 'parked' AND (:any_key OR CAST(key_id AS TEXT) = :key)
RETURNING key_id;

-- name: revive_agent
-- A claimed job stays claimed: its holder looks at the inbox again before the job goes idle.
UPDATE jobs SET
    state = CASE WHEN state = 'claimed' THEN state ELSE 'due' END,
    due_at = NULL, failures = 0, takeovers = 0, pauses = 0
WHERE space = :space AND kind IN ('agent', 'memory-agent') AND key = :key RETURNING state, id;

-- name: rest_agent
-- Nothing is left to do.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL,
    failures = 0, takeovers = 0, pauses = 0, last_error = NULL, last_error_at = NULL,
    finished_at = :now
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed';

-- name: agent_of_job
SELECT k.space, k.key, k.agent_id, k.id FROM session_keys k WHERE k.space = :space AND k.id = :key_id;

-- name: put_signal
INSERT INTO signals (key_id, name, space, due_at, body)
VALUES (:key_id, :name, :space, :due_at, :body)
ON CONFLICT (space, key_id, name) DO UPDATE SET due_at = excluded.due_at, body = excluded.body;

-- name: cancel_signal
DELETE FROM signals WHERE space = :space AND key_id = :key_id AND name = :name RETURNING name;

-- name: cancel_own_signals
DELETE FROM signals
WHERE space = :space AND key_id = :key_id AND name IN ('idle', 'poison-pill');

-- name: cancel_signals
DELETE FROM signals WHERE space = :space AND key_id = :key_id;

-- name: due_signals
-- operator
SELECT g.space, k.key, k.agent_id, g.key_id, g.name, g.due_at, g.body
FROM signals g JOIN session_keys k ON k.space = g.space AND k.id = g.key_id
WHERE g.due_at <= :now AND (:any_space OR g.space = :space)
ORDER BY g.due_at, g.key_id, g.name LIMIT :limit;

-- name: take_signal
-- Only as long as it is the one that was due.
DELETE FROM signals
WHERE space = :space AND key_id = :key_id AND name = :name AND due_at <= :now
RETURNING body;

-- name: next_signal
-- operator
SELECT min(due_at) FROM signals;

-- name: agent_states
-- operator
SELECT k.space, k.key, k.agent_id, l.key_id, l.life, l.since, l.incarnation, k.session_id,
    (SELECT count(*) FROM inbox i WHERE i.space = l.space AND i.key_id = l.key_id AND i.state = 'queued')
    + (SELECT count(*) FROM inbox i WHERE i.space = l.space AND i.key_id = l.key_id AND i.state = 'taken'),
    (SELECT count(*) FROM inbox i WHERE i.space = l.space AND i.key_id = l.key_id AND i.state = 'parked'),
    l.job, j.state, j.due_at, COALESCE(j.last_error, (
        SELECT i.last_error FROM inbox i WHERE i.space = l.space AND i.key_id = l.key_id AND i.state = 'parked'
        ORDER BY i.id DESC LIMIT 1))
FROM agent_lives l
JOIN session_keys k ON k.space = l.space AND k.id = l.key_id
LEFT JOIN jobs j ON j.space = l.space AND j.kind = l.job AND j.key = CAST(l.key_id AS TEXT)
WHERE (:any_space OR l.space = :space) AND (:any_key OR l.key_id = :key_id)
ORDER BY CASE l.life WHEN 'active' THEN 0 WHEN 'sleeping' THEN 1 ELSE 2 END, l.since DESC, l.key_id
LIMIT :limit;

-- name: agent_signals
SELECT name, due_at, body FROM signals
WHERE space = :space AND key_id = :key_id ORDER BY due_at, name;

-- name: count_agents
-- operator
SELECT life, count(*) FROM agent_lives WHERE (:any_space OR space = :space) GROUP BY life;

-- name: put_told
INSERT INTO told_records (space, about_session, session_id, first_seq, last_seq)
VALUES (:space, :about_session, :session_id, :first_seq, :last_seq)
ON CONFLICT (space, about_session, session_id, first_seq) DO UPDATE SET last_seq = excluded.last_seq;

-- name: end_told
-- A turn has come to its end, and with it what it says.
UPDATE told_records SET
    last_seq = (SELECT s.last_seq FROM sessions s 
        WHERE s.space = :space AND s.id = told_records.session_id)
WHERE space = :space AND about_session = :about_session AND session_id = :session_id
    AND last_seq = :open;

-- name: told_of
SELECT t.session_id, t.first_seq, t.last_seq FROM told_records t
WHERE t.space = :space AND t.about_session = :id ORDER BY t.session_id, t.first_seq;

-- name: delete_told_records
DELETE FROM session_history
WHERE space = :space AND session_id = :session_id AND seq BETWEEN :first_seq AND :last_seq
RETURNING id, {words_gone};

-- name: delete_told_retained
DELETE FROM retained_records
WHERE space = :space AND source_session_id = :session_id
    AND source_seq BETWEEN :first_seq AND :last_seq;

-- name: forget_told
DELETE FROM told_records WHERE space = :space AND about_session = :id;

-- name: forget_items
-- What waits to be told of a session is not told any more.
DELETE FROM inbox WHERE space = :space AND about_session = :id RETURNING key_id;

-- name: forget_own_items
-- What was said to an agent in a session, and not answered.
DELETE FROM inbox WHERE space = :space AND state IN ('taken', 'parked')
    AND key_id = (SELECT s.key_id FROM sessions s WHERE s.space = :space AND s.id = :id)
    AND EXISTS (SELECT 1 FROM session_history h WHERE h.space = :space AND h.session_id = :id
        AND h.append_key = CAST(:said AS TEXT) || inbox.item_id);
