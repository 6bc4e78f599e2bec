-- Forgetting a record, a fact, an agent, or all of a space; what is about a session is with extractions.

-- name: agents_told
-- The keys of the agents that were told of a session, in the order of locks.
SELECT i.key_id FROM inbox i WHERE i.space = :space AND i.about_session = :id
UNION
SELECT s.key_id FROM told_records t
JOIN sessions s ON s.space = :space AND s.id = t.session_id
WHERE t.space = :space AND t.about_session = :id
ORDER BY 1;

-- name: memory_agents_told
-- The same, with what else they are known by.
SELECT k.space, k.key, k.agent_id, k.id FROM session_keys k WHERE k.space = :space AND k.id IN (
    SELECT i.key_id FROM inbox i WHERE i.space = :space AND i.about_session = :id
    UNION
    SELECT s.key_id FROM told_records t
    JOIN sessions s ON s.space = :space AND s.id = t.session_id
    WHERE t.space = :space AND t.about_session = :id)
ORDER BY k.id;

-- name: memory_agents
SELECT l.key_id FROM agent_lives l WHERE l.space = :space AND l.job = 'memory-agent';

-- name: revoke_agent
-- A run that has read what is forgotten can store nothing of it; what is left to do is due at once.
-- The row is locked also where no run is at work, since it comes before the inbox in lock order.
UPDATE jobs SET
    state = CASE WHEN state = 'claimed' THEN 'due' ELSE state END,
    due_at = CASE WHEN state = 'claimed' THEN NULL ELSE due_at END,
    token = token + 1, owner = NULL, lease_expires_at = NULL
WHERE kind IN ('agent', 'memory-agent') AND key = :job_key AND space = :space
RETURNING state;

-- name: revoke_consolidation
-- What a run has read may say what is forgotten, and no session of it is gone.
UPDATE jobs SET
    state = 'due', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
WHERE kind = 'consolidate' AND key = :space AND space = :space AND state = 'claimed'
RETURNING state;

-- name: find_record
SELECT h.key_id, h.role, h.append_key, h.said_at, h.created_at, h.metadata, h.content
FROM session_history h WHERE h.space = :space AND h.session_id = :id AND h.seq = :seq;

-- name: forget_own_item
-- What was said to an agent, and not answered.
DELETE FROM inbox WHERE space = :space AND key_id = :key_id AND state IN ('taken', 'parked')
    AND CAST(:said AS TEXT) || item_id = :append_key;

-- name: record_facts
-- All that rests on a record, also what was deleted or withdrawn.
SELECT DISTINCT f.key FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND :seq BETWEEN o.seq AND o.seq_to ORDER BY f.key;

-- name: withdraw_record
DELETE FROM fact_sources
WHERE space = :space AND session_id = :session_id AND fact_key = :fact_key
    AND :seq BETWEEN seq AND seq_to
RETURNING seq;

-- name: count_turns
UPDATE sessions SET unprocessed_turns = (
    SELECT count(*) FROM session_history h
    WHERE h.space = :space AND h.session_id = :id AND h.role = 'user'
        AND h.seq > COALESCE(processed_until, 0))
WHERE space = :space AND id = :id;

-- name: revoke_runs
-- A run through the session is stale; a due job stays due, without its error text.
UPDATE jobs SET
    state = CASE WHEN state = 'claimed' THEN 'due' ELSE state END,
    token = token + 1, owner = NULL, lease_expires_at = NULL, last_error = NULL, last_error_at = NULL
WHERE space = :space AND key = :id AND kind IN ('extract', 'extract-again')
RETURNING state;

-- name: find_any_fact
-- Also one that was deleted.
SELECT f.key, f.content, f.superseded_by, f.superseded_at, f.deleted_at FROM facts f
WHERE f.space = :space AND f.id = :id;

-- name: statements_of_fact
-- By what its statements are known that somebody has changed, where its sessions may bring them back.
SELECT DISTINCT h.content_key FROM fact_history h
WHERE h.space = :space AND h.fact_id = :id AND h.content_key IS NOT NULL AND h.upto IS NULL ORDER BY 1;

-- name: bury_statement
-- No word of it: a digest, and the session that must not bring it back.
INSERT INTO fact_history (
    space, fact_id, event, content, content_key, made_by, other_id, created_at, upto
) SELECT p.space, '', 'forgotten', '', :content_key, :by, :session_id, :now, (
    SELECT s.last_seq FROM sessions s WHERE s.space = :space AND s.id = :session_id)
FROM spaces p WHERE p.space = :space;

-- name: forget_statements
DELETE FROM fact_history
WHERE space = :space AND fact_id = '' AND other_id = :id;

-- name: bury_piece
-- The next generation learns that earlier ones may say what a fact or a record said. Not under the
-- name of a session: that may be part of it all the same.
INSERT INTO removed_memories (space, session_id, reason, removed_at)
SELECT :space, :name, :reason, :now
WHERE EXISTS (SELECT 1 FROM generations g WHERE g.space = :space)
ON CONFLICT (space, session_id) DO UPDATE SET
    reason = excluded.reason, removed_at = excluded.removed_at
RETURNING session_id;

-- name: forgettable_sessions
-- A page of those that had begun by a time, the oldest first, and whether they are forgotten: not
-- one of which something is left, however it came back.
SELECT s.id, s.created_at, s.forgotten_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM extractions e WHERE e.space = :space AND e.session_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM session_history h WHERE h.space = :space AND h.session_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM fact_sources o WHERE o.space = :space AND o.session_id = s.id)
FROM sessions s
JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE s.space = :space AND s.created_at <= :before AND (s.created_at, s.id) > (:after, :after_id)
    AND (:any_agent OR k.agent_id = :agent_id) AND (:any_source OR s.source = :source)
ORDER BY s.created_at, s.id LIMIT :limit;

-- name: newest_moment
-- When the newest of what is there was made, by whichever clock.
SELECT max(made.at) FROM (
    SELECT max(s.created_at) AS at FROM sessions s WHERE s.space = :space
    UNION ALL
    SELECT max(f.created_at) FROM facts f WHERE f.space = :space
    UNION ALL
    SELECT max(c.created_at) FROM fact_history c WHERE c.space = :space
    UNION ALL
    SELECT max(d.created_at) FROM documents d WHERE d.space = :space
    UNION ALL
    SELECT max(i.created_at) FROM inbox i WHERE i.space = :space) made;

-- name: keys_of_agent
SELECT k.id FROM session_keys k WHERE k.space = :space AND k.agent_id = :agent_id ORDER BY k.id;

-- name: forget_inbox
DELETE FROM inbox WHERE space = :space AND key_id = :key_id AND created_at <= :before
RETURNING item_id;

-- name: forget_life
-- One whose key goes on, or that was told something since, stays.
DELETE FROM agent_lives WHERE space = :space AND key_id = :key_id
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.space = :space AND s.key_id = :key_id)
    AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.space = :space AND i.key_id = :key_id);

-- name: drop_agent_job
DELETE FROM jobs
WHERE space = :space AND kind IN ('agent', 'memory-agent') AND key = :job_key;

-- name: forget_uses
DELETE FROM usages WHERE space = :space AND entry_kind = :kind AND entry_id = :entry_id;

-- name: forget_own_signals
DELETE FROM signals WHERE space = :space AND key_id = :key_id;

-- name: old_facts
SELECT f.key FROM facts f
WHERE f.space = :space AND f.key > :after AND f.created_at <= :before ORDER BY f.key LIMIT :limit;

-- name: forget_changes
DELETE FROM fact_history WHERE space = :space AND created_at <= :before;

-- name: old_documents
-- Also what was made since then, by rules or a model: it may say what is forgotten.
SELECT d.key, d.deleted_at, d.version, (
    SELECT count(*) FROM document_versions v WHERE v.space = :space AND v.document_key = d.key)
FROM documents d
WHERE d.space = :space AND d.key > :after AND (d.created_at <= :before OR d.author_kind <> 'person')
ORDER BY d.key LIMIT :limit;

-- name: key_left
-- The next one that a session was forgotten of.
SELECT k.id FROM session_keys k WHERE k.space = :space AND k.id > :after AND EXISTS (
    SELECT 1 FROM sessions s WHERE s.space = :space AND s.key_id = k.id AND s.forgotten_at IS NOT NULL)
ORDER BY k.id LIMIT 1;

-- name: drop_told_by
DELETE FROM told_records WHERE space = :space AND session_id IN ({forgotten_of_key});

-- name: drop_ranges
DELETE FROM session_ranges WHERE space = :space AND session_id IN ({forgotten_of_key});

-- name: drop_jobs
DELETE FROM jobs WHERE space = :space AND kind IN ('extract', 'extract-again')
    AND key IN ({forgotten_of_key});

-- fragment: forgotten_of_key
-- A key that stays, for what came since then, keeps the session that it names.
SELECT s.id FROM sessions s
WHERE s.space = :space AND s.key_id = :key_id AND s.forgotten_at IS NOT NULL AND (
    s.id <> {current} OR NOT EXISTS (
        SELECT 1 FROM sessions o
        WHERE o.space = :space AND o.key_id = :key_id AND o.forgotten_at IS NULL
        UNION ALL
        SELECT 1 FROM inbox i WHERE i.space = :space AND i.key_id = :key_id))

-- name: drop_sessions
DELETE FROM sessions WHERE space = :space AND id IN ({forgotten_of_key});

-- name: reserve_keys
-- A process that holds the number of a deleted key must not find another key under it.
INSERT INTO properties (name, value)
SELECT 'keys_from', CAST(COALESCE(max(k.id), 0) AS TEXT) FROM session_keys k WHERE k.space = :space
ON CONFLICT (name) DO UPDATE SET value = CASE
    WHEN CAST(excluded.value AS BIGINT) > CAST(properties.value AS BIGINT) THEN excluded.value
    ELSE properties.value END;

-- name: drop_key
DELETE FROM session_keys WHERE space = :space AND id = :key_id
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.space = :space AND s.key_id = :key_id)
    AND NOT EXISTS (SELECT 1 FROM agent_lives l WHERE l.space = :space AND l.key_id = :key_id)
RETURNING id;

-- name: drop_agents
DELETE FROM agents WHERE space = :space AND NOT EXISTS (
    SELECT 1 FROM session_keys k WHERE k.space = :space AND k.agent_id = agents.id);

-- name: drop_generations
DELETE FROM generations WHERE space = :space;

-- name: drop_generation_documents
DELETE FROM generation_documents WHERE space = :space;

-- name: drop_tombstones
DELETE FROM removed_memories WHERE space = :space;

-- name: drop_usages
DELETE FROM usages WHERE space = :space;

-- name: drop_calls
-- What was spent stays in the books; who for does not.
UPDATE ledger SET session_id = NULL WHERE space = :space AND session_id IS NOT NULL;

-- name: drop_imported
DELETE FROM imported_items WHERE space = :space;

-- name: drop_import_cursors
DELETE FROM import_cursors WHERE space = :space;

-- name: settle_consolidation
-- Nothing was consolidated of what has come since. Numbers go on, so that nobody takes a new
-- generation for an old one.
UPDATE consolidations SET
    urgent = 0, digest = NULL, expires_at = NULL, not_before = NULL, files_generation = generation
WHERE space = :space;

-- name: drop_consolidation_job
DELETE FROM jobs WHERE space = :space AND kind = 'consolidate' AND key = :space;

-- name: drop_tree
DELETE FROM trees WHERE space = :space;

-- name: drop_consolidation
DELETE FROM consolidations WHERE space = :space
    AND NOT EXISTS (SELECT 1 FROM spaces s WHERE s.space = :space);

-- name: name_left
-- Where the name of a space stays: what was spent, who did what, which keys open it, and what those
-- who hold vectors in memory have to know.
SELECT EXISTS (SELECT 1 FROM ledger l WHERE l.space = :space)
        OR EXISTS (SELECT 1 FROM spending p WHERE p.space = :space),
    EXISTS (SELECT 1 FROM audit a WHERE a.space = :space),
    EXISTS (SELECT 1 FROM api_keys k WHERE k.space = :space),
    EXISTS (SELECT 1 FROM vector_spaces v WHERE v.space = :space)
        OR EXISTS (SELECT 1 FROM dropped_vectors d WHERE d.space = :space);

-- name: drop_space
DELETE FROM spaces WHERE space = :space
    AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.space = :space)
    AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.space = :space)
    AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.space = :space);

-- name: find_space
SELECT 1 FROM spaces WHERE space = :space;
