-- Who did what to what, and what came of it: ids that Recollect made, never what anybody said.

CREATE TABLE audit (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    space TEXT COLLATE "C",  -- none: the store
    at BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    verb TEXT COLLATE "C" NOT NULL,
    targets TEXT NOT NULL,  -- a JSON list of ids
    outcome TEXT COLLATE "C"  -- none: it is under way, or was cut short
);

CREATE INDEX idx_audit_space ON audit (space, at, id);
CREATE INDEX idx_audit_at ON audit (at, id);

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON audit USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on');
