-- Consolidation: which memories a generation was made of, which documents it has, and when the next
-- one is due.

-- The space's revision that a memory was last changed by, and the one that was consumed: the same
-- second, a clock that was set back or another pass over the same records hide no change.
ALTER TABLE extractions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extractions ADD COLUMN selected_revision INTEGER;

CREATE INDEX idx_extractions_ranked ON extractions (
    space, usage_count DESC, COALESCE(last_usage, generated_at) DESC, source_updated_at DESC,
    session_id DESC);
CREATE INDEX idx_extractions_ranked_by_source ON extractions (
    space, usage_count DESC, COALESCE(last_usage, source_updated_at) DESC, source_updated_at DESC,
    session_id DESC);
CREATE INDEX idx_facts_standing ON facts (space, usage_count DESC, valid_from DESC, id)
    WHERE deleted_at IS NULL AND superseded_by IS NULL;
CREATE INDEX idx_facts_expiring ON facts (space, expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX idx_extractions_selected ON extractions (space, session_id)
    WHERE selected_for_phase2;

ALTER TABLE consolidations ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;  -- the current one
ALTER TABLE consolidations ADD COLUMN digest TEXT;  -- of what it was made of
-- The revision that must not wait for it: something was forgotten, or a mode was changed.
ALTER TABLE consolidations ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE consolidations ADD COLUMN not_before INTEGER;  -- the end of the cooldown
ALTER TABLE consolidations ADD COLUMN expires_at INTEGER;  -- when time alone changes the selection
ALTER TABLE consolidations ADD COLUMN paused_at INTEGER;
ALTER TABLE consolidations ADD COLUMN finished_at INTEGER;
ALTER TABLE consolidations ADD COLUMN files_generation INTEGER NOT NULL DEFAULT 0;

CREATE INDEX idx_consolidations_expiring ON consolidations (expires_at)
    WHERE expires_at IS NOT NULL;

-- What was part of the last generation and cannot be asked any more why it will not be of the next.
CREATE TABLE removed_memories (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (space, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE generations (
    space TEXT NOT NULL,
    number INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    note TEXT NOT NULL,
    added INTEGER NOT NULL,
    retained INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    is_whole INTEGER NOT NULL DEFAULT 1,
    restored_from INTEGER,
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;

-- A version of a document, and the generations that have it: what does not change costs nothing.
CREATE TABLE generation_documents (
    space TEXT NOT NULL,
    document_id TEXT NOT NULL,
    first_generation INTEGER NOT NULL,
    last_generation INTEGER,  -- none: the current one has it
    version INTEGER NOT NULL,
    session_id TEXT,  -- of a summary
    PRIMARY KEY (space, document_id, first_generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_generation_documents_current ON generation_documents (space, session_id)
    WHERE last_generation IS NULL;
CREATE INDEX idx_generation_documents_old ON generation_documents (space, last_generation)
    WHERE last_generation IS NOT NULL;

-- Whether there is anything left to distil in a space, before it is consolidated.
CREATE INDEX idx_jobs_phase1 ON jobs (space)
    WHERE state IN ('due', 'claimed') AND kind IN ('extract', 'extract-again');

CREATE TRIGGER consolidations_changed AFTER UPDATE OF changed ON consolidations
WHEN new.changed > old.changed AND new.paused_at IS NULL
BEGIN
    INSERT INTO jobs (space, kind, key, state, first_due_at, due_at)
    VALUES (
        new.space, 'consolidate', new.space, 'due', new.changed_at,
        CASE WHEN new.urgent > new.consolidated THEN NULL ELSE new.not_before END)
    ON CONFLICT (kind, key) DO UPDATE SET
        state = 'due',
        first_due_at = CASE WHEN state = 'due' THEN first_due_at ELSE excluded.first_due_at END,
        due_at = excluded.due_at,
        failures = CASE WHEN state = 'parked' THEN 0 ELSE failures END,
        takeovers = CASE WHEN state = 'parked' THEN 0 ELSE takeovers END
    WHERE state IN ('idle', 'parked')  -- a run that failed keeps its time, whatever else is said
        OR (state = 'due' AND failures = 0 AND pauses = 0 AND excluded.due_at IS NULL);
END;

-- What changed before there was consolidation.
INSERT INTO jobs (space, kind, key, state, first_due_at)
SELECT space, 'consolidate', space, 'due', COALESCE(changed_at, 0) FROM consolidations
WHERE changed > consolidated;
