-- Recall: the newest entries that have a word, entries by their keys, and what is to be indexed yet.
-- Keys come and go as JSON. What may be found is decided here where it narrows a search down.

-- fragment: asked_record
-- Said in the time that is asked for, in a session from which something may be learned.
(s.remembered AND h.said_at >= :since AND h.said_at < :until AND (:any_trust OR {role_asked})
    AND (:any_session OR h.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
    AND (:any_project OR s.project = :project))

-- fragment: asked_fact
({holds} AND f.valid_from >= :since AND f.valid_from < :until
    AND (:any_trust OR {trust_asked}) AND (:any_tags OR {fact_tagged})
    AND ((:any_session AND :any_agent AND :any_project) OR EXISTS (
        SELECT 1 FROM fact_sources o JOIN sessions s ON s.id = o.session_id
        JOIN session_keys k ON k.id = s.key_id
        WHERE o.space = :space AND s.space = :space AND k.space = :space AND o.fact_key = f.key
            AND (:any_session OR o.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
            AND (:any_project OR s.project = :project))))

-- fragment: asked_summary
(e.generated_at <= :known AND e.source_updated_at >= :since AND e.source_updated_at < :until
    AND (:any_session OR e.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
    AND (:any_project OR s.project = :project))

-- fragment: asked_document
-- A document is nobody's session. As it was at another time, it is only known if it has not changed.
-- A page that says nothing is there for those below it.
(d.deleted_at IS NULL AND (d.body <> '' OR d.description <> '')
    AND d.updated_at >= :since AND d.updated_at < :until AND (:any_tags OR {document_tagged})
    AND :any_session AND :any_agent AND :any_project)

-- fragment: role_asked (sqlite)
(h.role IN (SELECT value FROM json_each(:roles)))

-- fragment: role_asked (postgres)
(CAST(:roles AS jsonb) @> to_jsonb(h.role))

-- fragment: trust_asked (sqlite)
(f.trust IN (SELECT value FROM json_each(:trusts)))

-- fragment: trust_asked (postgres)
(CAST(:trusts AS jsonb) @> to_jsonb(f.trust))

-- fragment: fact_tagged (sqlite)
-- It has every tag.
(NOT EXISTS (SELECT 1 FROM json_each(:tags) w WHERE NOT EXISTS (
    SELECT 1 FROM json_each(f.tags) t WHERE t.value = w.value)))

-- fragment: fact_tagged (postgres)
(CAST(f.tags AS jsonb) @> CAST(:tags AS jsonb))

-- fragment: document_tagged (sqlite)
(NOT EXISTS (SELECT 1 FROM json_each(:tags) w WHERE NOT EXISTS (
    SELECT 1 FROM json_each(d.tags) t WHERE t.value = w.value)))

-- fragment: document_tagged (postgres)
(CAST(d.tags AS jsonb) @> CAST(:tags AS jsonb))

-- name: record_postings (sqlite)
SELECT rowid FROM records_fts WHERE records_fts MATCH {the_word} ORDER BY rowid DESC LIMIT :limit;

-- name: record_postings (postgres)
SELECT h.id FROM session_history h
WHERE h.search @@ {the_word} AND h.space = :space ORDER BY h.id DESC LIMIT :limit;

-- name: asked_record_postings (sqlite)
SELECT f.rowid FROM records_fts f CROSS JOIN session_history h ON h.id = f.rowid
CROSS JOIN sessions s ON s.id = h.session_id CROSS JOIN session_keys k ON k.id = s.key_id
WHERE f.records_fts MATCH {the_word} AND h.space = :space AND s.space = :space AND k.space = :space
    AND {asked_record}
ORDER BY f.rowid DESC LIMIT :limit;

-- name: asked_record_postings (postgres)
SELECT h.id FROM session_history h JOIN sessions s ON s.id = h.session_id
JOIN session_keys k ON k.id = s.key_id
WHERE h.search @@ {the_word} AND h.space = :space AND s.space = :space AND k.space = :space
    AND {asked_record}
ORDER BY h.id DESC LIMIT :limit;

-- name: fact_postings (sqlite)
SELECT rowid FROM facts_fts WHERE facts_fts MATCH {the_word} ORDER BY rowid DESC LIMIT :limit;

-- name: fact_postings (postgres)
SELECT f.key FROM facts f
WHERE f.search @@ {the_word} AND f.space = :space ORDER BY f.key DESC LIMIT :limit;

-- name: asked_fact_postings (sqlite)
SELECT f.key FROM facts_fts CROSS JOIN facts f ON f.key = facts_fts.rowid
WHERE facts_fts MATCH {the_word} AND f.space = :space AND {asked_fact}
ORDER BY facts_fts.rowid DESC LIMIT :limit;

-- name: asked_fact_postings (postgres)
SELECT f.key FROM facts f
WHERE f.search @@ {the_word} AND f.space = :space AND {asked_fact}
ORDER BY f.key DESC LIMIT :limit;

-- name: summary_postings (sqlite)
SELECT e.key FROM extractions_fts CROSS JOIN extractions e ON e.key = extractions_fts.rowid
CROSS JOIN sessions s ON s.id = e.session_id CROSS JOIN session_keys k ON k.id = s.key_id
WHERE extractions_fts MATCH {the_word} AND e.space = :space AND s.space = :space
    AND k.space = :space AND {asked_summary}
ORDER BY extractions_fts.rowid DESC LIMIT :limit;

-- name: summary_postings (postgres)
SELECT e.key FROM extractions e JOIN sessions s ON s.id = e.session_id
JOIN session_keys k ON k.id = s.key_id
WHERE e.search @@ {the_word} AND e.space = :space AND s.space = :space AND k.space = :space
    AND {asked_summary}
ORDER BY e.key DESC LIMIT :limit;

-- name: document_postings (sqlite)
SELECT d.key FROM documents_fts CROSS JOIN documents d ON d.key = documents_fts.rowid
WHERE documents_fts MATCH {the_word} AND d.space = :space AND {asked_document}
ORDER BY documents_fts.rowid DESC LIMIT :limit;

-- name: document_postings (postgres)
SELECT d.key FROM documents d
WHERE d.search @@ {the_word} AND d.space = :space AND {asked_document}
ORDER BY d.key DESC LIMIT :limit;

-- name: unindexed_records (sqlite)
-- The newest, which the index takes up together when there are enough of them.
SELECT h.id, h.words FROM session_history h JOIN sessions s ON s.id = h.session_id
JOIN session_keys k ON k.id = s.key_id
WHERE h.id > (SELECT upto FROM indexed_records) AND h.words IS NOT NULL
    AND h.space = :space AND s.space = :space AND k.space = :space AND {asked_record}
ORDER BY h.id DESC;

-- name: unindexed_records (postgres)
SELECT h.id, h.words FROM session_history h JOIN sessions s ON s.id = h.session_id
JOIN session_keys k ON k.id = s.key_id WHERE h.space = :space AND false AND {asked_record};

-- name: record_extent
-- How many there are, told from the newest so many: from which key on they stand, and to which; and
-- the first key of all.
SELECT count(*), COALESCE(min(n.id), 0), COALESCE(max(n.id), 0), COALESCE((
    SELECT o.id FROM session_history o WHERE o.space = :space ORDER BY o.id LIMIT 1), 0)
FROM (
    SELECT h.id FROM session_history h WHERE h.space = :space ORDER BY h.id DESC LIMIT :limit) n;

-- name: fact_extent
SELECT count(*), COALESCE(min(n.key), 0), COALESCE(max(n.key), 0), COALESCE((
    SELECT o.key FROM facts o WHERE o.space = :space ORDER BY o.key LIMIT 1), 0)
FROM (
    SELECT f.key FROM facts f WHERE f.space = :space ORDER BY f.key DESC LIMIT :limit) n;

-- name: summary_extent
SELECT count(*), COALESCE(min(n.key), 0), COALESCE(max(n.key), 0), COALESCE((
    SELECT o.key FROM extractions o WHERE o.space = :space ORDER BY o.key LIMIT 1), 0)
FROM (
    SELECT e.key FROM extractions e WHERE e.space = :space ORDER BY e.key DESC LIMIT :limit) n;

-- name: document_extent
SELECT t.documents, 0, t.documents, 0 FROM trees t WHERE t.space = :space AND :limit > 0;

-- fragment: keys (sqlite)
-- Joined with CROSS JOIN, which SQLite does in the order it is written: by any other it would go
-- through all that a space has.
(SELECT value AS key FROM json_each(:keys))

-- fragment: keys (postgres)
(SELECT CAST(v AS BIGINT) AS key FROM json_array_elements_text(CAST(:keys AS json)) v)

-- fragment: record_entry
h.id, h.session_id, h.seq, h.role, h.name, substr(h.content, 1, :chars_max), h.words, h.said_at,
h.metadata, s.parent IS NOT NULL

-- name: load_records
SELECT {record_entry}
FROM {keys} wanted CROSS JOIN session_history h CROSS JOIN sessions s CROSS JOIN session_keys k
WHERE h.id = wanted.key AND s.id = h.session_id AND k.id = s.key_id
    AND h.space = :space AND s.space = :space AND k.space = :space AND {asked_record};

-- name: load_neighbours
-- The two records before and after some.
SELECT {record_entry}
FROM {keys} wanted CROSS JOIN session_history c CROSS JOIN session_history h
CROSS JOIN sessions s CROSS JOIN session_keys k
WHERE c.id = wanted.key AND h.session_id = c.session_id AND h.seq BETWEEN c.seq - 2 AND c.seq + 2
    AND h.id <> c.id AND s.id = h.session_id AND k.id = s.key_id
    AND c.space = :space AND h.space = :space AND s.space = :space AND k.space = :space
    AND {asked_record};

-- name: timed_records
-- The newest in a time that a question names.
SELECT h.id FROM session_history h JOIN sessions s ON s.id = h.session_id
JOIN session_keys k ON k.id = s.key_id
WHERE h.space = :space AND s.space = :space AND k.space = :space
    AND h.said_at >= :start AND h.said_at < :end AND {asked_record}
ORDER BY h.said_at DESC, h.id DESC LIMIT :limit;

-- name: load_facts
SELECT f.key, f.id, f.content, f.words, f.valid_from, f.trust, f.tags, f.metadata, f.usage_count,
    f.topic, f.superseded_by, {sources}
FROM {keys} wanted CROSS JOIN facts f
WHERE f.key = wanted.key AND f.space = :space AND {asked_fact};

-- name: load_summaries
SELECT e.key, e.session_id, substr(e.rollout_summary, 1, :chars_max), e.words, e.source_updated_at,
    e.usage_count, e.upto
FROM {keys} wanted CROSS JOIN extractions e CROSS JOIN sessions s CROSS JOIN session_keys k
WHERE e.key = wanted.key AND s.id = e.session_id AND k.id = s.key_id
    AND e.space = :space AND s.space = :space AND k.space = :space AND {asked_summary};

-- name: load_documents
SELECT d.key, d.path, d.title, d.description, substr(d.body, 1, :chars_max),
    substr(d.words, 1, :chars_max), d.updated_at, d.tags, d.author_kind, d.provenance
FROM {keys} wanted CROSS JOIN documents d
WHERE d.key = wanted.key AND d.space = :space AND {asked_document};

-- name: wordless_records
SELECT h.space, h.id, substr(h.content, 1, :chars_max) FROM session_history h
WHERE h.words IS NULL ORDER BY h.id LIMIT :limit;

-- name: set_record_words
UPDATE session_history SET words = :words WHERE space = :space AND id = :key AND words IS NULL;

-- name: wordless_extractions
SELECT e.space, e.key, e.raw_memory, e.rollout_summary, e.rollout_slug FROM extractions e
WHERE e.words IS NULL ORDER BY e.key LIMIT :limit;

-- name: set_extraction_words
UPDATE extractions SET words = :words WHERE space = :space AND key = :key AND words IS NULL;

-- name: wordless_facts
-- Those that are indexed by their words as they stand there.
SELECT f.space, f.key, f.content FROM facts f WHERE NOT f.stemmed ORDER BY f.key LIMIT :limit;

-- name: set_fact_words
UPDATE facts SET words = :words, stemmed = TRUE
WHERE space = :space AND key = :key AND NOT stemmed AND content = :content;

-- name: insert_usage
INSERT INTO usages (space, turn_id, kind, entry_kind, entry_id, session_id, created_at)
VALUES (:space, :turn_id, :kind, :entry_kind, :entry_id, :session_id, :now)
ON CONFLICT (space, turn_id, kind, entry_kind, entry_id) DO NOTHING
RETURNING 1;

-- name: use_fact
UPDATE facts SET usage_count = usage_count + 1, last_usage = :now
WHERE space = :space AND id = :entry_id;

-- name: use_extraction
UPDATE extractions SET usage_count = usage_count + 1, last_usage = :now
WHERE space = :space AND session_id = :session_id;

-- name: count_usages
SELECT u.kind, count(*), max(u.created_at) FROM usages u
WHERE u.space = :space AND u.entry_kind = :entry_kind AND u.entry_id = :entry_id GROUP BY u.kind;

-- name: forget_usages
DELETE FROM usages WHERE space = :space AND session_id = :id;

-- name: aged_usages
SELECT DISTINCT u.space FROM usages u WHERE u.created_at < :before;

-- name: prune_usages
DELETE FROM usages WHERE created_at < :before AND space = :space RETURNING 1;
