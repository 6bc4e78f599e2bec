-- Consolidation: what is selected, what a generation has, and when the next one is due.

-- fragment: pick
e.session_id, e.revision, e.source_updated_at, e.selected_for_phase2, e.selected_revision

-- name: select_memories
-- The most used first, then the most recently used or made: in the order of an index, so that what
-- is not selected is hardly looked at.
SELECT {pick}, COALESCE(e.last_usage, e.generated_at)
FROM extractions e CROSS JOIN sessions s
WHERE e.space = :space AND s.id = e.session_id AND s.space = :space AND s.remembered
    AND COALESCE(e.last_usage, e.generated_at) >= :cutoff
ORDER BY e.usage_count DESC, COALESCE(e.last_usage, e.generated_at) DESC,
    e.source_updated_at DESC, e.session_id DESC
LIMIT :limit;

-- name: select_memories_by_source
SELECT {pick}, COALESCE(e.last_usage, e.source_updated_at)
FROM extractions e CROSS JOIN sessions s
WHERE e.space = :space AND s.id = e.session_id AND s.space = :space AND s.remembered
    AND COALESCE(e.last_usage, e.source_updated_at) >= :cutoff
ORDER BY e.usage_count DESC, COALESCE(e.last_usage, e.source_updated_at) DESC,
    e.source_updated_at DESC, e.session_id DESC
LIMIT :limit;

-- name: selected_before
SELECT e.session_id, s.mode, s.remembered FROM {memories_selected} e CROSS JOIN sessions s
WHERE e.space = :space AND e.selected_for_phase2 AND s.id = e.session_id AND s.space = :space;

-- fragment: memories_selected (sqlite)
-- Few of many, which SQLite does not know.
(SELECT * FROM extractions INDEXED BY idx_extractions_selected
    WHERE space = :space AND selected_for_phase2)

-- fragment: memories_selected (postgres)
extractions

-- name: removed_memories
SELECT r.session_id, r.reason FROM removed_memories r WHERE r.space = :space ORDER BY r.session_id;

-- name: summary_documents
-- Which page of the current generation stands for which session.
SELECT g.session_id, d.path FROM generation_documents g
JOIN documents d ON d.space = :space AND d.id = g.document_id AND d.deleted_at IS NULL
WHERE g.space = :space AND g.last_generation IS NULL AND g.session_id IS NOT NULL;

-- name: next_fact_change
-- When the first of the facts that hold will be over by itself.
SELECT min(f.expires_at) FROM facts f
WHERE f.space = :space AND f.expires_at > :now AND f.deleted_at IS NULL
    AND f.superseded_by IS NULL;

-- name: get_consolidation
SELECT c.changed, c.consolidated, c.changed_at, c.generation, c.digest, c.urgent
FROM consolidations c WHERE c.space = :space;

-- name: load_memo
SELECT {extraction}, e.revision, s.created_at, (
    SELECT h.said_at FROM session_history h
    WHERE h.space = :space AND h.session_id = :session_id ORDER BY h.seq LIMIT 1
), k.key, k.agent_id, s.project
FROM extractions e JOIN sessions s ON s.space = :space AND s.id = e.session_id
JOIN session_keys k ON k.space = :space AND k.id = s.key_id
WHERE e.space = :space AND s.space = :space AND e.session_id = :session_id;

-- name: standing_facts
-- Live facts that are somebody's own, or that a selected memory supports; the most useful first.
SELECT f.key, {fact} FROM facts f
WHERE f.space = :space AND {holds} AND f.superseded_by IS NULL AND (
    f.own_trust IS NOT NULL OR f.extractor IS NULL OR EXISTS (
        SELECT 1 FROM fact_sources o
        WHERE o.space = :space AND o.fact_key = f.key AND o.session_id IN ({each_session})))
ORDER BY f.usage_count DESC, f.valid_from DESC, f.id LIMIT :limit;

-- fragment: each_session (sqlite)
SELECT i.value FROM json_each(:sessions) i

-- fragment: each_session (postgres)
SELECT json_array_elements_text(CAST(:sessions AS json))

-- name: standing_sources
-- Where a fact stands in selected memories, of one that has more sources than are looked at.
SELECT o.session_id, o.seq, o.seq_to, o.quote FROM fact_sources o
WHERE o.space = :space AND o.fact_key = :key AND o.session_id IN ({each_session})
ORDER BY o.created_at DESC, o.session_id, o.seq, o.seq_to LIMIT :limit;

-- name: project_of_session
SELECT s.project FROM sessions s WHERE s.space = :space AND s.id = :id;

-- name: lost_memories
-- Of what a run was made of, what must not be published any more.
SELECT i.id FROM ({every_session}) i
LEFT JOIN extractions e ON e.space = :space AND e.session_id = i.id
LEFT JOIN sessions s ON s.space = :space AND s.id = i.id
WHERE e.session_id IS NULL OR NOT s.remembered LIMIT 1;

-- fragment: every_session (sqlite)
SELECT j.value AS id FROM json_each(:sessions) j

-- fragment: every_session (postgres)
SELECT json_array_elements_text(CAST(:sessions AS json)) AS id

-- name: bury_memory
-- A memory of the current generation is about to go: the next one learns of it here. What is to be
-- forgotten is buried also where it is in earlier generations alone, and no memory is left of it.
INSERT INTO removed_memories (space, session_id, reason, removed_at)
SELECT :space, :session_id, :reason, :now
WHERE EXISTS (
        SELECT 1 FROM extractions e
        WHERE e.space = :space AND e.session_id = :session_id AND e.selected_for_phase2)
    OR EXISTS (
        SELECT 1 FROM removed_memories r WHERE r.space = :space AND r.session_id = :session_id)
    OR EXISTS (
        SELECT 1 FROM generation_documents g WHERE g.space = :space AND g.session_id = :session_id
            AND (g.last_generation IS NULL OR :reason = 'forgotten'))
ON CONFLICT (space, session_id) DO UPDATE SET
    reason = excluded.reason, removed_at = excluded.removed_at
RETURNING session_id;

-- name: note_urgent
-- As `note_change`, and what changed must not wait for a cooldown.
UPDATE consolidations SET changed = changed + 1, urgent = changed + 1, changed_at = :now
WHERE space = :space;

-- name: has_memory
SELECT 1 FROM extractions e WHERE e.space = :space AND e.session_id = :id;

-- name: consume_memory
-- Exactly the state that was read; a later one is news for the next generation.
UPDATE extractions SET
    selected_for_phase2 = TRUE,
    selected_revision = :revision,
    selected_for_phase2_source_updated_at = :source_updated_at
WHERE space = :space AND session_id = :session_id;

-- name: deselect_memory
UPDATE extractions SET
    selected_for_phase2 = FALSE,
    selected_revision = NULL,
    selected_for_phase2_source_updated_at = NULL
WHERE space = :space AND session_id = :session_id;

-- name: drop_tombstone
-- The one that was seen: what was forgotten since is for the next generation.
DELETE FROM removed_memories
WHERE space = :space AND session_id = :session_id AND reason = :reason;

-- name: close_document
-- From this generation on another version of it counts, or none.
UPDATE generation_documents SET last_generation = :generation - 1
WHERE space = :space AND document_id = :document_id AND last_generation IS NULL
RETURNING session_id, version;

-- name: opened_document
-- That this very generation has and none before it.
SELECT g.session_id, g.version FROM generation_documents g
WHERE g.space = :space AND g.document_id = :document_id AND g.first_generation = :generation
    AND g.last_generation IS NULL;

-- name: amend_generation
UPDATE generations SET made_by = :made_by, documents = :documents, parts = :parts
WHERE space = :space AND number = :number;

-- name: amend_digest
UPDATE consolidations SET digest = :digest WHERE space = :space;

-- name: open_document
INSERT INTO generation_documents (space, document_id, first_generation, version, session_id)
VALUES (:space, :document_id, :generation, :version, :session_id);

-- name: current_version
SELECT g.version FROM generation_documents g
WHERE g.space = :space AND g.document_id = :document_id AND g.last_generation IS NULL;

-- name: count_generation
SELECT count(*) FROM generation_documents g WHERE g.space = :space AND g.last_generation IS NULL;

-- name: insert_generation
INSERT INTO generations (
    space, number, made_at, made_by, note, added, retained, removed, documents, changed, calls,
    input_tokens, output_tokens, cost_micros, restored_from, parts
) VALUES (
    :space, :number, :now, :made_by, :note, :added, :retained, :removed, :documents, :changed, :calls,
    :input_tokens, :output_tokens, :cost_micros, :restored_from, :parts
);

-- name: complete_consolidation
-- The watermark never goes back.
UPDATE consolidations SET
    consolidated = {greatest}(consolidated, :revision),
    generation = :generation,
    digest = :digest,
    not_before = CASE WHEN :is_new THEN :not_before ELSE not_before END,
    expires_at = :expires_at,
    finished_at = :now
WHERE space = :space
RETURNING changed, consolidated, urgent, paused_at, not_before;

-- name: finish_consolidation
-- Idle, or due again where something changed meanwhile; the holder's claim is stale from now on.
UPDATE jobs SET
    state = CASE WHEN :is_due THEN 'due' ELSE 'idle' END,
    token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = :due_at,
    first_due_at = CASE WHEN :is_due THEN :now ELSE first_due_at END,
    failures = 0, takeovers = 0, pauses = 0, last_error = NULL, last_error_at = NULL,
    finished_at = :now
WHERE space = :space AND kind = 'consolidate' AND key = :space
RETURNING state;

-- name: lock_consolidation (sqlite)
SELECT 1 FROM jobs
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed' AND kind = 'consolidate'
    AND key = :space;

-- name: lock_consolidation (postgres)
SELECT 1 FROM jobs
WHERE space = :space AND id = :id AND token = :token AND state = 'claimed' AND kind = 'consolidate'
    AND key = :space
FOR UPDATE;

-- fragment: generation
g.space, g.number, g.made_at, g.made_by, g.note, g.added, g.retained, g.removed, g.documents, g.changed,
g.calls, g.input_tokens, g.output_tokens, g.cost_micros, g.is_whole, g.restored_from

-- name: list_generations
SELECT {generation} FROM generations g
WHERE g.space = :space AND g.number < :before ORDER BY g.number DESC LIMIT :limit;

-- name: get_generation
SELECT {generation} FROM generations g WHERE g.space = :space AND g.number = :number;

-- name: parts_of_generation
SELECT g.parts FROM generations g WHERE g.space = :space AND g.number = :number;

-- name: documents_of_generation
SELECT g.document_id, g.version, g.session_id FROM generation_documents g
WHERE g.space = :space AND g.first_generation <= :number
    AND (g.last_generation IS NULL OR g.last_generation >= :number)
ORDER BY g.document_id;

-- name: prune_generations
DELETE FROM generations WHERE space = :space AND number <= :upto;

-- name: prunable_documents
-- Versions that no generation that is kept has any more.
SELECT g.document_id, g.version, g.first_generation FROM generation_documents g
WHERE g.space = :space AND g.last_generation <= :upto;

-- name: forgettable_documents
-- Versions that may say what was forgotten: all earlier ones but the summaries of other sessions. Of
-- a session that goes on without a record, those of its own.
SELECT g.document_id, g.version, g.first_generation FROM generation_documents g
WHERE g.space = :space AND g.last_generation IS NOT NULL AND (
    g.session_id IS NULL OR EXISTS (
        SELECT 1 FROM removed_memories r
        WHERE r.space = :space AND r.reason = 'forgotten' AND (
            r.session_id = g.session_id
            OR substr(r.session_id, 1, 8 + length(g.session_id)) = 'record ' || g.session_id || ' ')));

-- name: drop_generation_document
DELETE FROM generation_documents
WHERE space = :space AND document_id = :document_id AND first_generation = :first_generation;

-- name: has_generation_document
SELECT 1 FROM generation_documents g
WHERE g.space = :space AND g.document_id = :document_id LIMIT 1;

-- name: spoil_generations
-- They cannot be restored: some of what they had is gone for good.
UPDATE generations SET is_whole = FALSE WHERE space = :space AND number < :number AND is_whole;

-- name: expired_selections
-- operator
SELECT c.space FROM consolidations c
WHERE c.expires_at <= {now} ORDER BY c.space;

-- name: expire_selection
-- Time alone has changed what would be selected.
UPDATE consolidations SET changed = changed + 1, changed_at = :now, expires_at = NULL
WHERE space = :space AND expires_at <= :now
RETURNING space;

-- name: prunable_memories
-- operator
SELECT e.space, e.session_id FROM extractions e
WHERE NOT e.selected_for_phase2 AND COALESCE(e.last_usage, e.generated_at) < :cutoff
ORDER BY COALESCE(e.last_usage, e.generated_at), e.session_id LIMIT :limit;

-- name: prune_memory
DELETE FROM extractions WHERE space = :space AND session_id = :session_id
    AND NOT selected_for_phase2 AND COALESCE(last_usage, generated_at) < :cutoff
RETURNING key, {words_gone};

-- name: request_consolidation
-- Due at once, whatever it waited for; one that runs goes on.
INSERT INTO jobs (space, kind, key, state, first_due_at)
VALUES (:space, 'consolidate', :space, 'due', {now})
ON CONFLICT (space, kind, key) DO UPDATE SET
    state = 'due', due_at = NULL, failures = 0, takeovers = 0, pauses = 0
WHERE jobs.state <> 'claimed'
RETURNING state;

-- fragment: is_cooling
state = 'due' AND kind = 'consolidate' AND due_at IS NOT NULL AND failures = 0 AND pauses = 0

-- name: cooling_consolidations
-- operator
SELECT space FROM jobs WHERE {is_cooling} ORDER BY space;

-- name: hurry_consolidation
-- Let what waits for a cooldown be due at once; what failed waits on.
UPDATE jobs SET due_at = NULL WHERE space = :space AND key = :space AND {is_cooling} RETURNING state;

-- name: pause_consolidation
UPDATE consolidations SET paused_at = :now WHERE space = :space AND paused_at IS NULL;

-- name: rest_consolidation
-- Nothing to do; a run at work on it loses its claim.
UPDATE jobs SET
    state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
WHERE space = :space AND kind = 'consolidate' AND key = :space;

-- name: resume_consolidation
UPDATE consolidations SET paused_at = NULL WHERE space = :space AND paused_at IS NOT NULL
RETURNING changed, consolidated;

-- name: is_paused
SELECT 1 FROM consolidations c WHERE c.space = :space AND c.paused_at IS NOT NULL;

-- name: consolidation_states
-- operator
SELECT c.space, c.generation, c.changed, c.consolidated, c.changed_at, c.finished_at, c.paused_at,
    c.expires_at, COALESCE(j.state, 'idle'), j.due_at, COALESCE(j.failures, 0), j.last_error, (
        SELECT count(*) FROM jobs p WHERE p.space = c.space AND p.state IN ('due', 'claimed')
            AND p.kind IN ('extract', 'extract-again')
            AND (p.state = 'claimed' OR p.due_at IS NULL OR p.due_at <= {now}))
FROM consolidations c LEFT JOIN jobs j ON j.space = c.space AND j.kind = 'consolidate' AND j.key = c.space
WHERE (:any_space OR c.space = :space) AND c.space > :after ORDER BY c.space LIMIT :limit;

-- name: files_published
UPDATE consolidations SET files_generation = :generation
WHERE space = :space AND files_generation < :generation;

-- name: without_files
-- operator
-- Spaces whose current generation was not written as files, as far as anybody knows.
SELECT c.space, c.generation FROM consolidations c
WHERE c.files_generation < c.generation AND (:any_space OR c.space = :space)
ORDER BY c.space LIMIT :limit;
