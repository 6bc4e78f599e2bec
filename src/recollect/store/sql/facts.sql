-- Facts: statements with their sources, their validity and their history.
-- A fact is live while nothing has superseded or deleted it, and it waits for nobody. On PostgreSQL changing the facts of a
-- space locks its row in consolidations.

-- fragment: fact
f.id, f.space, {said}, f.tags, f.metadata, f.trust, f.topic, f.extractor, f.created_at, f.updated_at,
f.valid_from, f.expires_at, f.superseded_at, f.superseded_by, f.usage_count, f.last_usage, f.shown_count,
{sources},
(SELECT count(*) FROM fact_sources o WHERE o.space = :space AND o.fact_key = f.key),
f.about, f.kind, f.happened_from, f.happened_to, f.review_state

-- fragment: said
-- What it says or, if it is asked for at another time, said then: as its history tells from its first
-- words on.
CASE WHEN :is_now THEN f.content ELSE COALESCE((
    SELECT o.content FROM {its_history} o WHERE o.space = :space AND o.fact_id = f.id AND o.id = (
        SELECT max(n.id) FROM {its_history} n WHERE n.space = :space AND n.fact_id = f.id
            AND n.event IN ('added', 'edited') AND n.created_at <= :at)), (
    SELECT o.content FROM {its_history} o WHERE o.space = :space AND o.fact_id = f.id AND o.id = (
        SELECT min(n.id) FROM {its_history} n WHERE n.space = :space AND n.fact_id = f.id
            AND n.event IN ('added', 'edited'))), f.content) END

-- fragment: sources (sqlite)
-- They are not sorted where none is wanted.
CASE WHEN :sources_max > 0 THEN
    (SELECT json_group_array(json_array(e.session_id, e.seq, e.seq_to, e.quote)
            ORDER BY e.created_at, e.session_id, e.seq, e.seq_to)
        FROM {earliest} e) END

-- fragment: sources (postgres)
CASE WHEN :sources_max > 0 THEN
    (SELECT CAST(json_agg(json_build_array(e.session_id, e.seq, e.seq_to, e.quote)
            ORDER BY e.created_at, e.session_id, e.seq, e.seq_to) AS TEXT)
        FROM {earliest} e) END

-- fragment: earliest
-- The first so many sources of a fact; there is no end to how often a thing can be said.
(SELECT o.session_id, o.seq, o.seq_to, o.quote, o.created_at FROM fact_sources o
    WHERE o.space = :space AND o.fact_key = f.key
    ORDER BY o.created_at, o.session_id, o.seq, o.seq_to LIMIT :sources_max)

-- fragment: by_session
-- Sources come before the facts in what joins both: SQLite would go through all that a space has.
o.space = :space AND o.session_id = :session_id

-- fragment: is_settled
-- It does not wait for a person.
COALESCE(f.review_state, 'accepted') = 'accepted'

-- fragment: is_live
f.superseded_by IS NULL AND f.deleted_at IS NULL AND {is_settled}

-- fragment: is_extracted
-- An extractor found it, and nobody has edited it or given it an id of its own.
(f.extractor IS NOT NULL AND f.content_key IS NOT NULL)

-- fragment: holds
-- It has been said, and was neither over nor superseded by then.
({held} AND (f.expires_at IS NULL OR f.expires_at > :at)
    AND (f.superseded_at IS NULL
        OR (f.superseded_at > :at AND NOT (:is_now AND f.superseded_at <= f.updated_at))))

-- fragment: waits
-- It would hold now, were it accepted.
(f.review_state <> 'accepted' AND {is_said} AND (f.expires_at IS NULL OR f.expires_at > :at))

-- fragment: held
({is_settled} AND {is_said})

-- fragment: is_said
-- It was said by then; and it is somebody's own, or a session that may be remembered bears it out. A
-- deleted one never was. Who asks about now asks one clock, and who stored it had another: what was so
-- by that one is so.
(f.deleted_at IS NULL
    AND (f.valid_from <= :at
        OR (:is_now AND (f.valid_from <= f.created_at OR f.valid_from <= f.updated_at)))
    AND (NOT EXISTS (SELECT 1 FROM sessions n WHERE n.space = :space AND n.mode <> 'enabled')
        OR {is_borne_out}))

-- fragment: is_borne_out
-- It is not an extractor's alone, or one of its sources is in no session that is to be left out.
(f.extractor IS NULL OR f.content_key IS NULL OR f.own_trust IS NOT NULL OR EXISTS (
    SELECT 1 FROM fact_sources o WHERE o.space = :space AND o.fact_key = f.key AND NOT EXISTS (
        SELECT 1 FROM {its_own_session} n WHERE n.id = o.session_id AND n.space = :space
            AND n.mode <> 'enabled')))

-- fragment: its_own_session (sqlite)
sessions

-- fragment: its_own_session (postgres)
-- By its id, one at a time; never all that are left out of a space.
(SELECT * FROM sessions g WHERE g.space = :space AND g.id = o.session_id OFFSET 0)

-- fragment: believed_until
COALESCE(f.superseded_at, 4611686018427387904)

-- name: get_fact
SELECT {fact} FROM facts f WHERE f.space = :space AND f.id = :id AND f.deleted_at IS NULL;

-- name: find_fact
SELECT f.key, f.content, f.content_key, f.expires_at, f.superseded_at, f.tags, f.metadata, f.topic,
    f.valid_from
FROM facts f WHERE f.space = :space AND f.id = :id AND f.deleted_at IS NULL;

-- name: words_of_fact
SELECT f.key, f.words FROM facts f WHERE f.space = :space AND f.id = :id;

-- name: find_same_fact
-- The statement as it is known: what these very records bear out already, what was believed at the
-- time, and the live one.
SELECT s.key, s.id, s.valid_from, s.content, s.trust, s.superseded_at, s.is_replay, s.review_state FROM (
    SELECT f.key, f.id, f.valid_from, f.content, f.trust, f.superseded_at, f.review_state, EXISTS (
        SELECT 1 FROM fact_sources o WHERE o.space = :space AND o.fact_key = f.key
            AND o.session_id = :session_id AND o.seq = :seq AND o.seq_to = :seq_to) AS is_replay
    FROM facts f
    WHERE f.space = :space AND f.content_key = :content_key AND f.deleted_at IS NULL) s
WHERE s.is_replay OR s.superseded_at IS NULL OR s.superseded_at > :valid_from;

-- name: said_earlier
-- It was said before what we knew of, and nothing else on its topic in between.
UPDATE facts SET valid_from = :valid_from, updated_at = :now
WHERE space = :space AND key = :key AND valid_from > :valid_from AND extractor IS NOT NULL
    AND (topic IS NULL OR NOT :is_single OR NOT EXISTS (
        SELECT 1 FROM facts r
        WHERE r.space = :space AND r.topic = facts.topic AND r.key <> facts.key
            AND r.deleted_at IS NULL AND r.valid_from BETWEEN :valid_from AND facts.valid_from))
RETURNING key;

-- name: find_topic_facts
-- What was believed about a topic at a time or has been since, apart from people's own unless a
-- person says so.
SELECT f.key, f.id, f.trust, f.valid_from, f.content FROM facts f
WHERE f.space = :space AND f.topic = :topic AND f.deleted_at IS NULL
    AND {believed_until} > :valid_from AND (:or_own OR {is_extracted}) AND {is_settled}
    AND f.key <> :key;

-- name: find_supersedable
SELECT f.key, f.id, f.trust, f.valid_from, f.content FROM facts f
WHERE f.space = :space AND f.id = :id AND {is_live} AND {is_extracted} AND f.key <> :key;

-- name: disputed_statements
-- Of some statements, those that somebody has changed or deleted, and whether it was rejected.
SELECT h.content_key, max(CASE WHEN h.event = 'rejected' THEN 1 ELSE 0 END) FROM fact_history h
WHERE h.space = :space AND h.content_key IN ({each_content_key}) GROUP BY h.content_key;

-- fragment: each_content_key (sqlite)
SELECT k.value FROM json_each(:content_keys) k

-- fragment: each_content_key (postgres)
SELECT json_array_elements_text(CAST(:content_keys AS json))

-- name: is_suppressed
-- Somebody has changed, deleted or forgotten this statement, and it comes from what the same session
-- had said by then; or somebody else says it there, for whom it has been taken back. Last, what was
-- taken back before it was noted how far its sessions had come.
SELECT 1 FROM fact_history h
WHERE h.space = :space AND h.content_key = :content_key AND h.fact_id = ''
    AND h.other_id = :session_id
    AND (h.upto IS NULL OR h.upto >= :seq_to OR NOT :is_persons_word)
UNION ALL
SELECT 1 FROM fact_history h JOIN facts f ON f.space = :space AND f.id = h.fact_id
JOIN fact_sources o ON o.space = :space AND o.fact_key = f.key
WHERE h.space = :space AND h.content_key = :content_key AND h.upto IS NULL
    AND {by_session}
LIMIT 1;

-- name: insert_fact
INSERT INTO facts (
    id, space, content, words, content_key, tags, metadata, trust, own_trust, topic, extractor,
    created_at, updated_at, valid_from, expires_at, about, kind, happened_from, happened_to,
    review_state, replaces
) VALUES (
    :id, :space, :content, :words, :content_key, :tags, :metadata, :trust, :own_trust, :topic,
    :extractor, :created_at, :now, :valid_from, :expires_at, :about, :kind, :happened_from,
    :happened_to, :review_state, :replaces
) RETURNING key;

-- name: replace_fact
-- An upsert by id: everything it says is replaced, its use is not.
UPDATE facts SET
    content = :content, words = :words, content_key = :content_key, tags = :tags,
    metadata = :metadata, trust = :trust, own_trust = :own_trust, topic = :topic,
    extractor = :extractor, updated_at = :now, valid_from = :valid_from, expires_at = :expires_at,
    about = :about, kind = :kind, happened_from = :happened_from, happened_to = :happened_to,
    review_state = :review_state
WHERE space = :space AND id = :id RETURNING key;

-- name: edit_fact
-- It is somebody's own from now on; what it rests on stays. In other words it may be about somebody
-- else, and have happened on another day.
UPDATE facts SET
    content = :content, words = :words, content_key = :content_key, tags = :tags, kind = :kind,
    about = CASE WHEN :is_reworded THEN NULL ELSE about END,
    happened_from = CASE WHEN :is_reworded THEN NULL ELSE happened_from END,
    happened_to = CASE WHEN :is_reworded THEN NULL ELSE happened_to END,
    metadata = :metadata, expires_at = :expires_at, extractor = NULL, updated_at = :now,
    trust = COALESCE(CAST(:trust AS TEXT), trust),
    own_trust = CASE WHEN own_trust IS NULL THEN NULL
        ELSE COALESCE(CAST(:trust AS TEXT), own_trust) END
WHERE space = :space AND key = :key RETURNING key;

-- name: reword_sources
-- The trust that is set for a fact is set for all its sources: it stays when one of them is gone.
UPDATE fact_sources SET trust = :trust
WHERE space = :space AND fact_key = :key AND trust <> :trust;

-- name: revive_fact
-- What is added under the id of a fact that was deleted or superseded is believed.
UPDATE facts SET deleted_at = NULL, superseded_by = NULL, superseded_at = NULL, content_key = NULL
WHERE space = :space AND id = :id AND (deleted_at IS NOT NULL OR superseded_by IS NOT NULL);

-- name: adopt_fact
-- Somebody says the same: it is theirs from now on.
UPDATE facts SET extractor = NULL, updated_at = :now
WHERE space = :space AND key = :key AND extractor IS NOT NULL RETURNING key;

-- name: vouch_for_fact
-- Said without a source: it needs no session any more, and is worth at least as much as this.
UPDATE facts SET own_trust = :trust, updated_at = :now
WHERE space = :space AND key = :key AND (
    own_trust IS NULL OR own_trust <> :trust AND (own_trust = 'tool' OR :trust = 'user'))
RETURNING key;

-- name: settle_trust
-- A statement is worth as much as the best of those who make it still.
UPDATE facts SET trust = {best_trust}, updated_at = :now
WHERE space = :space AND key = :key AND trust <> {best_trust}
RETURNING id, trust, content, review_state, superseded_by, superseded_at;

-- name: proposed_fact
-- A fact that waits, with what it takes to let it end others.
SELECT f.key, f.content, f.content_key, f.trust, f.topic, f.metadata, f.valid_from, f.replaces, f.extractor,
    f.review_state
FROM facts f WHERE f.space = :space AND f.id = :id AND f.deleted_at IS NULL
    AND f.review_state <> 'accepted';

-- name: set_review
-- What a person vouches for that a tool said is that person's word.
UPDATE facts SET review_state = :review_state, updated_at = :now,
    trust = COALESCE(CAST(:trust AS TEXT), trust),
    own_trust = CASE WHEN own_trust IS NULL THEN NULL
        ELSE COALESCE(CAST(:trust AS TEXT), own_trust) END
WHERE space = :space AND key = :key;

-- name: sessions_of_fact
-- Those it was learned from, and how far each has been gone through.
SELECT DISTINCT s.id, s.pass, COALESCE(s.processed_until, 0) FROM fact_sources o
JOIN sessions s ON s.space = :space AND s.id = o.session_id
WHERE o.space = :space AND o.fact_key = :key ORDER BY s.id;

-- name: session_waits
SELECT 1 FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND f.review_state = 'waiting'
    AND f.deleted_at IS NULL LIMIT 1;

-- fragment: best_trust
CASE WHEN own_trust = 'user' OR {has_user_source} THEN 'user'
    WHEN own_trust = 'agent' OR {has_agent_source} THEN 'agent' ELSE 'tool' END

-- fragment: has_user_source
EXISTS (SELECT 1 FROM fact_sources o
    WHERE o.space = :space AND o.fact_key = :key AND o.trust = 'user')

-- fragment: has_agent_source
EXISTS (SELECT 1 FROM fact_sources o
    WHERE o.space = :space AND o.fact_key = :key AND o.trust = 'agent')

-- name: supersede_fact
UPDATE facts SET superseded_by = :other_id, superseded_at = :superseded_at, updated_at = :now
WHERE space = :space AND key = :key;

-- name: insert_source
-- Known already: the newest words, and the better trust.
INSERT INTO fact_sources (space, fact_key, session_id, seq, seq_to, quote, trust, created_at)
VALUES (:space, :fact_key, :session_id, :seq, :seq_to, :quote, :trust, :now)
ON CONFLICT (space, fact_key, session_id, seq, seq_to) DO UPDATE SET
    quote = excluded.quote,
    trust = CASE WHEN {is_better_trust} THEN excluded.trust ELSE fact_sources.trust END
WHERE fact_sources.quote <> excluded.quote OR {is_better_trust} RETURNING fact_key;

-- fragment: is_better_trust
(excluded.trust <> fact_sources.trust AND (
    fact_sources.trust = 'tool' OR excluded.trust = 'user'))

-- name: delete_sources
DELETE FROM fact_sources WHERE space = :space AND fact_key = :fact_key;

-- name: insert_change
INSERT INTO fact_history (
    space, fact_id, event, content, content_key, made_by, other_id, created_at, upto
) VALUES (
    :space, :id, :event, :content, :content_key, :made_by, :other_id, :now,
    CASE WHEN CAST(:content_key AS TEXT) IS NULL THEN NULL ELSE 0 END
);

-- name: unsay
-- No session that a fact was learned from brings a statement back by what it has said so far.
INSERT INTO fact_history (
    space, fact_id, event, content, content_key, made_by, other_id, created_at, upto
) SELECT DISTINCT f.space, '', 'unsaid', '', CAST(:content_key AS TEXT),
    CAST(:made_by AS TEXT), o.session_id, CAST(:now AS BIGINT), (
        SELECT s.last_seq FROM sessions s WHERE s.space = :space AND s.id = o.session_id)
FROM facts f JOIN fact_sources o ON o.space = :space AND o.fact_key = f.key
WHERE f.space = :space AND f.id = :id
ORDER BY o.session_id;

-- name: fact_changes
SELECT h.fact_id, h.event, h.content, h.created_at, h.made_by, h.other_id FROM fact_history h
WHERE h.space = :space AND h.fact_id = :id ORDER BY h.id;

-- name: delete_fact
UPDATE facts SET deleted_at = :now, updated_at = :now
WHERE space = :space AND id = :id AND deleted_at IS NULL
RETURNING content, content_key, superseded_by, superseded_at;

-- name: session_sources
-- Where extractors found something in a session: what they would find again. What people deleted,
-- accepted or made their own stays, and so does what was learned from records that are gone.
SELECT o.fact_key, o.seq, o.seq_to FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND {is_extracted} AND f.deleted_at IS NULL
    AND COALESCE(f.review_state, '') <> 'accepted' AND EXISTS (
        SELECT 1 FROM session_history h WHERE h.space = :space AND h.session_id = :session_id
            AND h.seq BETWEEN o.seq AND o.seq_to);

-- name: foundation
-- What a fact rests on: somebody's own word, and how many sources.
SELECT f.id, f.own_trust IS NOT NULL, (
    SELECT count(*) FROM fact_sources o WHERE o.space = :space AND o.fact_key = f.key)
FROM facts f WHERE f.space = :space AND f.key = :fact_key;

-- name: delete_source
DELETE FROM fact_sources WHERE space = :space AND fact_key = :fact_key
    AND session_id = :session_id AND seq = :seq AND seq_to = :seq_to;

-- name: left_out
-- The facts of a session that no session bears out that may be remembered.
SELECT DISTINCT f.key, f.id, f.superseded_by, f.superseded_at
FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} AND f.deleted_at IS NULL AND NOT {is_borne_out}
ORDER BY f.key;

-- name: superseded_once
-- What live facts of a session had superseded, and what it was superseded by since is over.
SELECT DISTINCT f.key, f.id, f.content, f.trust, b.id, b.trust, b.valid_from
FROM fact_sources o CROSS JOIN facts b
JOIN fact_history h ON h.space = :space AND h.other_id = b.id AND h.event = 'superseded'
JOIN facts f ON f.space = :space AND f.id = h.fact_id
WHERE b.key = o.fact_key AND b.space = :space AND {by_session} AND b.deleted_at IS NULL AND b.superseded_by IS NULL
    AND b.extractor IS NOT NULL AND b.content_key IS NOT NULL
    AND {is_live} AND {is_extracted}
    AND f.valid_from <= b.valid_from AND f.key <> b.key
ORDER BY b.valid_from, f.key;

-- name: session_facts
-- All that rests on a session, also what was deleted or withdrawn.
SELECT DISTINCT f.key FROM fact_sources o CROSS JOIN facts f
WHERE f.key = o.fact_key AND f.space = :space AND {by_session} ORDER BY f.key;

-- name: withdraw_sources
DELETE FROM fact_sources
WHERE space = :space AND session_id = :session_id AND fact_key = :fact_key;

-- name: sourceless
SELECT f.id, f.superseded_by, f.superseded_at FROM facts f
WHERE f.space = :space AND f.key = :fact_key AND f.own_trust IS NULL
    AND NOT EXISTS (SELECT 1 FROM fact_sources o WHERE o.space = :space AND o.fact_key = f.key);

-- name: superseded_by
SELECT f.key, f.id, f.content, f.content_key, f.trust FROM facts f
WHERE f.space = :space AND f.superseded_by = :id AND f.deleted_at IS NULL
ORDER BY f.superseded_at DESC, f.key DESC;

-- name: find_live_same
SELECT f.id, f.valid_from, f.key, f.content, f.trust FROM facts f
WHERE f.space = :space AND f.content_key = :content_key AND {is_live} AND f.key <> :key;

-- name: inherit_superseded
-- What superseded it is gone: it passes to what superseded that, or comes back to life.
UPDATE facts SET superseded_by = :other_id, superseded_at = :superseded_at, updated_at = :now
WHERE space = :space AND key = :key;

-- name: erase_fact
DELETE FROM facts WHERE space = :space AND key = :fact_key RETURNING key, {words_gone};

-- name: erase_changes
DELETE FROM fact_history WHERE space = :space AND fact_id = :id;

-- name: list_facts
-- Newest first, a page at a time.
SELECT {fact} FROM facts f WHERE {is_listed}
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: list_topic_facts
-- The same of one topic, by its index: few of many.
SELECT {fact} FROM facts t CROSS JOIN facts f
WHERE t.space = :space AND t.topic = :topic AND t.deleted_at IS NULL AND f.key = t.key
    AND {is_listed}
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: waiting_facts
-- Newest first, a page at a time.
SELECT {fact} FROM facts f WHERE f.space = :space AND (f.created_at, f.id) < (:before, :before_id)
    AND {waits} AND f.deleted_at IS NULL AND (:any_tag OR {has_tag})
    AND (:any_session OR EXISTS (
        SELECT 1 FROM fact_sources o WHERE o.fact_key = f.key AND {by_session}))
    AND (:any_project OR {fact_project} = :project OR EXISTS (
        SELECT 1 FROM fact_sources o JOIN sessions s ON s.space = :space AND s.id = o.session_id
        WHERE o.space = :space AND o.fact_key = f.key AND s.project = :project))
    AND (:any_person OR {names_it})
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- fragment: names_it
-- Its words have these in a row.
(' ' || f.words || ' ') LIKE :phrase

-- name: count_unreviewed
-- operator
SELECT count(*) FROM facts f
WHERE (:any_space OR f.space = :space) AND f.review_state <> 'accepted' AND f.deleted_at IS NULL;

-- fragment: is_listed
f.space = :space AND (f.created_at, f.id) < (:before, :before_id)
    AND CASE WHEN :every THEN f.deleted_at IS NULL ELSE {holds} END
    AND (:any_session OR EXISTS (
        SELECT 1 FROM fact_sources o WHERE o.fact_key = f.key AND {by_session}))
    AND (:any_tag OR {has_tag})

-- fragment: has_tag (sqlite)
EXISTS (SELECT 1 FROM json_each(f.tags) t WHERE t.value = :tag)

-- fragment: has_tag (postgres)
(CAST(f.tags AS jsonb) @> to_jsonb(CAST(:tag AS TEXT)))

-- name: count_facts
SELECT count(*) FROM facts f WHERE f.space = :space AND {holds};

-- name: search_facts (sqlite)
-- The best first, so that nothing is looked up for the others.
SELECT {fact} FROM (
    SELECT f.key, bm25(facts_fts, 0.0, 1.0) AS score
    FROM facts_fts CROSS JOIN facts f ON f.key = facts_fts.rowid
    WHERE facts_fts MATCH {any_of} AND f.space = :space AND {holds}
    ORDER BY score, f.created_at DESC, f.id LIMIT :limit) best CROSS JOIN facts f
WHERE f.space = :space AND f.key = best.key
ORDER BY best.score, f.created_at DESC, f.id;

-- name: search_facts (postgres)
SELECT {fact} FROM facts f, {any_of} q (wanted)
WHERE f.search @@ q.wanted AND f.space = :space AND {holds}
ORDER BY ts_rank_cd(f.search, q.wanted) DESC, f.created_at DESC, f.id LIMIT :limit;

-- name: facts_naming (sqlite)
-- Newest first, a page at a time.
SELECT {fact} FROM facts_fts CROSS JOIN facts f ON f.key = facts_fts.rowid
WHERE facts_fts MATCH {any_phrase} AND f.space = :space AND {held}
    AND (f.created_at, f.id) < (:before, :before_id)
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: facts_naming (postgres)
SELECT {fact} FROM facts f, {any_phrase} q (wanted)
WHERE f.search @@ q.wanted AND f.space = :space AND {held}
    AND (f.created_at, f.id) < (:before, :before_id)
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: count_facts_naming (sqlite)
SELECT count(*) FROM facts_fts CROSS JOIN facts f ON f.key = facts_fts.rowid
WHERE facts_fts MATCH {any_phrase} AND f.space = :space AND {held};

-- name: count_facts_naming (postgres)
SELECT count(*) FROM facts f, {any_phrase} q (wanted)
WHERE f.search @@ q.wanted AND f.space = :space AND {held};

-- name: reworded_facts
-- Those that say something else than they did at a time, the last that were edited; as they said it.
SELECT f.key, {fact} FROM facts f WHERE f.space = :space AND {holds} AND f.id IN (
    SELECT h.fact_id FROM fact_history h
    WHERE h.space = :space AND h.event = 'edited' AND h.created_at > :at
    ORDER BY h.created_at DESC LIMIT :reworded_max);

-- name: search_fact_metadata (sqlite)
SELECT {fact} FROM facts f
WHERE f.space = :space AND {holds} AND (f.created_at, f.id) < (:before, :before_id) AND EXISTS (
    SELECT 1 FROM json_each(f.metadata) m, json_each(:value) v WHERE m.key = :field
        AND CASE
            WHEN m.type IN ('integer', 'real') THEN v.type IN ('integer', 'real') AND m.value = v.value
            WHEN m.type = 'text' THEN v.type = 'text' AND m.value = v.value
            ELSE m.type = v.type END)
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;

-- name: search_fact_metadata (postgres)
SELECT {fact} FROM facts f
WHERE f.space = :space AND {holds} AND (f.created_at, f.id) < (:before, :before_id)
    AND CAST(f.metadata AS jsonb) -> CAST(:field AS TEXT) = CAST(:value AS jsonb)
ORDER BY f.created_at DESC, f.id DESC LIMIT :limit;
