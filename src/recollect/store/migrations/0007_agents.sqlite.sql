-- Agents at work: how they live, what waits for them, and what is to happen to them later.

-- Who may run a job: empty for any worker, else the agent that somebody has to host.
ALTER TABLE jobs ADD COLUMN lane TEXT NOT NULL DEFAULT '';

CREATE TABLE agent_lives (
    key_id INTEGER PRIMARY KEY REFERENCES session_keys (id),
    space TEXT NOT NULL,
    job TEXT NOT NULL CHECK (job IN ('agent', 'memory-agent')),
    life TEXT NOT NULL CHECK (life IN ('active', 'sleeping', 'dead')),
    since INTEGER NOT NULL,
    incarnation INTEGER NOT NULL
) STRICT;

CREATE INDEX idx_agent_lives_space ON agent_lives (space, since);

-- What was not done yet. The words of an item are gone from here once its effects are stored.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    key_id INTEGER NOT NULL REFERENCES agent_lives (key_id),
    item_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    about_session TEXT,
    about_first INTEGER,
    about_last INTEGER,
    state TEXT NOT NULL CHECK (state IN ('queued', 'taken', 'parked', 'done')),
    turn_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    done_at INTEGER,
    UNIQUE (key_id, item_id)
) STRICT;

CREATE INDEX idx_inbox_state ON inbox (key_id, state, id);
CREATE INDEX idx_inbox_about ON inbox (space, about_session) WHERE about_session IS NOT NULL;

CREATE TABLE signals (
    key_id INTEGER NOT NULL REFERENCES agent_lives (key_id),
    name TEXT NOT NULL,
    space TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (key_id, name)
) STRICT;

CREATE INDEX idx_signals_due ON signals (due_at);

-- Which records of an agent speak of another session's, so that forgetting that one finds them.
CREATE TABLE told_records (
    space TEXT NOT NULL,
    about_session TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (about_session, session_id, first_seq)
) STRICT;
