-- Recall: the newest entries that have a word, entries by their keys, and what is to be indexed yet.
-- Keys come and go as JSON. What may be found is decided here where it narrows a search down.

-- fragment: asked_record
-- Said in the time that is asked for, in a session from which something may be learned.
(s.remembered AND h.said_at >= :since AND h.said_at < :until AND (:any_trust OR CASE
        WHEN h.role <> 'user' THEN {role_asked} WHEN {is_background} THEN :agents_word ELSE :peoples_word END)
    AND (:any_fields OR {record_has})
    AND (:any_session OR h.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
    AND {of_project})

-- fragment: asked_fact
(({holds} OR (:or_past AND {held})) AND f.valid_from >= :since AND f.valid_from < :until
    AND (:any_trust OR {trust_asked}) AND (:any_tags OR {fact_tagged}) AND (:any_fields OR {fact_has})
    AND ((:any_session AND :any_agent AND :any_project) OR EXISTS (
        SELECT 1 FROM {its_grounds}
        WHERE o.space = :space AND s.space = :space AND k.space = :space AND o.fact_key = f.key
            AND s.id = o.session_id AND k.id = s.key_id
            AND (:any_session OR o.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
            AND {of_project})
        OR (:any_session AND :any_agent AND (
            {fact_project} = :project OR (:or_no_project AND {fact_project} IS NULL)))))

-- fragment: fact_project (sqlite)
-- The one that a fact holds in. One that names none holds wherever its people are.
json_extract(f.metadata, '$.project')

-- fragment: fact_project (postgres)
(CAST(f.metadata AS jsonb) ->> 'project')

-- fragment: of_project
-- Said in the project that is asked for or, if that is asked for as well, in none.
(:any_project OR s.project = :project OR (:or_no_project AND s.project IS NULL))

-- fragment: is_background
-- No person takes part: an agent that another one started, or one that nobody talks to.
(s.parent IS NOT NULL OR substr(k.agent_id, 1, 6) <> '/user/')

-- fragment: asked_summary
-- A text that was changed since is not what it said at another time.
(s.remembered AND (:any_trust OR :agents_word)
    AND e.generated_at <= :known AND (e.reworded_at IS NULL OR e.reworded_at <= :known)
    AND e.source_updated_at >= :since AND e.source_updated_at < :until
    AND (:any_session OR e.session_id = :session_id) AND (:any_agent OR k.agent_id = :agent)
    AND {of_project})

-- fragment: asked_document
-- A document is nobody's session. What a person wrote is of no project; what agents wrote is of all
-- they were told of. As it was at another time, it is only known if it has not changed.
-- A page that says nothing is there for those below it.
(d.deleted_at IS NULL AND (d.body <> '' OR d.description <> '') AND NOT {says_again}
    AND NOT (d.author_kind = 'consolidation' AND {has_left_out})
    AND d.updated_at >= :since AND d.updated_at < :until AND (:any_tags OR {document_tagged})
    AND (:any_trust OR CASE WHEN d.author_kind = 'person' THEN :peoples_word ELSE :agents_word END)
    AND :any_session AND :any_agent
    AND (:any_project OR (:or_no_project AND d.author_kind = 'person')))

-- fragment: has_left_out
-- The generation rests on a session that may not be remembered any more; the next one will not.
EXISTS (SELECT 1 FROM sessions n JOIN extractions e ON e.space = :space AND e.session_id = n.id
    WHERE n.space = :space AND n.mode <> 'enabled' AND e.selected_for_phase2)

-- fragment: says_again
-- What sessions came to, copied by consolidation.
(d.author_kind = 'consolidation'
    AND (substr(d.path, 1, 27) = '~/memory/rollout_summaries/' OR d.path = '~/memory/raw_memories'))

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

-- fragment: record_has (sqlite)
-- Of every field that is asked for one of the values.
(NOT EXISTS (SELECT 1 FROM json_each(:fields) w WHERE NOT EXISTS (
    SELECT 1 FROM json_each(h.metadata) m, json_each(w.value) v WHERE m.key = w.key AND {same_value})))

-- fragment: record_has (postgres)
(NOT EXISTS (SELECT 1 FROM jsonb_each(CAST(:fields AS jsonb)) w
    WHERE NOT COALESCE(w.value @> (CAST(h.metadata AS jsonb) -> w.key), false)))

-- fragment: fact_has (sqlite)
(NOT EXISTS (SELECT 1 FROM json_each(:fields) w WHERE NOT EXISTS (
    SELECT 1 FROM json_each(f.metadata) m, json_each(w.value) v WHERE m.key = w.key AND {same_value})))

-- fragment: fact_has (postgres)
(NOT EXISTS (SELECT 1 FROM jsonb_each(CAST(:fields AS jsonb)) w
    WHERE NOT COALESCE(w.value @> (CAST(f.metadata AS jsonb) -> w.key), false)))

-- fragment: same_value (sqlite)
CASE WHEN m.type IN ('integer', 'real') THEN v.type IN ('integer', 'real') AND m.value = v.value
    WHEN m.type = 'text' THEN v.type = 'text' AND m.value = v.value ELSE m.type = v.type END

-- name: steer (sqlite)
SELECT 1;

-- name: steer (postgres)
-- Until the end of the transaction: by an index, in its order, and planned once for all questions, unless
-- a router has to see them. What follows is written so that no other plan is as good; by itself the
-- server would plan each time anew, or read all of a table that was small when it planned, or sort all
-- of one that it has no statistics of.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
    set_config('plan_cache_mode', current_setting('recollect.plans'), true);

-- fragment: has_word (postgres)
-- A posting of one word.
wanted.space = :space AND wanted.word = left(:word, 128)

-- fragment: its_record (sqlite)
session_history h

-- fragment: its_record (postgres)
-- One for each that is wanted, and never all of a space first: OFFSET 0 keeps it as it is written,
-- and the order is one that a single index has, so that no other comes into question.
LATERAL (SELECT * FROM session_history o WHERE o.space = :space AND o.id BETWEEN wanted.key AND wanted.key
    ORDER BY o.id OFFSET 0) h

-- fragment: its_session (sqlite)
sessions s

-- fragment: its_session (postgres)
LATERAL (SELECT * FROM sessions o WHERE o.space = :space AND o.id BETWEEN h.session_id AND h.session_id
    ORDER BY o.id OFFSET 0) s

-- fragment: its_key (sqlite)
session_keys k

-- fragment: its_key (postgres)
LATERAL (SELECT * FROM session_keys o WHERE o.space = :space AND o.id BETWEEN s.key_id AND s.key_id
    ORDER BY o.id OFFSET 0) k

-- fragment: its_fact (sqlite)
facts f

-- fragment: its_fact (postgres)
LATERAL (SELECT * FROM facts o WHERE o.space = :space AND o.key BETWEEN wanted.key AND wanted.key
    ORDER BY o.key OFFSET 0) f

-- fragment: its_grounds (sqlite)
fact_sources o JOIN sessions s ON s.space = :space AND s.id = o.session_id
JOIN session_keys k ON k.space = :space AND k.id = s.key_id

-- fragment: its_grounds (postgres)
(SELECT * FROM fact_sources g WHERE g.space = :space AND g.fact_key BETWEEN f.key AND f.key
    ORDER BY g.fact_key OFFSET 0) o
CROSS JOIN LATERAL (SELECT * FROM sessions g WHERE g.space = :space
    AND g.id BETWEEN o.session_id AND o.session_id ORDER BY g.id OFFSET 0) s
CROSS JOIN LATERAL (SELECT * FROM session_keys g WHERE g.space = :space
    AND g.id BETWEEN s.key_id AND s.key_id ORDER BY g.id OFFSET 0) k

-- fragment: its_history (sqlite)
fact_history

-- fragment: its_history (postgres)
(SELECT * FROM fact_history g WHERE g.space = :space AND g.fact_id = f.id OFFSET 0)

-- fragment: its_summary (sqlite)
extractions e CROSS JOIN sessions s

-- fragment: its_summary (postgres)
LATERAL (SELECT * FROM extractions o WHERE o.space = :space AND o.key BETWEEN wanted.key AND wanted.key
    ORDER BY o.key OFFSET 0) e
CROSS JOIN LATERAL (SELECT * FROM sessions o WHERE o.space = :space AND o.id BETWEEN e.session_id AND e.session_id
    ORDER BY o.id OFFSET 0) s

-- fragment: its_document (sqlite)
documents d

-- fragment: its_document (postgres)
LATERAL (SELECT * FROM documents o WHERE o.space = :space AND o.key BETWEEN wanted.key AND wanted.key
    ORDER BY o.key OFFSET 0) d

-- name: record_postings (sqlite)
SELECT rowid FROM records_fts WHERE records_fts MATCH {the_word} ORDER BY rowid DESC LIMIT :limit;

-- name: record_postings (postgres)
SELECT wanted.key FROM postings wanted WHERE {has_word} AND wanted.kind = 'r' ORDER BY wanted.key DESC LIMIT :limit;

-- name: asked_record_postings (sqlite)
SELECT f.rowid FROM records_fts f CROSS JOIN session_history h ON h.id = f.rowid
CROSS JOIN sessions s ON s.id = h.session_id CROSS JOIN session_keys k ON k.id = s.key_id
WHERE f.records_fts MATCH {the_word} AND h.space = :space AND s.space = :space AND k.space = :space
    AND {asked_record}
ORDER BY f.rowid DESC LIMIT :limit;

-- name: asked_record_postings (postgres)
SELECT wanted.key FROM postings wanted CROSS JOIN {its_record} CROSS JOIN {its_session} CROSS JOIN {its_key}
WHERE {has_word} AND wanted.kind = 'r' AND h.id = wanted.key AND s.id = h.session_id AND k.id = s.key_id
    AND h.space = :space AND s.space = :space AND k.space = :space AND {asked_record}
ORDER BY wanted.key DESC LIMIT :limit;

-- name: fact_postings (sqlite)
SELECT rowid FROM facts_fts WHERE facts_fts MATCH {the_word} ORDER BY rowid DESC LIMIT :limit;

-- name: fact_postings (postgres)
SELECT wanted.key FROM postings wanted WHERE {has_word} AND wanted.kind = 'f' ORDER BY wanted.key DESC LIMIT :limit;

-- name: asked_fact_postings (sqlite)
SELECT f.key FROM facts_fts CROSS JOIN facts f ON f.key = facts_fts.rowid
WHERE facts_fts MATCH {the_word} AND f.space = :space AND {asked_fact}
ORDER BY facts_fts.rowid DESC LIMIT :limit;

-- name: asked_fact_postings (postgres)
SELECT wanted.key FROM postings wanted CROSS JOIN {its_fact}
WHERE {has_word} AND wanted.kind = 'f' AND f.key = wanted.key AND f.space = :space AND {asked_fact}
ORDER BY wanted.key DESC LIMIT :limit;

-- fragment: any_word (sqlite)
-- A query for any of some words in entries of a space.
COALESCE((SELECT group_concat('"' || s.number || 'z' || w.value || '"', ' OR ')
    FROM spaces s, json_each(:words) w WHERE s.space = :space), '""')

-- name: related_record_postings (sqlite)
SELECT rowid FROM records_fts WHERE records_fts MATCH {any_word} ORDER BY rowid DESC LIMIT :limit;

-- name: related_record_postings (postgres)
-- The newest postings of each of some words; OFFSET 0 keeps the words as they are written.
SELECT DISTINCT found.key FROM (
    SELECT left(v, 128) AS word FROM json_array_elements_text(CAST(:words AS json)) v OFFSET 0) w
CROSS JOIN LATERAL (SELECT p.key FROM postings p
    WHERE p.space = :space AND p.word = w.word AND p.kind = 'r'
    ORDER BY p.key DESC LIMIT :limit) found
ORDER BY found.key DESC LIMIT :limit;

-- name: related_fact_postings (sqlite)
SELECT rowid FROM facts_fts WHERE facts_fts MATCH {any_word} ORDER BY rowid DESC LIMIT :limit;

-- name: related_fact_postings (postgres)
SELECT DISTINCT found.key FROM (
    SELECT left(v, 128) AS word FROM json_array_elements_text(CAST(:words AS json)) v OFFSET 0) w
CROSS JOIN LATERAL (SELECT p.key FROM postings p
    WHERE p.space = :space AND p.word = w.word AND p.kind = 'f'
    ORDER BY p.key DESC LIMIT :limit) found
ORDER BY found.key DESC LIMIT :limit;

-- name: summary_postings (sqlite)
SELECT e.key FROM extractions_fts CROSS JOIN extractions e ON e.key = extractions_fts.rowid
CROSS JOIN sessions s ON s.id = e.session_id CROSS JOIN session_keys k ON k.id = s.key_id
WHERE extractions_fts MATCH {the_word} AND e.space = :space AND s.space = :space
    AND k.space = :space AND {asked_summary}
ORDER BY extractions_fts.rowid DESC LIMIT :limit;

-- name: summary_postings (postgres)
SELECT wanted.key FROM postings wanted CROSS JOIN {its_summary} CROSS JOIN {its_key}
WHERE {has_word} AND wanted.kind = 's' AND e.key = wanted.key AND s.id = e.session_id AND k.id = s.key_id
    AND e.space = :space AND s.space = :space AND k.space = :space AND {asked_summary}
ORDER BY wanted.key DESC LIMIT :limit;

-- name: document_postings (sqlite)
SELECT d.key FROM documents_fts CROSS JOIN documents d ON d.key = documents_fts.rowid
WHERE documents_fts MATCH {the_word} AND d.space = :space AND {asked_document}
ORDER BY documents_fts.rowid DESC LIMIT :limit;

-- name: document_postings (postgres)
SELECT wanted.key FROM postings wanted CROSS JOIN {its_document}
WHERE {has_word} AND wanted.kind = 'd' AND d.key = wanted.key AND d.space = :space AND {asked_document}
ORDER BY wanted.key DESC LIMIT :limit;

-- name: unindexed_records (sqlite)
-- The newest, which the index takes up together when there are enough of them.
SELECT h.id, h.words FROM session_history h JOIN sessions s ON s.id = h.session_id
JOIN session_keys k ON k.id = s.key_id
WHERE h.id > (SELECT upto FROM indexed_records) AND h.words IS NOT NULL
    AND h.space = :space AND s.space = :space AND k.space = :space AND {asked_record}
ORDER BY h.id DESC;

-- name: unindexed_records (postgres)
SELECT h.id, h.words FROM session_history h
JOIN sessions s ON s.space = :space AND s.id = h.session_id
JOIN session_keys k ON k.space = :space AND k.id = s.key_id WHERE h.space = :space AND false AND {asked_record};

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
-- Not to be pulled up: an index is asked for a number, but under row-level security for no cast.
(SELECT CAST(v AS BIGINT) AS key FROM json_array_elements_text(CAST(:keys AS json)) v OFFSET 0)

-- fragment: record_entry
h.id, h.session_id, h.seq, h.role, h.name, {its_text}, {its_words}, h.said_at, h.metadata, {is_background}

-- fragment: its_text (sqlite)
-- Cutting a text counts its letters; how many bytes it has stands beside it.
CASE WHEN octet_length(h.content) <= :chars_max THEN h.content ELSE substr(h.content, 1, :chars_max) END

-- fragment: its_text (postgres)
substr(h.content, 1, :chars_max)

-- fragment: its_words (sqlite)
CASE WHEN octet_length(h.words) <= :words_max THEN h.words ELSE substr(h.words, 1, :words_max) END

-- fragment: its_words (postgres)
substr(h.words, 1, :words_max)

-- name: load_records
SELECT {record_entry}
FROM {keys} wanted CROSS JOIN {its_record} CROSS JOIN {its_session} CROSS JOIN {its_key}
WHERE h.id = wanted.key AND s.id = h.session_id AND k.id = s.key_id
    AND h.space = :space AND s.space = :space AND k.space = :space AND {asked_record};

-- name: load_neighbours (sqlite)
-- The two records before and after some, whose session is looked up once for the four of them.
SELECT {record_entry}
FROM {keys} wanted CROSS JOIN session_history c CROSS JOIN sessions s CROSS JOIN session_keys k
CROSS JOIN session_history h
WHERE c.id = wanted.key AND s.id = c.session_id AND k.id = s.key_id
    AND h.session_id = c.session_id AND h.seq BETWEEN c.seq - 2 AND c.seq + 2 AND h.id <> c.id
    AND c.space = :space AND h.space = :space AND s.space = :space AND k.space = :space
    AND {asked_record};

-- name: load_neighbours (postgres)
SELECT {record_entry}
FROM {keys} wanted CROSS JOIN LATERAL (
    SELECT c.id, c.space, c.session_id, c.seq - 2 AS low, c.seq + 2 AS high
    FROM session_history c WHERE c.space = :space AND c.id BETWEEN wanted.key AND wanted.key
    ORDER BY c.id OFFSET 0) c
CROSS JOIN LATERAL (
    SELECT * FROM session_history o
    WHERE o.space = :space AND o.session_id = c.session_id AND o.seq BETWEEN c.low AND c.high
    ORDER BY o.seq OFFSET 0) h
CROSS JOIN {its_session} CROSS JOIN {its_key}
WHERE h.id <> c.id AND c.space = :space AND h.space = :space AND s.space = :space
    AND k.space = :space AND {asked_record};

-- name: timed_records
-- The newest in a time that a question names.
SELECT h.id FROM session_history h CROSS JOIN {its_session} CROSS JOIN {its_key}
WHERE s.id = h.session_id AND k.id = s.key_id
    AND h.space = :space AND s.space = :space AND k.space = :space
    AND h.said_at >= :start AND h.said_at < :end AND {asked_record}
ORDER BY h.said_at DESC, h.id DESC LIMIT :limit;

-- name: timed_facts
-- Those that tell of what began in a time that a question names, the last first.
SELECT f.key FROM facts f
WHERE f.space = :space AND f.happened_from >= :start AND f.happened_from < :end AND {asked_fact}
ORDER BY f.happened_from DESC, f.key DESC LIMIT :limit;

-- name: load_facts
SELECT f.key, f.id, {said}, CASE WHEN :is_now THEN f.words ELSE '' END, f.valid_from, f.trust, f.tags, f.metadata, f.usage_count,
    f.topic, f.superseded_by, {sources}, f.expires_at, f.superseded_at, CASE WHEN :or_past THEN {successor} END,
    f.about, f.happened_from, f.happened_to
FROM {keys} wanted CROSS JOIN {its_fact}
WHERE f.key = wanted.key AND f.space = :space AND {asked_fact};

-- fragment: successor
-- What took a fact's place, by the one index that has it in this order.
(SELECT n.content FROM facts n WHERE n.space = :space AND n.id BETWEEN f.superseded_by AND f.superseded_by
    AND n.deleted_at IS NULL ORDER BY n.id LIMIT 1)

-- name: replaced_facts
-- Those replaced last, each before what took its place: ids are made in the order of time.
SELECT f.key, (SELECT n.key FROM facts n
    WHERE n.space = :space AND n.id BETWEEN f.superseded_by AND f.superseded_by ORDER BY n.id LIMIT 1)
FROM facts f WHERE f.space = :space AND f.superseded_by IS NOT NULL
ORDER BY f.superseded_by DESC LIMIT :limit;

-- fragment: ids (sqlite)
(SELECT value AS id FROM json_each(:ids))

-- fragment: ids (postgres)
(SELECT v AS id FROM json_array_elements_text(CAST(:ids AS json)) v)

-- fragment: its_namesake (sqlite)
facts f

-- fragment: its_namesake (postgres)
-- In an order that one index alone has: any other of a space looks as good to who has no statistics.
LATERAL (SELECT * FROM facts o WHERE o.space = :space AND o.id BETWEEN wanted.id AND wanted.id
    ORDER BY o.id LIMIT 1) f

-- name: grounds_of_facts
-- Where facts come from that a document names, whether they still hold or not.
SELECT f.id, {sources} FROM {ids} wanted CROSS JOIN {its_namesake}
WHERE f.id = wanted.id AND f.space = :space AND f.deleted_at IS NULL;

-- name: revised_statements
-- What was learned from some sessions and does not hold any more as it was said: a person has changed
-- or deleted it, or it was replaced, or it is over.
SELECT o.session_id, o.seq, o.seq_to, h.content, o.quote, 1, f.updated_at,
    CASE WHEN f.deleted_at IS NULL THEN f.content ELSE '' END
FROM {ids} wanted CROSS JOIN {sources_of_session} CROSS JOIN {fact_of_source}
JOIN fact_history h ON h.space = :space AND h.fact_id = f.id
WHERE {is_source} AND h.event IN ('added', 'edited') AND (f.deleted_at IS NOT NULL OR h.content <> f.content)
    AND EXISTS (SELECT 1 FROM fact_history d
        WHERE d.space = :space AND d.fact_id = f.id AND d.content_key IS NOT NULL)
UNION ALL
SELECT o.session_id, o.seq, o.seq_to, f.content, o.quote, 0, COALESCE(f.superseded_at, f.expires_at),
    (SELECT n.content FROM facts n WHERE n.space = :space AND n.id = f.superseded_by AND n.deleted_at IS NULL)
FROM {ids} wanted CROSS JOIN {sources_of_session} CROSS JOIN {fact_of_source}
WHERE {is_source} AND f.deleted_at IS NULL AND (f.superseded_at <= :at OR f.expires_at <= :at)
ORDER BY 1, 2, 3, 4 LIMIT :limit;

-- name: revised_since
-- The same for what became so since a time, wherever it was learned: pages are older.
SELECT '', 0, 0, h.content, '', 1, f.updated_at, CASE WHEN f.deleted_at IS NULL THEN f.content ELSE '' END
FROM fact_history d JOIN facts f ON f.space = :space AND f.id = d.fact_id
JOIN fact_history h ON h.space = :space AND h.fact_id = f.id
WHERE d.space = :space AND d.content_key IS NOT NULL AND d.created_at >= :since
    AND h.event IN ('added', 'edited') AND (f.deleted_at IS NOT NULL OR h.content <> f.content)
UNION ALL
SELECT '', 0, 0, f.content, '', 0, f.superseded_at, {successor}
FROM facts f WHERE f.space = :space AND f.superseded_by IS NOT NULL AND f.deleted_at IS NULL
    AND f.updated_at >= :since AND f.superseded_at <= :at
LIMIT :limit;

-- fragment: is_source
o.session_id = wanted.id AND o.space = :space AND f.key = o.fact_key AND f.space = :space

-- fragment: sources_of_session (sqlite)
-- By their sessions: SQLite would go through all that a space has.
(SELECT * FROM fact_sources INDEXED BY idx_fact_sources_session WHERE space = :space) o

-- fragment: sources_of_session (postgres)
LATERAL (SELECT * FROM fact_sources g WHERE g.space = :space AND g.session_id = wanted.id OFFSET 0) o

-- fragment: fact_of_source (sqlite)
facts f

-- fragment: fact_of_source (postgres)
LATERAL (SELECT * FROM facts g WHERE g.space = :space AND g.key BETWEEN o.fact_key AND o.fact_key
    ORDER BY g.key OFFSET 0) f

-- name: load_summaries
SELECT e.key, e.session_id, substr(e.rollout_summary, 1, :chars_max), substr(e.words, 1, :words_max),
    e.source_updated_at, e.usage_count, e.upto
FROM {keys} wanted CROSS JOIN {its_summary} CROSS JOIN {its_key}
WHERE e.key = wanted.key AND s.id = e.session_id AND k.id = s.key_id
    AND e.space = :space AND s.space = :space AND k.space = :space AND {asked_summary};

-- name: load_documents
SELECT d.key, d.path, d.title, d.description, substr(d.body, 1, :chars_max),
    substr(d.words, 1, :words_max), d.updated_at, d.tags, d.author_kind, d.provenance
FROM {keys} wanted CROSS JOIN {its_document}
WHERE d.key = wanted.key AND d.space = :space AND {asked_document};

-- fragment: fact_of_kind (sqlite)
CASE WHEN f.tags = '[]' THEN :is_untagged ELSE EXISTS (
    SELECT 1 FROM json_each(f.tags) t JOIN json_each(:wanted) w ON w.value = t.value) END

-- fragment: fact_of_kind (postgres)
CASE WHEN f.tags = '[]' THEN :is_untagged ELSE EXISTS (
    SELECT 1 FROM jsonb_array_elements_text(CAST(f.tags AS jsonb)) t (tag)
    WHERE CAST(:wanted AS jsonb) @> to_jsonb(t.tag)) END

-- name: latest_facts
-- Of some kinds or of none, what holds in a project, or wherever its people are; the newest.
SELECT f.key, f.id, {said}, '', f.valid_from, f.trust, f.tags, f.metadata, f.usage_count,
    f.topic, f.superseded_by, {sources}, f.expires_at, f.superseded_at, NULL,
    f.about, f.happened_from, f.happened_to
FROM facts f
WHERE f.space = :space AND {fact_of_kind} AND {asked_fact}
    AND ({fact_project} IS NULL OR {fact_project} = :place)
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: latest_sessions
-- What the last sessions came to. Not one that another session started, unless it is asked for; and
-- not the one that is shown anyway, nor what a compaction has carried over into it.
SELECT e.key, e.session_id, e.rollout_summary, '', e.source_updated_at, e.usage_count, e.upto,
    e.raw_memory, e.rollout_slug
FROM (
    SELECT e.key FROM extractions e JOIN sessions s ON s.id = e.session_id
    JOIN session_keys k ON k.id = s.key_id
    WHERE e.space = :space AND s.space = :space AND k.space = :space AND {asked_summary}
        AND (NOT :any_session OR s.parent IS NULL)
        AND NOT EXISTS (SELECT 1 FROM sessions b
            WHERE b.space = :space AND b.id = :beside AND b.key_id = s.key_id
                AND s.rotation <= b.rotation AND NOT EXISTS (SELECT 1 FROM sessions r
                    WHERE r.space = :space AND r.key_id = s.key_id AND r.rotation >= s.rotation
                        AND r.rotation < b.rotation AND COALESCE(r.ended_by, '') <> 'compaction'))
    ORDER BY e.source_updated_at DESC, e.session_id DESC LIMIT :limit) newest
JOIN extractions e ON e.space = :space AND e.key = newest.key
ORDER BY e.source_updated_at DESC, e.session_id DESC;

-- name: post (sqlite)
-- SQLite's full text follows its tables by itself.
SELECT 1;

-- name: post (postgres)
-- An entry is found by its words.
INSERT INTO postings (space, kind, word, key)
SELECT DISTINCT :space, CAST(:letter AS "char"), left(w, 128), CAST(:key AS BIGINT)
FROM unnest(string_to_array(CAST(:words AS TEXT), ' ')) w WHERE w <> ''
ON CONFLICT (space, kind, word, key) DO NOTHING;

-- name: unpost (sqlite)
SELECT 1;

-- name: unpost (postgres)
DELETE FROM postings
WHERE space = :space AND kind = CAST(:letter AS "char") AND key = CAST(:key AS BIGINT)
    AND word = ANY (ARRAY(
        SELECT left(w, 128) FROM unnest(string_to_array(CAST(:words AS TEXT), ' ')) w));

-- fragment: words_gone
-- By which an entry was found that is deleted.
words

-- name: go_by_index (sqlite)
SELECT 1;

-- name: go_by_index (postgres)
-- Until the end of the transaction, whatever the server believes of a table that was empty a moment
-- ago.
SELECT set_config('enable_seqscan', 'off', true);

-- fragment: used (sqlite)
(SELECT n.key AS place, n.value ->> 0 AS entry_kind, n.value ->> 1 AS entry_id,
    n.value ->> 2 AS session_id, n.value ->> 3 AS seq
FROM json_each(:hits) n)

-- fragment: used (postgres)
-- Not to be pulled up, as the keys above.
(SELECT n.place, n.hit ->> 0 AS entry_kind, n.hit ->> 1 AS entry_id,
    n.hit ->> 2 AS session_id, CAST(n.hit ->> 3 AS BIGINT) AS seq
FROM json_array_elements(CAST(:hits AS json)) WITH ORDINALITY n (hit, place) OFFSET 0)

-- name: insert_usages
-- Of what this space has, and has still, in the order in which they are given.
INSERT INTO usages (space, turn_id, kind, entry_kind, entry_id, session_id, created_at)
SELECT :space, :turn_id, :kind, u.entry_kind, u.entry_id, u.session_id, :now
FROM {used} u WHERE CASE u.entry_kind
    WHEN 'fact' THEN EXISTS (
        SELECT 1 FROM facts f WHERE f.space = :space AND f.id = u.entry_id AND f.deleted_at IS NULL)
    WHEN 'document' THEN EXISTS (
        SELECT 1 FROM documents d WHERE d.space = :space AND d.path = u.entry_id)
    WHEN 'summary' THEN EXISTS (
        SELECT 1 FROM extractions e WHERE e.space = :space AND e.session_id = u.entry_id)
    ELSE EXISTS (
        SELECT 1 FROM session_history h
        WHERE h.space = :space AND h.session_id = u.session_id AND h.seq = u.seq) END
ORDER BY u.place
ON CONFLICT (space, turn_id, kind, entry_kind, entry_id) DO NOTHING
RETURNING entry_kind, entry_id;

-- name: show_fact
-- To be shown is not to be used: no memory is ranked by it, and none is kept for it.
UPDATE facts SET shown_count = shown_count + 1 WHERE space = :space AND id = :entry_id;

-- name: use_fact
UPDATE facts SET usage_count = usage_count + 1, last_usage = :now
WHERE space = :space AND id = :entry_id;

-- name: use_extraction
UPDATE extractions SET usage_count = usage_count + :uses, last_usage = :now
WHERE space = :space AND session_id = :session_id;

-- name: count_usages
SELECT u.kind, count(*), max(u.created_at) FROM usages u
WHERE u.space = :space AND u.entry_kind = :entry_kind AND u.entry_id = :entry_id GROUP BY u.kind;

-- name: forget_usages
DELETE FROM usages WHERE space = :space AND session_id = :id;

-- name: purge_usages
DELETE FROM usages WHERE space = :space AND entry_kind = 'document' AND entry_id IN (
    SELECT d.path FROM documents d WHERE d.space = :space AND d.key = :key);

-- name: aged_usages
-- operator
SELECT DISTINCT u.space FROM usages u WHERE u.created_at < :before;

-- name: prune_usages
DELETE FROM usages WHERE created_at < :before AND space = :space RETURNING 1;
