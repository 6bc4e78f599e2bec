-- Documents: a tree by path, every version of it, what refers to what, and where things stood before.
-- A path's key is without case; its parts are separated by a character that sorts before all others.

-- A session that was forgotten is no ground for anything that is written later.
ALTER TABLE sessions ADD COLUMN forgotten_at BIGINT;

-- How much a space's tree holds. Whoever changes the tree goes through its row first.
CREATE TABLE trees (
    space TEXT COLLATE "C" PRIMARY KEY,
    documents BIGINT NOT NULL DEFAULT 0,
    purges BIGINT NOT NULL DEFAULT 0,
    versions_from BIGINT NOT NULL DEFAULT 0  -- the highest version that was ever purged
);

CREATE TABLE documents (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL,
    space TEXT COLLATE "C" NOT NULL REFERENCES spaces (space),
    path TEXT NOT NULL,
    path_key TEXT COLLATE "C" NOT NULL,
    depth BIGINT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    body TEXT NOT NULL,
    tags TEXT NOT NULL,
    links TEXT NOT NULL,
    -- The words it is found by: those of its title, those of its description, and all of them.
    called TEXT NOT NULL,
    about TEXT NOT NULL,
    words TEXT NOT NULL,
    version BIGINT NOT NULL,
    author_kind TEXT NOT NULL CHECK (author_kind IN ('person', 'agent', 'consolidation')),
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    provenance TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deleted_with BIGINT,  -- the key of the document whose deletion took this one along
    -- A name of the space stands before every word, so that a search meets nothing of others. It has
    -- no vowels: a stemmer passes over it.
    search TSVECTOR GENERATED ALWAYS AS (
        setweight(to_tsvector('recollect_words', replace(
            ' ' || called, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
        ), 'A')
        || setweight(to_tsvector('recollect_words', replace(
            ' ' || about, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
        ), 'B')
        || to_tsvector('recollect_words', replace(
            ' ' || words, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z'))
    ) STORED,
    UNIQUE (space, id),
    CHECK ((deleted_at IS NULL) = (deleted_with IS NULL))
);

CREATE INDEX idx_documents_search ON documents USING gin (search);

CREATE UNIQUE INDEX idx_documents_path ON documents (space, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_level ON documents (space, depth, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_deleted ON documents (space, path_key, deleted_at)
    WHERE deleted_at IS NOT NULL;

CREATE TABLE document_versions (
    document_key BIGINT NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
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
    created_at BIGINT NOT NULL,
    PRIMARY KEY (document_key, version)
);

-- Forgetting a session looks through the versions that rest on something.
CREATE INDEX idx_document_versions_grounded ON document_versions (space) WHERE provenance <> '';

-- A link to a page that is not there yet is kept by its path, and bound when the page comes.
CREATE TABLE document_references (
    document_key BIGINT NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('link', 'body')),
    target_path_key TEXT COLLATE "C" NOT NULL,
    target_path TEXT NOT NULL,
    alias TEXT NOT NULL,
    target_key BIGINT REFERENCES documents (key) ON DELETE SET NULL,
    space TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space, document_key, target_path_key, kind)
);

-- By what they hang on, for when that is purged.
CREATE INDEX idx_document_references_document ON document_references (document_key);
CREATE INDEX idx_document_references_target ON document_references (target_key);
CREATE INDEX idx_document_references_path ON document_references (space, target_path_key);

-- Where a document stood before it was moved: old paths lead to it until something else stands there.
CREATE TABLE document_redirects (
    space TEXT COLLATE "C" NOT NULL,
    path_key TEXT COLLATE "C" NOT NULL,
    document_key BIGINT NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    PRIMARY KEY (space, path_key)
);

CREATE INDEX idx_document_redirects_document ON document_redirects (document_key);

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'trees', 'documents', 'document_versions', 'document_references', 'document_redirects'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;
