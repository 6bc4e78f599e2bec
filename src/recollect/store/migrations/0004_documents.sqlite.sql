-- Documents: a tree by path, every version of it, what refers to what, and where things stood before.
-- A path's key is without case; its parts are separated by a character that sorts before all others.

-- A space's number stands before every word in an index of words, so that a search meets nothing of
-- others. Digits and a consonant: a stemmer passes over them.
ALTER TABLE spaces ADD COLUMN number INTEGER;
UPDATE spaces SET number = (SELECT count(*) FROM spaces o WHERE o.space <= spaces.space);
CREATE UNIQUE INDEX idx_spaces_number ON spaces (number);
CREATE TRIGGER spaces_ai AFTER INSERT ON spaces WHEN new.number IS NULL BEGIN
    UPDATE spaces SET number = (SELECT COALESCE(max(number), 0) + 1 FROM spaces)
    WHERE space = new.space;
END;

-- A session that was forgotten is no ground for anything that is written later.
ALTER TABLE sessions ADD COLUMN forgotten_at INTEGER;

-- How much a space's tree holds. Whoever changes the tree goes through its row first.
CREATE TABLE trees (
    space TEXT PRIMARY KEY,
    documents INTEGER NOT NULL DEFAULT 0,
    purges INTEGER NOT NULL DEFAULT 0,
    versions_from INTEGER NOT NULL DEFAULT 0  -- the highest version that was ever purged
) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    space TEXT NOT NULL REFERENCES spaces (space),
    path TEXT NOT NULL,
    path_key TEXT NOT NULL,
    depth INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    body TEXT NOT NULL,
    tags TEXT NOT NULL,
    links TEXT NOT NULL,
    -- The words it is found by: those of its title, those of its description, and all of them.
    called TEXT NOT NULL,
    about TEXT NOT NULL,
    words TEXT NOT NULL,
    version INTEGER NOT NULL,
    author_kind TEXT NOT NULL CHECK (author_kind IN ('person', 'agent', 'consolidation')),
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    provenance TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    deleted_with INTEGER,  -- the key of the document whose deletion took this one along
    UNIQUE (space, id),
    CHECK ((deleted_at IS NULL) = (deleted_with IS NULL))
) STRICT;

CREATE UNIQUE INDEX idx_documents_path ON documents (space, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_level ON documents (space, depth, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_deleted ON documents (space, path_key, deleted_at)
    WHERE deleted_at IS NOT NULL;

CREATE TABLE document_versions (
    document_key INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    space TEXT NOT NULL,
    event TEXT NOT NULL
        CHECK (event IN ('created', 'written', 'moved', 'deleted', 'restored')),
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    body TEXT NOT NULL,
    tags TEXT NOT NULL,
    links TEXT NOT NULL,
    author_kind TEXT NOT NULL,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    provenance TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (document_key, version)
) STRICT;

-- Forgetting a session looks through the versions that rest on something.
CREATE INDEX idx_document_versions_grounded ON document_versions (space) WHERE provenance <> '';

-- A link to a page that is not there yet is kept by its path, and bound when the page comes.
CREATE TABLE document_references (
    document_key INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('link', 'body')),
    target_path_key TEXT NOT NULL,
    target_path TEXT NOT NULL,
    alias TEXT NOT NULL,
    target_key INTEGER REFERENCES documents (key) ON DELETE SET NULL,
    space TEXT NOT NULL,
    PRIMARY KEY (space, document_key, target_path_key, kind)
) STRICT;

-- By what they hang on, for when that is purged.
CREATE INDEX idx_document_references_document ON document_references (document_key);
CREATE INDEX idx_document_references_target ON document_references (target_key);
CREATE INDEX idx_document_references_path ON document_references (space, target_path_key);

-- Where a document stood before it was moved: old paths lead to it until something else stands there.
CREATE TABLE document_redirects (
    space TEXT NOT NULL,
    path_key TEXT NOT NULL,
    document_key INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    PRIMARY KEY (space, path_key)
) STRICT;

CREATE INDEX idx_document_redirects_document ON document_redirects (document_key);

CREATE VIRTUAL TABLE documents_fts USING fts5 (
    called, about, words, content = '', tokenize = 'porter ascii'
);

CREATE TRIGGER documents_ai AFTER INSERT ON documents BEGIN
    INSERT INTO documents_fts (rowid, called, about, words)
    SELECT new.key, replace(' ' || new.called, ' ', ' ' || s.number || 'z'),
        replace(' ' || new.about, ' ', ' ' || s.number || 'z'),
        replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
CREATE TRIGGER documents_ad AFTER DELETE ON documents BEGIN
    INSERT INTO documents_fts (documents_fts, rowid, called, about, words)
    SELECT 'delete', old.key, replace(' ' || old.called, ' ', ' ' || s.number || 'z'),
        replace(' ' || old.about, ' ', ' ' || s.number || 'z'),
        replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
END;
CREATE TRIGGER documents_au AFTER UPDATE OF called, about, words ON documents BEGIN
    INSERT INTO documents_fts (documents_fts, rowid, called, about, words)
    SELECT 'delete', old.key, replace(' ' || old.called, ' ', ' ' || s.number || 'z'),
        replace(' ' || old.about, ' ', ' ' || s.number || 'z'),
        replace(' ' || old.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = old.space;
    INSERT INTO documents_fts (rowid, called, about, words)
    SELECT new.key, replace(' ' || new.called, ' ', ' ' || s.number || 'z'),
        replace(' ' || new.about, ' ', ' ' || s.number || 'z'),
        replace(' ' || new.words, ' ', ' ' || s.number || 'z')
    FROM spaces s WHERE s.space = new.space;
END;
-- The words of earlier texts stay in the index until its parts are merged. Doing it with every write
-- (secure-delete) makes a write cost more the more documents there are; versions keep the words
-- anyhow, until there is a purge.
CREATE TRIGGER trees_purged AFTER UPDATE OF purges ON trees BEGIN
    INSERT INTO documents_fts (documents_fts) VALUES ('optimize');
END;
