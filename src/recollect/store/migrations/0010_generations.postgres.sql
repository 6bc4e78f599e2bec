-- Consolidation: which memories a generation was made of, which documents it has, and when the next
-- one is due.

-- The space's revision that a memory was last changed by, and the one that was consumed: the same
-- second, a clock that was set back or another pass over the same records hide no change.
ALTER TABLE extractions ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE extractions ADD COLUMN selected_revision BIGINT;

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

ALTER TABLE consolidations ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;  -- the current one
ALTER TABLE consolidations ADD COLUMN digest TEXT;  -- of what it was made of
-- The revision that must not wait for it: something was forgotten, or a mode was changed.
ALTER TABLE consolidations ADD COLUMN urgent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE consolidations ADD COLUMN not_before BIGINT;  -- the end of the cooldown
ALTER TABLE consolidations ADD COLUMN expires_at BIGINT;  -- when time alone changes the selection
ALTER TABLE consolidations ADD COLUMN paused_at BIGINT;
ALTER TABLE consolidations ADD COLUMN finished_at BIGINT;
ALTER TABLE consolidations ADD COLUMN files_generation BIGINT NOT NULL DEFAULT 0;

CREATE INDEX idx_consolidations_expiring ON consolidations (expires_at)
    WHERE expires_at IS NOT NULL;

-- What was part of the last generation and cannot be asked any more why it will not be of the next.
CREATE TABLE removed_memories (
    space TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    reason TEXT NOT NULL,
    removed_at BIGINT NOT NULL,
    PRIMARY KEY (space, session_id)
);

CREATE TABLE generations (
    space TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    made_by TEXT NOT NULL,
    note TEXT NOT NULL,
    added BIGINT NOT NULL,
    retained BIGINT NOT NULL,
    removed BIGINT NOT NULL,
    documents BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT,
    is_whole BOOLEAN NOT NULL DEFAULT TRUE,
    restored_from BIGINT,
    PRIMARY KEY (space, number)
);

-- A version of a document, and the generations that have it: what does not change costs nothing.
CREATE TABLE generation_documents (
    space TEXT COLLATE "C" NOT NULL,
    document_id TEXT COLLATE "C" NOT NULL,
    first_generation BIGINT NOT NULL,
    last_generation BIGINT,  -- none: the current one has it
    version BIGINT NOT NULL,
    session_id TEXT COLLATE "C",  -- of a summary
    PRIMARY KEY (space, document_id, first_generation)
);

CREATE INDEX idx_generation_documents_current ON generation_documents (space, session_id)
    WHERE last_generation IS NULL;
CREATE INDEX idx_generation_documents_old ON generation_documents (space, last_generation)
    WHERE last_generation IS NOT NULL;

-- Whether there is anything left to distil in a space, before it is consolidated.
CREATE INDEX idx_jobs_phase1 ON jobs (space)
    WHERE state IN ('due', 'claimed') AND kind IN ('extract', 'extract-again');

CREATE FUNCTION consolidations_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO jobs (space, kind, key, state, first_due_at, due_at)
    VALUES (
        new.space, 'consolidate', new.space, 'due', new.changed_at,
        CASE WHEN new.urgent > new.consolidated THEN NULL ELSE new.not_before END)
    ON CONFLICT (kind, key) DO UPDATE SET
        state = 'due',
        first_due_at = CASE WHEN jobs.state = 'due' THEN jobs.first_due_at
            ELSE excluded.first_due_at END,
        due_at = excluded.due_at,
        failures = CASE WHEN jobs.state = 'parked' THEN 0 ELSE jobs.failures END,
        takeovers = CASE WHEN jobs.state = 'parked' THEN 0 ELSE jobs.takeovers END
    WHERE jobs.state IN ('idle', 'parked')  -- a run that failed keeps its time, whatever else is said
        OR (jobs.state = 'due' AND jobs.failures = 0 AND jobs.pauses = 0
            AND excluded.due_at IS NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER consolidations_changed AFTER UPDATE OF changed ON consolidations
FOR EACH ROW WHEN (new.changed > old.changed AND new.paused_at IS NULL)
EXECUTE FUNCTION consolidations_changed();

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['removed_memories', 'generations', 'generation_documents'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;

-- What changed before there was consolidation. The owner is subject to the policies as well.
SELECT set_config('recollect.operator', 'on', true);
INSERT INTO jobs (space, kind, key, state, first_due_at)
SELECT space, 'consolidate', space, 'due', COALESCE(changed_at, 0) FROM consolidations
WHERE changed > consolidated;
