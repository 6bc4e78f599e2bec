-- What recall searches: facts, records and what sessions came to, by their words. As with documents,
-- the number of its space stands before every word of an entry.

-- Facts.
DROP TRIGGER facts_ai;
DROP TRIGGER facts_ad;
DROP TRIGGER facts_au;
DROP TABLE facts_fts;
ALTER TABLE facts DROP COLUMN space_token;
-- Facts were indexed by their words as they stand there; those are read again in time.
ALTER TABLE facts ADD COLUMN stemmed INTEGER NOT NULL DEFAULT 1;
UPDATE facts SET stemmed = 0;
CREATE INDEX idx_facts_unstemmed ON facts (key) WHERE NOT stemmed;
-- `words` as they are, for whoever looks with a tool of their own.
CREATE VIRTUAL TABLE facts_fts USING fts5 (
    words, own_words, content = '', tokenize = 'porter ascii'
);
INSERT INTO facts_fts (facts_fts, rank) VALUES ('secure-delete', 1);
INSERT INTO facts_fts (rowid, words, own_words)
SELECT f.key, f.words, replace(' ' || f.words, ' ', ' ' || s.number || 'z')
FROM facts f JOIN spaces s ON s.space = f.space;

CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts (rowid, words, own_words)
    SELECT new.key, new.words, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
CREATE TRIGGER facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts (facts_fts, rowid, words, own_words)
    SELECT 'delete', old.key, old.words, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
END;
CREATE TRIGGER facts_au AFTER UPDATE OF words ON facts WHEN old.words IS NOT new.words BEGIN
    INSERT INTO facts_fts (facts_fts, rowid, words, own_words)
    SELECT 'delete', old.key, old.words, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
    INSERT INTO facts_fts (rowid, words, own_words)
    SELECT new.key, new.words, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
CREATE INDEX idx_facts_space ON facts (space, key);

-- What sessions came to. A key of its own, because a bare rowid may change.
CREATE TABLE new_extractions (
    key INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE REFERENCES sessions (id),
    space TEXT NOT NULL,
    raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL,
    rollout_slug TEXT,
    extractor TEXT NOT NULL,
    pass INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    source_updated_at INTEGER NOT NULL,  -- when the newest record it rests on was said
    generated_at INTEGER NOT NULL,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    selected_for_phase2 INTEGER NOT NULL DEFAULT 0,
    selected_for_phase2_source_updated_at INTEGER,
    words TEXT  -- none: written before they were searched, and read again in time
) STRICT;
INSERT INTO new_extractions (
    session_id, space, raw_memory, rollout_summary, rollout_slug, extractor, pass, upto,
    source_updated_at, generated_at, usage_count, last_usage, selected_for_phase2,
    selected_for_phase2_source_updated_at)
SELECT session_id, space, raw_memory, rollout_summary, rollout_slug, extractor, pass, upto,
    source_updated_at, generated_at, usage_count, last_usage, selected_for_phase2,
    selected_for_phase2_source_updated_at
FROM extractions;
DROP TABLE extractions;
ALTER TABLE new_extractions RENAME TO extractions;
CREATE INDEX idx_extractions_listed ON extractions (space, generated_at, session_id);
CREATE INDEX idx_extractions_space ON extractions (space, key);
CREATE INDEX idx_extractions_wordless ON extractions (key) WHERE words IS NULL;

CREATE VIRTUAL TABLE extractions_fts USING fts5 (words, content = '', tokenize = 'porter ascii');
INSERT INTO extractions_fts (extractions_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER extractions_ai AFTER INSERT ON extractions WHEN new.words IS NOT NULL BEGIN
    INSERT INTO extractions_fts (rowid, words)
    SELECT new.key, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
CREATE TRIGGER extractions_ad AFTER DELETE ON extractions WHEN old.words IS NOT NULL BEGIN
    INSERT INTO extractions_fts (extractions_fts, rowid, words)
    SELECT 'delete', old.key, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
END;
CREATE TRIGGER extractions_au AFTER UPDATE OF words ON extractions
WHEN old.words IS NOT new.words BEGIN
    INSERT INTO extractions_fts (extractions_fts, rowid, words)
    SELECT 'delete', old.key, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space AND old.words IS NOT NULL;
    INSERT INTO extractions_fts (rowid, words)
    SELECT new.key, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space AND new.words IS NOT NULL;
END;

-- Records. One of them in an index costs ten times as much by itself as among others: the newest ones
-- are looked through, and the index takes 256 at a time. `upto` is how far it goes.
ALTER TABLE session_history ADD COLUMN words TEXT;  -- none: see above
CREATE INDEX idx_session_history_wordless ON session_history (id) WHERE words IS NULL;
CREATE INDEX idx_session_history_space ON session_history (space);
CREATE INDEX idx_session_history_said ON session_history (space, said_at);
CREATE TABLE indexed_records (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO indexed_records (one, upto) SELECT 1, COALESCE(max(id), 0) FROM session_history;

CREATE VIRTUAL TABLE records_fts USING fts5 (
    words, content = '', detail = none, columnsize = 0, tokenize = 'porter ascii'
);
INSERT INTO records_fts (records_fts, rank) VALUES ('secure-delete', 1);

-- The number of the last one may have been used before, by what is deleted: then the index has passed
-- it, and takes it alone.
CREATE TRIGGER session_history_fold AFTER INSERT ON session_history WHEN new.id % 256 = 0 BEGIN
    INSERT INTO records_fts (rowid, words)
    SELECT h.id, replace(' ' || h.words, ' ', ' ' || s.number || 'z')
    FROM session_history h JOIN spaces s ON s.space = h.space
    WHERE h.id > min((SELECT upto FROM indexed_records), new.id - 1) AND h.id <= new.id
        AND h.words IS NOT NULL;
    UPDATE indexed_records SET upto = new.id WHERE upto < new.id;
END;
-- The same for a number between.
CREATE TRIGGER session_history_late AFTER INSERT ON session_history
WHEN new.id % 256 <> 0 AND new.words IS NOT NULL
    AND new.id <= (SELECT upto FROM indexed_records)
BEGIN
    INSERT INTO records_fts (rowid, words)
    SELECT new.id, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
CREATE TRIGGER session_history_ad AFTER DELETE ON session_history
WHEN old.words IS NOT NULL AND old.id <= (SELECT upto FROM indexed_records) BEGIN
    INSERT INTO records_fts (records_fts, rowid, words)
    SELECT 'delete', old.id, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
END;
CREATE TRIGGER session_history_au AFTER UPDATE OF words ON session_history
WHEN old.words IS NOT new.words AND new.id <= (SELECT upto FROM indexed_records) BEGIN
    INSERT INTO records_fts (records_fts, rowid, words)
    SELECT 'delete', old.id, replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space AND old.words IS NOT NULL;
    INSERT INTO records_fts (rowid, words)
    SELECT new.id, replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space AND new.words IS NOT NULL;
END;

-- What was made of what was recalled, each once in a turn. `session_id`: what it rests on, if one.
CREATE TABLE usages (
    space TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('injected', 'opened', 'cited')),
    entry_kind TEXT NOT NULL CHECK (entry_kind IN ('fact', 'document', 'summary', 'record')),
    entry_id TEXT NOT NULL,
    session_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, turn_id, kind, entry_kind, entry_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_usages_entry ON usages (space, entry_kind, entry_id, kind);
CREATE INDEX idx_usages_session ON usages (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_usages_age ON usages (created_at);
