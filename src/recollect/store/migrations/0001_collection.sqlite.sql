-- Spaces, agents, stable keys, sessions, their history, and what became of it.
-- Times are microseconds since the epoch, UTC.

CREATE TABLE spaces (
    space TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    space TEXT NOT NULL REFERENCES spaces (space),
    id TEXT NOT NULL,  -- the descriptor's key: /<type>/<id>
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_keys (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    key TEXT NOT NULL,
    session_id TEXT NOT NULL,  -- the current session; an ended one stays until the next append
    UNIQUE (space, key, agent_id),
    FOREIGN KEY (space, agent_id) REFERENCES agents (space, id)
) STRICT;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    space TEXT NOT NULL,
    key_id INTEGER NOT NULL REFERENCES session_keys (id),
    rotation INTEGER NOT NULL,  -- 1 for the key's first session
    source TEXT NOT NULL,
    project TEXT,
    parent TEXT,
    ephemeral INTEGER NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('enabled', 'disabled', 'polluted')),
    remembered INTEGER NOT NULL,  -- agent, mode and ephemeral together: may this be marked?
    last_seq INTEGER NOT NULL DEFAULT 0,
    unprocessed_turns INTEGER NOT NULL DEFAULT 0,  -- user records above the cursor
    invalidated_at INTEGER,  -- the mark, a seq
    processed_until INTEGER,  -- the cursor, a seq
    marked_at INTEGER,
    marked_by TEXT,
    created_at INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT,
    ended_reason TEXT,
    waiting INTEGER NOT NULL GENERATED ALWAYS AS (
        remembered AND invalidated_at IS NULL AND last_seq > COALESCE(processed_until, 0)
    ) STORED,
    CHECK (processed_until BETWEEN 1 AND last_seq),
    CHECK (invalidated_at > COALESCE(processed_until, 0)),
    CHECK ((invalidated_at IS NULL) = (marked_at IS NULL))
) STRICT;

CREATE INDEX idx_sessions_invalidated_at
    ON sessions (space, invalidated_at, marked_at) WHERE invalidated_at IS NOT NULL;
CREATE INDEX idx_sessions_waiting ON sessions (space) WHERE waiting;
CREATE UNIQUE INDEX idx_sessions_rotation ON sessions (key_id, rotation);
CREATE INDEX idx_sessions_listed ON sessions (space, created_at, id);

CREATE TABLE session_history (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    name TEXT,
    content TEXT NOT NULL,
    body TEXT,  -- the verbatim message, where role, name and content do not say it all
    append_key TEXT,
    said_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    metadata TEXT,
    UNIQUE (session_id, seq)
) STRICT;

CREATE UNIQUE INDEX idx_session_history_append_key
    ON session_history (key_id, append_key) WHERE append_key IS NOT NULL;

-- The turns a compaction kept for the new session: references, so that nothing is learned twice.
CREATE TABLE retained_records (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    position INTEGER NOT NULL,
    source_session_id TEXT NOT NULL REFERENCES sessions (id),
    source_seq INTEGER NOT NULL,
    PRIMARY KEY (session_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE summaries (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id),
    space TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every record below a cursor is in exactly one range.
CREATE TABLE session_ranges (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    space TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, first_seq),
    CHECK (first_seq BETWEEN 1 AND last_seq)
) STRICT, WITHOUT ROWID;
