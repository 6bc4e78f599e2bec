-- What came in from other programs' files, so that nothing of it comes in twice.

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
