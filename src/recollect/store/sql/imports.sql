-- What came in from other programs' files, and how far those have been read.

-- name: note_imported (sqlite)
-- Those that are new come back. In one order: two that take in the same items at once wait for each
-- other, and not in a circle.
INSERT INTO imported_items (space, source, item, imported_at)
SELECT :space, :source, i.value, :now FROM json_each(:items) i WHERE true ORDER BY i.value
ON CONFLICT (space, source, item) DO NOTHING
RETURNING item;

-- name: note_imported (postgres)
INSERT INTO imported_items (space, source, item, imported_at)
SELECT :space, :source, i.item, :now
FROM jsonb_array_elements_text(CAST(:items AS jsonb)) AS i (item) ORDER BY i.item COLLATE "C"
ON CONFLICT (space, source, item) DO NOTHING
RETURNING item;

-- name: find_imported (sqlite)
SELECT m.item FROM json_each(:items) i
CROSS JOIN imported_items m ON m.space = :space AND m.source = :source AND m.item = i.value;

-- name: find_imported (postgres)
SELECT m.item FROM imported_items m
WHERE m.space = :space AND m.source = :source
    AND m.item = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(:items AS jsonb))));

-- name: import_cursor
SELECT source, place, offset_bytes, line, head, head_bytes, memo FROM import_cursors
WHERE space = :space AND source = :source AND place = :place;

-- name: move_import_cursor
INSERT INTO import_cursors (
    space, source, place, offset_bytes, line, head, head_bytes, memo, moved_at)
VALUES (:space, :source, :place, :offset_bytes, :line, :head, :head_bytes, :memo, :now)
ON CONFLICT (space, source, place) DO UPDATE SET
    offset_bytes = excluded.offset_bytes, line = excluded.line, head = excluded.head,
    head_bytes = excluded.head_bytes, memo = excluded.memo, moved_at = excluded.moved_at;
