-- Who did what to what, and what came of it: ids that Recollect made, never what anybody said.

CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    space TEXT,  -- none: the store
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    targets TEXT NOT NULL,  -- a JSON list of ids
    outcome TEXT  -- none: it is under way, or was cut short
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_audit_space ON audit (space, at, id);
CREATE INDEX idx_audit_at ON audit (at, id);
