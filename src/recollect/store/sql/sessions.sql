-- Sessions and the stable keys they are found by.

-- name: insert_space
INSERT INTO spaces (space, created_at) VALUES (:space, :now)
ON CONFLICT (space) DO NOTHING;

-- name: insert_agent
INSERT INTO agents (space, id, created_at) VALUES (:space, :agent_id, :now)
ON CONFLICT (space, id) DO NOTHING;

-- name: insert_key (sqlite)
-- operator: numbers are those of the whole file
-- No row comes back when somebody else was faster. A number that was used is not used again.
INSERT INTO session_keys (id, space, agent_id, key, session_id)
SELECT
    1 + max(COALESCE(max(k.id), 0), COALESCE((
        SELECT CAST(p.value AS INTEGER) FROM properties p WHERE p.name = 'keys_from'), 0)),
    :space, :agent_id, :key, :session_id
FROM session_keys k WHERE true
ON CONFLICT (space, key, agent_id) DO NOTHING
RETURNING id;

-- name: insert_key (postgres)
-- No row comes back when somebody else was faster.
INSERT INTO session_keys (space, agent_id, key, session_id)
VALUES (:space, :agent_id, :key, :session_id)
ON CONFLICT (space, key, agent_id) DO NOTHING
RETURNING id;

-- name: find_key
-- And whether its session was forgotten, and what project it was of with it.
SELECT k.id, s.forgotten_at IS NOT NULL AND s.project IS NULL
FROM session_keys k JOIN sessions s ON s.space = :space AND s.id = k.session_id
WHERE k.space = :space AND k.key = :key AND k.agent_id = :agent_id;

-- name: name_project
-- For the sessions that come after one that was forgotten.
UPDATE sessions SET project = :project
WHERE space = :space AND forgotten_at IS NOT NULL AND project IS NULL
    AND id = (SELECT k.session_id FROM session_keys k WHERE k.space = :space AND k.id = :key_id);

-- name: find_key_agents
SELECT agent_id FROM session_keys WHERE space = :space AND key = :key ORDER BY agent_id;

-- name: lock_key (sqlite)
-- The current session of a key. The write transaction itself is the lock.
SELECT session_id FROM session_keys WHERE space = :space AND id = :key_id;

-- name: lock_key (postgres)
-- The current session of a key; rotating it, or appending with an append key, waits here.
-- Not FOR UPDATE: a session that is updated twice in a transaction asks for its key again, to share.
SELECT session_id FROM session_keys WHERE space = :space AND id = :key_id FOR NO KEY UPDATE;

-- name: current_session
SELECT session_id FROM session_keys WHERE space = :space AND id = :key_id;

-- name: point_key
UPDATE session_keys SET session_id = :session_id WHERE space = :space AND id = :key_id;

-- name: point_key_back
-- To the newest session that there is, where the one that it names is gone.
UPDATE session_keys SET session_id = (
    SELECT s.id FROM sessions s WHERE s.space = :space AND s.key_id = session_keys.id
    ORDER BY s.rotation DESC LIMIT 1)
WHERE space = :space AND key = :key AND agent_id = :agent_id
    AND NOT EXISTS (
        SELECT 1 FROM sessions s WHERE s.space = :space AND s.id = session_keys.session_id)
    AND EXISTS (SELECT 1 FROM sessions s WHERE s.space = :space AND s.key_id = session_keys.id);

-- name: insert_session
INSERT INTO sessions (
    id, space, key_id, rotation, source, project, parent, ephemeral, mode, remembered,
    created_at, last_activity_at
) VALUES (
    :id, :space, :key_id, :rotation, :source, :project, :parent, :ephemeral, :mode, :remembered,
    :now, :now
);

-- name: get_session
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE s.space = :space AND s.id = :id;

-- name: load_session
-- A session and what it has come to so far.
SELECT {session}, {extraction} FROM sessions s JOIN session_keys k ON k.space = :space AND k.id = s.key_id
LEFT JOIN extractions e ON e.space = :space AND e.session_id = s.id
WHERE s.space = :space AND s.id = :id;

-- name: get_current_session
SELECT {session} FROM session_keys k JOIN sessions s ON s.id = k.session_id
WHERE k.space = :space AND s.space = :space AND k.id = :key_id;

-- name: list_sessions
-- Newest first, a page at a time: the page after the session (before, before_id).
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE s.space = :space AND (s.created_at, s.id) < (:before, :before_id)
ORDER BY s.created_at DESC, s.id DESC LIMIT :limit;

-- name: key_sessions
-- Every session a key has had, oldest first.
SELECT {session} FROM sessions s JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE s.space = :space AND s.key_id = :key_id ORDER BY s.rotation;

-- name: end_session
-- Set once, never overwritten.
UPDATE sessions SET ended_at = :now, ended_by = :cause, ended_reason = :reason
WHERE space = :space AND id = :id AND ended_at IS NULL;

-- name: set_mode
-- A session that may not be remembered loses its mark; its records wait for the next decision.
UPDATE sessions SET
    left_seq = CASE
        WHEN CAST(:mode AS TEXT) = 'enabled' THEN NULL
        WHEN mode = 'enabled' THEN last_seq
        ELSE left_seq END,
    mode = :mode,
    remembered = :remembered,
    invalidated_at = CASE WHEN :remembered THEN invalidated_at END,
    marked_at = CASE WHEN :remembered THEN marked_at END,
    marked_by = CASE WHEN :remembered THEN marked_by END
WHERE space = :space AND id = :id;

-- name: left_seq
-- The last record that was said before its mode forbade to learn from it.
SELECT COALESCE(left_seq, 0) FROM sessions WHERE space = :space AND id = :id;

-- name: list_spaces
-- operator
SELECT space FROM spaces WHERE space > :after ORDER BY space LIMIT :limit;
