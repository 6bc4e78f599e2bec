-- What recall searches: facts, records and what sessions came to, by their words. As with documents, a
-- name of its space stands before every word of an entry.

-- Facts. They were indexed by their words as they stand there; those are read again in time.
ALTER TABLE facts ADD COLUMN stemmed BOOLEAN NOT NULL DEFAULT TRUE;
UPDATE facts SET stemmed = FALSE;
CREATE INDEX idx_facts_unstemmed ON facts (key) WHERE NOT stemmed;
ALTER TABLE facts DROP COLUMN search;
ALTER TABLE facts ADD COLUMN search TSVECTOR GENERATED ALWAYS AS (to_tsvector(
    'recollect_words', replace(
        ' ' || words, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
)) STORED;
CREATE INDEX idx_facts_search ON facts USING gin (search);
CREATE INDEX idx_facts_space ON facts (space, key);

-- What sessions came to.
ALTER TABLE extractions ADD COLUMN key BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE extractions ADD COLUMN words TEXT;  -- none: written before they were searched, and read again in time
ALTER TABLE extractions ADD COLUMN search TSVECTOR GENERATED ALWAYS AS (to_tsvector(
    'recollect_words', replace(
        ' ' || words, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
)) STORED;
CREATE UNIQUE INDEX idx_extractions_key ON extractions (key);
CREATE INDEX idx_extractions_space ON extractions (space, key);
CREATE INDEX idx_extractions_wordless ON extractions (key) WHERE words IS NULL;
CREATE INDEX idx_extractions_search ON extractions USING gin (search);

-- Records.
ALTER TABLE session_history ADD COLUMN id BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE session_history ADD COLUMN words TEXT;  -- none: see above
ALTER TABLE session_history ADD COLUMN search TSVECTOR GENERATED ALWAYS AS (to_tsvector(
    'recollect_words', replace(
        ' ' || words, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
)) STORED;
CREATE UNIQUE INDEX idx_session_history_space ON session_history (space, id);
CREATE INDEX idx_session_history_said ON session_history (space, said_at);
CREATE INDEX idx_session_history_wordless ON session_history (id) WHERE words IS NULL;
CREATE INDEX idx_session_history_search ON session_history USING gin (search);

-- What was made of what was recalled, each once in a turn. `session_id`: what it rests on, if one.
CREATE TABLE usages (
    space TEXT COLLATE "C" NOT NULL,
    turn_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('injected', 'opened', 'cited')),
    entry_kind TEXT NOT NULL CHECK (entry_kind IN ('fact', 'document', 'summary', 'record')),
    entry_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (space, turn_id, kind, entry_kind, entry_id)
);

CREATE INDEX idx_usages_entry ON usages (space, entry_kind, entry_id, kind);
CREATE INDEX idx_usages_session ON usages (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_usages_age ON usages (created_at);

ALTER TABLE usages ENABLE ROW LEVEL SECURITY;
ALTER TABLE usages FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON usages USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on');
