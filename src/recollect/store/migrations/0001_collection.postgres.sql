-- Spaces, agents, stable keys, sessions, their history, and what became of it.
-- Names are compared byte by byte, as SQLite does, whatever the database's locale.
-- Times are microseconds since the epoch, UTC: to_timestamp(created_at / 1e6) shows one.

CREATE TABLE spaces (
    space TEXT COLLATE "C" PRIMARY KEY,
    created_at BIGINT NOT NULL
);

CREATE TABLE agents (
    space TEXT COLLATE "C" NOT NULL REFERENCES spaces (space),
    id TEXT COLLATE "C" NOT NULL,  -- the descriptor's key: /<type>/<id>
    created_at BIGINT NOT NULL,
    PRIMARY KEY (space, id)
);

CREATE TABLE session_keys (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    agent_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    session_id TEXT NOT NULL,  -- the current session; an ended one stays until the next append
    UNIQUE (space, key, agent_id),
    FOREIGN KEY (space, agent_id) REFERENCES agents (space, id)
);

CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    key_id BIGINT NOT NULL REFERENCES session_keys (id),
    rotation BIGINT NOT NULL,  -- 1 for the key's first session
    source TEXT NOT NULL,
    project TEXT,
    parent TEXT,
    ephemeral BOOLEAN NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('enabled', 'disabled', 'polluted')),
    remembered BOOLEAN NOT NULL,  -- agent, mode and ephemeral together: may this be marked?
    last_seq BIGINT NOT NULL DEFAULT 0,
    unprocessed_turns BIGINT NOT NULL DEFAULT 0,  -- user records above the cursor
    invalidated_at BIGINT,  -- the mark, a seq
    processed_until BIGINT,  -- the cursor, a seq
    marked_at BIGINT,
    marked_by TEXT,
    created_at BIGINT NOT NULL,
    last_activity_at BIGINT NOT NULL,
    ended_at BIGINT,
    ended_by TEXT,
    ended_reason TEXT,
    -- Changes only when the answer does, so that an append stays a heap-only update.
    waiting BOOLEAN NOT NULL GENERATED ALWAYS AS (
        remembered AND invalidated_at IS NULL AND last_seq > COALESCE(processed_until, 0)
    ) STORED,
    CHECK (processed_until BETWEEN 1 AND last_seq),
    CHECK (invalidated_at > COALESCE(processed_until, 0)),
    CHECK ((invalidated_at IS NULL) = (marked_at IS NULL))
) WITH (fillfactor = 70);

CREATE INDEX idx_sessions_invalidated_at
    ON sessions (space, invalidated_at, marked_at) WHERE invalidated_at IS NOT NULL;
CREATE INDEX idx_sessions_waiting ON sessions (space) WHERE waiting;
CREATE UNIQUE INDEX idx_sessions_rotation ON sessions (key_id, rotation);
CREATE INDEX idx_sessions_listed ON sessions (space, created_at, id);

CREATE TABLE session_history (
    space TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    seq BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    role TEXT NOT NULL,
    name TEXT,
    content TEXT NOT NULL,
    body TEXT,  -- the verbatim message, where role, name and content do not say it all
    append_key TEXT,
    said_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    metadata TEXT,
    PRIMARY KEY (session_id, seq)
);

CREATE UNIQUE INDEX idx_session_history_append_key
    ON session_history (key_id, append_key) WHERE append_key IS NOT NULL;

-- The turns a compaction kept for the new session: references, so that nothing is learned twice.
CREATE TABLE retained_records (
    space TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    position BIGINT NOT NULL,
    source_session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    source_seq BIGINT NOT NULL,
    PRIMARY KEY (session_id, position)
);

CREATE TABLE summaries (
    session_id TEXT COLLATE "C" PRIMARY KEY REFERENCES sessions (id),
    space TEXT COLLATE "C" NOT NULL,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Every record below a cursor is in exactly one range.
CREATE TABLE session_ranges (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, first_seq),
    CHECK (first_seq BETWEEN 1 AND last_seq)
);

-- The second wall between spaces. A transaction names its space; the few operator transactions
-- (status, the idle sweep) say so explicitly. A transaction that says neither sees nothing.
-- FORCE applies it to the owner of the tables as well.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'spaces', 'agents', 'session_keys', 'sessions', 'session_history',
        'retained_records', 'summaries', 'session_ranges'
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
