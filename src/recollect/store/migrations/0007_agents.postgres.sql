-- Agents at work: how they live, what waits for them, and what is to happen to them later.

-- Who may run a job: empty for any worker, else the agent that somebody has to host.
ALTER TABLE jobs ADD COLUMN lane TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE agent_lives (
    key_id BIGINT PRIMARY KEY REFERENCES session_keys (id),
    space TEXT COLLATE "C" NOT NULL,
    job TEXT NOT NULL CHECK (job IN ('agent', 'memory-agent')),
    life TEXT NOT NULL CHECK (life IN ('active', 'sleeping', 'dead')),
    since BIGINT NOT NULL,
    incarnation BIGINT NOT NULL
);

CREATE INDEX idx_agent_lives_space ON agent_lives (space, since);

-- What was not done yet. The words of an item are gone from here once its effects are stored.
CREATE TABLE inbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    key_id BIGINT NOT NULL REFERENCES agent_lives (key_id),
    item_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    about_session TEXT COLLATE "C",
    about_first BIGINT,
    about_last BIGINT,
    state TEXT NOT NULL CHECK (state IN ('queued', 'taken', 'parked', 'done')),
    turn_id TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    done_at BIGINT,
    UNIQUE (key_id, item_id)
);

CREATE INDEX idx_inbox_state ON inbox (key_id, state, id);
CREATE INDEX idx_inbox_about ON inbox (space, about_session) WHERE about_session IS NOT NULL;

CREATE TABLE signals (
    key_id BIGINT NOT NULL REFERENCES agent_lives (key_id),
    name TEXT COLLATE "C" NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (key_id, name)
);

CREATE INDEX idx_signals_due ON signals (due_at);

-- Which records of an agent speak of another session's, so that forgetting that one finds them.
CREATE TABLE told_records (
    space TEXT COLLATE "C" NOT NULL,
    about_session TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    PRIMARY KEY (about_session, session_id, first_seq)
);

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['agent_lives', 'inbox', 'signals', 'told_records'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;
