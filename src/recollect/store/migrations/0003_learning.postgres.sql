-- What was learned from sessions: extractions, facts with their sources, and what it cost.

-- Of the store itself.
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- A session can be gone through again by another extractor; each time is a pass.
ALTER TABLE sessions ADD COLUMN pass BIGINT NOT NULL DEFAULT 1;

-- How often a job was put off since it last got on: by a cap, a refused key, a provider's bad day.
ALTER TABLE jobs ADD COLUMN pauses BIGINT NOT NULL DEFAULT 0;

-- How far a run through a whole session has got: it goes on from there, and counts only when it ends.
CREATE TABLE staged_drafts (
    session_id TEXT COLLATE "C" PRIMARY KEY REFERENCES sessions (id),
    space TEXT COLLATE "C" NOT NULL,
    pass BIGINT NOT NULL,
    upto BIGINT NOT NULL,
    extractor TEXT NOT NULL,
    draft TEXT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT
);

-- Every record below a cursor is in exactly one range of every pass.
ALTER TABLE session_ranges
    ADD COLUMN pass BIGINT NOT NULL DEFAULT 1,
    ADD COLUMN extractor TEXT,
    ADD COLUMN attempt BIGINT,
    ADD COLUMN input_tokens BIGINT,
    ADD COLUMN output_tokens BIGINT,
    ADD COLUMN cost_micros BIGINT,
    DROP CONSTRAINT session_ranges_pkey,
    ADD PRIMARY KEY (session_id, pass, first_seq);
ALTER TABLE session_ranges ALTER COLUMN pass DROP DEFAULT;

-- Phase 1's result, one row for a session.
CREATE TABLE extractions (
    session_id TEXT COLLATE "C" PRIMARY KEY REFERENCES sessions (id),
    space TEXT COLLATE "C" NOT NULL,
    raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL,
    rollout_slug TEXT,
    extractor TEXT NOT NULL,
    pass BIGINT NOT NULL,
    upto BIGINT NOT NULL,
    source_updated_at BIGINT NOT NULL,  -- when the newest record it rests on was said
    generated_at BIGINT NOT NULL,
    usage_count BIGINT NOT NULL DEFAULT 0,
    last_usage BIGINT,
    selected_for_phase2 BOOLEAN NOT NULL DEFAULT false,
    selected_for_phase2_source_updated_at BIGINT
);

CREATE INDEX idx_extractions_listed ON extractions (space, generated_at, session_id);

-- Words come folded and separated by blanks. Each is stemmed and none is left out: the server's own
-- configurations know stop words, and take a path or an address for one word.
CREATE TEXT SEARCH DICTIONARY recollect_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION recollect_words (PARSER = "default");
ALTER TEXT SEARCH CONFIGURATION recollect_words
    ADD MAPPING FOR asciiword, word, numword, int, uint, sfloat WITH recollect_stem;

CREATE TABLE facts (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    content TEXT NOT NULL,
    words TEXT NOT NULL,  -- of its content, as they are searched
    content_key TEXT COLLATE "C",  -- its words without case and punctuation; none: kept as it is, never merged
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),  -- the best of all there are
    -- Whose word it is by itself, given without a source; none: it rests on its sources alone.
    own_trust TEXT CHECK (own_trust IN ('user', 'agent', 'tool')),
    topic TEXT COLLATE "C",
    extractor TEXT,  -- none: somebody added or edited it
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    valid_from BIGINT NOT NULL,
    expires_at BIGINT,  -- it says itself when it is over
    superseded_by TEXT COLLATE "C",
    superseded_at BIGINT,
    deleted_at BIGINT,
    usage_count BIGINT NOT NULL DEFAULT 0,
    last_usage BIGINT,
    search TSVECTOR GENERATED ALWAYS AS (to_tsvector('recollect_words', words)) STORED,
    UNIQUE (space, id),
    CHECK ((superseded_by IS NULL) = (superseded_at IS NULL))
);

CREATE UNIQUE INDEX idx_facts_content ON facts (space, content_key)
    WHERE content_key IS NOT NULL AND superseded_by IS NULL AND deleted_at IS NULL;
CREATE INDEX idx_facts_topic ON facts (space, topic, COALESCE(superseded_at, 4611686018427387904))
    WHERE topic IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX idx_facts_same ON facts (space, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX idx_facts_superseded ON facts (space, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX idx_facts_search ON facts USING gin (search);
CREATE INDEX idx_facts_listed ON facts (space, created_at, id);

CREATE TABLE fact_sources (
    fact_key BIGINT NOT NULL REFERENCES facts (key) ON DELETE CASCADE,
    session_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    seq_to BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    quote TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (fact_key, session_id, seq, seq_to),
    CHECK (seq BETWEEN 0 AND seq_to)  -- 0: somewhere in the session
);

CREATE INDEX idx_fact_sources_session ON fact_sources (session_id, fact_key);
CREATE INDEX idx_fact_sources_listed
    ON fact_sources (space, fact_key, created_at, session_id, seq, seq_to);
CREATE INDEX idx_fact_sources_trust ON fact_sources (space, fact_key, trust);

CREATE TABLE fact_history (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    fact_id TEXT COLLATE "C" NOT NULL,
    event TEXT NOT NULL,
    content TEXT NOT NULL,
    content_key TEXT COLLATE "C",  -- of what it said before, where somebody changed or deleted it
    made_by TEXT NOT NULL,
    other_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL
);

CREATE INDEX idx_fact_history_fact ON fact_history (space, fact_id);
CREATE INDEX idx_fact_history_content ON fact_history (space, content_key)
    WHERE content_key IS NOT NULL;

-- Every call to a model, and what a space has used in a day.
CREATE TABLE ledger (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    day BIGINT NOT NULL,  -- days since the epoch, UTC
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT,
    outcome TEXT NOT NULL CHECK (outcome IN ('reserved', 'answered', 'invalid', 'failed')),
    created_at BIGINT NOT NULL
);

CREATE INDEX idx_ledger_listed ON ledger (space, id);
CREATE INDEX idx_ledger_session ON ledger (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE spending (
    space TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_micros BIGINT,
    PRIMARY KEY (space, day)
);

-- How often a space's memory has changed, and how much of it consolidation has seen. Whoever
-- changes what a space knows goes through its row first, so that it is also the lock for that.
CREATE TABLE consolidations (
    space TEXT COLLATE "C" PRIMARY KEY,
    changed BIGINT NOT NULL DEFAULT 0,
    consolidated BIGINT NOT NULL DEFAULT 0,
    changed_at BIGINT
);

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'extractions', 'facts', 'fact_sources', 'fact_history', 'ledger', 'spending',
        'consolidations', 'staged_drafts'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;
