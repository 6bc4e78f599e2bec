-- What was learned from sessions: extractions, facts with their sources, and what it cost.

-- Of the store itself.
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A session can be gone through again by another extractor; each time is a pass.
ALTER TABLE sessions ADD COLUMN pass INTEGER NOT NULL DEFAULT 1;

-- How often a job was put off since it last got on: by a cap, a refused key, a provider's bad day.
ALTER TABLE jobs ADD COLUMN pauses INTEGER NOT NULL DEFAULT 0;

-- How far a run through a whole session has got: it goes on from there, and counts only when it ends.
CREATE TABLE staged_drafts (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id),
    space TEXT NOT NULL,
    pass INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    extractor TEXT NOT NULL,
    draft TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER
) STRICT, WITHOUT ROWID;

-- Every record below a cursor is in exactly one range of every pass.
CREATE TABLE new_ranges (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    pass INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    space TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    extractor TEXT,
    attempt INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost_micros INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, pass, first_seq),
    CHECK (first_seq BETWEEN 1 AND last_seq)
) STRICT, WITHOUT ROWID;
INSERT INTO new_ranges (
    session_id, pass, first_seq, last_seq, space, outcome, reason, created_at)
SELECT session_id, 1, first_seq, last_seq, space, outcome, reason, created_at
FROM session_ranges;
DROP TABLE session_ranges;
ALTER TABLE new_ranges RENAME TO session_ranges;

-- Phase 1's result, one row for a session.
CREATE TABLE extractions (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id),
    space TEXT NOT NULL,
    raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL,
    rollout_slug TEXT,
    extractor TEXT NOT NULL,
    pass INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    source_updated_at INTEGER NOT NULL,  -- when the newest record it rests on was said
    generated_at INTEGER NOT NULL,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    selected_for_phase2 INTEGER NOT NULL DEFAULT 0,
    selected_for_phase2_source_updated_at INTEGER
) STRICT;

CREATE INDEX idx_extractions_listed ON extractions (space, generated_at, session_id);

CREATE TABLE facts (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    space TEXT NOT NULL,
    content TEXT NOT NULL,
    words TEXT NOT NULL,  -- of its content, as they are searched
    content_key TEXT,  -- its words without case and punctuation; none: kept as it is, never merged
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),  -- the best of all there are
    -- Whose word it is by itself, given without a source; none: it rests on its sources alone.
    own_trust TEXT CHECK (own_trust IN ('user', 'agent', 'tool')),
    topic TEXT,
    extractor TEXT,  -- none: somebody added or edited it
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    expires_at INTEGER,  -- it says itself when it is over
    superseded_by TEXT,
    superseded_at INTEGER,
    deleted_at INTEGER,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    -- The space as a word that no text has, so that a search passes over the facts of others.
    space_token TEXT NOT NULL GENERATED ALWAYS AS ('§' || lower(hex(space))) VIRTUAL,
    UNIQUE (space, id),
    CHECK ((superseded_by IS NULL) = (superseded_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX idx_facts_content ON facts (space, content_key)
    WHERE content_key IS NOT NULL AND superseded_by IS NULL AND deleted_at IS NULL;
CREATE INDEX idx_facts_topic ON facts (space, topic, COALESCE(superseded_at, 4611686018427387904))
    WHERE topic IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX idx_facts_same ON facts (space, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX idx_facts_superseded ON facts (space, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX idx_facts_listed ON facts (space, created_at, id);

CREATE TABLE fact_sources (
    fact_key INTEGER NOT NULL REFERENCES facts (key) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    seq_to INTEGER NOT NULL,
    space TEXT NOT NULL,
    quote TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (fact_key, session_id, seq, seq_to),
    CHECK (seq BETWEEN 0 AND seq_to)  -- 0: somewhere in the session
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_fact_sources_session ON fact_sources (session_id, fact_key);
CREATE INDEX idx_fact_sources_listed
    ON fact_sources (space, fact_key, created_at, session_id, seq, seq_to);
CREATE INDEX idx_fact_sources_trust ON fact_sources (space, fact_key, trust);

CREATE TABLE fact_history (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    event TEXT NOT NULL,
    content TEXT NOT NULL,
    content_key TEXT,  -- of what it said before, where somebody changed or deleted it
    made_by TEXT NOT NULL,
    other_id TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX idx_fact_history_fact ON fact_history (space, fact_id);
CREATE INDEX idx_fact_history_content ON fact_history (space, content_key)
    WHERE content_key IS NOT NULL;

-- Words come folded and separated by blanks; nothing is left for a tokenizer but to stem them.
CREATE VIRTUAL TABLE facts_fts USING fts5 (
    words, space_token, content = 'facts', content_rowid = 'key', tokenize = 'porter ascii'
);
INSERT INTO facts_fts (facts_fts, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts (rowid, words, space_token) VALUES (new.key, new.words, new.space_token);
END;
CREATE TRIGGER facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts (facts_fts, rowid, words, space_token)
    VALUES ('delete', old.key, old.words, old.space_token);
END;
CREATE TRIGGER facts_au AFTER UPDATE OF words, space ON facts BEGIN
    INSERT INTO facts_fts (facts_fts, rowid, words, space_token)
    VALUES ('delete', old.key, old.words, old.space_token);
    INSERT INTO facts_fts (rowid, words, space_token) VALUES (new.key, new.words, new.space_token);
END;

-- Every call to a model, and what a space has used in a day.
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    session_id TEXT,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    day INTEGER NOT NULL,  -- days since the epoch, UTC
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    outcome TEXT NOT NULL CHECK (outcome IN ('reserved', 'answered', 'invalid', 'failed')),
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX idx_ledger_listed ON ledger (space, id);
CREATE INDEX idx_ledger_session ON ledger (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE spending (
    space TEXT NOT NULL,
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    PRIMARY KEY (space, day)
) STRICT, WITHOUT ROWID;

-- How often a space's memory has changed, and how much of it consolidation has seen. Whoever
-- changes what a space knows goes through its row first, so that it is also the lock for that.
CREATE TABLE consolidations (
    space TEXT PRIMARY KEY,
    changed INTEGER NOT NULL DEFAULT 0,
    consolidated INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER
) STRICT, WITHOUT ROWID;
