-- Vectors of entries, by the model that made them. They go with what they are of, and when it changes.

CREATE TABLE vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fact', 'document', 'summary', 'record')),
    entry_key INTEGER NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model, kind, entry_key)
) STRICT;

CREATE INDEX idx_vectors_entry ON vectors (kind, entry_key);
CREATE INDEX idx_vectors_space ON vectors (space, model, key);

-- Which are gone, for those who hold them in memory.
CREATE TABLE dropped_vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    kind TEXT NOT NULL,
    entry_key INTEGER NOT NULL
) STRICT;

CREATE INDEX idx_dropped_vectors_space ON dropped_vectors (space, key);

-- Whoever adds vectors to a space goes through its row first, so that their keys come in order.
CREATE TABLE vector_spaces (space TEXT PRIMARY KEY, additions INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- The models there are vectors of, and how far each has seen the records: those never change.
CREATE TABLE embedded_records (model TEXT PRIMARY KEY, upto INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TRIGGER vectors_ad AFTER DELETE ON vectors BEGIN
    INSERT INTO dropped_vectors (space, kind, entry_key)
    VALUES (old.space, old.kind, old.entry_key);
END;
CREATE TRIGGER session_history_vectors AFTER DELETE ON session_history BEGIN
    DELETE FROM vectors WHERE kind = 'record' AND entry_key = old.id;
    -- What comes next may get the number of what is gone.
    UPDATE embedded_records SET upto = (SELECT COALESCE(max(h.id), 0) FROM session_history h)
    WHERE upto > (SELECT COALESCE(max(h.id), 0) FROM session_history h);
END;
CREATE TRIGGER facts_vectors_ad AFTER DELETE ON facts BEGIN
    DELETE FROM vectors WHERE kind = 'fact' AND entry_key = old.key;
END;
CREATE TRIGGER facts_vectors_au AFTER UPDATE OF content ON facts
WHEN old.content <> new.content BEGIN
    DELETE FROM vectors WHERE kind = 'fact' AND entry_key = old.key;
END;
CREATE TRIGGER extractions_vectors_ad AFTER DELETE ON extractions BEGIN
    DELETE FROM vectors WHERE kind = 'summary' AND entry_key = old.key;
END;
CREATE TRIGGER extractions_vectors_au AFTER UPDATE OF rollout_summary ON extractions
WHEN old.rollout_summary <> new.rollout_summary BEGIN
    DELETE FROM vectors WHERE kind = 'summary' AND entry_key = old.key;
END;
CREATE TRIGGER documents_vectors_ad AFTER DELETE ON documents BEGIN
    DELETE FROM vectors WHERE kind = 'document' AND entry_key = old.key;
END;
CREATE TRIGGER documents_vectors_au AFTER UPDATE OF version ON documents BEGIN
    DELETE FROM vectors WHERE kind = 'document' AND entry_key = old.key;
END;
