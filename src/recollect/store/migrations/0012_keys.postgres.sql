-- Who may come in over HTTP, and to which space. Of a secret only its digest is kept.

CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL UNIQUE,
    space TEXT COLLATE "C",  -- none: all of them
    scope TEXT COLLATE "C" NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON api_keys USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on');
