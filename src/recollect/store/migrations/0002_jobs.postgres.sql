-- Due work and who holds it: one permanent row per (kind, key).
-- The database itself keeps marks and jobs in step: a session is marked if and only if its extract
-- job is due, claimed or parked, whichever statement set the mark.

CREATE TABLE jobs (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT NOT NULL,  -- empty for the work of the store itself
    kind TEXT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('idle', 'due', 'claimed', 'parked')),
    due_at BIGINT,  -- not before; none: at once
    first_due_at BIGINT NOT NULL,  -- the order of claims: first marked, first claimed
    owner TEXT,
    lease_expires_at BIGINT,
    token BIGINT NOT NULL DEFAULT 0,  -- rises with every claim and whenever a claim is void
    read_upto BIGINT,  -- frozen by the claim
    claimed_mark BIGINT,
    failures BIGINT NOT NULL DEFAULT 0,
    takeovers BIGINT NOT NULL DEFAULT 0,
    last_error TEXT,
    last_error_at BIGINT,
    finished_at BIGINT,
    UNIQUE (kind, key),
    CHECK ((state = 'claimed') = (owner IS NOT NULL AND lease_expires_at IS NOT NULL))
);

CREATE INDEX idx_jobs_due ON jobs (first_due_at, id) WHERE state = 'due';
CREATE INDEX idx_jobs_claimed ON jobs (lease_expires_at) WHERE state = 'claimed';
CREATE INDEX idx_jobs_open ON jobs (first_due_at, id) WHERE state <> 'idle';

-- Wakes workers on any host at the commit of whatever made a job due.
CREATE FUNCTION jobs_notify() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_notify('recollect_due', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$$;

CREATE TRIGGER jobs_became_due AFTER INSERT OR UPDATE OF state ON jobs
FOR EACH ROW WHEN (new.state = 'due') EXECUTE FUNCTION jobs_notify();

CREATE FUNCTION sessions_marked() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO jobs (space, kind, key, state, first_due_at)
    VALUES (new.space, 'extract', new.id, 'due', new.marked_at)
    ON CONFLICT (kind, key) DO UPDATE SET
        state = 'due',
        first_due_at = excluded.first_due_at,
        due_at = NULL,
        failures = 0,  -- new activity gives a parked job another chance
        takeovers = 0
    WHERE jobs.state IN ('idle', 'parked');
    RETURN NULL;
END
$$;

CREATE TRIGGER sessions_marked AFTER UPDATE OF invalidated_at ON sessions
FOR EACH ROW
WHEN (new.invalidated_at IS NOT NULL AND new.invalidated_at IS DISTINCT FROM old.invalidated_at)
EXECUTE FUNCTION sessions_marked();

CREATE FUNCTION sessions_cleared() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE jobs SET
        state = 'idle', token = token + 1, owner = NULL, lease_expires_at = NULL, due_at = NULL
    WHERE kind = 'extract' AND key = new.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER sessions_cleared AFTER UPDATE OF invalidated_at ON sessions
FOR EACH ROW WHEN (new.invalidated_at IS NULL AND old.invalidated_at IS NOT NULL)
EXECUTE FUNCTION sessions_cleared();

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON jobs USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on'
);

-- Sessions that were marked before there were jobs. The owner is subject to the policies as well.
SELECT set_config('recollect.operator', 'on', true);
INSERT INTO jobs (space, kind, key, state, first_due_at)
SELECT space, 'extract', id, 'due', marked_at FROM sessions WHERE invalidated_at IS NOT NULL;
