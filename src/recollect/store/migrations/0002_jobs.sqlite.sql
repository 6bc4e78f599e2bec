-- Due work and who holds it: one permanent row per (kind, key).
-- The database itself keeps marks and jobs in step: a session is marked if and only if its extract
-- job is due, claimed or parked, whichever statement set the mark.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,  -- empty for the work of the store itself
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('idle', 'due', 'claimed', 'parked')),
    due_at INTEGER,  -- not before; none: at once
    first_due_at INTEGER NOT NULL,  -- the order of claims: first marked, first claimed
    owner TEXT,
    lease_expires_at INTEGER,
    token INTEGER NOT NULL DEFAULT 0,  -- rises with every claim and whenever a claim is void
    read_upto INTEGER,  -- frozen by the claim
    claimed_mark INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    takeovers INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    last_error_at INTEGER,
    finished_at INTEGER,
    UNIQUE (kind, key),
    CHECK ((state = 'claimed') = (owner IS NOT NULL AND lease_expires_at IS NOT NULL))
) STRICT;

CREATE INDEX idx_jobs_due ON jobs (first_due_at, id) WHERE state = 'due';
CREATE INDEX idx_jobs_claimed ON jobs (lease_expires_at) WHERE state = 'claimed';
CREATE INDEX idx_jobs_open ON jobs (first_due_at, id) WHERE state <> 'idle';

CREATE TRIGGER sessions_marked AFTER UPDATE OF invalidated_at ON sessions
WHEN new.invalidated_at IS NOT NULL AND new.invalidated_at IS NOT old.invalidated_at
BEGIN
    INSERT INTO jobs (space, kind, key, state, first_due_at)
    VALUES (new.space, 'extract', new.id, 'due', new.marked_at)
    ON CONFLICT (kind, key) DO UPDATE SET
        state = 'due',
        first_due_at = excluded.first_due_at,
        due_at = NULL,
        failures = 0,  -- new activity gives a parked job another chance
        takeovers = 0
    WHERE state IN ('idle', 'parked');
END;

CREATE TRIGGER sessions_cleared AFTER UPDATE OF invalidated_at ON sessions
WHEN new.invalidated_at IS NULL AND old.invalidated_at IS NOT NULL
BEGIN
    UPDATE jobs SET
        state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
    WHERE kind = 'extract' AND key = new.id;
END;

-- Sessions that were marked before there were jobs.
INSERT INTO jobs (space, kind, key, state, first_due_at)
SELECT space, 'extract', id, 'due', marked_at FROM sessions WHERE invalidated_at IS NOT NULL;
