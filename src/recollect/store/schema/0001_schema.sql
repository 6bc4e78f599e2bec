-- Every table, for both databases. It is written in SQLite's words, and PostgreSQL's are made from
-- them; what is for one alone stands between `-- only <dialect>` and `-- both`.
-- Times are microseconds since the epoch, UTC: to_timestamp(created_at / 1e6) shows one in psql.
-- Names are compared byte by byte, whatever the database's locale.

-- Of the store itself

CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who may come in over HTTP, and to which space. Of a secret only its digest is kept.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    space TEXT,  -- none: all of them
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

-- What the processes that serve a store have in common for a while: who has signed in, which requests
-- were done, and the processes themselves. Digests, statuses and ids; never what anybody said.
CREATE TABLE serving_states (
    kind TEXT NOT NULL CHECK (kind IN ('visit', 'request', 'process')),
    id TEXT NOT NULL,
    owner TEXT NOT NULL,  -- whose it is, for a bound on each; empty: nobody's
    value TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- Who did what to what, and what came of it: ids that Recollect made, never what anybody said.
CREATE TABLE audit (
    space TEXT NOT NULL,  -- empty: the store
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    targets TEXT NOT NULL,  -- a JSON list of ids
    outcome TEXT,  -- none: it is under way, or was cut short
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_audit_space ON audit (space, at, id);
CREATE INDEX idx_audit_at ON audit (at, id);

-- Spaces, agents, stable keys, sessions and their history

-- only sqlite
-- A space's number stands before every word in an index of words, so that a search meets nothing of
-- others. Digits and a consonant: a stemmer passes over them.
CREATE TABLE spaces (
    space TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    number INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX idx_spaces_number ON spaces (number);

CREATE TRIGGER spaces_ai AFTER INSERT ON spaces WHEN new.number IS NULL BEGIN
    UPDATE spaces SET number = (SELECT COALESCE(max(number), 0) + 1 FROM spaces)
    WHERE space = new.space;
END;
-- only postgres
CREATE TABLE spaces (
    space TEXT COLLATE "C" PRIMARY KEY,
    created_at BIGINT NOT NULL
);
-- both

CREATE TABLE agents (
    space TEXT NOT NULL REFERENCES spaces (space),
    id TEXT NOT NULL,  -- the descriptor's key: /<type>/<id>
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_keys (
    space TEXT NOT NULL,
    id INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    key TEXT NOT NULL,
    session_id TEXT NOT NULL,  -- the current session; an ended one stays until the next append
    -- only sqlite
    UNIQUE (space, id),
    -- both
    UNIQUE (space, key, agent_id),
    FOREIGN KEY (space, agent_id) REFERENCES agents (space, id)
) STRICT;

CREATE TABLE sessions (
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    rotation INTEGER NOT NULL,  -- 1 for the key's first session
    source TEXT NOT NULL,
    project TEXT,
    parent TEXT,
    ephemeral BOOLEAN NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('enabled', 'disabled', 'polluted')),
    remembered BOOLEAN NOT NULL,  -- agent, mode and ephemeral together: may this be marked?
    last_seq INTEGER NOT NULL DEFAULT 0,
    left_seq INTEGER,  -- its last record when its mode was last enabled; none: it is, or never was
    unprocessed_turns INTEGER NOT NULL DEFAULT 0,  -- user records above the cursor
    invalidated_at INTEGER,  -- the mark, a seq
    processed_until INTEGER,  -- the cursor, a seq
    pass INTEGER NOT NULL DEFAULT 1,  -- rises when it is gone through again by another extractor
    marked_at INTEGER,
    marked_by TEXT,
    requested_until INTEGER,  -- a seq: up to it a mark was asked for, and waits for no pause
    created_at INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT,
    ended_reason TEXT,
    forgotten_at INTEGER,  -- no ground for anything that is written later
    -- Changes only when the answer does, so that an append stays a heap-only update on PostgreSQL.
    waiting BOOLEAN NOT NULL GENERATED ALWAYS AS (
        remembered AND invalidated_at IS NULL AND last_seq > COALESCE(processed_until, 0)
    ) STORED,
    CHECK (processed_until BETWEEN 1 AND last_seq),
    CHECK (invalidated_at > COALESCE(processed_until, 0)),
    PRIMARY KEY (space, id),
    FOREIGN KEY (space, key_id) REFERENCES session_keys (space, id),
    CHECK ((invalidated_at IS NULL) = (marked_at IS NULL))
) STRICT;

-- only postgres
ALTER TABLE sessions SET (fillfactor = 70);
-- both

CREATE INDEX idx_sessions_invalidated_at
    ON sessions (space, invalidated_at, marked_at) WHERE invalidated_at IS NOT NULL;
CREATE INDEX idx_sessions_waiting ON sessions (space) WHERE waiting;
CREATE INDEX idx_sessions_left_out ON sessions (space, mode) WHERE mode <> 'enabled';
CREATE INDEX idx_sessions_listed ON sessions (space, created_at, id);
CREATE INDEX idx_sessions_id ON sessions (id);  -- the newest of all spaces
CREATE UNIQUE INDEX idx_sessions_rotation ON sessions (space, key_id, rotation);

CREATE TABLE session_history (
    space TEXT NOT NULL,
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: indexes go by it
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    name TEXT,
    content TEXT NOT NULL,
    body TEXT,  -- the verbatim message, where role, name and content do not say it all
    append_key TEXT,
    said_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    metadata TEXT,
    words TEXT,  -- as they are searched
    UNIQUE (space, session_id, seq),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id)
) STRICT;

CREATE UNIQUE INDEX idx_session_history_append_key
    ON session_history (space, key_id, append_key) WHERE append_key IS NOT NULL;
-- only sqlite
CREATE UNIQUE INDEX idx_session_history_space ON session_history (space, id);
-- both
CREATE INDEX idx_session_history_said ON session_history (space, said_at);

-- The turns a compaction kept for the new session: references, so that nothing is learned twice.
CREATE TABLE retained_records (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    source_session_id TEXT NOT NULL,
    source_seq INTEGER NOT NULL,
    PRIMARY KEY (space, session_id, position),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id),
    FOREIGN KEY (space, source_session_id) REFERENCES sessions (space, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE summaries (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, session_id),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id)
) STRICT, WITHOUT ROWID;

-- Every record below a cursor is in exactly one range of every pass.
CREATE TABLE session_ranges (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    pass INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    extractor TEXT,
    attempt INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost_micros INTEGER,
    facts_dropped INTEGER NOT NULL DEFAULT 0,  -- of a model's answer, because they were not right
    facts_mended INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, session_id, pass, first_seq),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id),
    CHECK (first_seq BETWEEN 1 AND last_seq)
) STRICT, WITHOUT ROWID;

-- Due work and who holds it: one permanent row per (space, kind, key). A session is marked if and only
-- if its extract job is due, claimed or parked: whoever sets a mark or clears it sees to the job.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: a claim may outlive its job
    space TEXT NOT NULL,  -- empty for the work of the store itself
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    lane TEXT NOT NULL DEFAULT '',  -- who may run it: any worker, or the host of this agent
    state TEXT NOT NULL CHECK (state IN ('idle', 'due', 'claimed', 'parked')),
    due_at INTEGER,  -- not before; none: at once
    first_due_at INTEGER NOT NULL,  -- the order of claims: first marked, first claimed
    in_order BOOLEAN NOT NULL DEFAULT FALSE,  -- it waits for those before it that are being worked on
    owner TEXT,
    lease_expires_at INTEGER,
    token INTEGER NOT NULL DEFAULT 0,  -- rises with every claim and whenever a claim is void
    failures INTEGER NOT NULL DEFAULT 0,
    takeovers INTEGER NOT NULL DEFAULT 0,
    pauses INTEGER NOT NULL DEFAULT 0,  -- since it last got on: a cap, a refused key, a bad day
    last_error TEXT,
    last_error_at INTEGER,
    finished_at INTEGER,
    UNIQUE (space, kind, key),
    CHECK ((state = 'claimed') = (owner IS NOT NULL AND lease_expires_at IS NOT NULL))
) STRICT;

CREATE INDEX idx_jobs_due ON jobs (first_due_at, id) WHERE state = 'due';
CREATE INDEX idx_jobs_turns ON jobs (space, first_due_at, id) WHERE state = 'due';
CREATE INDEX idx_jobs_claimed ON jobs (space, lease_expires_at) WHERE state = 'claimed';
CREATE INDEX idx_jobs_open ON jobs (first_due_at, id) WHERE state <> 'idle';
-- Whether there is anything left to distil in a space, before it is consolidated.
CREATE INDEX idx_jobs_phase1 ON jobs (space)
    WHERE state IN ('due', 'claimed') AND kind IN ('extract', 'extract-again');

-- What was learned from sessions, and what it cost

-- How far a run through a whole session has got: it goes on from there, and counts only when it ends.
CREATE TABLE staged_drafts (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    pass INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    extractor TEXT NOT NULL,
    draft TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    PRIMARY KEY (space, session_id),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id)
) STRICT, WITHOUT ROWID;

-- Phase 1's result, one row for a session.
CREATE TABLE extractions (
    space TEXT NOT NULL,
    key INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL,
    rollout_slug TEXT,
    extractor TEXT NOT NULL,
    pass INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    source_updated_at INTEGER NOT NULL,  -- when the newest record it rests on was said
    generated_at INTEGER NOT NULL,
    reworded_at INTEGER,  -- when it was made to follow a fact; none: it says what was generated
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    selected_for_phase2 BOOLEAN NOT NULL DEFAULT FALSE,
    selected_for_phase2_source_updated_at INTEGER,
    -- The space's revision that a memory was last changed by, and the one that was consumed: the
    -- same second, a clock that was set back or another pass over the same records hide no change.
    revision INTEGER NOT NULL DEFAULT 0,
    selected_revision INTEGER,
    words TEXT,  -- as they are searched
    UNIQUE (space, session_id),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id)
) STRICT;

CREATE INDEX idx_extractions_listed ON extractions (space, generated_at, session_id);
-- only sqlite
CREATE INDEX idx_extractions_space ON extractions (space, key);
-- both
CREATE INDEX idx_extractions_ranked ON extractions (
    space, usage_count DESC, COALESCE(last_usage, generated_at) DESC, source_updated_at DESC,
    session_id DESC);
CREATE INDEX idx_extractions_ranked_by_source ON extractions (
    space, usage_count DESC, COALESCE(last_usage, source_updated_at) DESC, source_updated_at DESC,
    session_id DESC);
CREATE INDEX idx_extractions_selected ON extractions (space, session_id)
    WHERE selected_for_phase2;

-- only postgres
-- Words come folded and separated by blanks. Each is stemmed and none is left out: the server's own
-- configurations know stop words, and take a path or an address for one word.
CREATE TEXT SEARCH DICTIONARY recollect_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION recollect_words (PARSER = "default");
ALTER TEXT SEARCH CONFIGURATION recollect_words
    ADD MAPPING FOR asciiword, word, numword, int, uint, sfloat WITH recollect_stem;
-- both

CREATE TABLE facts (
    space TEXT NOT NULL,
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    words TEXT NOT NULL,  -- of its content, as they are searched
    content_key TEXT,  -- its words without case and punctuation; none: kept as it is, never merged
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),  -- the best of all there are
    -- Whose word it is by itself, given without a source; none: it rests on its sources alone.
    own_trust TEXT CHECK (own_trust IN ('user', 'agent', 'tool')),
    topic TEXT,
    extractor TEXT,  -- none: somebody added or edited it
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    expires_at INTEGER,  -- it says itself when it is over
    superseded_by TEXT,
    superseded_at INTEGER,
    deleted_at INTEGER,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_usage INTEGER,
    shown_count INTEGER NOT NULL DEFAULT 0,  -- to be shown is not to be used
    about TEXT,  -- JSON: the names of whom or what it says something of; none: not known
    kind TEXT,  -- preference, instruction, event, ...; none: not known
    happened_from INTEGER,  -- when what it tells of began, as far as that was said
    happened_to INTEGER,  -- up to there, not included
    -- Whether it waits for a person, or has been accepted by one; none: nobody has to be asked.
    review_state TEXT CHECK (review_state IN ('waiting', 'quarantined', 'accepted')),
    replaces TEXT NOT NULL DEFAULT '[]',  -- ids of what it ends once it is accepted
    -- only postgres
    -- A name of the space stands before every word, so that a search meets nothing of others. It
    -- has no vowels: a stemmer passes over it.
    search TSVECTOR GENERATED ALWAYS AS (to_tsvector(
        'recollect_words', replace(
            ' ' || words, ' ', ' z' || translate(left(md5(space), 8), 'abcdef', 'bcdfgh') || 'z')
    )) STORED,
    -- both
    UNIQUE (space, id),
    CHECK ((superseded_by IS NULL) = (superseded_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX idx_facts_content ON facts (space, content_key)
    WHERE content_key IS NOT NULL AND superseded_by IS NULL AND deleted_at IS NULL
        AND COALESCE(review_state, 'accepted') = 'accepted';
CREATE INDEX idx_facts_waiting ON facts (space, created_at, id)
    WHERE review_state <> 'accepted' AND deleted_at IS NULL;
CREATE INDEX idx_facts_topic ON facts (space, topic, COALESCE(superseded_at, 4611686018427387904))
    WHERE topic IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX idx_facts_happened ON facts (space, happened_from, key)
    WHERE happened_from IS NOT NULL;
CREATE INDEX idx_facts_same ON facts (space, content_key) WHERE content_key IS NOT NULL;
CREATE INDEX idx_facts_superseded ON facts (space, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX idx_facts_listed ON facts (space, created_at, id);
-- only sqlite
CREATE UNIQUE INDEX idx_facts_space ON facts (space, key);
-- both
CREATE INDEX idx_facts_standing ON facts (space, usage_count DESC, valid_from DESC, id)
    WHERE deleted_at IS NULL AND superseded_by IS NULL;
CREATE INDEX idx_facts_expiring ON facts (space, expires_at)
    WHERE expires_at IS NOT NULL;

CREATE TABLE fact_sources (
    space TEXT NOT NULL,
    fact_key INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    seq_to INTEGER NOT NULL,
    quote TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('user', 'agent', 'tool')),
    created_at INTEGER NOT NULL,
    -- Sources of one witness bear a fact out together: it stands while one whole witness stands.
    witness TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (space, fact_key, session_id, seq, seq_to),
    FOREIGN KEY (space, fact_key) REFERENCES facts (space, key) ON DELETE CASCADE,
    CHECK (seq BETWEEN 0 AND seq_to)  -- 0: somewhere in the session
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_fact_sources_session ON fact_sources (space, session_id, fact_key);
CREATE INDEX idx_fact_sources_listed
    ON fact_sources (space, fact_key, created_at, session_id, seq, seq_to);
CREATE INDEX idx_fact_sources_trust ON fact_sources (space, fact_key, trust);

CREATE TABLE fact_history (
    space TEXT NOT NULL,
    id INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL,
    event TEXT NOT NULL,
    content TEXT NOT NULL,
    content_key TEXT,  -- of what it said before, where somebody changed or deleted it
    made_by TEXT NOT NULL,
    other_id TEXT,
    created_at INTEGER NOT NULL,
    -- Of a statement that was taken back in a session (the rows without a fact): up to which record
    -- the session does not bring it back; none: at all.
    upto INTEGER
) STRICT;

CREATE INDEX idx_fact_history_fact ON fact_history (space, fact_id);
CREATE INDEX idx_fact_history_content ON fact_history (space, content_key)
    WHERE content_key IS NOT NULL;
CREATE INDEX idx_fact_history_edited ON fact_history (space, created_at, fact_id)
    WHERE event = 'edited';
CREATE INDEX idx_fact_history_superseded ON fact_history (space, other_id)
    WHERE event = 'superseded';
CREATE INDEX idx_fact_history_unsaid ON fact_history (space, other_id) WHERE fact_id = '';

-- Every call to a model, and what a space has used in a day.
CREATE TABLE ledger (
    space TEXT NOT NULL,
    id INTEGER PRIMARY KEY,
    session_id TEXT,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    day INTEGER NOT NULL,  -- days since the epoch, UTC
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    outcome TEXT NOT NULL CHECK (outcome IN ('reserved', 'answered', 'invalid', 'failed')),
    created_at INTEGER NOT NULL
) STRICT;

-- only sqlite
CREATE INDEX idx_ledger_listed ON ledger (space, id);
-- both
CREATE INDEX idx_ledger_session ON ledger (space, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE spending (
    space TEXT NOT NULL,
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    PRIMARY KEY (space, day)
) STRICT, WITHOUT ROWID;

-- Consolidation: which memories a generation was made of, which documents it has, and when the next
-- one is due

-- How often a space's memory has changed, and how much of it consolidation has seen. Whoever
-- changes what a space knows goes through its row first, so that it is also the lock for that.
CREATE TABLE consolidations (
    space TEXT PRIMARY KEY,
    changed INTEGER NOT NULL DEFAULT 0,
    consolidated INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER,
    generation INTEGER NOT NULL DEFAULT 0,  -- the current one
    digest TEXT,  -- of what it was made of
    -- The revision that must not wait for it: something was forgotten, or a mode was changed.
    urgent INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER,  -- the end of the cooldown
    expires_at INTEGER,  -- when time alone changes the selection
    paused_at INTEGER,
    finished_at INTEGER,
    files_generation INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_consolidations_expiring ON consolidations (expires_at)
    WHERE expires_at IS NOT NULL;

-- What was part of the last generation and cannot be asked any more why it will not be of the next.
CREATE TABLE removed_memories (
    space TEXT NOT NULL,
    session_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (space, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE generations (
    space TEXT NOT NULL,
    number INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    note TEXT NOT NULL,
    added INTEGER NOT NULL,
    retained INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER,
    is_whole BOOLEAN NOT NULL DEFAULT TRUE,
    restored_from INTEGER,
    parts TEXT NOT NULL DEFAULT '',  -- JSON: what a model wrote, by part, with digests of its inputs
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;

-- A version of a document, and the generations that have it: what does not change costs nothing.
CREATE TABLE generation_documents (
    space TEXT NOT NULL,
    document_id TEXT NOT NULL,
    first_generation INTEGER NOT NULL,
    last_generation INTEGER,  -- none: the current one has it
    version INTEGER NOT NULL,
    session_id TEXT,  -- of a summary
    PRIMARY KEY (space, document_id, first_generation)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_generation_documents_current ON generation_documents (space, session_id)
    WHERE last_generation IS NULL;
CREATE INDEX idx_generation_documents_old ON generation_documents (space, last_generation)
    WHERE last_generation IS NOT NULL;

-- Documents: a tree by path, every version of it, what refers to what, and where things stood before.
-- A path's key is without case; its parts are separated by a character that sorts before all others.

-- How much a space's tree holds. Whoever changes the tree goes through its row first.
CREATE TABLE trees (
    space TEXT PRIMARY KEY,
    documents INTEGER NOT NULL DEFAULT 0,
    versions_from INTEGER NOT NULL DEFAULT 0  -- the highest version that was ever purged
) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    space TEXT NOT NULL REFERENCES spaces (space),
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
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
    -- only postgres
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
    -- both
    -- only sqlite
    UNIQUE (space, key),
    -- both
    UNIQUE (space, id),
    CHECK ((deleted_at IS NULL) = (deleted_with IS NULL))
) STRICT;

CREATE UNIQUE INDEX idx_documents_path ON documents (space, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_level ON documents (space, depth, path_key) WHERE deleted_at IS NULL;
CREATE INDEX idx_documents_deleted ON documents (space, path_key, deleted_at)
    WHERE deleted_at IS NOT NULL;

CREATE TABLE document_versions (
    space TEXT NOT NULL,
    document_key INTEGER NOT NULL,
    version INTEGER NOT NULL,
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
    PRIMARY KEY (space, document_key, version),
    FOREIGN KEY (space, document_key) REFERENCES documents (space, key) ON DELETE CASCADE
) STRICT;

-- Forgetting a session looks through the versions that rest on something.
CREATE INDEX idx_document_versions_grounded ON document_versions (space) WHERE provenance <> '';

-- A link to a page that is not there yet is kept by its path, and bound when the page comes.
CREATE TABLE document_references (
    space TEXT NOT NULL,
    document_key INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('link', 'body')),
    target_path_key TEXT NOT NULL,
    target_path TEXT NOT NULL,
    alias TEXT NOT NULL,
    target_key INTEGER,  -- set free by whoever purges what it is
    PRIMARY KEY (space, document_key, target_path_key, kind),
    FOREIGN KEY (space, document_key) REFERENCES documents (space, key) ON DELETE CASCADE,
    FOREIGN KEY (space, target_key) REFERENCES documents (space, key)
) STRICT;

-- By what they hang on, for when that is purged.
CREATE INDEX idx_document_references_target ON document_references (space, target_key);
CREATE INDEX idx_document_references_path ON document_references (space, target_path_key);

-- Where a document stood before it was moved: old paths lead to it until something else stands there.
CREATE TABLE document_redirects (
    space TEXT NOT NULL,
    path_key TEXT NOT NULL,
    document_key INTEGER NOT NULL,
    PRIMARY KEY (space, path_key),
    FOREIGN KEY (space, document_key) REFERENCES documents (space, key) ON DELETE CASCADE
) STRICT;

CREATE INDEX idx_document_redirects_document ON document_redirects (space, document_key);

-- What a derived thing was made from. It goes, or is made anew, with any of its inputs.
CREATE TABLE derived_inputs (
    space TEXT NOT NULL,
    kind TEXT NOT NULL,  -- of the derived thing: document, extraction, summary, ...
    id TEXT NOT NULL,
    input_kind TEXT NOT NULL CHECK (input_kind IN ('session', 'record', 'fact', 'document')),
    input_id TEXT NOT NULL,  -- of a record: its session
    seq INTEGER NOT NULL DEFAULT 0,  -- of records: the first and the last; 0: all there are
    seq_to INTEGER NOT NULL DEFAULT 0,
    first_version INTEGER NOT NULL DEFAULT 1,  -- versions before this one do not rest on it
    PRIMARY KEY (space, kind, id, input_kind, input_id, seq, seq_to),
    CHECK (seq BETWEEN 0 AND seq_to)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_derived_inputs_input ON derived_inputs (space, input_kind, input_id);
-- Facts that are to come on a page, below the key of where they stood.
CREATE INDEX idx_derived_inputs_unfiled ON derived_inputs (space) WHERE kind = 'unfiled';

-- What a model was told, by reference: of each block who was told, what its lines are from, and all
-- else that it takes to show it again. No text that an entry has; what is told is kept for a while.
CREATE TABLE contexts (
    space TEXT NOT NULL,
    id TEXT NOT NULL,  -- in the order of time
    reader TEXT NOT NULL,
    session_id TEXT,  -- whose turn it was for, if one
    query TEXT NOT NULL,  -- empty: it said something that was erased
    refs TEXT NOT NULL,  -- of each line a letter and the key of its entry; no key: it was erased
    told BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

-- What recall searches: facts, documents, records and what sessions came to, by their words

-- only sqlite
-- The number of its space stands before every word of an entry.
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
-- The words of earlier texts stay in the index until its parts are merged, which is done when
-- something was erased. Doing it with every write (secure-delete) makes a write cost ten times as much.

-- `words` as they are, for whoever looks with a tool of their own.
CREATE VIRTUAL TABLE facts_fts USING fts5 (
    words, own_words, content = '', tokenize = 'porter ascii'
);
INSERT INTO facts_fts (facts_fts, rank) VALUES ('secure-delete', 1);

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
CREATE TABLE indexed_records (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO indexed_records (one, upto) VALUES (1, 0);

CREATE VIRTUAL TABLE records_fts USING fts5 (
    words, content = '', detail = none, columnsize = 0, tokenize = 'porter ascii'
);
INSERT INTO records_fts (records_fts, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER session_history_fold AFTER INSERT ON session_history WHEN new.id % 256 = 0 BEGIN
    INSERT INTO records_fts (rowid, words)
    SELECT h.id, replace(' ' || h.words, ' ', ' ' || s.number || 'z')
    FROM session_history h JOIN spaces s ON s.space = h.space
    WHERE h.id > (SELECT upto FROM indexed_records) AND h.id <= new.id AND h.words IS NOT NULL;
    UPDATE indexed_records SET upto = new.id;
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
-- only postgres
-- Which entries have a word, a row for each. Under row-level security no other index can be asked for a
-- word: what may tell of a row that is not to be seen is not asked before the policies, and of the
-- comparisons that a full-text index knows the server trusts none. It trusts that of two texts.
CREATE TABLE postings (
    space TEXT COLLATE "C" NOT NULL,
    kind "char" NOT NULL CHECK (kind IN ('f', 'd', 's', 'r')),  -- fact, document, summary, record
    word TEXT COLLATE "C" NOT NULL,  -- the first 128 characters of it
    key BIGINT NOT NULL,  -- of the entry, among those of its kind
    PRIMARY KEY (space, kind, word, key)
);
-- both

-- What was made of what was recalled, each once in a turn. `session_id`: what it rests on, if one.
CREATE TABLE usages (
    space TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('shown', 'opened', 'cited')),
    entry_kind TEXT NOT NULL CHECK (entry_kind IN ('fact', 'document', 'summary', 'record')),
    entry_id TEXT NOT NULL,
    session_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (space, turn_id, kind, entry_kind, entry_id)
) STRICT;

CREATE INDEX idx_usages_entry ON usages (space, entry_kind, entry_id, kind);
CREATE INDEX idx_usages_session ON usages (space, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_usages_age ON usages (created_at);

-- Vectors of entries, by the model that made them. They go with what they are of, and when it changes:
-- whoever changes an entry sees to that.

CREATE TABLE vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fact', 'document', 'summary', 'record')),
    entry_key INTEGER NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (space, model, kind, entry_key)
) STRICT;

CREATE INDEX idx_vectors_entry ON vectors (space, kind, entry_key);
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
CREATE TABLE vector_spaces (
    space TEXT PRIMARY KEY,
    additions INTEGER NOT NULL,
    pruned_upto INTEGER NOT NULL DEFAULT 0  -- up to where it is not told any more which are gone
) STRICT, WITHOUT ROWID;

-- The models there are vectors of, and how far each has seen the records: those never change.
CREATE TABLE embedded_records (
    model TEXT PRIMARY KEY,
    upto INTEGER NOT NULL,
    used_at INTEGER NOT NULL DEFAULT 0  -- when somebody last had it; 0: nobody has said
) STRICT, WITHOUT ROWID;

-- Agents at work: how they live, what waits for them, and what is to happen to them later

CREATE TABLE agent_lives (
    space TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    job TEXT NOT NULL CHECK (job IN ('agent', 'memory-agent')),
    life TEXT NOT NULL CHECK (life IN ('active', 'sleeping', 'dead')),
    since INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (space, key_id),
    FOREIGN KEY (space, key_id) REFERENCES session_keys (space, id)
) STRICT;

CREATE INDEX idx_agent_lives_space ON agent_lives (space, since);

-- What was not done yet. The words of an item are gone from here once its effects are stored.
CREATE TABLE inbox (
    space TEXT NOT NULL,
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id INTEGER NOT NULL,
    item_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    about_session TEXT,
    about_first INTEGER,
    about_last INTEGER,
    state TEXT NOT NULL CHECK (state IN ('queued', 'taken', 'parked', 'done')),
    turn_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    done_at INTEGER,
    UNIQUE (space, key_id, item_id),
    FOREIGN KEY (space, key_id) REFERENCES agent_lives (space, key_id)
) STRICT;

CREATE INDEX idx_inbox_state ON inbox (space, key_id, state, id);
CREATE INDEX idx_inbox_about ON inbox (space, about_session, key_id)
    WHERE about_session IS NOT NULL;

CREATE TABLE signals (
    space TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (space, key_id, name),
    FOREIGN KEY (space, key_id) REFERENCES agent_lives (space, key_id)
) STRICT;

CREATE INDEX idx_signals_due ON signals (due_at);

-- Which records of an agent speak of another session's, so that forgetting that one finds them.
CREATE TABLE told_records (
    space TEXT NOT NULL,
    about_session TEXT NOT NULL,
    session_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (space, about_session, session_id, first_seq),
    FOREIGN KEY (space, session_id) REFERENCES sessions (space, id)
) STRICT;

-- What came in from other programs' files, so that nothing of it comes in twice

-- Items are digests. They outlive what became of them: what was forgotten does not come back.
CREATE TABLE imported_items (
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    item TEXT NOT NULL,
    imported_at INTEGER NOT NULL,
    PRIMARY KEY (space, source, item)
) STRICT, WITHOUT ROWID;

-- How far a file has been read, and what its reader must know of the part before.
CREATE TABLE import_cursors (
    space TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    offset_bytes INTEGER NOT NULL,
    line INTEGER NOT NULL,
    head TEXT NOT NULL,
    head_bytes INTEGER NOT NULL,
    memo TEXT NOT NULL,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (space, source, place)
) STRICT, WITHOUT ROWID;
