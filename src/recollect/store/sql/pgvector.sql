-- Vectors that PostgreSQL compares itself, where it has the extension pgvector.

-- name: see_vectors (pgvector)
-- Until the end of the transaction, the extension's names after our own.
SELECT set_config(
    'search_path', current_setting('search_path') || ', ' || quote_ident(:extension), true);

-- name: put_embedding (pgvector)
-- Only of a vector that was kept: what it is of may be gone, or say something else by now.
INSERT INTO embeddings (key, space, model, kind, entry_key, embedding)
SELECT v.key, v.space, v.model, v.kind, v.entry_key, CAST(:numbers AS vector) FROM vectors v
WHERE v.space = :space AND v.model = :model AND v.kind = :kind AND v.entry_key = :entry_key
    AND v.vector = :vector
ON CONFLICT (space, key) DO NOTHING;

-- name: vectors_without_embedding (pgvector)
SELECT v.key, v.space, v.model, v.kind, v.entry_key, v.vector FROM vectors v
WHERE v.key > :after AND length(v.vector) > 0 AND NOT EXISTS (
    SELECT 1 FROM embeddings e WHERE e.space = v.space AND e.key = v.key)
ORDER BY v.key LIMIT :limit;

-- name: vector_additions (pgvector)
SELECT s.additions FROM vector_spaces s WHERE s.space = :space;

-- name: search_far (pgvector)
-- Until the end of the transaction: an index goes on until there are enough of the kinds asked for.
SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
    set_config('hnsw.ef_search', CAST(:candidates AS TEXT), true);

-- name: nearest_embeddings (pgvector)
SELECT n.kind, n.entry_key
FROM recollect_nearest(
    :space, :model, CAST(:kinds AS TEXT[]), CAST(:numbers AS TEXT), :dimensions, :limit) n;

-- name: count_embeddings (pgvector)
SELECT count(*) FROM (
    SELECT 1 FROM embeddings e WHERE e.space = :space AND e.model = :model
        AND vector_dims(e.embedding) = :dimensions LIMIT :limit) n;

-- name: compared_embeddings (pgvector)
SELECT e.kind, e.entry_key, -(e.embedding <#> (SELECT CAST(:numbers AS vector)))
FROM unnest(CAST(:kinds AS TEXT[]), CAST(:entry_keys AS BIGINT[])) wanted (kind, entry_key)
CROSS JOIN LATERAL (
    SELECT o.key FROM vectors o
    WHERE o.space = :space AND o.model = :model AND o.kind = wanted.kind
        AND o.entry_key = wanted.entry_key OFFSET 0) v
CROSS JOIN LATERAL (
    SELECT * FROM embeddings o WHERE o.space = :space AND o.key = v.key OFFSET 0) e
WHERE e.space = :space AND vector_dims(e.embedding) = :dimensions;

-- name: usual_likeness (pgvector)
-- Of some that stand as far apart as possible, each with each.
WITH numbered AS (
    SELECT e.key, row_number() OVER (ORDER BY e.key) - 1 AS at, count(*) OVER () AS total
    FROM embeddings e
    WHERE e.space = :space AND e.model = :model AND vector_dims(e.embedding) = :dimensions),
chosen AS MATERIALIZED (
    SELECT e.key, e.embedding FROM numbered n
    JOIN embeddings e ON e.space = :space AND e.key = n.key
    WHERE mod(n.at, (n.total + :rows - 1) / :rows) = 0 ORDER BY e.key LIMIT :rows)
SELECT avg(-(a.embedding <#> b.embedding)), stddev_pop(-(a.embedding <#> b.embedding))
FROM chosen a JOIN chosen b ON a.key < b.key;
