-- What came in from other programs' files, so that nothing of it comes in twice.

-- Items are digests. They outlive what became of them: what was forgotten does not come back.
CREATE TABLE imported_items (
    space TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    item TEXT COLLATE "C" NOT NULL,
    imported_at BIGINT NOT NULL,
    PRIMARY KEY (space, source, item)
);

-- How far a file has been read, and what its reader must know of the part before.
CREATE TABLE import_cursors (
    space TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL,
    offset_bytes BIGINT NOT NULL,
    line BIGINT NOT NULL,
    head TEXT NOT NULL,
    head_bytes BIGINT NOT NULL,
    memo TEXT NOT NULL,
    moved_at BIGINT NOT NULL,
    PRIMARY KEY (space, source, place)
);

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['imported_items', 'import_cursors'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_space ON %I USING ('
            'space = current_setting(''recollect.space'', true) '
            'OR current_setting(''recollect.operator'', true) = ''on'')', name);
    END LOOP;
END
$$;
