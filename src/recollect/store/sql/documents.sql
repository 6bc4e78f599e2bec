-- Documents: a tree by path, versions, references and redirects. From `path_key` up to, not including,
-- `path_key_end` lie a path and everything below it. Changing the tree locks its row in trees.

-- fragment: document
d.key, d.id, d.space, d.path, d.path_key, d.title, d.description, d.body, d.tags, d.links, d.version,
d.created_at, d.updated_at, d.deleted_at, d.author_kind, d.author, d.reason, d.provenance,
d.deleted_with

-- fragment: as_version
d.key, d.version, d.space, :event, d.path, d.title, d.description, d.body, d.tags, d.links,
d.author_kind, d.author, d.reason, d.provenance, :now

-- fragment: is_inside
(d.path_key >= :path_key AND d.path_key < :path_key_end)

-- fragment: greatest (sqlite)
max

-- fragment: greatest (postgres)
greatest

-- fragment: seen_before
-- The highest version of anything else that stood at a path: what was deleted there, what was moved
-- away, and what was purged anywhere. The document that is there now has a higher version, and so
-- had those before it.
{greatest}(:versions_from,
    (SELECT COALESCE(max(o.version), 0) FROM documents o
        WHERE o.space = :space AND o.path_key = d.path_key AND o.deleted_at IS NOT NULL
            AND o.key <> d.key),
    (SELECT COALESCE(max(o.version), 0) FROM document_redirects r
        JOIN documents o ON o.key = r.document_key
        WHERE r.space = :space AND o.space = :space AND r.path_key = d.path_key
            AND o.key <> d.key))

-- name: lock_tree
-- The lock of a space's tree: its changes are made one at a time.
INSERT INTO trees (space) VALUES (:space)
ON CONFLICT (space) DO UPDATE SET documents = trees.documents
RETURNING documents, versions_from;

-- name: seen_before
SELECT {seen_before} FROM (SELECT CAST(:path_key AS TEXT) AS path_key, 0 AS key) d;

-- name: overtaken_documents
-- What has come to stand where something else had that version already.
SELECT n.key, n.seen FROM (
    SELECT d.key, d.version, {seen_before} AS seen FROM documents d
    WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside}) n
WHERE n.version <= n.seen ORDER BY n.key;

-- name: raise_document
UPDATE documents SET
    version = :version, author_kind = :author_kind, author = :author, reason = :reason,
    provenance = :provenance, updated_at = :now
WHERE space = :space AND key = :key;

-- name: count_documents
UPDATE trees SET documents = documents + :more WHERE space = :space;

-- name: find_document
SELECT {document} FROM documents d
WHERE d.space = :space AND d.path_key = :path_key AND d.deleted_at IS NULL;

-- name: get_document
SELECT {document} FROM documents d WHERE d.space = :space AND d.id = :id;

-- name: get_document_by_key
SELECT {document} FROM documents d WHERE d.space = :space AND d.key = :key;

-- name: find_deleted_document
-- The one that was deleted last of those that stood there.
SELECT {document} FROM documents d
WHERE d.space = :space AND d.path_key = :path_key AND d.deleted_at IS NOT NULL
ORDER BY d.deleted_at DESC, d.key DESC LIMIT 1;

-- name: find_moved_document
-- The one that stood at a path before it was moved.
SELECT {document} FROM document_redirects r JOIN documents d ON d.key = r.document_key
WHERE r.space = :space AND d.space = :space AND r.path_key = :path_key AND d.deleted_at IS NULL;

-- name: insert_document
INSERT INTO documents (
    id, space, path, path_key, depth, title, description, body, tags, links, called, about, words,
    version, author_kind, author, reason, provenance, created_at, updated_at
) VALUES (
    :id, :space, :path, :path_key, :depth, :title, :description, :body, :tags, :links, :called,
    :about, :words, :version, :author_kind, :author, :reason, :provenance, :now, :now
) RETURNING key;

-- name: words_of_document
SELECT d.key, d.words FROM documents d WHERE d.space = :space AND d.key = :key;

-- name: update_document
UPDATE documents SET
    title = :title, description = :description, body = :body, tags = :tags, links = :links,
    called = :called, about = :about, words = :words, version = version + 1,
    author_kind = :author_kind, author = :author, reason = :reason, provenance = :provenance,
    updated_at = :now
WHERE space = :space AND key = :key RETURNING key;

-- name: note_document
-- A change of where it stands: what it says stays.
UPDATE documents SET
    version = version + 1, author_kind = :author_kind, author = :author, reason = :reason,
    provenance = :provenance, updated_at = :now
WHERE space = :space AND key = :key;

-- name: move_documents
-- A document and what stands below it; a path begins with that of its parent, to the letter.
UPDATE documents SET
    path = :to_path || substr(path, :from_chars),
    path_key = :to_key || substr(path_key, :from_key_chars),
    depth = depth + :deeper
WHERE space = :space AND deleted_at IS NULL
    AND path_key >= :path_key AND path_key < :path_key_end;

-- name: delete_documents
-- A document and what stands below it; `deleted_with` is what they can be restored by together.
UPDATE documents SET
    version = version + 1, author_kind = :author_kind, author = :author, reason = :reason,
    provenance = :provenance, updated_at = :now, deleted_at = :now, deleted_with = :deleted_with
WHERE space = :space AND deleted_at IS NULL
    AND path_key >= :path_key AND path_key < :path_key_end
RETURNING key;

-- name: restore_documents
-- What was deleted together, or one of them. What stands above may be written in another case by now.
UPDATE documents SET
    version = version + 1, author_kind = :author_kind, author = :author, reason = :reason,
    provenance = :provenance, updated_at = :now, deleted_at = NULL, deleted_with = NULL,
    path = :to_path || substr(path, :from_chars)
WHERE space = :space AND deleted_at IS NOT NULL AND deleted_with = :deleted_with
    AND path_key >= :path_key AND path_key < :path_key_end AND (:together OR key = :key);

-- name: insert_document_version
INSERT INTO document_versions (
    document_key, version, space, event, path, title, description, body, tags, links, author_kind,
    author, reason, provenance, created_at)
SELECT {as_version} FROM documents d WHERE d.space = :space AND d.key = :key;

-- name: insert_deleted_versions
INSERT INTO document_versions (
    document_key, version, space, event, path, title, description, body, tags, links, author_kind,
    author, reason, provenance, created_at)
SELECT {as_version} FROM documents d
WHERE d.space = :space AND d.deleted_at IS NOT NULL AND d.deleted_with = :deleted_with
    AND {is_inside};

-- name: insert_restored_versions
-- Nothing but what has just been restored stands there.
INSERT INTO document_versions (
    document_key, version, space, event, path, title, description, body, tags, links, author_kind,
    author, reason, provenance, created_at)
SELECT {as_version} FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside};

-- name: count_inside
SELECT count(*) FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside};

-- fragment: bytes_of_key (sqlite)
length(CAST(d.path_key AS BLOB))

-- fragment: bytes_of_key (postgres)
octet_length(d.path_key)

-- fragment: bytes_of_path (sqlite)
length(CAST(d.path AS BLOB))

-- fragment: bytes_of_path (postgres)
octet_length(d.path)

-- name: extent_inside
-- How deep they stand, and the bytes of the longest key and path.
SELECT max(d.depth), max({bytes_of_key}), max({bytes_of_path}) FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside};

-- name: find_referrers
-- Who refers from outside to what is inside.
SELECT DISTINCT o.path_key, o.path, d.path
FROM documents d CROSS JOIN document_references r CROSS JOIN documents o
WHERE d.space = :space AND r.space = :space AND r.target_key = d.key
    AND o.space = :space AND o.key = r.document_key
    AND d.deleted_at IS NULL AND {is_inside} AND o.deleted_at IS NULL
    AND NOT (o.path_key >= :path_key AND o.path_key < :path_key_end)
ORDER BY o.path_key, d.path LIMIT :limit;

-- name: delete_document_references
DELETE FROM document_references WHERE space = :space AND document_key = :key;

-- name: kept_references
-- What a document refers to that is there: as long as it is, a link means it, wherever it stands.
SELECT r.kind, r.target_path_key, r.target_key FROM document_references r
JOIN documents t ON t.key = r.target_key
WHERE r.space = :space AND t.space = :space AND r.document_key = :key AND t.deleted_at IS NULL;

-- name: insert_document_reference
-- To what it meant before, or what stands at the path, or stood there before it was moved.
INSERT INTO document_references (
    document_key, kind, target_path_key, target_path, alias, target_key, space)
SELECT o.key, :kind, :target_path_key, :target_path, :alias, COALESCE(CAST(:kept AS BIGINT),
    (SELECT d.key FROM documents d
        WHERE d.space = :space AND d.path_key = :target_path_key AND d.deleted_at IS NULL),
    (SELECT r.document_key FROM document_redirects r
        WHERE r.space = :space AND r.path_key = :target_path_key)), o.space
FROM documents o WHERE o.space = :space AND o.key = :key;

-- fragment: named_document
COALESCE(
    (SELECT d.key FROM documents d
        WHERE d.space = :space AND d.path_key = target_path_key AND d.deleted_at IS NULL),
    (SELECT l.document_key FROM document_redirects l
        WHERE l.space = :space AND l.path_key = target_path_key), target_key)

-- name: release_references
-- From what was deleted, to what else their path leads to; if to nothing, they wait for it.
UPDATE document_references SET target_key = {named_document}
WHERE space = :space AND target_key IN (
    SELECT d.key FROM documents d
    WHERE d.space = :space AND d.deleted_at IS NOT NULL AND {is_inside});

-- name: bind_unbound_references
-- What they meant was purged: they mean what else their path leads to.
UPDATE document_references SET target_key = {named_document}
WHERE space = :space AND target_key IS NULL;

-- name: bind_references
-- What leads to nothing that is there means what has come to stand at its path.
UPDATE document_references SET target_key = (
    SELECT d.key FROM documents d
    WHERE d.space = :space AND d.path_key = target_path_key AND d.deleted_at IS NULL)
WHERE space = :space AND target_path_key >= :path_key AND target_path_key < :path_key_end
    AND EXISTS (
        SELECT 1 FROM documents d
        WHERE d.space = :space AND d.path_key = target_path_key AND d.deleted_at IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM documents t
        WHERE t.space = :space AND t.key = target_key AND t.deleted_at IS NULL);

-- name: put_redirects
-- From where a document and what is below it stand, before they are moved.
INSERT INTO document_redirects (space, path_key, document_key)
SELECT d.space, d.path_key, d.key FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside}
ON CONFLICT (space, path_key) DO UPDATE SET document_key = excluded.document_key;

-- name: drop_redirects
-- Where something stands, nothing is led elsewhere.
DELETE FROM document_redirects
WHERE space = :space AND path_key >= :path_key AND path_key < :path_key_end
    AND EXISTS (
        SELECT 1 FROM documents d
        WHERE d.space = :space AND d.path_key = document_redirects.path_key
            AND d.deleted_at IS NULL);

-- name: tree_level
-- The documents of one depth below a path, in order, a page at a time. Compared as pairs, because
-- SQLite would otherwise walk through all depths.
SELECT d.id, d.path, d.title, d.description, d.version, length(d.body), d.updated_at,
    EXISTS (
        SELECT 1 FROM documents c
        WHERE c.space = :space AND c.deleted_at IS NULL
            AND c.path_key >= d.path_key || :separator AND c.path_key < d.path_key || :separator_end),
    d.path_key
FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL
    AND (d.depth, d.path_key) >= (:depth, :path_key)
    AND (d.depth, d.path_key) < (:depth, :path_key_end)
ORDER BY d.depth, d.path_key LIMIT :limit;

-- name: document_versions
SELECT v.version, v.event, v.path, v.title, v.description, v.body, v.tags, v.links, v.author_kind,
    v.author, v.reason, v.provenance, v.created_at
FROM document_versions v JOIN documents d ON d.key = v.document_key
WHERE v.space = :space AND d.space = :space AND d.id = :id AND v.version < :before
ORDER BY v.version DESC LIMIT :limit;

-- name: references_from
SELECT r.kind, d.path, COALESCE(t.path, r.target_path), r.alias, t.key IS NULL, r.target_path
FROM document_references r JOIN documents d ON d.key = r.document_key
LEFT JOIN documents t ON t.key = r.target_key AND t.space = :space AND t.deleted_at IS NULL
WHERE r.space = :space AND d.space = :space AND d.id = :id
ORDER BY r.kind, r.target_path_key;

-- name: references_to
SELECT r.kind, o.path, d.path, r.alias, d.deleted_at IS NOT NULL, r.target_path
FROM documents d JOIN document_references r ON r.target_key = d.key
JOIN documents o ON o.key = r.document_key
WHERE r.space = :space AND d.space = :space AND o.space = :space AND d.id = :id
    AND o.deleted_at IS NULL AND o.path_key > :after
    AND o.path_key >= :path_key AND o.path_key < :path_key_end
ORDER BY o.path_key, r.kind LIMIT :limit;

-- name: broken_references
-- What a part of the tree shows must not depend on what stands outside: both ends are inside.
SELECT r.kind, o.path, r.target_path, r.alias, TRUE, r.target_path FROM document_references r
JOIN documents o ON o.key = r.document_key
WHERE r.space = :space AND o.space = :space AND o.deleted_at IS NULL
    AND o.path_key >= :path_key AND o.path_key < :path_key_end
    AND r.target_path_key >= :path_key AND r.target_path_key < :path_key_end AND NOT EXISTS (
        SELECT 1 FROM documents t
        WHERE t.space = :space AND t.key = r.target_key AND t.deleted_at IS NULL
            AND t.path_key >= :path_key AND t.path_key < :path_key_end)
ORDER BY o.path_key, r.target_path_key LIMIT :limit;

-- name: deleted_documents
SELECT d.id, d.path, d.title, d.version, length(d.body), d.deleted_at, d.author_kind, d.author,
    d.reason
FROM documents d WHERE d.space = :space AND d.deleted_at IS NOT NULL AND {is_inside}
    AND (CAST(:after AS TEXT) IS NULL OR (d.deleted_at, d.key) < (
        SELECT a.deleted_at, a.key FROM documents a WHERE a.space = :space AND a.id = :after))
ORDER BY d.deleted_at DESC, d.key DESC LIMIT :limit;

-- name: orphaned_documents
-- Pages that no other page mentions, apart from those at the top of a tree.
SELECT d.path FROM documents d
WHERE d.space = :space AND d.deleted_at IS NULL AND d.depth > 2 AND {is_inside} AND NOT EXISTS (
    SELECT 1 FROM document_references r JOIN documents o ON o.key = r.document_key
    WHERE r.space = :space AND o.space = :space AND r.target_key = d.key AND o.deleted_at IS NULL
        AND o.key <> d.key AND o.path_key >= :path_key AND o.path_key < :path_key_end
        AND r.target_path_key >= :path_key AND r.target_path_key < :path_key_end)
ORDER BY d.path_key LIMIT :limit;

-- name: search_documents (sqlite)
-- CROSS JOIN: the words first, and then the documents that have them, never the other way round.
-- What it is called counts on its own: however often a text has a word, it is no more than so much.
SELECT {document} FROM documents_fts CROSS JOIN documents d ON d.key = documents_fts.rowid
WHERE documents_fts MATCH {any_of} AND d.space = :space AND d.deleted_at IS NULL AND {is_inside}
ORDER BY 2 * bm25(documents_fts, 20, 0, 0) + bm25(documents_fts, 0, 20, 0)
    + bm25(documents_fts, 0, 0, 1), d.path_key LIMIT :limit;

-- name: search_documents (postgres)
SELECT {document} FROM documents d, {any_of} q (wanted)
WHERE d.search @@ q.wanted AND d.space = :space AND d.deleted_at IS NULL AND {is_inside}
ORDER BY ts_rank(CAST(ARRAY[0.4, 0.4, 0.7, 1.0] AS REAL[]), d.search, q.wanted) DESC, d.path_key
LIMIT :limit;

-- name: free_references
-- What they mean is about to be purged.
UPDATE document_references SET target_key = NULL WHERE space = :space AND target_key = :key;

-- name: purge_document
DELETE FROM documents WHERE space = :space AND key = :key RETURNING key, {words_gone};

-- name: erase_version
-- An earlier one: what a document says now stays.
DELETE FROM document_versions WHERE space = :space AND version = :version AND document_key = (
    SELECT d.key FROM documents d WHERE d.space = :space AND d.id = :id AND d.version > :version)
RETURNING version;

-- name: list_purgeable
-- Everything that stands or ever stood at a path and below it.
SELECT d.key, d.deleted_at, d.version, (
    SELECT count(*) FROM document_versions v WHERE v.space = :space AND v.document_key = d.key)
FROM documents d WHERE d.space = :space AND d.deleted_at IS NULL AND {is_inside}
UNION ALL
SELECT d.key, d.deleted_at, d.version, (
    SELECT count(*) FROM document_versions v WHERE v.space = :space AND v.document_key = d.key)
FROM documents d WHERE d.space = :space AND d.deleted_at IS NOT NULL AND {is_inside};

-- fragment: grounds
v.document_key, v.version, v.provenance, v.author_kind, v.author, v.reason

-- name: grounds_of_document
SELECT {grounds} FROM document_versions v WHERE v.space = :space AND v.document_key = :key;

-- name: erase_versions_before
DELETE FROM document_versions
WHERE space = :space AND document_key = :key AND version < :version;

-- name: trim_versions
-- What a person wrote last is kept: no model may take it off the page later.
DELETE FROM document_versions
WHERE space = :space AND document_key = :key AND version < :version AND version NOT IN (
    SELECT v.version FROM document_versions v
    WHERE v.space = :space AND v.document_key = :key AND v.author_kind = 'person'
    ORDER BY v.version DESC LIMIT 1);

-- name: set_provenance
UPDATE document_versions SET provenance = :provenance
WHERE space = :space AND document_key = :key AND version = :version;

-- name: set_document_provenance
UPDATE documents SET provenance = :provenance
WHERE space = :space AND key = :key AND version = :version;

-- name: note_forgotten
UPDATE sessions SET forgotten_at = :now WHERE space = :space AND id = :id;

-- name: forgotten_sessions (sqlite)
SELECT s.id FROM sessions s WHERE s.space = :space AND s.forgotten_at IS NOT NULL
    AND s.id IN (SELECT value FROM json_each(:ids));

-- name: forgotten_sessions (postgres)
SELECT s.id FROM sessions s WHERE s.space = :space AND s.forgotten_at IS NOT NULL
    AND s.id IN (SELECT w FROM json_array_elements_text(CAST(:ids AS json)) w);
