-- What pages were made from, and the facts that are still to be put on one. Changing the tree of a
-- space locks its row in trees.

-- fragment: is_rendered
-- It follows its facts; nobody has written it.
(d.author_kind = 'agent' AND d.author = 'memory-worker' AND d.reason = 'rendered from facts')

-- fragment: filed_fact
{fact}, (
    SELECT s.project FROM fact_sources o JOIN sessions s ON s.id = o.session_id
    WHERE o.space = :space AND s.space = :space AND o.fact_key = f.key AND s.project IS NOT NULL
    ORDER BY o.created_at, o.session_id, o.seq, o.seq_to LIMIT 1)

-- name: insert_input
INSERT INTO derived_inputs (
    space, kind, id, input_kind, input_id, seq, seq_to, first_version)
SELECT :space, 'document', d.id, :input_kind, :input_id, :seq, :seq_to, d.version
FROM documents d WHERE d.space = :space AND d.key = :key
ON CONFLICT (space, kind, id, input_kind, input_id, seq, seq_to) DO NOTHING;

-- name: drop_input
DELETE FROM derived_inputs WHERE space = :space AND kind = 'document' AND id = (
    SELECT d.id FROM documents d WHERE d.space = :space AND d.key = :key)
    AND input_kind = :input_kind AND input_id = :input_id AND seq = :seq AND seq_to = :seq_to;

-- name: inputs_of_page
SELECT i.input_kind, i.input_id, i.seq, i.seq_to
FROM derived_inputs i JOIN documents d ON d.id = i.id
WHERE i.space = :space AND d.space = :space AND d.key = :key AND i.kind = 'document';

-- name: drop_inputs
DELETE FROM derived_inputs WHERE space = :space AND kind = 'document' AND id = (
    SELECT d.id FROM documents d WHERE d.space = :space AND d.key = :key);

-- name: drop_all_inputs
DELETE FROM derived_inputs WHERE space = :space;

-- name: documents_made_from
-- Those that rest on any of some facts and sessions; also deleted ones. From the inputs on: SQLite
-- would go through all documents of the space.
SELECT DISTINCT d.key FROM {ids} w CROSS JOIN derived_inputs i CROSS JOIN documents d
WHERE i.space = :space AND i.input_kind IN ('fact', 'record') AND i.input_id = w.id
    AND i.kind = 'document' AND d.space = :space AND d.id = i.id
ORDER BY d.key;

-- name: pages_of_fact
SELECT d.key, d.path, d.path_key, d.depth FROM derived_inputs i JOIN documents d ON d.id = i.id
WHERE i.space = :space AND d.space = :space AND i.kind = 'document' AND i.input_kind = 'fact'
    AND i.input_id = :id AND d.deleted_at IS NULL AND {is_rendered}
ORDER BY d.key;

-- name: pages_of_stretch
-- Pages with facts that some records bear out.
SELECT DISTINCT d.key FROM fact_sources o CROSS JOIN facts f
JOIN derived_inputs i ON i.input_kind = 'fact' AND i.input_id = f.id
JOIN documents d ON d.id = i.id
WHERE {by_session} AND {by_stretch} AND f.key = o.fact_key
    AND f.space = :space AND i.space = :space AND d.space = :space
    AND i.kind = 'document' AND d.deleted_at IS NULL AND {is_rendered}
ORDER BY d.key;

-- fragment: by_stretch
(o.seq_to = 0 OR (o.seq <= :last AND o.seq_to >= :first))

-- name: pages_with_ended_facts
-- What was so when they were rendered, and has come to its end since.
SELECT DISTINCT d.key FROM facts f
JOIN derived_inputs i ON i.input_kind = 'fact' AND i.input_id = f.id
JOIN documents d ON d.id = i.id
WHERE f.space = :space AND i.space = :space AND d.space = :space AND i.kind = 'document'
    AND f.expires_at <= :now AND d.updated_at < f.expires_at AND d.deleted_at IS NULL
    AND {is_rendered}
ORDER BY d.key;

-- name: unfile_page
-- Its facts are to come on a page again.
INSERT INTO derived_inputs (space, kind, id, input_kind, input_id)
SELECT i.space, 'unfiled', d.path_key, 'fact', i.input_id
FROM derived_inputs i JOIN documents d ON d.id = i.id
WHERE i.space = :space AND d.space = :space AND d.key = :key AND i.kind = 'document'
    AND i.input_kind = 'fact'
ON CONFLICT (space, kind, id, input_kind, input_id, seq, seq_to) DO NOTHING;

-- name: unfile_stretch
-- The facts that some records bear out.
INSERT INTO derived_inputs (space, kind, id, input_kind, input_id)
SELECT DISTINCT f.space, 'unfiled', '', 'fact', f.id
FROM fact_sources o CROSS JOIN facts f
WHERE {by_session} AND {by_stretch} AND f.key = o.fact_key AND f.space = :space
    AND f.deleted_at IS NULL
ON CONFLICT (space, kind, id, input_kind, input_id, seq, seq_to) DO NOTHING;

-- name: settle_stretch
-- The facts that some records bear out come on no page.
DELETE FROM derived_inputs WHERE space = :space AND kind = 'unfiled' AND input_id IN (
    SELECT f.id FROM fact_sources o CROSS JOIN facts f
    WHERE {by_session} AND {by_stretch} AND f.key = o.fact_key AND f.space = :space);

-- name: touch_document
UPDATE documents SET updated_at = :now WHERE space = :space AND key = :key;

-- name: unfiled_facts
SELECT {filed_fact}, u.id FROM derived_inputs u JOIN facts f ON f.id = u.input_id
WHERE u.space = :space AND f.space = :space AND u.kind = 'unfiled' AND {held}
ORDER BY u.id, f.id;

-- name: facts_of_page
SELECT {filed_fact}, d.path_key FROM derived_inputs i JOIN documents d ON d.id = i.id
JOIN facts f ON f.id = i.input_id
WHERE i.space = :space AND d.space = :space AND f.space = :space AND i.kind = 'document'
    AND d.path_key = :path_key AND d.deleted_at IS NULL AND i.input_kind = 'fact' AND {held}
ORDER BY f.id;

-- name: count_facts_of_page
SELECT count(*) FROM derived_inputs i JOIN documents d ON d.id = i.id
WHERE i.space = :space AND d.space = :space AND d.key = :key AND i.kind = 'document'
    AND i.input_kind = 'fact';

-- name: unfiled_pages
SELECT DISTINCT u.id FROM derived_inputs u
WHERE u.space = :space AND u.kind = 'unfiled' AND u.id <> '' ORDER BY u.id;

-- name: has_inputs
SELECT 1 FROM derived_inputs i JOIN documents d ON d.id = i.id
WHERE i.space = :space AND d.space = :space AND d.key = :key AND i.kind = 'document' LIMIT 1;

-- name: erase_earlier_versions
DELETE FROM document_versions WHERE space = :space AND document_key = :key AND version < (
    SELECT d.version FROM documents d WHERE d.space = :space AND d.key = :key);

-- name: hold_back
-- What waits for a person comes on a page once it is accepted.
INSERT INTO derived_inputs (space, kind, id, input_kind, input_id)
SELECT u.space, 'held_back', '', 'fact', f.id FROM derived_inputs u JOIN facts f ON f.id = u.input_id
WHERE u.space = :space AND f.space = :space AND u.kind = 'unfiled'
    AND f.review_state <> 'accepted' AND f.deleted_at IS NULL
ON CONFLICT (space, kind, id, input_kind, input_id, seq, seq_to) DO NOTHING;

-- name: unfile_held_back
INSERT INTO derived_inputs (space, kind, id, input_kind, input_id)
SELECT i.space, 'unfiled', '', 'fact', i.input_id FROM derived_inputs i
WHERE i.space = :space AND i.kind = 'held_back' AND i.input_id = :id
ON CONFLICT (space, kind, id, input_kind, input_id, seq, seq_to) DO NOTHING;

-- name: drop_held_back
DELETE FROM derived_inputs WHERE space = :space AND kind = 'held_back' AND input_id = :id;

-- name: settle_unfiled
DELETE FROM derived_inputs WHERE space = :space AND kind = 'unfiled';

-- name: spaces_unfiled
-- operator
SELECT DISTINCT u.space FROM derived_inputs u
WHERE u.kind = 'unfiled' AND (:any_space OR u.space = :space) LIMIT :limit;

-- name: spaces_with_ended_facts
-- operator
SELECT DISTINCT f.space FROM facts f
JOIN derived_inputs i ON i.space = f.space AND i.input_kind = 'fact' AND i.input_id = f.id
JOIN documents d ON d.space = f.space AND d.id = i.id
WHERE (:any_space OR f.space = :space) AND f.expires_at <= :now AND i.kind = 'document'
    AND d.updated_at < f.expires_at AND d.deleted_at IS NULL AND {is_rendered}
LIMIT :limit;

-- name: pages_below
SELECT d.path, d.title, d.description FROM documents d
WHERE d.space = :space AND d.depth = :depth AND d.deleted_at IS NULL AND {is_inside}
ORDER BY d.path_key LIMIT :limit;

-- name: rendered_inside
SELECT d.key, d.path_key, d.version FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside} AND {is_rendered}
ORDER BY d.path_key DESC;

-- name: raise_versions
-- No document begins at or below this version.
UPDATE trees SET versions_from = {greatest}(versions_from, :version) WHERE space = :space;
